/// One advertisement or scan response as the controller handed it up.
///
/// The same value describes reports from the legacy, the directed and the extended event. What an event does not carry is
/// `nil`. A report owns its payload and nothing else, so it may be kept for as long as wanted.
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

    /// What can be done with the advertiser, and which kind of packet this was; the same bits for every event.
    public struct Properties: OptionSet, Hashable, Sendable {
        /// The five low bits of an extended report's Event_Type.
        public let rawValue: UInt8

        /// The properties with these bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The advertiser accepts connections.
        public static let connectable = Properties(rawValue: 0x01)
        /// The advertiser answers scan requests.
        public static let scannable = Properties(rawValue: 0x02)
        /// The advertisement names the device it is meant for.
        public static let directed = Properties(rawValue: 0x04)
        /// The packet answered a scan request.
        public static let scanResponse = Properties(rawValue: 0x08)
        /// The packet had a legacy format, which every device understands.
        public static let legacy = Properties(rawValue: 0x10)
    }

    /// Whether the payload is all there.
    public enum DataStatus: Hashable, Sendable {
        /// The payload is all there.
        case complete
        /// A fragment: the next report of the same advertiser goes on with it.
        case incomplete
        /// The rest got lost on air, or was longer than the controller or this host keeps.
        case truncated
    }

    /// The HCI event that carried the report.
    public var event: Event
    /// Event_Type as received: 0 to 4 in a legacy event, a bit field in an extended one.
    public var eventType: UInt16
    /// The event type in one form for all events.
    public var properties: Properties
    /// Whether the payload is all there.
    public var dataStatus: DataStatus
    /// The advertiser's address; `nil` when it advertises anonymously or the controller names none.
    public var address: BluetoothAddress?
    /// The space of `address`; `nil` exactly when that is.
    public var addressType: AddressType?
    /// Signal strength in dBm; `nil` when the controller could not measure it.
    public var rssi: Int8?
    /// The layer of the packet that announced the advertisement.
    public var primaryPHY: PHY
    /// The layer of the packet that carried the payload; `nil` when everything was in the first one.
    public var secondaryPHY: PHY?
    /// Which of the advertiser's sets this is, 0 to 15.
    public var sid: UInt8?
    /// The power in dBm at which the advertiser says it sent, taken from the packet's header and not from the payload.
    public var txPower: Int8?
    /// The interval of the periodic advertising that belongs to the set, in units of 1.25 ms.
    public var periodicInterval: UInt16?
    /// The device that a directed advertisement is meant for.
    public var directAddress: BluetoothAddress?
    /// The space of `directAddress`; a private address that the controller cannot resolve counts as `.random`.
    public var directAddressType: AddressType?
    /// The payload, structures in the format that `AdvertisingData` reads.
    public var data: [UInt8]

    /// Describes a legacy advertisement; other properties can be set afterwards.
    public init(
        address: BluetoothAddress?, addressType: AddressType?,
        properties: Properties = [.connectable, .scannable, .legacy],
        rssi: Int8? = nil, data: [UInt8] = []
    ) {
        self.init(
            event: .extended, eventType: UInt16(properties.rawValue), properties: properties, address: address,
            addressType: addressType, rssi: rssi, data: data)
    }

    init(
        event: Event, eventType: UInt16, properties: Properties, address: BluetoothAddress?, addressType: AddressType?,
        rssi: Int8?, data: [UInt8]
    ) {
        self.event = event
        self.eventType = eventType
        self.properties = properties
        self.dataStatus = .complete
        self.address = address
        self.addressType = address == nil ? nil : addressType
        self.rssi = rssi
        self.primaryPHY = .le1M
        self.data = data
    }

    /// The advertiser, if it can be named; what a connection is made to.
    public var peer: PeerID? {
        guard let address, let addressType else { return nil }
        return PeerID(address: address, type: addressType)
    }

    /// Whether a connection can be made: the advertiser accepts one and has an address.
    public var isConnectable: Bool { properties.contains(.connectable) && address != nil }
    /// Whether the advertiser answers scan requests.
    public var isScannable: Bool { properties.contains(.scannable) }
    /// Whether the advertisement is meant for one device.
    public var isDirected: Bool { properties.contains(.directed) }
    /// Whether this is the answer to a scan request.
    public var isScanResponse: Bool { properties.contains(.scanResponse) }
    /// Whether the packet had a legacy format.
    public var isLegacy: Bool { properties.contains(.legacy) }

    /// The payload with its typed views.
    public var advertisingData: AdvertisingData { AdvertisingData(data) }
}
