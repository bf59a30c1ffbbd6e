internal import BLECore

/// Mopeka's sensors of the level in a tank, known by their service 0xFEE5 too.
///
///     company 0x0059 | product 1 | battery 1 | button 1 bit, temperature 7 bits | echo 14 bits, quality 2 bits
///                    | address 3 | acceleration 2
///
/// The echo is not a height: that depends on what is in the tank. Spec: Mopeka, mopeka_pro_check.
enum Mopeka {
    static func decode(_ value: inout ByteReader, in whole: AdvertisingData) -> DecodedAdvertisement? {
        guard value.remaining == 10, whole.serviceUUIDs.contains(BluetoothUUID(0xFEE5)), let product = value.u8(),
            let name = name(of: product), let battery = value.u8(), let climate = value.u8(), let echo = value.u16()
        else { return nil }
        var list = FieldList()
        list.measured("temperature", Int16(climate & 0x7F) - 40, "°C")
        list.measured("echo", echo & 0x3FFF)
        list.measured("quality", echo >> 14)
        // In steps of 1/32 V.
        list.ofSender { $0.add("voltage", Double(battery & 0x7F) / 32, places: 2, "V") }
        if climate & 0x80 != 0 { list.add("button", word: "button pressed") }
        return DecodedAdvertisement(.mopeka, "Mopeka \(name)", list.fields)
    }

    private static func name(of product: UInt8) -> String? {
        switch product {
        case 0x03: "Pro Check"
        case 0x04: "Pro-200"
        case 0x05: "Pro Check H2O"
        case 0x06: "BottleCheck"
        case 0x08, 0x09: "Pro Plus"
        case 0x0A, 0x0B: "TD40/TD200"
        case 0x0C: "Pro Check Universal"
        case 0x12: "Pro-200B"
        default: nil
        }
    }
}
