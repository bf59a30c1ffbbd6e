/// One advertisement or scan response as reported by the controller.
///
/// The same type describes reports from the legacy, the directed and the extended event; fields that an event does not
/// carry are `nil`. A report owns its payload and nothing else, so it can be kept indefinitely.
///
/// Spec: Core Vol 4 Part E, 7.7.65.2, 7.7.65.11 and 7.7.65.13.
public struct AdvertisingReport: Hashable, Sendable {
    /// The HCI event that carried the report.
    public enum Event: Hashable, Sendable {
        /// LE Advertising Report.
        case legacy
        /// LE Directed Advertising Report.
        case directed
        /// LE Extended Advertising Report.
        case extended
    }

    /// The properties of the advertiser and of the packet, in one form for all events.
    public struct Properties: OptionSet, Hashable, Sendable {
        /// The five low bits of an extended report's Event_Type.
        public let rawValue: UInt8

        /// Creates properties from raw bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The advertiser accepts connections.
        public static let connectable = Properties(rawValue: 0x01)
        /// The advertiser responds to scan requests.
        public static let scannable = Properties(rawValue: 0x02)
        /// The advertisement is directed to a specific device.
        public static let directed = Properties(rawValue: 0x04)
        /// The packet is a scan response.
        public static let scanResponse = Properties(rawValue: 0x08)
        /// The packet has a legacy format, which every device supports.
        public static let legacy = Properties(rawValue: 0x10)
    }

    /// The completeness of the payload.
    public enum DataStatus: Hashable, Sendable {
        /// The payload is complete.
        case complete
        /// A fragment: the advertiser's next report continues it.
        case incomplete
        /// The rest was lost on air, or exceeded what the controller or this host keeps.
        case truncated
    }

    /// The HCI event that carried the report.
    public var event: Event
    /// Event_Type as received: 0 to 4 in a legacy event, a bit field in an extended one.
    public var eventType: UInt16
    /// The event type, in one form for all events.
    public var properties: Properties
    /// The completeness of the payload.
    public var dataStatus: DataStatus
    /// The advertiser's address, or `nil` if it advertises anonymously or the controller reports none.
    public var address: BluetoothAddress?
    /// The type of `address`; `nil` exactly when `address` is.
    public var addressType: AddressType?
    /// The signal strength in dBm, or `nil` if the controller could not measure it.
    public var rssi: Int8?
    /// The PHY of the packet that announced the advertisement.
    public var primaryPHY: PHY
    /// The PHY of the packet that carried the payload, or `nil` if only the primary channel was used.
    public var secondaryPHY: PHY?
    /// The advertising set identifier, 0 to 15.
    public var sid: UInt8?
    /// The advertiser's transmit power in dBm, from the packet's header rather than its payload.
    public var txPower: Int8?
    /// The interval of the set's periodic advertising, in units of 1.25 ms.
    public var periodicInterval: UInt16?
    /// The device that a directed advertisement is meant for.
    public var directAddress: BluetoothAddress?
    /// The type of `directAddress`. A private address that the controller cannot resolve counts as `.random`.
    public var directAddressType: AddressType?
    /// The payload, in the format that `AdvertisingData` reads. Each access makes a copy; `advertisingData` makes none.
    public var data: [UInt8] {
        get { payload.array }
        set { payload = CompactBytes(newValue) }
    }
    package private(set) var payload: CompactBytes

    /// Creates a report of a legacy advertisement. The other properties can be set afterwards.
    public init(
        address: BluetoothAddress?, addressType: AddressType?,
        properties: Properties = [.connectable, .scannable, .legacy],
        rssi: Int8? = nil, data: [UInt8] = []
    ) {
        self.init(
            event: .extended, eventType: UInt16(properties.rawValue), properties: properties, address: address,
            addressType: addressType, rssi: rssi, payload: CompactBytes(data))
    }

    init(
        event: Event, eventType: UInt16, properties: Properties, address: BluetoothAddress?, addressType: AddressType?,
        rssi: Int8?, payload: CompactBytes
    ) {
        self.event = event
        self.eventType = eventType
        self.properties = properties
        self.dataStatus = .complete
        self.address = address
        self.addressType = address == nil ? nil : addressType
        self.rssi = rssi
        self.primaryPHY = .le1M
        self.payload = payload
    }

    /// The advertiser's identity, if known; the target of a connection.
    public var peer: PeerID? {
        guard let address, let addressType else { return nil }
        return PeerID(address: address, type: addressType)
    }

    /// A Boolean value that indicates whether a connection is possible: the advertiser accepts one and has an address.
    public var isConnectable: Bool { properties.contains(.connectable) && address != nil }
    /// A Boolean value that indicates whether the advertiser responds to scan requests.
    public var isScannable: Bool { properties.contains(.scannable) }
    /// A Boolean value that indicates whether the advertisement is directed to one device.
    public var isDirected: Bool { properties.contains(.directed) }
    /// A Boolean value that indicates whether this is a scan response.
    public var isScanResponse: Bool { properties.contains(.scanResponse) }
    /// A Boolean value that indicates whether the packet has a legacy format.
    public var isLegacy: Bool { properties.contains(.legacy) }

    /// The payload with its typed views.
    public var advertisingData: AdvertisingData { AdvertisingData(payload) }
}
