package import BLECore

/// The decoded value of a characteristic or descriptor, by its UUID.
///
/// Each profile provides its list of ``DescribedCharacteristic``; they are combined here.
package struct ValueDescription: Hashable, Sendable {
    /// The decoded fields, in display order.
    package let fields: [ValueField]

    package init(fields: [ValueField]) {
        self.fields = fields
    }

    /// Decodes `value`. Returns `nil` if the UUID is not known or the bytes do not fit it.
    package static func of(uuid: BluetoothUUID, value: [UInt8]) -> ValueDescription? {
        guard let fields = known[uuid]?(value) else { return nil }
        return ValueDescription(fields: fields)
    }

    /// A one-line summary, such as "heart rate 72 bpm, skin contact".
    package var text: String {
        var text = ""
        for field in fields {
            let part = field.text
            if !part.isEmpty { text += (text.isEmpty ? "" : ", ") + part }
        }
        return text
    }

    /// The UUIDs with a known format.
    package static var knownUUIDs: [BluetoothUUID] { Array(known.keys) }

    private static let known: [BluetoothUUID: DescribedCharacteristic.Describe] = {
        var known: [BluetoothUUID: DescribedCharacteristic.Describe] = [:]
        for profile in DescribedCharacteristic.profiles {
            for entry in profile { known[entry.uuid] = entry.describe }
        }
        return known
    }()
}

/// A UUID with the type that decodes its values.
package struct DescribedCharacteristic: Sendable {
    package typealias Describe = @Sendable ([UInt8]) -> [ValueField]?

    package let uuid: BluetoothUUID
    package let describe: Describe

    /// Creates an entry for a characteristic whose key names a self-describing type.
    package init<Value: GATTReadable & DescribedValue>(_ key: CharacteristicKey<Value>) {
        self.init(key.uuid, as: Value.self)
    }

    /// Creates an entry for an attribute with this UUID.
    package init<Value: GATTReadable & DescribedValue>(_ uuid: BluetoothUUID, as type: Value.Type) {
        self.uuid = uuid
        describe = { bytes in
            guard let value = try? Value(value: bytes) else { return nil }
            return value.fields
        }
    }

    /// Creates an entry for a medical number in this unit.
    package init(_ key: CharacteristicKey<MedicalFloat16>, unit: String) {
        uuid = key.uuid
        describe = { bytes in
            guard let value = try? MedicalFloat16(value: bytes) else { return nil }
            return [ValueField(value.number.content, unit: unit)]
        }
    }
}
