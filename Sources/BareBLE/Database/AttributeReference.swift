public import BLECore

/// A reference to a characteristic, by its handle or by its type.
///
/// A handle is exact. A UUID is looked up in what has been discovered; several matches are an error that lists them,
/// until `service` or `index` selects one.
public enum CharacteristicReference: Hashable, Sendable, CustomStringConvertible {
    /// The characteristic whose value has this handle; any other readable or writable attribute is allowed too.
    case handle(AttributeHandle)
    /// The characteristic with this UUID: with `service`, only in services with that UUID; with `index`, the n-th
    /// match from 0, ordered by handle.
    case uuid(BluetoothUUID, service: BluetoothUUID? = nil, index: Int? = nil)
    /// A characteristic as discovery found it. Once the peer has changed it, an operation on it fails with
    /// `servicesChanged`, whereas its handle alone would reach whatever is there now.
    case characteristic(GATTCharacteristic)

    /// A text such as `0x0022`, `2a19` or `2a19 in 180f`.
    public var description: String {
        switch self {
        case .handle(let handle):
            return "0x" + Hex.encode([UInt8(truncatingIfNeeded: handle >> 8), UInt8(truncatingIfNeeded: handle)])
        case .uuid(let uuid, let service, let index):
            var text = uuid.description
            if let service { text += " in \(service)" }
            if let index { text += " [\(index)]" }
            return text
        case .characteristic(let characteristic):
            return characteristic.uuid.description
        }
    }
}

extension CharacteristicReference: ExpressibleByIntegerLiteral {
    /// The characteristic with a 16-bit UUID: `0x2A19`. A handle is written `.handle(0x0022)`.
    public init(integerLiteral value: UInt16) {
        self = .uuid(BluetoothUUID(value))
    }
}

extension GATTDatabase {
    /// Returns the one characteristic that `reference` selects.
    ///
    /// - Throws: `BLEError` with `.attributeNotFound` or `.ambiguous`.
    func resolve(
        _ reference: CharacteristicReference, for operation: String, at subject: String
    ) throws(BLEError) -> GATTCharacteristic {
        switch reference {
        case .handle(let handle):
            if let characteristic = characteristic(containing: handle) { return characteristic }
            throw BLEError(
                .attributeNotFound, subject: subject, during: operation,
                because: "no characteristic has the handle \(reference)",
                hint: "List what the peer has with `blescan explore`.")
        case .characteristic(let characteristic):
            return characteristic
        case .uuid(let uuid, let service, let index):
            let matches = characteristics(uuid, in: service)
            if let index {
                if matches.indices.contains(index) { return matches[index] }
            } else if matches.count > 1 {
                let handles = matches.map { CharacteristicReference.handle($0.valueHandle).description }
                throw BLEError(
                    .ambiguous, subject: subject, during: operation,
                    because: "\(matches.count) characteristics are \(uuid): \(handles.joined(separator: ", "))",
                    hint: "Name one of them by its handle, or by its service and index.")
            } else if let only = matches.first {
                return only
            }
            throw BLEError(
                .attributeNotFound, subject: subject, during: operation,
                because: "the peer has no characteristic \(reference)",
                hint: "List what the peer has with `blescan explore`.")
        }
    }
}
