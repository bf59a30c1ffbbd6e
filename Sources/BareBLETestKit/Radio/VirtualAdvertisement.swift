internal import BLECore

/// What a peripheral on a `VirtualRadio` sends unasked, and how often.
public struct VirtualAdvertisement: Hashable, Sendable {
    /// The advertising data. More than 31 bytes make an extended advertisement, which older controllers do not hear.
    public var data: [UInt8]
    /// What scanners that ask get besides; `nil` when nothing is sent.
    public var scanResponse: [UInt8]?
    /// From one advertisement to the next.
    public var interval: Duration
    /// Whether it can be connected to.
    public var isConnectable: Bool

    /// An advertisement of any bytes.
    public init(
        _ data: [UInt8], scanResponse: [UInt8]? = nil, interval: Duration = .milliseconds(100),
        isConnectable: Bool = true
    ) {
        self.data = data
        self.scanResponse = scanResponse
        self.interval = max(interval, .milliseconds(1))
        self.isConnectable = isConnectable
    }

    /// The usual advertisement of a device: its 16-bit services and, where it fits, its name; else that is in the scan response.
    public init(_ device: VirtualDevice, interval: Duration = .milliseconds(100), isConnectable: Bool = true) {
        var data: [UInt8] = [0x02, 0x01, 0x06]
        // Generic Access and Generic Attribute are in every device, and in no advertisement.
        let services = device.services.filter { $0.isPrimary && $0.uuid != 0x1800 && $0.uuid != 0x1801 }.map(\.uuid)
        let short = services.compactMap(\.short).prefix(6)
        if !short.isEmpty { data += Self.structure(0x03, short.flatMap(\.littleEndianBytes)) }
        // One long identifier is all that a legacy packet has room for.
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

    /// Whether it needs more than a legacy packet.
    var isLong: Bool { data.count > 31 }

    private static func structure(_ type: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count + 1), type] + bytes
    }
}

/// How well a peripheral on a `VirtualRadio` is heard.
public enum VirtualProximity: Hashable, Sendable {
    /// Beside the antenna: -35 dBm.
    case immediate
    /// In the room: -60 dBm.
    case near
    /// At the end of the reach: -90 dBm.
    case far
    /// Not heard at all; links that are up die of it, after their supervision time.
    case outOfRange
    /// Heard with this strength, in dBm.
    case heard(Int8)

    /// The strength; `nil` when nothing is heard.
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

/// What a program may do with the adapters of a `VirtualRadio`.
public struct VirtualPermissions: OptionSet, Hashable, Sendable {
    /// A bit for each.
    public let rawValue: UInt8

    /// The permissions with these bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Scan and send commands: CAP_NET_RAW. Without it, connects are left to the kernel.
    public static let commands = VirtualPermissions(rawValue: 1 << 0)
    /// Switch adapters on: CAP_NET_ADMIN.
    public static let administration = VirtualPermissions(rawValue: 1 << 1)
}
