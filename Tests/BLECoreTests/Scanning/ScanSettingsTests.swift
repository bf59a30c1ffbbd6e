import BLECore
import TestSupport
import Testing

@Suite struct ScanSettingsTests {
    /// Each change leaves everything else as it was.
    @Test func oneThingIsChangedAtATime() throws {
        let all = try ScanSettings(
            isActive: false, interval: .milliseconds(300), window: .milliseconds(30), duplicates: .every(.seconds(2)),
            filter: .name("Pulse"), rssiDelta: 6)
        let coexist = ScanSettings.coexist
        #expect(coexist.matching(.name("Pulse")).duplicates(.every(.seconds(2))).rssiDelta(6) == all)
        #expect(all.matching(.any).duplicates(.changed).rssiDelta(nil) == coexist)
        #expect(coexist.matching(.name("Pulse")) != coexist.matching(.name("pulse")))
    }

    /// The specification counts in units of 0.625 ms.
    @Test func timesAreRoundedDown() throws {
        let settings = try ScanSettings(interval: .microseconds(101_249), window: .microseconds(3_124))
        #expect(settings.interval == .microseconds(100_625))
        #expect(settings.window == .microseconds(2_500))
    }

    /// A radio that listens without a break leaves Wi-Fi on the same antenna no time.
    @Test(.row("W50", "W70")) func listeningLeavesOthersTime() {
        for settings in [ScanSettings.balanced, .passive, .coexist, .longRange] {
            #expect(settings.window * 3 <= settings.interval)
        }
        let peer = PeerID(address: BluetoothAddress(rawValue: 1), type: .public)
        let initiation = LEInitiation(peer: peer)
        #expect(initiation.scanWindow * 2 == initiation.scanInterval)
    }

    /// What the controller leaves out nobody gets, so all have to agree to it.
    @Test func theControllerFiltersDuplicatesOnlyIfAllScansAgree() throws {
        let filtered = try ScanSettings(filtersDuplicatesInController: true)
        #expect(try #require(ScanPlan(covering: [filtered, filtered])).filtersDuplicates)
        #expect(try !#require(ScanPlan(covering: [filtered, .balanced])).filtersDuplicates)
        #expect(try !#require(ScanPlan(covering: [.balanced, filtered])).filtersDuplicates)
    }
}
