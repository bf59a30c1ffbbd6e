import BLECore
import BLELinux
import BareBLE
import Testing

/// What a call gathers, without a link.
@Suite struct GatheringTests {
    private func at(_ seconds: Int64) -> BootInstant { BootInstant(nanoseconds: seconds * 1_000_000_000) }

    @Test func nothingBeforeTheRequestIsItsAnswer() {
        var gathering = Gathering(.match { _ in true })
        gathering.received([1], at: at(0))
        #expect(gathering.outcome == nil)
        gathering.asked()
        gathering.received([2], at: at(1))
        // Before the peer's confirmation, as many do.
        #expect(gathering.outcome == .matched([2]))
        gathering.confirmed(at: at(2))
        gathering.received([3], at: at(3))
        #expect(gathering.outcome == .matched([2]))
        #expect(gathering.nextDeadline == nil)
    }

    @Test func whatDoesNotMatchIsPassedOver() {
        var gathering = Gathering(.match { $0.first == 0x10 }, deadline: at(60))
        gathering.asked()
        gathering.confirmed(at: at(0))
        gathering.received([], at: at(1))
        gathering.received([0x11], at: at(2))
        #expect(gathering.outcome == nil && gathering.count == 2)
        #expect(gathering.nextDeadline == at(60))
        gathering.timePassed(at(59))
        #expect(gathering.outcome == nil)
        gathering.timePassed(at(60))
        #expect(gathering.outcome == .timedOut)
    }

    @Test(arguments: [
        ([[1, 2], [3]], Gathering.Outcome.assembled([1, 2, 3])),
        ([[1, 2], [3, 4]], .tooMuch),
        ([[1, 2, 3, 4]], .tooMuch),
        ([[1], [], [2], [], [3], [4]], .assembled([1, 2, 3])),
    ])
    func lengthsAreExact(parts: [[UInt8]], outcome: Gathering.Outcome) {
        var gathering = Gathering(.assemble(.length(3)))
        gathering.asked()
        gathering.confirmed(at: at(0))
        for part in parts { gathering.received(part, at: at(1)) }
        #expect(gathering.outcome == outcome)
    }

    @Test(arguments: [
        (ResponseCount.exactly(2), [[1], [], [3]], Gathering.Outcome?.some(.collected([[1], []]))),
        (.exactly(2), [[1]], Gathering.Outcome?.none),
        (.until { $0.first == 3 }, [[1], [2], [3, 4], [5]], .collected([[1], [2], [3, 4]])),
        (.until(limit: 2) { $0.first == 3 }, [[1], [3]], .collected([[1], [3]])),
        (.until(limit: 2) { $0.first == 3 }, [[1], [2], [3]], .tooMuch),
    ])
    func valuesAreCollected(count: ResponseCount, values: [[UInt8]], outcome: Gathering.Outcome?) {
        var gathering = Gathering(.collect(count), idleTime: .seconds(5), deadline: at(60))
        gathering.received([9], at: at(0))
        gathering.asked()
        for value in values.prefix(1) { gathering.received(value, at: at(1)) }
        gathering.confirmed(at: at(2))
        for value in values.dropFirst() { gathering.received(value, at: at(3)) }
        #expect(gathering.outcome == outcome)
        if outcome == nil { #expect(gathering.nextDeadline == at(7)) }
    }

    @Test func whatMatchedBeforeTheLastPieceOfTheRequestDoesNotCount() {
        var gathering = Gathering(.match { _ in true })
        gathering.asked()
        gathering.received([1], at: at(1))
        gathering.asked()
        #expect(gathering.outcome == nil && gathering.count == 0)
        gathering.received([2], at: at(2))
        #expect(gathering.outcome == .matched([2]))
    }

    @Test func anEmptyAnswerIsThereWithTheConfirmation() {
        var gathering = Gathering(.assemble(.length(0)))
        gathering.asked()
        #expect(gathering.outcome == nil)
        gathering.confirmed(at: at(0))
        #expect(gathering.outcome == .assembled([]))
    }

    @Test func aPredicateSeesAllBytesAndHasALimit() {
        var gathering = Gathering(.assemble(.until(limit: 4) { $0.suffix(2) == [13, 10] }))
        gathering.asked()
        gathering.received([1, 13], at: at(0))
        gathering.received([10], at: at(0))
        #expect(gathering.outcome == .assembled([1, 13, 10]))
        var endless = Gathering(.assemble(.until(limit: 4) { _ in false }))
        endless.asked()
        for byte in 0..<9 as Range<UInt8> { endless.received([byte], at: at(0)) }
        #expect(endless.outcome == .tooMuch)
        #expect(endless.bytes == [0, 1, 2, 3, 4])
    }

    @Test func silenceIsMeasuredFromTheConfirmationAndEachValue() {
        var gathering = Gathering(.assemble(.length(3)), idleTime: .seconds(5))
        #expect(gathering.nextDeadline == nil)
        gathering.asked()
        gathering.received([1], at: at(3))
        #expect(gathering.nextDeadline == nil)
        gathering.confirmed(at: at(4))
        #expect(gathering.nextDeadline == at(9))
        gathering.received([2], at: at(8))
        gathering.timePassed(at(9))
        #expect(gathering.outcome == nil)
        #expect(gathering.nextDeadline == at(13))
        gathering.timePassed(at(13))
        #expect(gathering.outcome == .idle)
        #expect(gathering.bytes == [1, 2])
    }

    /// A peer that sends nothing, again and again, is silent.
    @Test func valuesWithoutBytesProlongNoAssembly() {
        final class Asked: Sendable { let count = Lock(0) }
        let asked = Asked()
        let assembly = Assembly.until(limit: 4) { _ in
            asked.count.withLock { $0 += 1 }
            return false
        }
        var gathering = Gathering(.assemble(assembly), idleTime: .seconds(10))
        gathering.asked()
        gathering.confirmed(at: at(0))
        gathering.received([1], at: at(1))
        gathering.received([], at: at(9))
        #expect(asked.count.withLock { $0 } == 1)
        #expect(gathering.count == 2)
        #expect(gathering.nextDeadline == at(11))
        gathering.timePassed(at(11))
        #expect(gathering.outcome == .idle)
        #expect(gathering.bytes == [1])
    }

    @Test func theTotalTimeEndsWhatTheIdleTimeDoesNot() {
        var gathering = Gathering(.silence, idleTime: .seconds(2), deadline: at(5))
        gathering.asked()
        gathering.confirmed(at: at(0))
        for second in 1...4 as ClosedRange<Int64> { gathering.received([0], at: at(second)) }
        #expect(gathering.nextDeadline == at(5))
        gathering.timePassed(at(5))
        #expect(gathering.outcome == .timedOut)
        #expect(gathering.count == 4)
    }

    @Test func silenceIsWhatADrainWants() {
        var gathering = Gathering(.silence, idleTime: .seconds(2), deadline: at(60))
        gathering.asked()
        gathering.confirmed(at: at(0))
        gathering.received([0], at: at(1))
        gathering.timePassed(at(3))
        #expect(gathering.outcome == .silent)
        #expect(gathering.count == 1)
    }

    /// The write was refused for want of security, and is made again.
    @Test func aRepeatedRequestBeginsAnew() {
        var gathering = Gathering(.assemble(.length(2)))
        gathering.asked()
        gathering.received([9], at: at(0))
        gathering.asked()
        gathering.received([1, 2], at: at(0))
        #expect(gathering.outcome == .assembled([1, 2]))
    }
}
