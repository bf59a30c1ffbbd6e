extension DatabaseKnowledge {
    /// Whether nothing that is known waits to be found anew.
    package var isSettled: Bool { stale.isEmpty }

    /// The characteristic that announces changes, where it can be subscribed to.
    package var serviceChangedCharacteristic: GATTCharacteristic? {
        database?.characteristics(ServiceChanged.uuid).first { $0.properties.canSubscribe }
    }

    /// The characteristic into which a client writes what it can do.
    package var clientFeaturesCharacteristic: GATTCharacteristic? {
        database?.characteristics(.clientSupportedFeatures).first { $0.properties.contains(.write) }
    }

    /// Whether `characteristic`, from an earlier look at the database, is not there any more, or not as it was.
    package func contradicts(_ characteristic: GATTCharacteristic) -> Bool {
        let handle = characteristic.valueHandle
        guard !stale.contains(handle), let database else { return !stale.isEmpty }
        guard let now = database.characteristic(valueHandle: handle) else {
            return coverage.includesAll(to: .structure) || database.type(at: handle) != nil
        }
        return now.uuid != characteristic.uuid || now.properties != characteristic.properties
    }

    /// Returns whether `characteristic`, from an earlier look at the database, is known to be there as it was.
    package func confirms(_ characteristic: GATTCharacteristic) -> Bool {
        let handle = characteristic.valueHandle
        guard !stale.contains(handle), let now = database?.characteristic(valueHandle: handle) else { return false }
        return now.uuid == characteristic.uuid && now.properties == characteristic.properties
    }
}

extension BluetoothUUID {
    /// The service that says what there is to know of a peer's database.
    package static let genericAttribute = BluetoothUUID(0x1801 as UInt16)
    /// The type of the hash over a peer's database.
    package static let databaseHash = BluetoothUUID(0x2B2A as UInt16)
    /// The type of the value into which a client writes what it can do.
    package static let clientSupportedFeatures = BluetoothUUID(0x2B29 as UInt16)
}
