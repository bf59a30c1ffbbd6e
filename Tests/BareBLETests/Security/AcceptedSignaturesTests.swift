import BLECore
import TestSupport
import Testing

@testable import BareBLE

/// Which counters of signed writes are accepted, with the disk in the test.
@Suite struct AcceptedSignaturesTests {
    private static let key = RecordedBonds.secret(String(repeating: "5a", count: 16))

    private static let now = BootInstant(nanoseconds: 100_000_000_000)

    private func signing(_ counter: UInt32?) -> BondRecord.Signing { .init(key: Self.key, counter: counter) }

    @Test func aCounterIsAcceptedOnceTheDiskHasIt() {
        let signatures = AcceptedSignatures()
        #expect(signatures.accept(9, by: signing(10), at: Self.now) == .used)
        #expect(signatures.accept(10, by: signing(10), at: Self.now) == .needsStorage(74))
        #expect(signatures.accept(10, by: signing(10), at: Self.now) == .needsStorage(74), "it was not stored")
        signatures.stored(74, by: Self.key)
        #expect(signatures.accept(10, by: signing(74), at: Self.now) == .accepted)
        #expect(signatures.accept(10, by: signing(74), at: Self.now) == .used)
        #expect(signatures.accept(73, by: signing(74), at: Self.now) == .accepted)
        #expect(signatures.accept(72, by: signing(74), at: Self.now) == .used)
        #expect(signatures.accept(74, by: signing(74), at: Self.now) == .needsStorage(138))
        #expect(signatures.accept(1_000, by: signing(74), at: Self.now) == .needsStorage(1_064))
    }

    @Test func whatIsStoredExactlyCoversNothingMore() {
        let signatures = AcceptedSignatures()
        #expect(!signatures.isAhead && signatures.takeExact().isEmpty)
        #expect(signatures.accept(0, by: signing(0), at: Self.now) == .needsStorage(64))
        signatures.stored(64, by: Self.key)
        #expect(signatures.accept(0, by: signing(64), at: Self.now) == .accepted)
        #expect(signatures.isAhead && signatures.takeExact() == [Self.key: 1])
        #expect(!signatures.isAhead)
        // Also while the exact counter is on its way to the disk.
        #expect(signatures.accept(1, by: signing(64), at: Self.now) == .needsStorage(65))
    }

    @Test func theLastCounterIsAcceptedAndNoneAfterIt() {
        let signatures = AcceptedSignatures()
        #expect(signatures.accept(.max - 1, by: signing(5), at: Self.now) == .needsStorage(nil))
        signatures.stored(nil, by: Self.key)
        #expect(signatures.accept(.max - 1, by: signing(nil), at: Self.now) == .accepted)
        #expect(signatures.takeExact() == [Self.key: .max])
        #expect(signatures.accept(.max, by: signing(.max), at: Self.now) == .needsStorage(nil))
        signatures.stored(nil, by: Self.key)
        #expect(signatures.accept(.max, by: signing(nil), at: Self.now) == .accepted)
        #expect(signatures.accept(.max, by: signing(nil), at: Self.now) == .used)
        #expect(!signatures.isAhead)
        #expect(AcceptedSignatures().accept(.max, by: signing(nil), at: Self.now) == .used)
    }

    /// The holder of the key could make the disk write with each of its packets.
    @Test func aPeerThatSkipsCountersMakesTheDiskWriteAFewTimesInAMinute() {
        let signatures = AcceptedSignatures()
        var stored: UInt32 = 0
        func use(_ counter: UInt32, at seconds: Int) -> AcceptedSignatures.Decision {
            let now = Self.now + .seconds(seconds)
            let decision = signatures.accept(counter, by: signing(stored), at: now)
            guard case .needsStorage(let lowest?) = decision else { return decision }
            stored = lowest
            signatures.stored(lowest, by: Self.key)
            return signatures.accept(counter, by: signing(stored), at: now)
        }
        for number in 1...8 { #expect(use(UInt32(number) * 1_000, at: 0) == .accepted) }
        #expect(use(9_000, at: 59) == .skipsTooOften)
        #expect(use(8_001, at: 59) == .accepted, "the disk covers it")
        #expect(use(9_000, at: 60) == .accepted)
        // One that skips none is never limited.
        for counter in UInt32(9_001)...19_000 { #expect(use(counter, at: 60) == .accepted) }
    }

    @Test func theCountOfThisRunGoesBeforeThatOfTheDisk() {
        let signatures = AcceptedSignatures()
        #expect(signatures.current(signing(3)) == signing(3))
        #expect(signatures.accept(7, by: signing(3), at: Self.now) == .needsStorage(71))
        signatures.stored(71, by: Self.key)
        #expect(signatures.accept(7, by: signing(71), at: Self.now) == .accepted)
        #expect(signatures.current(signing(0)) == signing(8))
        #expect(signatures.current(signing(71)) == signing(71))
    }

    @Test func keysWithoutBondsAreDroppedWhereThereAreTooMany() {
        let signatures = AcceptedSignatures()
        let limit = 2 * BondFile.recordLimit
        func signing(_ number: Int) -> BondRecord.Signing {
            let digits = String(number, radix: 16)
            let key = RecordedBonds.secret(String(repeating: "0", count: 32 - digits.count) + digits)
            return BondRecord.Signing(key: key, counter: 0)
        }
        func use(_ number: Int, _ bonded: Set<Int>) {
            #expect(signatures.accept(0, by: signing(number), at: Self.now) == .needsStorage(64))
            signatures.stored(64, by: signing(number).key)
            #expect(signatures.accept(0, by: signing(number), at: Self.now) == .accepted)
            signatures.limit(to: Set(bonded.map { signing($0).key }))
        }
        for number in 0..<limit { use(number, [1, number]) }
        #expect(signatures.current(signing(0)).counter == 1)
        use(limit, [1, limit])
        #expect(signatures.current(signing(0)).counter == 0)
        #expect(signatures.current(signing(1)).counter == 1 && signatures.current(signing(limit)).counter == 1)
    }
}
