internal import BLECore

extension Eddystone {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let frame = Eddystone(&value) else { return nil }
        switch frame {
        case .uid(let uid):
            return DecodedAdvertisement(
                .eddystone, "Eddystone UID",
                [
                    ValueField("namespace", .text(Hex.encode(uid.namespace))),
                    ValueField("instance", .text(Hex.encode(uid.instance))), power(uid.txPower),
                ])
        case .url(let url):
            return DecodedAdvertisement(
                .eddystone, "Eddystone URL",
                [ValueField("url", .text(url.url), showsName: false), power(url.txPower)])
        case .telemetry(let telemetry):
            return DecodedAdvertisement(.eddystone, "Eddystone TLM", fields(of: telemetry))
        case .encryptedTelemetry:
            return DecodedAdvertisement(.eddystone, "Eddystone TLM", isEncrypted: true)
        case .ephemeral(let frame):
            return DecodedAdvertisement(
                .eddystone, "Eddystone EID",
                [
                    ValueField("identifier", .text(Hex.encode(frame.identifier)), showsName: false),
                    power(frame.txPower),
                ])
        }
    }

    private static func fields(of telemetry: EddystoneTLM) -> [ValueField] {
        var list = FieldList()
        list.add("temperature", telemetry.temperature, places: 2, "°C")
        if let battery = telemetry.batteryMillivolts {
            list.ofSender { $0.measured("voltage", battery, exponent: -3, "V") }
        }
        list.add("advertisements", telemetry.advertisementCount)
        list.ofSender { $0.add("uptime", telemetry.uptime) }
        return list.fields
    }

    private static func power(_ power: Int8) -> ValueField {
        ValueField.number("power at 0 m", power, "dBm").ofSender
    }
}
