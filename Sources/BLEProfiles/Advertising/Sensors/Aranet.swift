internal import BLECore

/// An Aranet4, Aranet2, Aranet Radiation or Aranet Radon whose user has permitted integrations.
///
///     company 0x0702 |      state 1 | version 3 | … 4 | CO₂ 2 | temperature 2 | pressure 2 | humidity 1
///                    | battery 1 | status 1 | interval 2 | age 2 | counter 1      Aranet4
///     company 0x0702 | 01 | state 1 | version 3 | … 5 | temperature 2 | … 2 | humidity 2 | … 1
///                    | battery 1 | status 1 | interval 2 | age 2 | counter 1      Aranet2
///     company 0x0702 | 02 | state 1 | version 3 | … 1 | dose 4 | duration 4 | dose rate 2 | … 1
///                    | battery 1 | status 1 | interval 2 | age 2 | counter 1      Radiation
///     company 0x0702 | 03 | state 1 | version 3 | … 3 | radon 2 | temperature 2 | pressure 2 | humidity 2 | … 1
///                    | battery 1 | status 1 | interval 2 | age 2 | counter 1      Radon
///
/// Temperatures are in twentieths of a degree. Spec: SAF Tehnika, Aranet4-Python.
enum Aranet {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        // Only the first product has no number; its data is shorter by that.
        switch value.remaining {
        case 7: return value.skip(7) ? DecodedAdvertisement(.aranet, "Aranet4") : nil
        case 22: return aranet4(&value)
        case 23, 24: break
        default: return nil
        }
        guard let product = value.u8(), let state = value.u8(), value.skip(3) else { return nil }
        let isShared = state & 0x20 != 0
        switch product {
        case 1: return isShared ? aranet2(&value) : DecodedAdvertisement(.aranet, "Aranet2")
        case 2: return isShared ? radiation(&value) : DecodedAdvertisement(.aranet, "Aranet Radiation")
        case 3: return isShared ? radon(&value) : DecodedAdvertisement(.aranet, "Aranet Radon")
        default: return nil
        }
    }

    private static func aranet4(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let state = value.u8() else { return nil }
        guard state & 0x20 != 0 else { return DecodedAdvertisement(.aranet, "Aranet4") }
        guard value.skip(7), let carbonDioxide = value.u16(), let temperature = value.u16(),
            let pressure = value.u16(), let humidity = value.u8(), let battery = value.u8()
        else { return nil }
        var list = FieldList()
        list.measured("carbon dioxide", carbonDioxide & 0x8000 == 0 ? carbonDioxide : nil, "ppm")
        add(temperature, to: &list)
        list.measured("humidity", humidity <= 100 ? humidity : nil, "%")
        list.measured("pressure", pressure & 0x8000 == 0 ? pressure : nil, exponent: -1, "hPa")
        return finished("Aranet4", battery, &value, list)
    }

    private static func aranet2(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.skip(5), let temperature = value.u16(), value.skip(2), let humidity = value.u16(), value.skip(1),
            let battery = value.u8()
        else { return nil }
        var list = FieldList()
        add(temperature, to: &list)
        list.measured("humidity", humidity <= 1000 ? humidity : nil, exponent: -1, "%")
        return finished("Aranet2", battery, &value, list)
    }

    private static func radiation(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.skip(1), let dose = value.u32(), let duration = value.u32(), let rate = value.u16(), value.skip(1),
            let battery = value.u8()
        else { return nil }
        var list = FieldList()
        list.measured("dose rate", rate, exponent: -3, "µSv/h")
        list.measured("dose", dose, exponent: -3, "µSv")
        list.measured("duration", duration, "s")
        return finished("Aranet Radiation", battery, &value, list)
    }

    private static func radon(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.skip(3), let radon = value.u16(), let temperature = value.u16(), let pressure = value.u16(),
            let humidity = value.u16(), value.skip(1), let battery = value.u8()
        else { return nil }
        var list = FieldList()
        list.measured("radon", radon & 0x8000 == 0 ? radon : nil, "Bq/m³")
        add(temperature, to: &list)
        list.measured("humidity", humidity <= 1000 ? humidity : nil, exponent: -1, "%")
        list.measured("pressure", pressure & 0x8000 == 0 ? pressure : nil, exponent: -1, "hPa")
        return finished("Aranet Radon", battery, &value, list)
    }

    private static func add(_ temperature: UInt16, to list: inout FieldList) {
        let steps = Int32(Int16(bitPattern: temperature)) * 5
        // Bit 14 indicates that the sensor has none.
        list.measured("temperature", temperature & 0xC000 == 0x4000 ? nil : steps, exponent: -2, "°C")
    }

    /// Adds what all have at the end.
    private static func finished(
        _ title: String, _ battery: UInt8, _ value: inout ByteReader, _ list: FieldList
    ) -> DecodedAdvertisement? {
        guard value.skip(1), let interval = value.u16(), let age = value.u16() else { return nil }
        var list = list
        list.ofSender { list in
            list.measured("battery", battery <= 100 ? battery : nil, "%")
            list.measured("interval", interval, "s")
            list.measured("age", age, "s")
        }
        return DecodedAdvertisement(.aranet, title, list.fields)
    }
}
