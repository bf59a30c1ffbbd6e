// Device properties: flags, names, appearance, addresses and identifiers.

extension AdvertisingData {
    /// The discoverability and transport flags: the first octet of the first Flags structure.
    public var flags: Flags? {
        first(.flags) { $0.u8().map(Flags.init(rawValue:)) }
    }

    /// The complete local name.
    public var localName: AdvertisedName? {
        first(.completeLocalName) { AdvertisedName(copying: $0.unread) }
    }

    /// The shortened local name.
    public var shortenedLocalName: AdvertisedName? {
        first(.shortenedLocalName) { AdvertisedName(copying: $0.unread) }
    }

    /// The complete local name if present, otherwise the shortened one.
    public var name: AdvertisedName? { localName ?? shortenedLocalName }

    /// The name of a broadcast, such as "Gate 5".
    public var broadcastName: AdvertisedName? {
        first(.broadcastName) { AdvertisedName(copying: $0.unread) }
    }

    /// The transmit power of the advertisement, in dBm.
    public var txPowerLevel: Int8? {
        first(.txPowerLevel) { $0.remaining == 1 ? $0.i8() : nil }
    }

    /// The appearance code. `AssignedNumbers.appearanceName(_:)` returns its name.
    public var appearance: UInt16? {
        first(.appearance) { $0.remaining == 2 ? $0.u16() : nil }
    }

    /// The BR/EDR class of device, 24 bits.
    public var classOfDevice: UInt32? {
        first(.classOfDevice) { $0.remaining == 3 ? $0.u24() : nil }
    }

    /// The GAP roles that the device supports.
    public var leRole: LERole? {
        first(.leRole) { $0.remaining == 1 ? $0.u8().map(LERole.init(rawValue:)) : nil }
    }

    /// The device's own address, for out-of-band exchange.
    public var deviceAddress: PeerID? {
        first(.leDeviceAddress) { value in
            guard value.remaining == 7, let address = value.address(), let type = value.u8() else { return nil }
            return PeerID(address: address, type: type & 1 == 0 ? .public : .random)
        }
    }

    /// The devices that the advertisement is directed to, public addresses first.
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

    /// The advertised URI, with its scheme expanded.
    public var uri: URI? {
        first(.uri) { URI(bytes: $0.rest()) }
    }

    /// The vendor, product and version of BR/EDR's Device ID profile. The type number is shared with the TK value of LE
    /// pairing, which is longer.
    public var deviceID: DeviceID? {
        first(.securityManagerTKValue) { value in
            guard value.remaining == 8, let source = value.u16(), let vendor = value.u16(), let product = value.u16(),
                let version = value.u16()
            else { return nil }
            return DeviceID(vendorSource: source, vendor: vendor, product: product, version: version)
        }
    }

    /// Returns a copy of the value of the first structure of `type`.
    public func value(of type: AdvertisingDataType) -> [UInt8]? {
        first(type) { $0.rest() }
    }

    /// Returns copies of the values of all structures of `type`, in payload order.
    public func values(of type: AdvertisingDataType) -> [[UInt8]] {
        var result: [[UInt8]] = []
        forEach(type) { result.append($0.rest()) }
        return result
    }

    /// Returns the first value of `type` that has exactly `count` bytes.
    func value(of type: AdvertisingDataType, count: Int) -> [UInt8]? {
        first(type) { $0.remaining == count ? $0.rest() : nil }
    }

    /// The GAP roles that a device supports, and the one it prefers.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.17.
    public struct LERole: RawRepresentable, Hashable, Sendable {
        /// The raw value.
        public let rawValue: UInt8

        /// Creates a role from its raw value. Unknown values are preserved.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Peripheral role only.
        public static let peripheralOnly = LERole(rawValue: 0)
        /// Central role only.
        public static let centralOnly = LERole(rawValue: 1)
        /// Both roles; peripheral preferred.
        public static let peripheralPreferred = LERole(rawValue: 2)
        /// Both roles; central preferred.
        public static let centralPreferred = LERole(rawValue: 3)
    }

    /// The product identification of BR/EDR's Device ID profile.
    public struct DeviceID: Hashable, Sendable {
        /// The namespace of `vendor`: 1 for Bluetooth company identifiers, 2 for USB vendor IDs.
        public let vendorSource: UInt16
        /// The vendor identifier.
        public let vendor: UInt16
        /// The vendor's product number.
        public let product: UInt16
        /// The product version in binary-coded decimal.
        public let version: UInt16
    }

    /// A URI in an advertisement.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.18; Assigned Numbers, 2.7.
    public struct URI: Hashable, Sendable {
        /// The value as received: one character for the scheme, followed by the rest of the URI.
        public let bytes: [UInt8]

        /// Creates a URI from the value of a URI structure.
        public init(bytes: [UInt8]) {
            self.bytes = bytes
        }

        /// The URI with its scheme expanded, or `nil` if the scheme is missing or unknown.
        public var text: String? {
            let scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars
            guard let first = scalars.first, let code = UInt16(exactly: first.value),
                let scheme = AssignedNumbers.uriScheme(code)
            else { return nil }
            return scheme + String(scalars.dropFirst())
        }
    }
}

// MARK: - Former names

/// The former name of `AdvertisingData.LERole`.
@available(*, deprecated, renamed: "AdvertisingData.LERole")
public typealias LERole = AdvertisingData.LERole
/// The former name of `AdvertisingData.DeviceID`.
@available(*, deprecated, renamed: "AdvertisingData.DeviceID")
public typealias DeviceID = AdvertisingData.DeviceID
/// The former name of `AdvertisingData.URI`.
@available(*, deprecated, renamed: "AdvertisingData.URI")
public typealias AdvertisedURI = AdvertisingData.URI
