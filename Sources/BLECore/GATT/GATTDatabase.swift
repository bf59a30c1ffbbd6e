/// The attributes of a peer: its services, characteristics and descriptors, keyed by handle.
///
/// Several services or characteristics may have the same UUID; all of them are kept, and a look-up by UUID returns
/// them all. The caller selects one. The database is a value: it describes the peer at the time of discovery and does
/// not change afterwards.
///
/// Every list is sorted by handle.
///
/// Spec: Core Vol 3 Part G, 2.5.
public struct GATTDatabase: Hashable, Sendable {
    /// The maximum number of attributes; discovery of a larger database fails.
    public static let attributeLimit = 4_096

    /// The services, primary and secondary.
    public let services: [GATTService]
    /// The characteristics of all services.
    public let characteristics: [GATTCharacteristic]
    /// The descriptors of all characteristics, and attributes that belong to none.
    public let descriptors: [GATTDescriptor]
    /// The violations of the specification that discovery tolerated, in the order in which they were met.
    public let quirks: [Quirk]

    /// Creates a database of these parts, in any order.
    public init(
        services: [GATTService] = [], characteristics: [GATTCharacteristic] = [], descriptors: [GATTDescriptor] = [],
        quirks: [Quirk] = []
    ) {
        self.services = services.sorted { $0.handles.lowerBound < $1.handles.lowerBound }
        self.characteristics = characteristics.sorted { $0.declarationHandle < $1.declarationHandle }
        self.descriptors = descriptors.sorted { $0.handle < $1.handle }
        self.quirks = quirks
    }

    /// The number of known attributes: declarations, values and descriptors.
    public var attributeCount: Int {
        var count = services.count + 2 * characteristics.count + descriptors.count
        for service in services { count += service.includes.count }
        return count
    }
}

// MARK: - By handle

extension GATTDatabase {
    /// Returns the service whose group contains `handle`.
    public func service(containing handle: AttributeHandle) -> GATTService? {
        let index = services.firstSortedIndex { $0.handles.lowerBound > handle }
        guard index > 0 else { return nil }
        let service = services[index - 1]
        return service.handles.contains(handle) ? service : nil
    }

    /// Returns the characteristic that owns `handle`, as its declaration, its value or one of its descriptors.
    public func characteristic(containing handle: AttributeHandle) -> GATTCharacteristic? {
        let index = characteristics.firstSortedIndex { $0.declarationHandle > handle }
        guard index > 0 else { return nil }
        let characteristic = characteristics[index - 1]
        return characteristic.handles.contains(handle) ? characteristic : nil
    }

    /// Returns the characteristic whose value is at `valueHandle`.
    public func characteristic(valueHandle: AttributeHandle) -> GATTCharacteristic? {
        guard let owner = characteristic(containing: valueHandle), owner.valueHandle == valueHandle else { return nil }
        return owner
    }

    /// Returns the descriptor at `handle`.
    public func descriptor(at handle: AttributeHandle) -> GATTDescriptor? {
        let index = descriptors.firstSortedIndex { $0.handle >= handle }
        guard index < descriptors.count, descriptors[index].handle == handle else { return nil }
        return descriptors[index]
    }

    /// Returns the type of the attribute at `handle`; `nil` if it is unknown.
    public func type(at handle: AttributeHandle) -> BluetoothUUID? {
        if let descriptor = descriptor(at: handle) { return descriptor.uuid }
        if let service = service(containing: handle) {
            if service.handles.lowerBound == handle {
                return service.isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration
            }
            for include in service.includes where include.handle == handle { return .includeDeclaration }
        }
        guard let owner = characteristic(containing: handle) else { return nil }
        if owner.declarationHandle == handle { return .characteristicDeclaration }
        return owner.valueHandle == handle ? owner.uuid : nil
    }
}

// MARK: - By type

extension GATTDatabase {
    /// Returns the services with this UUID.
    public func services(_ uuid: BluetoothUUID) -> [GATTService] {
        services.filter { $0.uuid == uuid }
    }

    /// Returns the characteristics with this UUID; with `service`, only those in services with that UUID.
    public func characteristics(_ uuid: BluetoothUUID, in service: BluetoothUUID? = nil) -> [GATTCharacteristic] {
        characteristics.filter { characteristic in
            guard characteristic.uuid == uuid else { return false }
            guard let service else { return true }
            return self.service(containing: characteristic.declarationHandle)?.uuid == service
        }
    }
}

// MARK: - The tree

extension GATTDatabase {
    /// Returns the characteristics of `service`.
    public func characteristics(of service: GATTService) -> [GATTCharacteristic] {
        let first = characteristics.firstSortedIndex { $0.declarationHandle >= service.handles.lowerBound }
        let end = characteristics.firstSortedIndex { $0.declarationHandle > service.handles.upperBound }
        return Array(characteristics[first..<max(first, end)])
    }

    /// Returns the known descriptors of `characteristic`; all of them only after a full discovery.
    public func descriptors(of characteristic: GATTCharacteristic) -> [GATTDescriptor] {
        guard let handles = characteristic.descriptorHandles else { return [] }
        let first = descriptors.firstSortedIndex { $0.handle >= handles.lowerBound }
        let end = descriptors.firstSortedIndex { $0.handle > handles.upperBound }
        return Array(descriptors[first..<max(first, end)])
    }

    /// Returns the Client Characteristic Configuration descriptor of `characteristic`, the first one if a peer has
    /// several.
    public func cccd(of characteristic: GATTCharacteristic) -> GATTDescriptor? {
        descriptors(of: characteristic).first { $0.uuid == .clientCharacteristicConfiguration }
    }
}

extension BluetoothUUID {
    /// The type of a primary service's declaration.
    public static let primaryServiceDeclaration = BluetoothUUID(0x2800 as UInt16)
    /// The type of a secondary service's declaration.
    public static let secondaryServiceDeclaration = BluetoothUUID(0x2801 as UInt16)
    /// The type of a reference to another service.
    public static let includeDeclaration = BluetoothUUID(0x2802 as UInt16)
    /// The type of a characteristic's declaration.
    public static let characteristicDeclaration = BluetoothUUID(0x2803 as UInt16)
    /// The type of the descriptor that switches notifications and indications on and off.
    public static let clientCharacteristicConfiguration = BluetoothUUID(0x2902 as UInt16)
}
