/// A 48-bit device address, as used in advertisements and connection establishment.
///
/// An address alone does not identify a device: public and random addresses are separate spaces, see `PeerID`. The
/// encoding on air is little-endian; text has the most significant byte first.
///
/// Spec: BD_ADDR, Core Vol 6 Part B, 1.3.
public struct BluetoothAddress: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The 48 bits as an integer; `AA:BB:CC:DD:EE:FF` is 0xAABBCCDDEEFF.
    public let rawValue: UInt64

    /// Creates an address from its lowest 48 bits; higher bits are ignored.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue & 0xFFFF_FFFF_FFFF
    }

    /// Parses `AA:BB:CC:DD:EE:FF` in either case, also with dashes or without separators. Returns `nil` for anything
    /// else.
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

    /// The six bytes on air, least significant first.
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

    /// Compares addresses as integers.
    public static func < (left: BluetoothAddress, right: BluetoothAddress) -> Bool {
        left.rawValue < right.rawValue
    }

    /// 00:00:00:00:00:00, which no device uses.
    public static let zero = BluetoothAddress(rawValue: 0)

    /// A Boolean value that indicates whether it is one of those that Broadcom's controllers have before they were
    /// given their own: those of btbcm.c of the kernel, and of the Raspberry Pi's kernel. All controllers of a kind
    /// have the same (row W57).
    package var isDefaultOfControllers: Bool { Self.defaults.contains(rawValue) }

    private static let defaults: Set<UInt64> = [
        0x0020_7002_A000, 0x2070_02A0_0000, 0x2076_A000_5679, 0x4324_B300_0000, 0x4330_B100_0000, 0x4334_1B00_1FAC,
        0x4334_B000_0000, 0x4343_A012_1FAC, 0x4343_A112_1FAC, 0x4343_B037_1FAC, 0x4345_C000_1FAC, 0x4345_C500_1FAC,
        0x4384_B000_7693, 0xAAAA_AAAA_AAAA,
    ]
}

/// The address space that an address belongs to.
///
/// Spec: Peer_Address_Type, Core Vol 4 Part E, 7.7.65.2.
public enum AddressType: UInt8, Hashable, Sendable {
    /// Assigned by the IEEE; never changes.
    case `public` = 0
    /// Chosen by the device; the two most significant bits encode the kind.
    case random = 1
    /// A public identity address that the controller resolved from a private one.
    case publicIdentity = 2
    /// A static random identity address that the controller resolved from a private one.
    case randomIdentity = 3

    /// The space of the address itself, public or random, regardless of resolution.
    public var space: AddressType {
        switch self {
        case .public, .publicIdentity: .public
        case .random, .randomIdentity: .random
        }
    }
}

extension BluetoothAddress {
    /// The kind of an address, which determines how long it identifies a device.
    ///
    /// Spec: Core Vol 6 Part B, 1.3.
    public enum Kind: String, Hashable, Sendable {
        /// Assigned by the IEEE; permanent.
        case `public`
        /// Random, but stable at least until the device restarts. Top bits 11.
        case `static`
        /// Changes every few minutes; resolvable with the device's identity resolving key. Top bits 01.
        case resolvablePrivate = "private"
        /// Changes every few minutes and cannot be resolved. Top bits 00.
        case nonResolvablePrivate = "non-resolvable"
        /// Random with the top bits 10, which are reserved.
        case reserved
    }
}

/// The former name of `BluetoothAddress.Kind`.
@available(*, deprecated, renamed: "BluetoothAddress.Kind")
public typealias AddressKind = BluetoothAddress.Kind

/// The identity of a device for this host: an address and its space.
///
/// Its text form is `AA:BB:CC:DD:EE:FF/random` or `…/public`.
public struct PeerID: Hashable, Sendable, CustomStringConvertible {
    /// The device's address.
    public let address: BluetoothAddress
    /// The space of the address: `.public` or `.random`.
    public let type: AddressType

    /// Creates an identity. A resolved type counts as the space of its identity address.
    public init(address: BluetoothAddress, type: AddressType) {
        self.address = address
        self.type = type.space
    }

    /// Parses `AA:BB:CC:DD:EE:FF/random` or `AA:BB:CC:DD:EE:FF/public`. Returns `nil` for anything else, including a
    /// missing type.
    public init?(_ text: String) {
        guard let slash = text.firstIndex(of: "/"), let address = BluetoothAddress(text[..<slash]) else { return nil }
        switch text[text.index(after: slash)...] {
        case "public": self.init(address: address, type: .public)
        case "random": self.init(address: address, type: .random)
        default: return nil
        }
    }

    /// The kind of the address, from its type and most significant bits.
    public var kind: BluetoothAddress.Kind {
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
