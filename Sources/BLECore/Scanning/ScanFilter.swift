/// The conditions on the devices that a scan reports. Conditions of different kinds must all hold; within a kind, one
/// is enough.
///
/// The kinds are: services (advertised or solicited), addresses, names, manufacturer data, service data, strength,
/// connectability, and excluded devices. The data of a device's advertisement and scan response count together, so a
/// device whose name is only in the response matches once the response has been heard.
public struct ScanFilter: Hashable, Sendable {
    /// Matches devices that advertise one of these services; one kind together with `solicitedServices`.
    public var services: Set<BluetoothUUID> = []
    /// Matches devices that solicit one of these services from a central; one kind together with `services`.
    public var solicitedServices: Set<BluetoothUUID> = []
    /// Matches these devices; one kind together with `addresses`. Their entries are not evicted, however many other
    /// devices are heard. The identity address of a bonded device also matches the private addresses that it uses.
    public var peers: Set<PeerID> = []
    /// Matches devices with one of these addresses, public or random; one kind together with `peers`. Identity
    /// addresses match as they do there.
    public var addresses: Set<BluetoothAddress> = []
    /// Matches data of one of these companies; one kind together with `manufacturerData`.
    public var companies: Set<UInt16> = []
    /// Matches data of a company that begins with a prefix; one kind together with `companies`.
    public var manufacturerData: Set<ManufacturerData> = []
    /// Matches data of a service that begins with a prefix.
    public var serviceData: Set<ServiceData> = []
    /// Matches devices with one of these names, compared byte for byte; one kind together with `namePrefix` and
    /// `nameContains`.
    public var names: Set<String> = []
    /// Matches devices whose name begins with this text, compared byte for byte; one kind together with `names`.
    public var namePrefix: String?
    /// Matches devices whose name contains this text, ignoring the case of letters; one kind together with `names`.
    public var nameContains: String?
    /// The least signal strength, in dBm, of the report at hand; a report without a strength matches.
    public var minimumRSSI: Int8?
    /// A Boolean value that indicates whether only devices that accept connections match.
    public var connectableOnly = false
    /// The devices that do not match, by the address on air or the identity. For a set that changes while the scan runs
    /// use `ScanSequence.excluded`.
    public var excluding: Set<PeerID> = []

    /// The beginning of a company's data.
    public struct ManufacturerData: Hashable, Sendable {
        /// The company identifier.
        public let company: UInt16
        /// The bytes right after the company identifier; empty for any.
        public let prefix: [UInt8]

        /// Creates a condition for data of a company that begins with these bytes.
        public init(company: UInt16, prefix: [UInt8] = []) {
            self.company = company
            self.prefix = prefix
        }
    }

    /// The beginning of a service's data.
    public struct ServiceData: Hashable, Sendable {
        /// The UUID of the service.
        public let service: BluetoothUUID
        /// The bytes right after the service's UUID; empty for any.
        public let prefix: [UInt8]

        /// Creates a condition for data of a service that begins with these bytes.
        public init(service: BluetoothUUID, prefix: [UInt8] = []) {
            self.service = service
            self.prefix = prefix
        }
    }

    /// Creates a filter without conditions.
    public init() {}
}

extension ScanFilter {
    /// A filter that matches every device.
    public static let any = ScanFilter()

    /// Returns a filter for devices that advertise one of these services.
    public static func services(_ services: BluetoothUUID...) -> ScanFilter {
        var filter = ScanFilter()
        filter.services = Set(services)
        return filter
    }

    /// Returns a filter for devices that solicit one of these services.
    public static func soliciting(_ services: BluetoothUUID...) -> ScanFilter {
        var filter = ScanFilter()
        filter.solicitedServices = Set(services)
        return filter
    }

    /// Returns a filter for one device, by its address, or by the identity address of a bonded device whose address
    /// changes.
    public static func peer(_ peer: PeerID) -> ScanFilter {
        var filter = ScanFilter()
        filter.peers = [peer]
        return filter
    }

    /// Returns a filter for one device whose address type is not known.
    public static func address(_ address: BluetoothAddress) -> ScanFilter {
        var filter = ScanFilter()
        filter.addresses = [address]
        return filter
    }

    /// Returns a filter for devices with one of these names.
    public static func name(_ names: String...) -> ScanFilter {
        var filter = ScanFilter()
        filter.names = Set(names)
        return filter
    }

    /// Returns a filter for devices whose name begins with a text.
    public static func name(startingWith prefix: String) -> ScanFilter {
        var filter = ScanFilter()
        filter.namePrefix = prefix
        return filter
    }

    /// Returns a filter for devices whose name contains a text, ignoring the case of letters.
    public static func name(containing text: String) -> ScanFilter {
        var filter = ScanFilter()
        filter.nameContains = text
        return filter
    }

    /// Returns a filter for devices with data of a company that begins with a prefix.
    public static func company(_ company: UInt16, startingWith prefix: [UInt8] = []) -> ScanFilter {
        var filter = ScanFilter()
        filter.manufacturerData = [ManufacturerData(company: company, prefix: prefix)]
        return filter
    }

    /// Returns a filter for devices with data of a service that begins with a prefix.
    public static func serviceData(_ service: BluetoothUUID, startingWith prefix: [UInt8] = []) -> ScanFilter {
        var filter = ScanFilter()
        filter.serviceData = [ServiceData(service: service, prefix: prefix)]
        return filter
    }
}
