internal import BLECore

/// The advertisement of a peripheral on a `VirtualRadio`.
public struct VirtualAdvertisement: Hashable, Sendable {
    /// The advertising data. More than 31 bytes require an extended advertisement, which legacy controllers do not
    /// receive.
    public var data: [UInt8]
    /// The data of the scan response, or `nil` for none.
    public var scanResponse: [UInt8]?
    /// The advertising interval.
    public var interval: Duration
    /// A Boolean value that indicates whether the advertisement is connectable.
    public var isConnectable: Bool

    /// Creates an advertisement from raw data.
    public init(
        _ data: [UInt8], scanResponse: [UInt8]? = nil, interval: Duration = .milliseconds(100),
        isConnectable: Bool = true
    ) {
        self.data = data
        self.scanResponse = scanResponse
        self.interval = max(interval, .milliseconds(1))
        self.isConnectable = isConnectable
    }

    /// Creates the usual advertisement of a device: its 16-bit services and, if it fits, its name; otherwise the name
    /// is in the scan response.
    public init(_ device: VirtualDevice, interval: Duration = .milliseconds(100), isConnectable: Bool = true) {
        var data: [UInt8] = [0x02, 0x01, 0x06]
        // Every device has Generic Access and Generic Attribute, and none advertises them.
        let services = device.services.filter { $0.isPrimary && $0.uuid != 0x1800 && $0.uuid != 0x1801 }.map(\.uuid)
        let short = services.compactMap(\.short).prefix(6)
        if !short.isEmpty { data += Self.structure(0x03, short.flatMap(\.littleEndianBytes)) }
        // A legacy packet has space for only one long UUID.
        let long = services.first { $0.short == nil }
        if let long, data.count <= 13 {
            data += Self.structure(short.count == services.count - 1 ? 0x07 : 0x06, long.attBytes)
        }
        let name = Self.structure(0x09, Array(device.name.utf8.prefix(29)))
        let isRoomy = data.count + name.count <= 31
        self.init(
            isRoomy ? data + name : data, scanResponse: isRoomy ? [] : name, interval: interval,
            isConnectable: isConnectable)
    }

    /// True if the data need an extended advertisement.
    var isLong: Bool { data.count > 31 }

    private static func structure(_ type: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count + 1), type] + bytes
    }
}

/// The distance of a peripheral on a `VirtualRadio`.
public enum VirtualProximity: Hashable, Sendable {
    /// Next to the antenna: -35 dBm.
    case immediate
    /// In the room: -60 dBm.
    case near
    /// At the limit of the range: -90 dBm.
    case far
    /// Not received; established links end after their supervision timeout.
    case outOfRange
    /// Received with this signal strength, in dBm.
    case heard(Int8)

    /// The signal strength, or `nil` if out of range.
    var rssi: Int8? {
        switch self {
        case .immediate: -35
        case .near: -60
        case .far: -90
        case .outOfRange: nil
        case .heard(let rssi): rssi
        }
    }
}

/// The program's permissions for the adapters of a `VirtualRadio`.
public struct VirtualPermissions: OptionSet, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt8

    /// Creates a set of permissions from raw bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Scanning, sending commands and LE events: CAP_NET_RAW. Without it, the kernel establishes connections.
    public static let commands = VirtualPermissions(rawValue: 1 << 0)
    /// Switching adapters on, and pairing by the management interface: CAP_NET_ADMIN.
    public static let administration = VirtualPermissions(rawValue: 1 << 1)
    /// The helper program `bareble-recover` takes steps of recovery.
    public static let recovery = VirtualPermissions(rawValue: 1 << 2)
}
