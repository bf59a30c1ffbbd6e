/// The message whose AES-CMAC, with a key of zeros, is a peer's Database Hash.
///
/// It consists of the handles, the types and, of declarations, the values of all attributes in the order of handles;
/// values that a user or the peer itself may change at any time are left out. It requires a database of the level
/// `full`.
///
/// Spec: Database Hash, Core Vol 3 Part G, 7.3.1.
public struct DatabaseHashMessage: Hashable, Sendable {
    /// The octets of the message.
    public let bytes: [UInt8]

    /// Creates the message of `database`.
    ///
    /// - Parameters:
    ///   - database: A database that was discovered at the level `full`.
    ///   - extendedProperties: The values of the descriptors of the type 0x2900, by their handles. They are hashed and
    ///     not part of a database.
    /// - Returns: The message; `nil` if one of those values is missing.
    public init?(_ database: GATTDatabase, extendedProperties: [AttributeHandle: [UInt8]] = [:]) {
        var attributes: [(handle: AttributeHandle, type: BluetoothUUID, value: [UInt8])] = []
        for service in database.services {
            let type: BluetoothUUID =
                service.isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration
            attributes.append((service.handles.lowerBound, type, service.uuid.attBytes))
            for include in service.includes {
                attributes.append((include.handle, .includeDeclaration, include.declaration))
            }
        }
        for characteristic in database.characteristics {
            attributes.append(
                (characteristic.declarationHandle, .characteristicDeclaration, characteristic.declaration))
        }
        for descriptor in database.descriptors {
            switch descriptor.uuid {
            case 0x2900:
                guard let value = extendedProperties[descriptor.handle] else { return nil }
                attributes.append((descriptor.handle, descriptor.uuid, value))
            case 0x2901, 0x2902, 0x2903, 0x2904, 0x2905:
                attributes.append((descriptor.handle, descriptor.uuid, []))
            default:
                continue
            }
        }
        var writer = ByteWriter(reserving: 24 * attributes.count)
        for (handle, type, value) in attributes.sorted(by: { $0.handle < $1.handle }) {
            writer.u16(handle)
            writer.array(type.attBytes)
            writer.array(value)
        }
        bytes = writer.bytes
    }
}

extension GATTService.Include {
    /// The declaration's value, which names only services with a short UUID.
    fileprivate var declaration: [UInt8] {
        var writer = ByteWriter(reserving: 6)
        writer.u16(handles.lowerBound)
        writer.u16(handles.upperBound)
        if let short = uuid?.short { writer.u16(short) }
        return writer.bytes
    }
}

extension GATTCharacteristic {
    /// The declaration's value.
    fileprivate var declaration: [UInt8] {
        var writer = ByteWriter(reserving: 19)
        writer.u8(properties.rawValue)
        writer.u16(valueHandle)
        writer.array(uuid.attBytes)
        return writer.bytes
    }
}
