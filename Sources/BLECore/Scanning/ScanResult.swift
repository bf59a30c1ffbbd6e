/// The identity of an advertiser: a device, and its advertising set if it has several.
///
/// An anonymous advertiser has no address; all of those with the same set number share one identity.
public struct AdvertiserID: Hashable, Sendable {
    /// The device; `nil` for an anonymous one.
    public let peer: PeerID?
    /// The advertising set, 0 to 15; `nil` for legacy advertisements.
    public let sid: UInt8?

    /// Creates an identity.
    public init(peer: PeerID?, sid: UInt8? = nil) {
        self.peer = peer
        self.sid = sid
    }

    /// Creates the identity of a report's advertiser.
    public init(_ report: AdvertisingReport) {
        self.init(peer: report.peer, sid: report.sid)
    }
}

/// The latest data of an advertiser: its newest advertisement, its newest scan response, and its signal strength.
public struct ScanResult: Hashable, Sendable {
    /// The effect of the newest report.
    public enum Change: Hashable, Sendable {
        /// The advertiser was not known.
        case new
        /// The data differs from that of the last report of its kind, this is the first one of its kind, or the device
        /// has changed its address.
        case changed
        /// The data is that of the last report of its kind; only the strength may differ.
        case same
    }

    /// The advertiser. A device whose private address has been resolved is named by its identity address, so that its
    /// changes of address do not make it another advertiser.
    public let id: AdvertiserID
    /// The device, by the address of its newest report, which is the address to connect to; `nil` for one that
    /// advertises anonymously.
    public internal(set) var peer: PeerID?
    /// The newest advertisement; `nil` while only a scan response has been heard.
    public internal(set) var advertisement: AdvertisingReport?
    /// The newest scan response; `nil` in a passive scan, and for devices without one.
    public internal(set) var scanResponse: AdvertisingReport?
    /// The strength of the newest report in dBm; `nil` if the controller could not measure it.
    public internal(set) var rssi: Int8?
    /// The strength smoothed over the last reports, in dBm: each new one counts a quarter.
    public internal(set) var averageRSSI: Double?
    /// The time between two advertisements: the median of the last eight gaps. It is too long if the scan listens only
    /// part of the time and misses some.
    public internal(set) var interval: Duration?
    /// The time of the first report.
    public let firstSeen: BootInstant
    /// The time of the newest report.
    public internal(set) var lastSeen: BootInstant
    /// The number of reports, including scan responses.
    public internal(set) var count: Int

    init(id: AdvertiserID, at now: BootInstant) {
        self.id = id
        peer = id.peer
        firstSeen = now
        lastSeen = now
        count = 0
    }

    /// Returns the same result for another advertiser and with other reports: what is shown in its place.
    ///
    /// - Parameters:
    ///   - peer: The device, by its address on air.
    ///   - identity: Its identity, if this result has one.
    package func replacing(
        peer: PeerID?, identity: PeerID? = nil, _ change: (AdvertisingReport) -> AdvertisingReport
    ) -> ScanResult {
        var scanResult = ScanResult(id: AdvertiserID(peer: identity ?? peer, sid: id.sid), at: firstSeen)
        scanResult.peer = peer
        scanResult.advertisement = advertisement.map(change)
        scanResult.scanResponse = scanResponse.map(change)
        scanResult.rssi = rssi
        scanResult.averageRSSI = averageRSSI
        scanResult.interval = interval
        scanResult.lastSeen = lastSeen
        scanResult.count = count
        return scanResult
    }

    /// The identity address of a bonded device that advertises with a private address; `nil` for every other device.
    ///
    /// The identity stays the same when the address, `peer`, changes, which it does every few minutes. Remember a
    /// device by its identity, if it has one.
    ///
    /// Spec: Resolvable private address resolution, Core Vol 6 Part B, 1.3.2.3.
    public var identity: PeerID? { id.peer == peer ? nil : id.peer }

    /// Returns whether this is the device with an address: the one that it advertises with, or that of its identity.
    package func isFrom(_ device: PeerID) -> Bool { peer == device || id.peer == device }

    /// Returns the device with its type of address, by the address that it advertises with or that of its identity;
    /// `nil` if neither is this one.
    package func peer(at address: BluetoothAddress) -> PeerID? {
        if let peer, peer.address == address { return peer }
        guard let identity, identity.address == address else { return nil }
        return identity
    }

    /// The number of payload bytes that are kept.
    package var payloadLength: Int { (advertisement?.payload.count ?? 0) + (scanResponse?.payload.count ?? 0) }

    /// A Boolean value that indicates whether the device accepts connections, by its newest advertisement.
    public var isConnectable: Bool { advertisement?.isConnectable ?? false }
}

/// The former name of `ScanResult`.
@available(*, deprecated, renamed: "ScanResult")
public typealias Sighting = ScanResult
