// What a device says about itself.

extension AdvertisingData {
    /// Discoverability and transports: the first octet of the first Flags structure.
    public var flags: AdvertisingFlags? {
        first(.flags) { $0.u8().map(AdvertisingFlags.init(rawValue:)) }
    }

    /// The complete local name.
    public var localName: AdvertisedName? {
        first(.completeLocalName) { AdvertisedName(bytes: $0.rest()) }
    }

    /// The beginning of the local name.
    public var shortenedLocalName: AdvertisedName? {
        first(.shortenedLocalName) { AdvertisedName(bytes: $0.rest()) }
    }

    /// The complete local name where there is one, else the shortened one.
    public var name: AdvertisedName? { localName ?? shortenedLocalName }

    /// The name of a broadcast, such as "Gate 5".
    public var broadcastName: AdvertisedName? {
        first(.broadcastName) { AdvertisedName(bytes: $0.rest()) }
    }

    /// The power in dBm at which the advertisement was sent.
    public var txPowerLevel: Int8? {
        first(.txPowerLevel) { $0.remaining == 1 ? $0.i8() : nil }
    }

    /// What the device looks like; `AssignedNumbers.appearanceName(_:)` has the word.
    public var appearance: UInt16? {
        first(.appearance) { $0.remaining == 2 ? $0.u16() : nil }
    }

    /// What a BR/EDR device is, 24 bits.
    public var classOfDevice: UInt32? {
        first(.classOfDevice) { $0.remaining == 3 ? $0.u24() : nil }
    }

    /// Which roles the device takes.
    public var leRole: LERole? {
        first(.leRole) { $0.remaining == 1 ? $0.u8().map(LERole.init(rawValue:)) : nil }
    }

    /// The device's own address, for exchange out of band.
    public var deviceAddress: PeerID? {
        first(.leDeviceAddress) { value in
            guard value.remaining == 7, let address = value.address(), let type = value.u8() else { return nil }
            return PeerID(address: address, type: type & 1 == 0 ? .public : .random)
        }
    }

    /// The devices that the advertisement is meant for, public addresses first.
    public var targetAddresses: [PeerID] {
        var result: [PeerID] = []
        forEach(.publicTargetAddress) { value in
            while let address = value.address() { result.append(PeerID(address: address, type: .public)) }
        }
        forEach(.randomTargetAddress) { value in
            while let address = value.address() { result.append(PeerID(address: address, type: .random)) }
        }
        return result
    }

    /// The resource that the device points to, with its scheme written out.
    public var uri: AdvertisedURI? {
        first(.uri) { AdvertisedURI(bytes: $0.rest()) }
    }

    /// The maker's ids as in BR/EDR's Device ID profile. The type number is shared with the TK value of LE pairing, which is
    /// longer.
    public var deviceID: DeviceID? {
        first(.securityManagerTKValue) { value in
            guard value.remaining == 8, let source = value.u16(), let vendor = value.u16(), let product = value.u16(),
                let version = value.u16()
            else { return nil }
            return DeviceID(vendorSource: source, vendor: vendor, product: product, version: version)
        }
    }

    /// A copy of the value of the first structure of `type`.
    public func value(of type: AdvertisingDataType) -> [UInt8]? {
        first(type) { $0.rest() }
    }

    /// Copies of the values of all structures of `type`, in payload order.
    public func values(of type: AdvertisingDataType) -> [[UInt8]] {
        var result: [[UInt8]] = []
        forEach(type) { result.append($0.rest()) }
        return result
    }

    /// The first value of `type` that has exactly `count` bytes.
    func value(of type: AdvertisingDataType, count: Int) -> [UInt8]? {
        first(type) { $0.remaining == count ? $0.rest() : nil }
    }
}

/// Which roles a device takes, and which it prefers.
///
/// Spec: Core Specification Supplement, Part A, 1.17.
public struct LERole: RawRepresentable, Hashable, Sendable {
    /// The number on air.
    public let rawValue: UInt8

    /// The role with this number; unknown ones are kept.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Only the peripheral's.
    public static let peripheralOnly = LERole(rawValue: 0)
    /// Only the central's.
    public static let centralOnly = LERole(rawValue: 1)
    /// Both, rather the peripheral's.
    public static let peripheralPreferred = LERole(rawValue: 2)
    /// Both, rather the central's.
    public static let centralPreferred = LERole(rawValue: 3)
}

/// The ids that BR/EDR's Device ID profile gives a product.
public struct DeviceID: Hashable, Sendable {
    /// 1: `vendor` is a Bluetooth company id; 2: a USB vendor id.
    public let vendorSource: UInt16
    /// The maker.
    public let vendor: UInt16
    /// The maker's number for the product.
    public let product: UInt16
    /// The product's version, binary coded decimal.
    public let version: UInt16
}

/// A resource named in an advertisement.
///
/// Spec: Core Specification Supplement, Part A, 1.18; Assigned Numbers, 2.7.
public struct AdvertisedURI: Hashable, Sendable {
    /// The value as received: one character for the scheme, then the rest of the text.
    public let bytes: [UInt8]

    /// Wraps the value of a URI structure.
    public init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The resource with its scheme written out; `nil` when there is no scheme or it is unknown.
    public var text: String? {
        let scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars
        guard let first = scalars.first, let code = UInt16(exactly: first.value),
            let scheme = AssignedNumbers.uriScheme(code)
        else { return nil }
        return scheme + String(scalars.dropFirst())
    }
}
