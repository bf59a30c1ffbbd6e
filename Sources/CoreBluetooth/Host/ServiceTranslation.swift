// The services of a program as the local peripheral publishes them.
//
// A value that never changes is the local peripheral's. For every other one it calls `read` and `write`, request by
// request, as the program decides about each.

internal import BLECore
internal import BareBLE

/// Translates the services of a program.
struct ServiceTranslation {
    /// Has the program return a value of one of its characteristics.
    let read: @Sendable (LocalValue.ReadRequest, CBMutableCharacteristic) async throws -> [UInt8]
    /// Has the program take values that came together: all of them, or by throwing none.
    let write: LocalService.BatchHandler
    /// Returns a service as it was published; `nil` if it was not.
    let published: (CBService) -> PublishedService?

    /// Returns the definition of a service.
    ///
    /// - Throws: `CBError` with `.invalidParameters` for what cannot be published.
    func definition(of service: CBMutableService) throws -> LocalService {
        let includes = try (service.includedServices ?? []).map { included in
            guard let known = published(included) else {
                throw Self.invalid("the included service \(included.uuid) was not added before")
            }
            return known
        }
        let characteristics = try (service.characteristics ?? []).map { one in
            guard let one = one as? CBMutableCharacteristic else {
                throw Self.invalid("the characteristic \(one.uuid) is not a CBMutableCharacteristic")
            }
            return try definition(of: one)
        }
        return LocalService(
            service.uuid.value, isPrimary: service.isPrimary, includes: includes, characteristics, batchHandler: write)
    }

    private func definition(of characteristic: CBMutableCharacteristic) throws -> LocalCharacteristic {
        let (properties, permissions, value) = characteristic.declared
        let read: AccessRequirement = permissions.contains(.readEncryptionRequired) ? .encrypted : .open
        let write: AccessRequirement = permissions.contains(.writeEncryptionRequired) ? .encrypted : .open
        let encrypted: CBCharacteristicProperties = [.notifyEncryptionRequired, .indicateEncryptionRequired]
        let subscribe: AccessRequirement = properties.isDisjoint(with: encrypted) ? .open : .encrypted
        var declared = CharacteristicProperties(rawValue: UInt8(properties.rawValue & 0x7F))
        if properties.contains(.notifyEncryptionRequired) { declared.insert(.notify) }
        if properties.contains(.indicateEncryptionRequired) { declared.insert(.indicate) }
        let descriptors = try (characteristic.descriptors ?? []).map { descriptor in
            guard let descriptor = descriptor as? CBMutableDescriptor,
                [0x2901, 0x2904].contains(descriptor.uuid.value.short), descriptor.value != nil
            else {
                throw Self.invalid(
                    "the descriptor \(descriptor.uuid) cannot be added: use a CBMutableDescriptor of type 2901 with a "
                        + "String, or 2904 with Data")
            }
            return LocalDescriptor(descriptor.uuid.value, value: .fixed(descriptor.bytes))
        }
        return LocalCharacteristic(
            characteristic.uuid.value, declared, value: try content(characteristic, value, declared),
            access: AttributeAccess(read: read, write: write, subscribe: subscribe), descriptors: descriptors)
    }

    private func content(
        _ characteristic: CBMutableCharacteristic, _ value: Data?, _ properties: CharacteristicProperties
    ) throws -> LocalValue {
        let fixedValue = characteristic.isReadable ? value : nil
        guard value == nil || properties == .read else {
            throw Self.invalid(
                "the characteristic \(characteristic.uuid) has a fixed value, so its properties must be .read alone; "
                    + "pass nil as the value to return it request by request")
        }
        // A service that is refused leaves its objects as they were.
        characteristic.setFixedValue(fixedValue)
        if let fixedValue { return .fixed([UInt8](fixedValue)) }
        return .pieces(
            read: { [read] request in try await read(request, characteristic) },
            write: { [write] request in try await write([request]) })
    }

    /// Returns the error for a service that cannot be published.
    static func invalid(_ reason: String) -> CBError {
        CBError(.invalidParameters, userInfo: [NSLocalizedDescriptionKey: "Could not add the service: \(reason)."])
    }
}

extension LocalService {
    /// Whether centrals need an encrypted link for a part of the service.
    var isProtected: Bool {
        characteristics.contains { [$0.access.read, $0.access.write, $0.access.subscribe].contains(.encrypted) }
    }
}
