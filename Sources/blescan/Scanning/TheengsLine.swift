import BLECore

/// The format in which OpenMQTTGateway publishes on `…/BTtoMQTT/undecoded` for Theengs Gateway to decode: one object
/// for each entry of service data.
///
/// The keys, their spelling and their values are those of TheengsDecoder: data in hexadecimal digits, manufacturer
/// data after the company identifier as sent on air, 16-bit services as four digits, `mac_type` 0 for a public address
/// and 1 for a random one.
enum TheengsLine {
    /// Returns the objects of one scan result; none for a device without an address, which Theengs cannot handle.
    static func lines(of scanResult: ScanResult) -> [JSONLine] {
        guard let peer = scanResult.peer else { return [] }
        let (services, companies) = (scanResult.serviceData, scanResult.manufacturerData)
        return (0..<max(services.count, companies.count, 1)).map { index in
            // If there are fewer of one kind, the last of them is repeated in the remaining lines.
            let service = services.dropFirst(index).first ?? services.last
            let company = companies.dropFirst(index).first ?? companies.last
            return .object([
                "id": .string(peer.address.description),
                "mac_type": peer.type == .public ? 0 : 1,
                "rssi": scanResult.rssi.map { .integer(Int($0)) },
                "name": scanResult.name.map { .string($0) },
                "servicedatauuid": service.map { .string($0.service.description) },
                "servicedata": service.map { .string(Hex.encode($0.data)) },
                "manufacturerdata": company.map { .string(Hex.encode(bytes(of: $0))) },
                "txpower": scanResult.txPower.map { .integer(Int($0)) },
            ])
        }
    }

    private static func bytes(of data: AdvertisingData.ManufacturerData) -> [UInt8] {
        [UInt8(truncatingIfNeeded: data.company), UInt8(truncatingIfNeeded: data.company >> 8)] + data.data
    }
}
