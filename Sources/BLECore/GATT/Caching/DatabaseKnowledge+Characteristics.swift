extension DatabaseKnowledge {
    /// Whether nothing has to be rediscovered.
    package var isSettled: Bool { stale.isEmpty }

    /// The characteristic that announces changes, where it can be subscribed to.
    package var serviceChangedCharacteristic: GATTCharacteristic? {
        database?.characteristics(ServiceChanged.uuid).first { $0.properties.canSubscribe }
    }

    /// The characteristic to which a client writes its supported features.
    package var clientFeaturesCharacteristic: GATTCharacteristic? {
        database?.characteristics(.clientSupportedFeatures).first { $0.properties.contains(.write) }
    }

    /// Whether `characteristic`, from an earlier state of the database, has been removed or changed.
    package func contradicts(_ characteristic: GATTCharacteristic) -> Bool {
        let handle = characteristic.valueHandle
        guard !stale.contains(handle), let database else { return !stale.isEmpty }
        guard let now = database.characteristic(valueHandle: handle) else {
            return coverage.includesAll(to: .structure) || database.type(at: handle) != nil
        }
        return now.uuid != characteristic.uuid || now.properties != characteristic.properties
    }

    /// Returns whether `characteristic`, from an earlier state of the database, is known to be unchanged.
    package func confirms(_ characteristic: GATTCharacteristic) -> Bool {
        let handle = characteristic.valueHandle
        guard !stale.contains(handle), let now = database?.characteristic(valueHandle: handle) else { return false }
        return now.uuid == characteristic.uuid && now.properties == characteristic.properties
    }
}

extension BluetoothUUID {
    /// The service with the attributes about a peer's database.
    package static let genericAttribute = BluetoothUUID(0x1801 as UInt16)
    /// The type of the hash over a peer's database.
    package static let databaseHash = BluetoothUUID(0x2B2A as UInt16)
    /// The type of the value to which a client writes its supported features.
    package static let clientSupportedFeatures = BluetoothUUID(0x2B29 as UInt16)
}
