extension Sighting {
    /// The name, from the advertisement or the scan response, whichever has the complete one; `nil` when neither has any.
    public var name: String? {
        let response = scanResponse?.advertisingData
        let advertised = advertisement?.advertisingData
        let name =
            advertised?.localName ?? response?.localName ?? advertised?.shortenedLocalName
            ?? response?.shortenedLocalName
        return name?.text
    }

    /// The services advertised, those of the advertisement first; each once.
    public var serviceUUIDs: [BluetoothUUID] {
        merged { $0.serviceUUIDs }
    }

    /// The services that the device looks for, those of the advertisement first; each once.
    public var solicitedServiceUUIDs: [BluetoothUUID] {
        merged { $0.solicitedServiceUUIDs }
    }

    /// Data of services, that of the advertisement first.
    public var serviceData: [AdvertisingData.ServiceData] {
        merged { $0.serviceData }
    }

    /// Data of companies, that of the advertisement first.
    public var manufacturerData: [AdvertisingData.ManufacturerData] {
        merged { $0.manufacturerData }
    }

    /// The power at which the device says it sends, in dBm.
    public var txPower: Int8? {
        advertisement?.txPower ?? advertisement?.advertisingData.txPowerLevel
            ?? scanResponse?.advertisingData.txPowerLevel
    }

    /// What the device says it looks like.
    public var appearance: UInt16? {
        advertisement?.advertisingData.appearance ?? scanResponse?.advertisingData.appearance
    }

    private func merged<Value: Equatable>(_ read: (AdvertisingData) -> [Value]) -> [Value] {
        var values = advertisement.map { read($0.advertisingData) } ?? []
        guard let scanResponse else { return values }
        for value in read(scanResponse.advertisingData) where !values.contains(value) { values.append(value) }
        return values
    }
}

extension ScanFilter {
    /// Whether a device passes.
    public func matches(_ sighting: Sighting) -> Bool {
        if let minimumRSSI, let rssi = sighting.rssi, rssi < minimumRSSI { return false }
        if connectableOnly && !sighting.isConnectable { return false }
        if let peer = sighting.peer {
            if excluding.contains(peer) { return false }
            if !peers.isEmpty && !peers.contains(peer) { return false }
        } else if !peers.isEmpty {
            return false
        }
        if !services.isEmpty {
            let offered = sighting.serviceUUIDs.contains { services.contains($0) }
            guard offered || sighting.solicitedServiceUUIDs.contains(where: { services.contains($0) }) else {
                return false
            }
        }
        if !companies.isEmpty {
            guard sighting.manufacturerData.contains(where: { companies.contains($0.company) }) else { return false }
        }
        if let namePrefix {
            guard let name = sighting.name, name.utf8.starts(with: namePrefix.utf8) else { return false }
        }
        return true
    }
}
