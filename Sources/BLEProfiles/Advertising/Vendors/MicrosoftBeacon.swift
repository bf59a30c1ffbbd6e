internal import BLECore

/// Microsoft's beacons: the Connected Devices Platform, and Swift Pair.
///
///     company 0x0006 | 01 | version, device type 1 | version, flags 1 | reserved 1 | salt 4 | hash 19
///     company 0x0006 | 01 | version, device type 1 | version, flags 1 with bit 0 | reserved 1 | address 7 | name …
///     company 0x0006 | 03 | 00 or 01 | 80 | name …
///     company 0x0006 | 03 | 02 | 80 | address 6 | class of device 3 | name …
///
/// Spec: [MS-CDP] 2.2.2.2.3.1, LE Advertising Beacon, and the form with a name as recorded; Microsoft's hardware
/// documentation, Bluetooth Swift Pair.
enum MicrosoftBeacon {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        switch value.u8() {
        case 0x01: connectedDevice(&value)
        case 0x03: swiftPair(&value)
        default: nil
        }
    }

    private static func connectedDevice(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let type = value.u8(), type >> 6 == 0, let flags = value.u8(), value.skip(1) else { return nil }
        var list = FieldList()
        list.add("device", word: name(ofDevice: type & 0x3F))
        if flags & 1 != 0 {
            guard value.skip(7) else { return nil }
            list.add("name", quoted: AdvertisedName(bytes: value.rest()).text)
        } else if value.remaining != 23 {
            return nil
        }
        return DecodedAdvertisement(.microsoftCDP, "Microsoft CDP", list.fields)
    }

    private static func swiftPair(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let way = value.u8(), way <= 2, value.u8() == 0x80 else { return nil }
        if way == 2, !value.skip(9) { return nil }
        var list = FieldList()
        list.add("pairing", word: way == 0 ? "over LE" : way == 1 ? "over LE and BR/EDR" : "over BR/EDR")
        let name = AdvertisedName(bytes: value.rest())
        list.add("name", quoted: name.bytes.isEmpty ? nil : name.text)
        return DecodedAdvertisement(.swiftPair, "Swift Pair", list.fields)
    }

    private static func name(ofDevice type: UInt8) -> String? {
        switch type {
        case 1: "Xbox One"
        case 6: "iPhone"
        case 7: "iPad"
        case 8: "Android"
        case 9: "Windows desktop"
        case 11: "Windows phone"
        case 12: "Linux"
        case 13: "Windows IoT"
        case 14: "Surface Hub"
        case 15: "Windows laptop"
        case 16: "Windows tablet"
        default: nil
        }
    }
}
