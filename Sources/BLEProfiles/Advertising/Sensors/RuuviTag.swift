internal import BLECore

/// A RuuviTag's measurements in formats 3, 5 and C5; C5 is format 5 without the acceleration, for advertisements short
/// on space.
///
///     company 0x0499 | 03 | humidity 1 | temperature 2 | pressure 2 | acceleration 6 | voltage 2
///     company 0x0499 | 05 | temperature 2 | humidity 2 | pressure 2 | acceleration 6 | power 2 | movements 1
///                    | sequence 2 | address 6
///     company 0x0499 | C5 | temperature 2 | humidity 2 | pressure 2 | power 2 | movements 1 | sequence 2 | address 6
///
/// All big-endian. Spec: docs.ruuvi.com, Bluetooth advertisements, data formats 3, 5, C5 and 8.
enum RuuviTag {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        switch value.u8() {
        case 0x03: format3(&value)
        case 0x05: format5(&value, withAcceleration: true)
        case 0xC5: format5(&value, withAcceleration: false)
        case 0x08: value.remaining == 23 ? DecodedAdvertisement(.ruuviTag, "RuuviTag", isEncrypted: true) : nil
        default: nil
        }
    }

    private static func format3(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let humidity = value.u8(), let degrees = value.u8(), let hundredths = value.u8(), hundredths < 100,
            let pressure = value.bigEndian16()
        else { return nil }
        var list = FieldList()
        let size = Int16(degrees & 0x7F) * 100 + Int16(hundredths)
        list.measured("temperature", degrees & 0x80 == 0 ? size : 0 - size, exponent: -2, "°C")
        list.measured("humidity", UInt16(humidity) * 5, exponent: -1, "%")
        list.measured("pressure", UInt32(pressure) + 50_000, exponent: -2, "hPa")
        guard let acceleration = value.take(6), let voltage = value.bigEndian16() else { return nil }
        list.ofSender { $0.measured("voltage", voltage, exponent: -3, "V") }
        add(acceleration, to: &list)
        return DecodedAdvertisement(.ruuviTag, "RuuviTag", list.fields)
    }

    private static func format5(_ value: inout ByteReader, withAcceleration: Bool) -> DecodedAdvertisement? {
        guard let temperature = value.bigEndian16(), let humidity = value.bigEndian16(),
            let pressure = value.bigEndian16()
        else { return nil }
        var list = FieldList()
        // In steps of 0.005 °C and 0.0025 %, which Ruuvi shows with two places.
        let steps = temperature == 0x8000 ? nil : Int32(Int16(bitPattern: temperature)) * 5
        list.measured("temperature", steps, exponent: -3, shownPlaces: 2, "°C")
        list.measured("humidity", humidity == 0xFFFF ? nil : UInt32(humidity) * 25, exponent: -4, shownPlaces: 2, "%")
        list.measured("pressure", pressure == 0xFFFF ? nil : UInt32(pressure) + 50_000, exponent: -2, "hPa")
        guard let acceleration = value.take(withAcceleration ? 6 : 0) else { return nil }
        guard let power = value.bigEndian16(), let movements = value.u8(), let sequence = value.bigEndian16(),
            value.remaining == 6
        else { return nil }
        // 11 bits of voltage above 1.6 V, 5 bits of transmit power in steps of 2 dBm above -40 dBm.
        let (voltage, transmit) = (power >> 5, power & 0x1F)
        list.ofSender { list in
            list.measured("voltage", voltage == 0x7FF ? nil : voltage + 1600, exponent: -3, "V")
            list.measured("tx power", transmit == 0x1F ? nil : Int16(transmit) * 2 - 40, "dBm")
        }
        list.measured("movements", movements == 0xFF ? nil : movements)
        list.measured("sequence", sequence == 0xFFFF ? nil : sequence)
        add(acceleration, to: &list)
        return DecodedAdvertisement(.ruuviTag, "RuuviTag", list.fields)
    }

    private static func add(_ acceleration: consuming ByteReader, to list: inout FieldList) {
        for name in ["acceleration x", "acceleration y", "acceleration z"] {
            guard let number = acceleration.bigEndian16() else { return }
            list.measured(name, number == 0x8000 ? nil : Int16(bitPattern: number), exponent: -3, "g")
        }
    }
}
