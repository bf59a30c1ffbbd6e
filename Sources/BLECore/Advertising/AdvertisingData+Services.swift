// Service UUIDs, service data and manufacturer-specific data.

extension AdvertisingData {
    /// The data of one service in an advertisement.
    public struct ServiceData: Hashable, Sendable {
        /// The service.
        public let service: BluetoothUUID
        /// The data, in the service's own format.
        public let data: [UInt8]

        /// Creates service data.
        public init(service: BluetoothUUID, data: [UInt8]) {
            self.service = service
            self.data = data
        }
    }

    /// Manufacturer-specific data in an advertisement.
    public struct ManufacturerData: Hashable, Sendable {
        /// The company identifier. `AssignedNumbers.companyName(_:)` returns its name.
        public let company: UInt16
        /// The data after the company identifier.
        public let data: [UInt8]

        /// Creates manufacturer-specific data.
        public init(company: UInt16, data: [UInt8]) {
            self.company = company
            self.data = data
        }
    }

    /// The offered services, from complete and incomplete lists of all three UUID sizes, in payload order.
    public var serviceUUIDs: [BluetoothUUID] {
        uuids { $0.serviceListElementSize != nil }
    }

    /// The services that the device solicits from a central, in payload order.
    public var solicitedServiceUUIDs: [BluetoothUUID] {
        uuids { $0.rawValue == 0x14 || $0.rawValue == 0x15 || $0.rawValue == 0x1F }
    }

    /// A Boolean value that indicates whether a service list is marked incomplete, so that the device may offer more
    /// services.
    public var hasIncompleteServiceList: Bool {
        payload.withSpan { span in
            var walk = Walk(span)
            while let structure = walk.next() {
                switch structure.type {
                case .incomplete16BitServiceUUIDs, .incomplete32BitServiceUUIDs, .incomplete128BitServiceUUIDs:
                    return true
                default: continue
                }
            }
            return false
        }
    }

    /// Returns a Boolean value that indicates whether a service is offered. Does not allocate.
    public func offers(_ service: BluetoothUUID) -> Bool {
        payload.withSpan { span in
            var walk = Walk(span)
            while var structure = walk.next() {
                guard let size = structure.type.serviceListElementSize else { continue }
                while let uuid = structure.value.uuid(size) {
                    if uuid == service { return true }
                }
            }
            return false
        }
    }

    /// All service data, in payload order. Structures too short for their UUID are skipped.
    public var serviceData: [ServiceData] {
        var result: [ServiceData] = []
        return payload.withSpan { span in
            var walk = Walk(span)
            while var structure = walk.next() {
                guard let size = structure.type.serviceDataUUIDSize, let service = structure.value.uuid(size) else {
                    continue
                }
                result.append(ServiceData(service: service, data: structure.value.rest()))
            }
            return result
        }
    }

    /// Returns the data of one service; the first if there are several.
    public func serviceData(of service: BluetoothUUID) -> [UInt8]? {
        withServiceData(of: service) { $0.rest() }
    }

    /// All manufacturer-specific data, in payload order. Structures too short for a company identifier are skipped.
    public var manufacturerData: [ManufacturerData] {
        var result: [ManufacturerData] = []
        forEach(.manufacturerSpecificData) { value in
            guard let company = value.u16() else { return }
            result.append(ManufacturerData(company: company, data: value.rest()))
        }
        return result
    }

    /// Returns the data of one company; the first if there are several.
    public func manufacturerData(of company: UInt16) -> [UInt8]? {
        withManufacturerData(of: company) { $0.rest() }
    }

    /// Reads the first service data of `service` that `read` accepts.
    package func withServiceData<Value>(of service: BluetoothUUID, _ read: (inout ByteReader) -> Value?) -> Value? {
        payload.withSpan { span in
            var walk = Walk(span)
            while var structure = walk.next() {
                guard let size = structure.type.serviceDataUUIDSize, structure.value.uuid(size) == service else {
                    continue
                }
                if let value = read(&structure.value) { return value }
            }
            return nil
        }
    }

    /// Reads the first data of `company` that `read` accepts.
    package func withManufacturerData<Value>(of company: UInt16, _ read: (inout ByteReader) -> Value?) -> Value? {
        first(.manufacturerSpecificData) { value in
            guard value.u16() == company else { return nil }
            return read(&value)
        }
    }

    private func uuids(_ belongs: (AdvertisingDataType) -> Bool) -> [BluetoothUUID] {
        var result: [BluetoothUUID] = []
        return payload.withSpan { span in
            var walk = Walk(span)
            while var structure = walk.next() {
                guard belongs(structure.type), let size = structure.type.uuidListElementSize else { continue }
                while let uuid = structure.value.uuid(size) { result.append(uuid) }
            }
            return result
        }
    }
}

extension AdvertisingDataType {
    /// The size of the UUID that precedes service data, in bytes, or `nil` for other types.
    @inline(__always)
    package var serviceDataUUIDSize: Int? {
        switch self {
        case .serviceData16Bit: 2
        case .serviceData32Bit: 4
        case .serviceData128Bit: 16
        default: nil
        }
    }
}
