/// What the bytes of a characteristic or descriptor mean, found by its UUID.
///
/// Every room of `Profiles` brings its list of ``DescribedCharacteristic``; this is where they come together.
package struct ValueDescription: Hashable, Sendable {
    /// What the value says, in the order in which people want to read it.
    package let fields: [ValueField]

    package init(fields: [ValueField]) {
        self.fields = fields
    }

    /// The meaning of `value`, or `nil` when the UUID is not known or the bytes do not fit it.
    package static func of(uuid: BluetoothUUID, value: [UInt8]) -> ValueDescription? {
        guard let fields = known[uuid]?(value) else { return nil }
        return ValueDescription(fields: fields)
    }

    /// One line for people, such as "heart rate 72 bpm, skin contact".
    package var text: String {
        var text = ""
        for field in fields {
            let part = field.text
            if !part.isEmpty { text += (text.isEmpty ? "" : ", ") + part }
        }
        return text
    }

    /// The UUIDs that have a meaning here.
    package static var knownUUIDs: [BluetoothUUID] { Array(known.keys) }

    private static let known: [BluetoothUUID: DescribedCharacteristic.Describe] = {
        var known: [BluetoothUUID: DescribedCharacteristic.Describe] = [:]
        for room in DescribedCharacteristic.rooms {
            for entry in room { known[entry.uuid] = entry.describe }
        }
        return known
    }()
}

/// Joins a UUID and the type that can say what its values mean.
package struct DescribedCharacteristic: Sendable {
    package typealias Describe = @Sendable ([UInt8]) -> [ValueField]?

    package let uuid: BluetoothUUID
    package let describe: Describe

    /// A characteristic whose key names a type that describes itself.
    package init<Value: GATTReadable & DescribedValue>(_ key: CharacteristicKey<Value>) {
        self.init(key.uuid, as: Value.self)
    }

    /// An attribute of this type.
    package init<Value: GATTReadable & DescribedValue>(_ uuid: BluetoothUUID, as type: Value.Type) {
        self.uuid = uuid
        describe = { bytes in
            guard let value = try? Value(value: bytes) else { return nil }
            return value.fields
        }
    }

    /// A medical number that counts this unit.
    package init(_ key: CharacteristicKey<MedicalFloat16>, unit: String) {
        uuid = key.uuid
        describe = { bytes in
            guard let value = try? MedicalFloat16(value: bytes) else { return nil }
            return [ValueField(value.number.content, unit: unit)]
        }
    }
}
