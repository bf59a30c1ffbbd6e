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

    /// The structures of advertisement and scan response, each once.
    package var payload: AdvertisingData {
        AdvertisingData(joining: merged { $0.structures })
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
