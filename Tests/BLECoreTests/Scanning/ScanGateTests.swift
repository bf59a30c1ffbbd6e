import BLECore
import TestSupport
import Testing

@Suite struct ScanGateTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)

    @Test func everyReportOrOnlyChangesOrOneInATime() throws {
        #expect(try verdicts(.all) == [.found, .updated, .updated, .updated, .updated])
        #expect(try verdicts(.changed) == [.found, nil, nil, .updated, nil])
        #expect(try verdicts(.every(.seconds(2))) == [.found, nil, .updated, .updated, nil])
    }

    @Test func aNameThatComesWithTheResponseMatchesThen() throws {
        var table = DeviceTable()
        var gate = ScanGate(.balanced.matching(.name(startingWith: "Ther")))
        #expect(try admit(report(1, [2, 1, 6]), &table, &gate, at: start) == nil)
        let name = [8, 9] + Array("Thermos".utf8)
        #expect(try admit(report(1, name, [.scanResponse, .legacy]), &table, &gate, at: start) == .found)
        #expect(try admit(report(1, [2, 1, 6]), &table, &gate, at: start) == nil)
        #expect(try admit(report(1, [2, 1, 4]), &table, &gate, at: start) == .updated)
    }

    @Test func aChangeHeldBackForWeaknessComesLater() throws {
        var filter = ScanFilter()
        filter.minimumRSSI = -70
        var table = DeviceTable()
        var gate = ScanGate(.balanced.matching(filter))
        #expect(try admit(report(1, [1]), &table, &gate, at: start) == .found)
        var weak = report(1, [2])
        weak.rssi = -90
        #expect(try admit(weak, &table, &gate, at: start) == nil)
        #expect(try admit(report(1, [2]), &table, &gate, at: start) == .updated)
        #expect(try admit(report(1, [2]), &table, &gate, at: start) == nil)
    }

    @Test func lostAndForgottenDevicesAreFoundAgain() throws {
        var table = DeviceTable()
        var gate = ScanGate(.balanced)
        _ = try admit(report(1, []), &table, &gate, at: start)
        _ = try admit(report(2, []), &table, &gate, at: start + .seconds(5))
        let lost = gate.lost(silentFor: .seconds(4), listened: .seconds(5))
        #expect(lost == [AdvertiserID(report(1, []))])
        let again = gate.lost(silentFor: .seconds(4), listened: .seconds(5))
        #expect(again.isEmpty)
        #expect(try admit(report(1, []), &table, &gate, at: start + .seconds(6)) == .found)
        let forgotten = [gate.forget(AdvertiserID(report(2, []))), gate.forget(AdvertiserID(report(2, [])))]
        #expect(forgotten == [true, false])
        #expect(gate.count == 1)
    }

    /// It need not advertise; its silence counts from the end of the link.
    @Test(.row("C06")) func aPeerThatIsLinkedIsNotLost() throws {
        var table = DeviceTable()
        var gate = ScanGate(.balanced)
        for number in [1, 2] as [UInt64] { _ = try admit(report(number, []), &table, &gate, at: start) }
        let linked = try #require(AdvertiserID(report(1, [])).peer)
        let whileLinked = gate.lost(silentFor: .seconds(4), listened: .seconds(20), linked: [linked])
        #expect(whileLinked == [AdvertiserID(report(2, []))])
        let afterwards = gate.lost(silentFor: .seconds(4), listened: .seconds(24))
        #expect(afterwards.isEmpty)
        let later = gate.lost(silentFor: .seconds(4), listened: .seconds(25))
        #expect(later == [AdvertiserID(report(1, []))])
    }

    @Test func aNewAddressOfAnIdentityIsAnUpdate() throws {
        var table = DeviceTable()
        var gate = ScanGate(.balanced.duplicates(.changed))
        let identity = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)
        var verdicts: [ScanGate.Verdict?] = []
        for number in [1, 1, 2, 2] as [UInt64] {
            let outcome = try #require(record(report(0x4000_0000_0000 + number, []), of: identity, &table, at: start))
            verdicts.append(gate.admit(table[outcome.place], outcome.change, at: start, listened: .zero))
        }
        #expect(verdicts == [.found, nil, .updated, nil])
        let lost = gate.lost(silentFor: .seconds(1), listened: .seconds(5), linked: [identity])
        #expect(lost.isEmpty && gate.count == 1)
    }

    @Test func theLostComeInTheOrderOfTheirSilence() throws {
        var table = DeviceTable()
        var gate = ScanGate(.balanced)
        for number in [5, 3, 9, 1, 7] as [UInt64] {
            _ = try admit(report(number, []), &table, &gate, at: start + .seconds(Int(number)))
        }
        let lost = gate.lost(silentFor: .seconds(4), listened: .seconds(12)).map { $0.peer?.address.rawValue }
        #expect(lost == [1, 3, 5, 7])
    }

    @Test func timeWithoutListeningDoesNotCountAsSilence() throws {
        var clock = ListeningClock()
        var table = DeviceTable()
        var gate = ScanGate(.balanced)
        clock.set(isListening: true, at: start)
        let outcome = try #require(record(report(1, []), &table, at: start))
        _ = gate.admit(table[outcome.place], outcome.change, at: start, listened: clock.reading(at: start))
        clock.set(isListening: false, at: start + .seconds(1))
        clock.set(isListening: false, at: start + .seconds(2))
        // Deaf for an hour, then 4 s of silence: 5 s in all, of 3,605.
        let back = start + .seconds(3601)
        let deaf = gate.lost(silentFor: .seconds(5), listened: clock.reading(at: back))
        #expect(deaf.isEmpty)
        clock.set(isListening: true, at: back)
        let early = gate.lost(silentFor: .seconds(5), listened: clock.reading(at: back + .seconds(4)))
        #expect(early.isEmpty)
        let late = gate.lost(silentFor: .seconds(5), listened: clock.reading(at: back + .milliseconds(4001)))
        #expect(late.count == 1)
    }

    @Test func timeThatIsLeftOutIsNoListening() {
        var clock = ListeningClock()
        clock.set(isListening: true, at: start)
        clock.leaveOut(from: start + .seconds(1), to: start + .seconds(3601))
        #expect(clock.reading(at: start + .seconds(3604)) == .seconds(4))
        clock.set(isListening: false, at: start + .seconds(3604))
        // It stands still anyway.
        clock.leaveOut(from: start + .seconds(3605), to: start + .seconds(3700))
        clock.set(isListening: true, at: start + .seconds(3800))
        #expect(clock.reading(at: start + .seconds(3801)) == .seconds(5))
    }

    @Test func theStrengthThrottlesRepetitionsOnly() throws {
        #expect(
            try strengths(.balanced.duplicates(.all).rssiDelta(5), [-60, -64, -65, -61, -60, nil, -60]) == [
                .found, nil, .updated, nil, .updated, nil, nil,
            ])
        // Under `changed` there are no repetitions to hold back, and a change passes at any strength.
        #expect(try strengths(.balanced.rssiDelta(5), [-60, -90, -60]) == [.found, nil, nil])
        var table = DeviceTable()
        var gate = ScanGate(.balanced.duplicates(.all).rssiDelta(50))
        #expect(try admit(report(1, [1]), &table, &gate, at: start) == .found)
        #expect(try admit(report(1, [2]), &table, &gate, at: start) == .updated)
        #expect(try admit(report(1, [2]), &table, &gate, at: start) == nil)
    }

    @Test func theFirstStrengthOfADeviceWithoutOnePasses() throws {
        #expect(
            try strengths(.balanced.duplicates(.all).rssiDelta(5), [nil, nil, -60, -60]) == [
                .found, nil, .updated, nil,
            ])
    }

    @Test func timeAndStrengthThrottleTogether() throws {
        // One second apart; one in two seconds may repeat, and only if it is 5 dB off.
        #expect(
            try strengths(.balanced.duplicates(.every(.seconds(2))).rssiDelta(5), [-60, -70, -61, -66, -70, -80]) == [
                .found, nil, nil, .updated, nil, .updated,
            ])
    }

    /// What becomes of five reports one second apart of which the fourth alone changes.
    private func verdicts(_ duplicates: ScanSettings.Duplicates) throws -> [ScanGate.Verdict?] {
        var table = DeviceTable()
        var gate = ScanGate(.balanced.duplicates(duplicates))
        return try [1, 1, 1, 2, 2].enumerated().map { index, byte in
            try admit(report(1, [byte]), &table, &gate, at: start + .seconds(index))
        }
    }

    private func admit(
        _ report: AdvertisingReport, _ table: inout DeviceTable, _ gate: inout ScanGate, at now: BootInstant
    ) throws -> ScanGate.Verdict? {
        let outcome = try #require(record(report, &table, at: now))
        return gate.admit(table[outcome.place], outcome.change, at: now, listened: now - start)
    }

    /// What becomes of equal reports one second apart with these strengths.
    private func strengths(_ settings: ScanSettings, _ strengths: [Int8?]) throws -> [ScanGate.Verdict?] {
        var table = DeviceTable()
        var gate = ScanGate(settings)
        return try strengths.enumerated().map { index, rssi in
            var one = report(1, [1])
            one.rssi = rssi
            return try admit(one, &table, &gate, at: start + .seconds(index))
        }
    }
}
