// The attributes of one device that have been discovered, as the objects that a program has.
//
// Invariants
// - One object stands for one attribute as long as the link lives: what is discovered again keeps its object.
// - Services and characteristics are in the order of their handles.
// - A service that leaves the list is invalidated, with those that only it includes: a handle is valid until the link
//   ends or the peer announces a change of it.

internal import BLELinux
internal import BareBLE

/// The attributes of one device that have been discovered.
final class DiscoveredAttributes: Sendable {
    /// The services of the system, which are not shown.
    private static let hidden: Set<BluetoothUUID> = [BluetoothUUID(0x1800 as UInt16), BluetoothUUID(0x1801 as UInt16)]

    private let known = Lock<[CBService]?>(nil)

    /// Services that include each other would keep each other for good.
    deinit { Self.all(services ?? []).forEach { $0.invalidate() } }

    /// The services; `nil` before their discovery, and after the end of the link.
    var services: [CBService]? { known.withLock { $0 } }

    /// Replaces the services; returns those before.
    func set(_ services: [CBService]?) -> [CBService]? {
        let old = known.withLock { known in
            defer { known = services }
            return known
        }
        if services == nil { Self.all(old ?? []).forEach { $0.invalidate() } }
        return old
    }

    /// Returns the services together with those that were discovered now.
    func services(adding found: [GATTService], to peripheral: CBPeripheral) -> [CBService] {
        let old = services ?? []
        let new = found.filter { !Self.hidden.contains($0.uuid) }.map { service in
            old.first {
                $0.remote?.handles.lowerBound == service.handles.lowerBound && $0.remote?.uuid == service.uuid
            }
                ?? CBService(
                    type: CBUUID(service.uuid), isPrimary: service.isPrimary, remote: service, peripheral: peripheral)
        }
        return Self.merged(old, new)
    }

    /// Returns the included services of a service together with those that were discovered now.
    func services(
        including found: [GATTService.Include], in service: CBService, of peripheral: CBPeripheral
    ) -> [CBService] {
        let new = found.compactMap { include in
            include.uuid.map { self.service(at: include.handles, type: $0, of: peripheral) }
        }
        return Self.merged(service.includedServices ?? [], new)
    }

    /// Returns the services outside a range of handles, and those within it, which are invalidated.
    func services(without handles: ClosedRange<AttributeHandle>) -> (rest: [CBService], invalidated: [CBService]) {
        let old = services ?? []
        let isChanged = { (service: CBService) in service.remote?.handles.overlaps(handles) ?? false }
        let rest = old.filter { !isChanged($0) }
        let known = Self.all(old)
        for service in Self.all(rest) where service.includedServices?.contains(where: isChanged) == true {
            service.setIncludedServices(service.includedServices?.filter { !isChanged($0) })
        }
        let remaining = Set(Self.all(rest).map(ObjectIdentifier.init))
        for service in known where !remaining.contains(ObjectIdentifier(service)) { service.invalidate() }
        return (rest, old.filter(isChanged))
    }

    /// Returns the characteristic whose value has this handle.
    func characteristic(at handle: AttributeHandle) -> CBCharacteristic? {
        for service in Self.all(services ?? []) {
            if let found = service.characteristics?.first(where: { $0.remote?.valueHandle == handle }) { return found }
        }
        return nil
    }

    /// Returns services and those that they include, each once: a peer may include services in a circle.
    private static func all(_ services: [CBService]) -> [CBService] {
        var open = services
        var all: [CBService] = []
        var known: Set<ObjectIdentifier> = []
        while let service = open.popLast() {
            guard known.insert(ObjectIdentifier(service)).inserted else { continue }
            all.append(service)
            open += service.includedServices ?? []
        }
        return all
    }

    /// Adds characteristics that were discovered to a service.
    static func add(_ found: [GATTCharacteristic], to service: CBService) {
        let old = service.characteristics ?? []
        let new = found.map { characteristic in
            old.first { $0.remote?.valueHandle == characteristic.valueHandle }
                ?? CBCharacteristic(
                    type: CBUUID(characteristic.uuid),
                    .init(
                        service: service,
                        properties: CBCharacteristicProperties(rawValue: UInt(characteristic.properties.rawValue))),
                    remote: characteristic)
        }
        let rest = old.filter { one in !new.contains { $0 === one } }
        service.setCharacteristics(
            (rest + new).sorted { ($0.remote?.valueHandle ?? 0) < ($1.remote?.valueHandle ?? 0) })
    }

    /// Sets the descriptors of a characteristic to those that were discovered.
    static func add(_ found: [GATTDescriptor], to characteristic: CBCharacteristic) {
        let old = characteristic.descriptors ?? []
        characteristic.setDescriptors(
            found.map { descriptor in
                old.first { $0.remote?.handle == descriptor.handle }
                    ?? CBDescriptor(
                        type: CBUUID(descriptor.uuid), .init(characteristic: characteristic), remote: descriptor)
            })
    }

    /// Returns the service with these handles: the known object, or a new one for a secondary service.
    private func service(
        at handles: ClosedRange<AttributeHandle>, type: BluetoothUUID, of peripheral: CBPeripheral
    ) -> CBService {
        Self.all(services ?? []).first { $0.remote?.handles.lowerBound == handles.lowerBound }
            ?? CBService(
                type: CBUUID(type), isPrimary: false,
                remote: GATTService(handles: handles, uuid: type, isPrimary: false), peripheral: peripheral)
    }

    private static func merged(_ old: [CBService], _ new: [CBService]) -> [CBService] {
        let rest = old.filter { one in !new.contains { $0 === one } }
        return (rest + new).sorted { ($0.remote?.handles.lowerBound ?? 0) < ($1.remote?.handles.lowerBound ?? 0) }
    }
}
