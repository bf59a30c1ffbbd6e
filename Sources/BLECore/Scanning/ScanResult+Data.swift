extension ScanResult {
    /// The name, from the advertisement or the scan response, preferring a complete one; `nil` if neither has a name.
    public var name: String? {
        let response = scanResponse?.advertisingData
        let advertised = advertisement?.advertisingData
        let name =
            advertised?.localName ?? response?.localName ?? advertised?.shortenedLocalName
            ?? response?.shortenedLocalName
        return name?.text
    }

    /// The advertised services, those of the advertisement first; each once.
    public var serviceUUIDs: [BluetoothUUID] {
        merged { $0.serviceUUIDs }
    }

    /// The solicited services, those of the advertisement first; each once.
    public var solicitedServiceUUIDs: [BluetoothUUID] {
        merged { $0.solicitedServiceUUIDs }
    }

    /// The service data, that of the advertisement first.
    public var serviceData: [AdvertisingData.ServiceData] {
        merged { $0.serviceData }
    }

    /// The manufacturer data, that of the advertisement first.
    public var manufacturerData: [AdvertisingData.ManufacturerData] {
        merged { $0.manufacturerData }
    }

    /// The structures of advertisement and scan response, each once.
    package var payload: AdvertisingData {
        AdvertisingData(joining: merged { $0.structures })
    }

    /// The transmit power that the device advertises, in dBm.
    public var txPower: Int8? {
        advertisement?.txPower ?? advertisement?.advertisingData.txPowerLevel
            ?? scanResponse?.advertisingData.txPowerLevel
    }

    /// The appearance that the device advertises.
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
