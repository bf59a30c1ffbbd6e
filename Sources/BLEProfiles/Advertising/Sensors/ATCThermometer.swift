internal import BLECore

/// A Xiaomi thermometer with the ATC or pvvx custom firmware.
///
///     service 0x181A | address 6 | temperature 2 | humidity 1 | battery 1 | voltage 2 | counter 1    ATC, big-endian
///     service 0x181A | address 6 | temperature 2 | humidity 2 | voltage 2 | battery 1
///                    | counter 1 | flags 1                                                           pvvx
///     service 0x181A | counter 1 | encrypted 6 | message check 4                                     pvvx, with a key
///
/// Spec: the projects atc1441/ATC_MiThermometer and pvvx/ATC_MiThermometer, Advertising formats.
enum ATCThermometer {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        switch value.remaining {
        case 11: DecodedAdvertisement(.atc, "ATC thermometer", isEncrypted: true)
        case 13: atc(&value)
        case 15: pvvx(&value)
        default: nil
        }
    }

    private static func atc(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.skip(6), let temperature = value.bigEndian16(), let humidity = value.u8(), let battery = value.u8(),
            let voltage = value.bigEndian16(), let counter = value.u8(), humidity <= 100, battery <= 100
        else { return nil }
        var list = FieldList()
        list.measured("temperature", Int16(bitPattern: temperature), exponent: -1, "°C")
        list.measured("humidity", humidity, "%")
        list.ofSender { list in
            list.measured("battery", battery, "%")
            list.measured("voltage", voltage, exponent: -3, "V")
        }
        list.measured("counter", counter)
        return DecodedAdvertisement(.atc, "ATC thermometer", list.fields)
    }

    private static func pvvx(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.skip(6), let temperature = value.i16(), let humidity = value.u16(), let voltage = value.u16(),
            let battery = value.u8(), let counter = value.u8(), humidity <= 10_000, battery <= 100
        else { return nil }
        var list = FieldList()
        list.measured("temperature", temperature, exponent: -2, "°C")
        list.measured("humidity", humidity, exponent: -2, "%")
        list.ofSender { list in
            list.measured("battery", battery, "%")
            list.measured("voltage", voltage, exponent: -3, "V")
        }
        list.measured("counter", counter)
        return DecodedAdvertisement(.atc, "ATC thermometer", list.fields)
    }
}
