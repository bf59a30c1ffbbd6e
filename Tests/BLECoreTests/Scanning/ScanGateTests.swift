import BLECore
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
        let lost = gate.lost(silentSince: start + .seconds(1))
        #expect(lost == [AdvertiserID(report(1, []))])
        let again = gate.lost(silentSince: start + .seconds(1))
        #expect(again.isEmpty)
        #expect(try admit(report(1, []), &table, &gate, at: start + .seconds(6)) == .found)
        let forgotten = [gate.forget(AdvertiserID(report(2, []))), gate.forget(AdvertiserID(report(2, [])))]
        #expect(forgotten == [true, false])
        #expect(gate.count == 1)
    }

    @Test func filtersTakeWhatTheyName() throws {
        // Flags, the heart rate service, and data of company 0x004C, laid out by the Core Specification Supplement.
        let data: [UInt8] = [2, 1, 6, 3, 3, 0x0D, 0x18, 4, 0xFF, 0x4C, 0, 1]
        let one = report(1, data)
        let peer = try #require(one.peer)
        var others = ScanFilter()
        others.excluding = [peer]
        var beacons = ScanFilter()
        beacons.connectableOnly = true
        #expect(try passes(.any, one))
        #expect(try passes(.services(0x180D, 0x180F), one))
        #expect(try !passes(.services(0x180F), one))
        #expect(try passes(.company(0x004C), one))
        #expect(try !passes(.company(0x0059), one))
        #expect(try passes(.peer(peer), one))
        #expect(try !passes(.peer(peer), report(2, data)))
        #expect(try !passes(.peer(peer), AdvertisingReport(address: nil, addressType: nil)))
        #expect(try !passes(.name(startingWith: "x"), one))
        #expect(try !passes(others, one))
        #expect(try passes(beacons, one))
        #expect(try !passes(beacons, report(1, data, [.legacy])))
        // Solicited: AD type 0x14.
        #expect(try passes(.services(0x180D), report(1, [3, 0x14, 0x0D, 0x18])))
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
        return gate.admit(table[outcome.place], outcome.change, at: now)
    }

    private func passes(_ filter: ScanFilter, _ report: AdvertisingReport) throws -> Bool {
        var table = DeviceTable()
        let outcome = try #require(record(report, &table, at: start))
        return filter.matches(table[outcome.place])
    }
}
