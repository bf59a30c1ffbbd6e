// Services and the data that belongs to them, and makers' own data.

extension AdvertisingData {
    /// A service's data in an advertisement.
    public struct ServiceData: Hashable, Sendable {
        /// The service.
        public let service: BluetoothUUID
        /// The data, in the service's own format.
        public let data: [UInt8]

        /// Data of a service.
        public init(service: BluetoothUUID, data: [UInt8]) {
            self.service = service
            self.data = data
        }
    }

    /// A maker's own data in an advertisement.
    public struct ManufacturerData: Hashable, Sendable {
        /// The company whose format it is; `AssignedNumbers.companyName(_:)` has the name.
        public let company: UInt16
        /// The data behind the company id.
        public let data: [UInt8]

        /// Data in a company's format.
        public init(company: UInt16, data: [UInt8]) {
            self.company = company
            self.data = data
        }
    }

    /// The services offered, from complete and incomplete lists of all three sizes, in payload order.
    public var serviceUUIDs: [BluetoothUUID] {
        uuids { 0x02...0x07 ~= $0.rawValue }
    }

    /// The services that the device looks for on a central, in payload order.
    public var solicitedServiceUUIDs: [BluetoothUUID] {
        uuids { $0.rawValue == 0x14 || $0.rawValue == 0x15 || $0.rawValue == 0x1F }
    }

    /// Whether a list of services is marked incomplete: the device has more than it names.
    public var hasIncompleteServiceList: Bool {
        var walk = Walk(bytes.span)
        while let structure = walk.next() {
            switch structure.type {
            case .incomplete16BitServiceUUIDs, .incomplete32BitServiceUUIDs, .incomplete128BitServiceUUIDs: return true
            default: continue
            }
        }
        return false
    }

    /// Whether a service is offered; nothing is allocated for the answer.
    public func offers(_ service: BluetoothUUID) -> Bool {
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            guard 0x02...0x07 ~= structure.type.rawValue, let size = structure.type.uuidListElementSize else {
                continue
            }
            while let uuid = structure.value.uuid(size) {
                if uuid == service { return true }
            }
        }
        return false
    }

    /// All service data, in payload order. Structures too short for their UUID are left out.
    public var serviceData: [ServiceData] {
        var result: [ServiceData] = []
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            guard let size = structure.type.serviceDataUUIDSize, let service = structure.value.uuid(size) else {
                continue
            }
            result.append(ServiceData(service: service, data: structure.value.rest()))
        }
        return result
    }

    /// The data of one service, the first where there are several.
    public func serviceData(of service: BluetoothUUID) -> [UInt8]? {
        withServiceData(of: service) { $0.rest() }
    }

    /// All manufacturer data, in payload order. Structures too short for a company id are left out.
    public var manufacturerData: [ManufacturerData] {
        var result: [ManufacturerData] = []
        forEach(.manufacturerSpecificData) { value in
            guard let company = value.u16() else { return }
            result.append(ManufacturerData(company: company, data: value.rest()))
        }
        return result
    }

    /// The data of one company, the first where there are several.
    public func manufacturerData(of company: UInt16) -> [UInt8]? {
        withManufacturerData(of: company) { $0.rest() }
    }

    /// Reads the first service data of `service` that `read` accepts.
    func withServiceData<Value>(of service: BluetoothUUID, _ read: (inout ByteReader) -> Value?) -> Value? {
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            guard let size = structure.type.serviceDataUUIDSize, structure.value.uuid(size) == service else { continue }
            if let value = read(&structure.value) { return value }
        }
        return nil
    }

    /// Reads the first data of `company` that `read` accepts.
    func withManufacturerData<Value>(of company: UInt16, _ read: (inout ByteReader) -> Value?) -> Value? {
        first(.manufacturerSpecificData) { value in
            guard value.u16() == company else { return nil }
            return read(&value)
        }
    }

    private func uuids(_ belongs: (AdvertisingDataType) -> Bool) -> [BluetoothUUID] {
        var result: [BluetoothUUID] = []
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            guard belongs(structure.type), let size = structure.type.uuidListElementSize else { continue }
            while let uuid = structure.value.uuid(size) { result.append(uuid) }
        }
        return result
    }
}

extension AdvertisingDataType {
    /// Bytes the UUID takes in front of service data; `nil` for other types.
    var serviceDataUUIDSize: Int? {
        switch self {
        case .serviceData16Bit: 2
        case .serviceData32Bit: 4
        case .serviceData128Bit: 16
        default: nil
        }
    }
}
