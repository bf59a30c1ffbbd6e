/// What a peer offers: its services, characteristics and descriptors, keyed by handle.
///
/// Several services or characteristics may carry the same UUID; all of them are kept, and a look-up by UUID answers with
/// all of them. Which one is meant is for the caller to say. The database is a value: it says what the peer had when it
/// was discovered and does not change behind anybody's back.
///
/// Every list is sorted by handle.
///
/// Spec: Core Vol 3 Part G, 2.5.
public struct GATTDatabase: Hashable, Sendable {
    /// How many attributes a database may have; discovery of a larger one fails.
    public static let attributeLimit = 4_096

    /// The services, primary and secondary.
    public let services: [GATTService]
    /// The characteristics of all services.
    public let characteristics: [GATTCharacteristic]
    /// The descriptors of all characteristics, and attributes that belong to none.
    public let descriptors: [GATTDescriptor]
    /// What discovery had to put up with, in the order in which it was met.
    public let quirks: [GATTQuirk]

    /// A database of these parts, in any order.
    public init(
        services: [GATTService] = [], characteristics: [GATTCharacteristic] = [], descriptors: [GATTDescriptor] = [],
        quirks: [GATTQuirk] = []
    ) {
        self.services = services.sorted { $0.handles.lowerBound < $1.handles.lowerBound }
        self.characteristics = characteristics.sorted { $0.declarationHandle < $1.declarationHandle }
        self.descriptors = descriptors.sorted { $0.handle < $1.handle }
        self.quirks = quirks
    }

    /// How many attributes are known: declarations, values and descriptors.
    public var attributeCount: Int {
        var count = services.count + 2 * characteristics.count + descriptors.count
        for service in services { count += service.includes.count }
        return count
    }
}

// MARK: - By handle

extension GATTDatabase {
    /// The service whose group `handle` is in.
    public func service(containing handle: AttributeHandle) -> GATTService? {
        let index = services.firstSortedIndex { $0.handles.lowerBound > handle }
        guard index > 0 else { return nil }
        let service = services[index - 1]
        return service.handles.contains(handle) ? service : nil
    }

    /// The characteristic that owns `handle`, as its declaration, its value or one of its descriptors.
    public func characteristic(containing handle: AttributeHandle) -> GATTCharacteristic? {
        let index = characteristics.firstSortedIndex { $0.declarationHandle > handle }
        guard index > 0 else { return nil }
        let characteristic = characteristics[index - 1]
        return characteristic.handles.contains(handle) ? characteristic : nil
    }

    /// The characteristic whose value is at `valueHandle`.
    public func characteristic(valueHandle: AttributeHandle) -> GATTCharacteristic? {
        guard let owner = characteristic(containing: valueHandle), owner.valueHandle == valueHandle else { return nil }
        return owner
    }

    /// The descriptor at `handle`.
    public func descriptor(at handle: AttributeHandle) -> GATTDescriptor? {
        let index = descriptors.firstSortedIndex { $0.handle >= handle }
        guard index < descriptors.count, descriptors[index].handle == handle else { return nil }
        return descriptors[index]
    }

    /// The type of the attribute at `handle`, if it is known.
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

// MARK: - By kind

extension GATTDatabase {
    /// Every service of this kind.
    public func services(_ uuid: BluetoothUUID) -> [GATTService] {
        services.filter { $0.uuid == uuid }
    }

    /// Every characteristic of this kind; with `service` only those in services of that kind.
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
    /// The characteristics inside `service`.
    public func characteristics(of service: GATTService) -> [GATTCharacteristic] {
        let first = characteristics.firstSortedIndex { $0.declarationHandle >= service.handles.lowerBound }
        let end = characteristics.firstSortedIndex { $0.declarationHandle > service.handles.upperBound }
        return Array(characteristics[first..<max(first, end)])
    }

    /// The known descriptors of `characteristic`; all of them only after a full discovery.
    public func descriptors(of characteristic: GATTCharacteristic) -> [GATTDescriptor] {
        guard let handles = characteristic.descriptorHandles else { return [] }
        let first = descriptors.firstSortedIndex { $0.handle >= handles.lowerBound }
        let end = descriptors.firstSortedIndex { $0.handle > handles.upperBound }
        return Array(descriptors[first..<max(first, end)])
    }

    /// The Client Characteristic Configuration of `characteristic`, the first one where a peer has several.
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
    /// The descriptor that switches notifications and indications on and off.
    public static let clientCharacteristicConfiguration = BluetoothUUID(0x2902 as UInt16)
}
