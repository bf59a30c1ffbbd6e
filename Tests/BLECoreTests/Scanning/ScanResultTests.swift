import BLECore
import Testing

/// What an advertisement and its scan response come to. Structures by hand, after the Core Specification Supplement,
/// Part A, 1.
@Suite struct ScanResultTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)
    private let response: AdvertisingReport.Properties = [.scanResponse, .legacy]

    private func scanResult(_ reports: [AdvertisingReport]) throws -> ScanResult {
        var table = DeviceTable()
        var known: ScanResult?
        for (index, report) in reports.enumerated() {
            let outcome = try #require(record(report, &table, at: start + .milliseconds(100 * Int64(index))))
            known = table[outcome.place]
        }
        return try #require(known)
    }

    @Test func theAdvertisementCountsBeforeItsResponse() throws {
        let both = try scanResult([
            report(1, [3, 0x03, 0x0D, 0x18, 2, 0x0A, 0xF4, 3, 0x19, 0x41, 0x03]),
            report(1, [5, 0x03, 0x0F, 0x18, 0x0D, 0x18, 2, 0x0A, 0x08, 3, 0x19, 0x40, 0x00], response),
        ])
        #expect(both.serviceUUIDs == [0x180D, 0x180F])
        #expect(both.txPower == -12)
        #expect(both.appearance == 0x0341)
        let alone = try scanResult([
            report(1, []), report(1, [3, 0x03, 0x0F, 0x18, 2, 0x0A, 0x08, 3, 0x19, 0x40, 0x00], response),
        ])
        #expect(alone.serviceUUIDs == [0x180F])
        #expect(alone.txPower == 8)
        #expect(alone.appearance == 0x0040)
        #expect(try scanResult([report(1, [])]).txPower == nil)
    }

    /// What an extended advertisement says in its header counts before what it says in its data.
    @Test func thePowerOfAnExtendedAdvertisementIsInItsHeader() throws {
        var extended = report(1, [2, 0x0A, 0xF4], [.connectable])
        extended.txPower = 4
        #expect(try scanResult([extended]).txPower == 4)
    }

    @Test func aCompleteNameCountsBeforeAShortenedOne() throws {
        let shortened = report(1, [3, 0x08, 0x50, 0x75])
        let complete = report(1, [6, 0x09, 0x50, 0x75, 0x6C, 0x73, 0x65], response)
        #expect(try scanResult([shortened]).name == "Pu")
        #expect(try scanResult([shortened, complete]).name == "Pulse")
        #expect(try scanResult([report(1, []), report(1, [3, 0x08, 0x50, 0x75], response)]).name == "Pu")
        #expect(try scanResult([report(1, [])]).name == nil)
    }

    /// Recordings are shown without saying who was there.
    @Test func aScanResultKeepsItsStatisticsUnderAReplacedPeer() throws {
        let known = try scanResult([
            report(1, [2, 1, 6]), report(1, [3, 0x08, 0x50, 0x75], response), report(1, [2, 1, 6]),
        ])
        let other = try #require(report(2, []).peer)
        let shown = known.replacing(peer: other) { report in
            var report = report
            report.data = Array(report.data.reversed())
            return report
        }
        #expect(shown.peer == other)
        #expect(shown.advertisement?.data == [6, 1, 2])
        #expect(shown.scanResponse?.data == [0x75, 0x50, 0x08, 3])
        #expect(shown.count == 3 && shown.rssi == known.rssi && shown.averageRSSI == known.averageRSSI)
        #expect(shown.interval == .milliseconds(200) && shown.interval == known.interval)
        #expect(shown.firstSeen == start && shown.lastSeen == start + .milliseconds(200))
    }
}
