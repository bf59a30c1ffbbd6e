/// Which devices a scan hands on. Conditions of different kinds must all hold; of one kind, one is enough.
///
/// The kinds are: services (advertised or solicited), addresses, names, manufacturer data, service data, strength,
/// connectability, and who is left out. What a device says in its advertisement and in its scan response counts together, so
/// a device whose name comes in the response alone matches once the response has been heard.
public struct ScanFilter: Hashable, Sendable {
    /// Advertises one of these services; counts as one kind with `solicitedServices`.
    public var services: Set<BluetoothUUID> = []
    /// Looks for a central that offers one of these services; counts as one kind with `services`.
    public var solicitedServices: Set<BluetoothUUID> = []
    /// Is one of these devices; counts as one kind with `addresses`. They keep their place in a crowd: whoever else is
    /// forgotten for want of room, they are not.
    public var peers: Set<PeerID> = []
    /// Has one of these addresses, be it public or random; counts as one kind with `peers`.
    public var addresses: Set<BluetoothAddress> = []
    /// Carries data of one of these companies; counts as one kind with `manufacturerData`.
    public var companies: Set<UInt16> = []
    /// Carries data of a company that begins so; counts as one kind with `companies`.
    public var manufacturerData: Set<ManufacturerData> = []
    /// Carries data of a service that begins so.
    public var serviceData: Set<ServiceData> = []
    /// Has one of these names, byte for byte; counts as one kind with `namePrefix`.
    public var names: Set<String> = []
    /// Has a name that begins with this; counts as one kind with `names`.
    public var namePrefix: String?
    /// Is at least this strong, in dBm, in the report at hand; one without a strength passes.
    public var minimumRSSI: Int8?
    /// Accepts connections.
    public var connectableOnly = false
    /// Is none of these devices. For a set that changes while the scan runs there is `ScanSequence.excluded`.
    public var excluding: Set<PeerID> = []

    /// Data of a company, by its beginning.
    public struct ManufacturerData: Hashable, Sendable {
        /// Whose data.
        public let company: UInt16
        /// What stands right behind the company id; empty for any.
        public let prefix: [UInt8]

        /// Data of a company that begins with these bytes.
        public init(company: UInt16, prefix: [UInt8] = []) {
            self.company = company
            self.prefix = prefix
        }
    }

    /// Data of a service, by its beginning.
    public struct ServiceData: Hashable, Sendable {
        /// Whose data.
        public let service: BluetoothUUID
        /// What stands right behind the service's UUID; empty for any.
        public let prefix: [UInt8]

        /// Data of a service that begins with these bytes.
        public init(service: BluetoothUUID, prefix: [UInt8] = []) {
            self.service = service
            self.prefix = prefix
        }
    }

    /// A filter that lets everything through until it is told otherwise.
    public init() {}
}

extension ScanFilter {
    /// Everything.
    public static let any = ScanFilter()

    /// Devices that advertise one of these services.
    public static func services(_ services: BluetoothUUID...) -> ScanFilter {
        var filter = ScanFilter()
        filter.services = Set(services)
        return filter
    }

    /// Devices that look for a central with one of these services.
    public static func soliciting(_ services: BluetoothUUID...) -> ScanFilter {
        var filter = ScanFilter()
        filter.solicitedServices = Set(services)
        return filter
    }

    /// One device.
    public static func peer(_ peer: PeerID) -> ScanFilter {
        var filter = ScanFilter()
        filter.peers = [peer]
        return filter
    }

    /// One device whose type of address is not known.
    public static func address(_ address: BluetoothAddress) -> ScanFilter {
        var filter = ScanFilter()
        filter.addresses = [address]
        return filter
    }

    /// Devices with one of these names.
    public static func name(_ names: String...) -> ScanFilter {
        var filter = ScanFilter()
        filter.names = Set(names)
        return filter
    }

    /// Devices whose name begins with a text.
    public static func name(startingWith prefix: String) -> ScanFilter {
        var filter = ScanFilter()
        filter.namePrefix = prefix
        return filter
    }

    /// Devices that carry data of a company, and, where given, data that begins so.
    public static func company(_ company: UInt16, startingWith prefix: [UInt8] = []) -> ScanFilter {
        var filter = ScanFilter()
        filter.manufacturerData = [ManufacturerData(company: company, prefix: prefix)]
        return filter
    }

    /// Devices that carry data of a service, and, where given, data that begins so.
    public static func serviceData(_ service: BluetoothUUID, startingWith prefix: [UInt8] = []) -> ScanFilter {
        var filter = ScanFilter()
        filter.serviceData = [ServiceData(service: service, prefix: prefix)]
        return filter
    }
}
