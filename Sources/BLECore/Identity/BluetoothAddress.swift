/// A 48-bit device address, as it stands in advertisements and link set-up.
///
/// Six bytes do not identify a device by themselves: public and random addresses are two separate spaces, see
/// `PeerID`. On the wire the least significant byte comes first; in text the most significant one.
///
/// Spec: BD_ADDR, Core Vol 6 Part B, 1.3.
public struct BluetoothAddress: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The 48 bits as a number; `AA:BB:CC:DD:EE:FF` is 0xAABBCCDDEEFF.
    public let rawValue: UInt64

    /// The address with these 48 bits; higher bits are ignored.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue & 0xFFFF_FFFF_FFFF
    }

    /// Reads `AA:BB:CC:DD:EE:FF` in either case, also with dashes or without separators; `nil` for anything else.
    public init?(_ text: some StringProtocol) {
        let separated = text.utf8.count == 17
        guard separated || text.utf8.count == 12 else { return nil }
        var value: UInt64 = 0
        for (index, character) in text.utf8.enumerated() {
            if separated && index % 3 == 2 {
                guard character == 0x3A || character == 0x2D else { return nil }
                continue
            }
            guard let digit = Hex.value(character) else { return nil }
            value = value << 4 | UInt64(digit)
        }
        self.init(rawValue: value)
    }

    /// The six bytes in wire order, least significant first.
    public var littleEndianBytes: [UInt8] {
        var writer = ByteWriter(reserving: 6)
        writer.u48(rawValue)
        return writer.bytes
    }

    /// `AA:BB:CC:DD:EE:FF`.
    public var description: String {
        var text: [UInt8] = []
        text.reserveCapacity(17)
        for index in 0..<6 {
            let byte = UInt8(truncatingIfNeeded: rawValue >> UInt64(40 - 8 * index))
            if index > 0 { text.append(0x3A) }
            text.append(Hex.upperDigit(byte >> 4))
            text.append(Hex.upperDigit(byte & 0x0F))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Orders addresses as numbers.
    public static func < (left: BluetoothAddress, right: BluetoothAddress) -> Bool {
        left.rawValue < right.rawValue
    }

    /// 00:00:00:00:00:00, which no device has.
    public static let zero = BluetoothAddress(rawValue: 0)
}

/// Which of the address spaces an address belongs to.
///
/// Spec: Peer_Address_Type, Core Vol 4 Part E, 7.7.65.2.
public enum AddressType: UInt8, Hashable, Sendable {
    /// Assigned by the IEEE; it never changes.
    case `public` = 0
    /// Chosen by the device; its two top bits tell which kind.
    case random = 1
    /// A public identity address that the controller resolved from a private one.
    case publicIdentity = 2
    /// A static random identity address that the controller resolved from a private one.
    case randomIdentity = 3

    /// The space of the address itself: resolved or not, it is public or random.
    public var space: AddressType {
        switch self {
        case .public, .publicIdentity: .public
        case .random, .randomIdentity: .random
        }
    }
}

/// What an address can be relied on for.
///
/// Spec: Core Vol 6 Part B, 1.3.
public enum AddressKind: String, Hashable, Sendable {
    /// Assigned by the IEEE, stable for ever.
    case `public`
    /// Random, but stable at least until the device restarts. Top bits 11.
    case `static`
    /// Changes every few minutes; who holds the device's identity resolving key can still recognise it. Top bits 01.
    case resolvablePrivate = "private"
    /// Changes every few minutes and cannot be recognised by anybody. Top bits 00.
    case nonResolvablePrivate = "non-resolvable"
    /// Random with the top bits 10, which the specification reserves.
    case reserved
}

/// Who a device is for this host: an address and the space it belongs to.
///
/// Its text form is `AA:BB:CC:DD:EE:FF/random` or `…/public`.
public struct PeerID: Hashable, Sendable, CustomStringConvertible {
    /// The device's address.
    public let address: BluetoothAddress
    /// The space of the address: `.public` or `.random`.
    public let type: AddressType

    /// Names a device; a resolved type counts as the space of its identity address.
    public init(address: BluetoothAddress, type: AddressType) {
        self.address = address
        self.type = type.space
    }

    /// Reads `AA:BB:CC:DD:EE:FF/random` or `AA:BB:CC:DD:EE:FF/public`; `nil` for anything else, a missing type too.
    public init?(_ text: String) {
        guard let slash = text.firstIndex(of: "/"), let address = BluetoothAddress(text[..<slash]) else { return nil }
        switch text[text.index(after: slash)...] {
        case "public": self.init(address: address, type: .public)
        case "random": self.init(address: address, type: .random)
        default: return nil
        }
    }

    /// What the address can be relied on for, read from its type and top bits.
    public var kind: AddressKind {
        if type == .public { return .public }
        return switch address.rawValue >> 46 {
        case 0b11: .static
        case 0b01: .resolvablePrivate
        case 0b00: .nonResolvablePrivate
        default: .reserved
        }
    }

    /// `AA:BB:CC:DD:EE:FF/random` or `AA:BB:CC:DD:EE:FF/public`.
    public var description: String {
        "\(address)/\(type == .public ? "public" : "random")"
    }
}
