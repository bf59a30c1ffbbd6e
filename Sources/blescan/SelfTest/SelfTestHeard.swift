import BLECore
import BareBLE

/// The reports of a scan, counted.
struct SelfTestHeard: Hashable, Sendable {
    /// One advertiser.
    struct Advertiser: Hashable, Sendable {
        var reports = 0
        /// Whether its data have changed.
        var hasChanged = false
        fileprivate var data: [UInt8]?
    }

    var time: Duration
    var reports = 0
    var legacy = 0
    var extended = 0
    var empty = 0
    var withoutRSSI = 0
    /// Reports with reserved bits in their event type.
    var reserved = 0
    /// Legacy reports with more than 31 bytes.
    var oversized = 0
    var scannable = 0
    var scanResponses = 0
    /// The longest data of one report, in bytes.
    var longest = 0
    /// Events that do not have their layout.
    var malformed = 0
    /// The time of the first report, and of the last one.
    var first: Duration?
    var last: Duration?
    /// The advertisements of the second adapter that were heard, by their numbers, with the address.
    private(set) var marks: [UInt8: PeerID] = [:]
    private(set) var advertisers: [PeerID: Advertiser] = [:]

    init(time: Duration) {
        self.time = time
    }

    /// The defined bits of the event type of an extended report.
    private static let definedBits: UInt16 = 0x007F

    /// Counts what a packet reports.
    mutating func add(_ packet: SelfTestChannel.Packet, since start: BootInstant) {
        guard case .event(.advertisingReports(let batch)) = packet.content else {
            if case .malformed = packet.content { malformed += 1 }
            return
        }
        oversized += batch.losses.oversized
        if batch.losses.missing > 0 || batch.losses.trailingBytes > 0 { malformed += 1 }
        // A report may be read before the response to the command that began the scan.
        for report in batch.reports { add(report, at: max(.zero, packet.time - start)) }
    }

    /// Counts a report that came so long after the beginning.
    mutating func add(_ report: AdvertisingReport, at time: Duration) {
        reports += 1
        first = first ?? time
        last = time
        if report.isLegacy { legacy += 1 } else { extended += 1 }
        let data = report.data
        if data.isEmpty { empty += 1 }
        longest = max(longest, data.count)
        if report.rssi == nil { withoutRSSI += 1 }
        if report.event == .extended, report.eventType & ~Self.definedBits != 0 { reserved += 1 }
        if report.isScanResponse { scanResponses += 1 } else if report.isScannable { scannable += 1 }
        guard let peer = report.peer else { return }
        if let mark = SelfTestPeer.mark(in: report) { marks[mark] = peer }
        var advertiser = advertisers[peer] ?? Advertiser()
        advertiser.reports += 1
        if !report.isScanResponse {
            if let known = advertiser.data, known != data { advertiser.hasChanged = true }
            advertiser.data = data
        }
        advertisers[peer] = advertiser
    }

    /// Reports in a second, without those of some advertisers.
    func rate(without others: Set<PeerID>) -> Double {
        guard time > .zero else { return 0 }
        let left = others.reduce(reports) { $0 - (advertisers[$1]?.reports ?? 0) }
        return Double(left) / (time / .seconds(1))
    }

    /// Reports in a second.
    var rate: Double { time > .zero ? Double(reports) / (time / .seconds(1)) : 0 }
}
