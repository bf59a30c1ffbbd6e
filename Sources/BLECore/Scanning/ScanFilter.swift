/// Which devices a scan hands on. Conditions of different kinds must all hold; of one kind, one is enough.
///
/// What a device says in its advertisement and in its scan response counts together, so a device whose name comes in the
/// response alone matches once the response has been heard.
public struct ScanFilter: Hashable, Sendable {
    /// Advertises or solicits one of these services; empty for any.
    public var services: Set<BluetoothUUID> = []
    /// Is one of these devices; empty for any.
    public var peers: Set<PeerID> = []
    /// Carries data of one of these companies; empty for any.
    public var companies: Set<UInt16> = []
    /// Has a name that begins with this; `nil` for any name or none.
    public var namePrefix: String?
    /// Is at least this strong, in dBm, in the report at hand; one without a strength passes.
    public var minimumRSSI: Int8?
    /// Accepts connections.
    public var connectableOnly = false
    /// Is none of these devices.
    public var excluding: Set<PeerID> = []

    /// A filter that lets everything through until it is told otherwise.
    public init() {}

    /// Everything.
    public static let any = ScanFilter()

    /// Devices that advertise or solicit one of these services.
    public static func services(_ services: BluetoothUUID...) -> ScanFilter {
        var filter = ScanFilter()
        filter.services = Set(services)
        return filter
    }

    /// One device.
    public static func peer(_ peer: PeerID) -> ScanFilter {
        var filter = ScanFilter()
        filter.peers = [peer]
        return filter
    }

    /// Devices whose name begins with a text.
    public static func name(startingWith prefix: String) -> ScanFilter {
        var filter = ScanFilter()
        filter.namePrefix = prefix
        return filter
    }

    /// Devices that carry data of a company.
    public static func company(_ company: UInt16) -> ScanFilter {
        var filter = ScanFilter()
        filter.companies = [company]
        return filter
    }
}
