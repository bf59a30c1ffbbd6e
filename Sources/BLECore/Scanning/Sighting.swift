/// Who advertises: a device, and which of its advertising sets where it has several.
///
/// A device that advertises anonymously has no address; all of those with the same set number look like one.
public struct AdvertiserID: Hashable, Sendable {
    /// The device; `nil` for an anonymous one.
    public let peer: PeerID?
    /// The advertising set, 0 to 15; `nil` for legacy advertisements.
    public let sid: UInt8?

    /// Names an advertiser.
    public init(peer: PeerID?, sid: UInt8? = nil) {
        self.peer = peer
        self.sid = sid
    }

    /// Whose report this is.
    public init(_ report: AdvertisingReport) {
        self.init(peer: report.peer, sid: report.sid)
    }
}

/// What is known of an advertiser: its newest advertisement, its newest scan response, and how well it is heard.
public struct Sighting: Hashable, Sendable {
    /// What the newest report added to what was known before.
    public enum Change: Hashable, Sendable {
        /// The advertiser was not known.
        case new
        /// The report says something else than the one before of its kind, or is the first of its kind.
        case changed
        /// The report repeats the one before of its kind; only its strength may differ.
        case same
    }

    /// Who advertises.
    public let id: AdvertiserID
    /// The newest advertisement; `nil` while only a scan response has been heard.
    public internal(set) var advertisement: AdvertisingReport?
    /// The newest scan response; `nil` in a passive scan, and for devices that give none.
    public internal(set) var scanResponse: AdvertisingReport?
    /// The strength of the newest report in dBm; `nil` when the controller could not measure it.
    public internal(set) var rssi: Int8?
    /// The strength smoothed over the last reports, in dBm: each new one counts a quarter.
    public internal(set) var averageRSSI: Double?
    /// How long the device waits between two advertisements: the median of the last eight gaps. It is too long where the
    /// scan listens only part of the time and misses some.
    public internal(set) var interval: Duration?
    /// When the first report was heard.
    public let firstSeen: BootInstant
    /// When the newest report was heard.
    public internal(set) var lastSeen: BootInstant
    /// How many reports were heard, scan responses included.
    public internal(set) var count: Int

    init(id: AdvertiserID, at now: BootInstant) {
        self.id = id
        firstSeen = now
        lastSeen = now
        count = 0
    }

    /// The same, of somebody else and with other reports: what is shown instead of it.
    package func replacing(
        peer: PeerID?, _ change: (AdvertisingReport) -> AdvertisingReport
    ) -> Sighting {
        var sighting = Sighting(id: AdvertiserID(peer: peer, sid: id.sid), at: firstSeen)
        sighting.advertisement = advertisement.map(change)
        sighting.scanResponse = scanResponse.map(change)
        sighting.rssi = rssi
        sighting.averageRSSI = averageRSSI
        sighting.interval = interval
        sighting.lastSeen = lastSeen
        sighting.count = count
        return sighting
    }

    /// The device; `nil` for one that advertises anonymously.
    public var peer: PeerID? { id.peer }

    /// How many bytes of payload are kept of it.
    package var payloadLength: Int { (advertisement?.data.count ?? 0) + (scanResponse?.data.count ?? 0) }

    /// Whether the device accepts connections, by its newest advertisement.
    public var isConnectable: Bool { advertisement?.isConnectable ?? false }

    /// Takes a report in; answers what it added. The first report of all is `new`.
    mutating func take(_ report: AdvertisingReport, at now: BootInstant) -> Change {
        let known = report.isScanResponse ? scanResponse : advertisement
        let change: Change =
            count == 0
            ? .new : known?.data == report.data && known?.properties == report.properties ? .same : .changed
        if report.isScanResponse {
            scanResponse = report
        } else {
            advertisement = report
        }
        rssi = report.rssi
        if let strength = report.rssi {
            let value = Double(strength)
            averageRSSI = averageRSSI.map { $0 + (value - $0) / 4 } ?? value
        }
        lastSeen = now
        count &+= 1
        return change
    }
}
