internal import BLECore

// Thermometers that put measurements in the place of the company identifier. The device's name or service distinguishes
// them from what the company with that number sends, and the length is checked before, because it costs nothing.

/// Inkbird's thermometers IBS-TH1, IBS-TH2 and IBS-P01B, named "sps" and "tps".
///
///     temperature 2 | humidity 2 | probe 1 | check 2 | battery 1 | … 1
///
/// Spec: none; reverse engineered by the projects bleparser and TheengsDecoder.
enum Inkbird {
    static func decode(_ first: UInt16, _ value: inout ByteReader, in whole: AdvertisingData) -> DecodedAdvertisement? {
        guard value.remaining == 7, let name = whole.name?.bytes, isName(name) else { return nil }
        guard let humidity = value.u16(), let probe = value.u8(), value.skip(2), let battery = value.u8(),
            humidity <= 10_000, battery <= 100
        else { return nil }
        var list = FieldList()
        list.measured("temperature", Int16(bitPattern: first), exponent: -2, "°C")
        // Those without a hygrometer send 0.
        if humidity != 0 { list.measured("humidity", humidity, exponent: -2, "%") }
        list.ofSender { $0.measured("battery", battery, "%") }
        if probe == 1 { list.add("probe", word: "external probe") }
        return DecodedAdvertisement(.inkbird, "Inkbird", list.fields)
    }

    static func isName(_ name: [UInt8]) -> Bool {
        name.elementsEqual("sps".utf8) || name.elementsEqual("tps".utf8)
    }
}

/// ThermoPro's thermometers TP350 to TP399, named so.
///
///     C2 | temperature 2 | humidity 1 | battery 1 | … 1
///
/// Spec: none; reverse engineered by the projects bleparser and TheengsDecoder.
enum ThermoPro {
    static func decode(_ first: UInt16, _ value: inout ByteReader, in whole: AdvertisingData) -> DecodedAdvertisement? {
        guard first & 0xFF == 0xC2, value.remaining >= 4, let name = whole.name?.bytes, isName(name) else { return nil }
        guard let high = value.u8(), let humidity = value.u8(), let battery = value.u8(), humidity <= 100 else {
            return nil
        }
        var list = FieldList()
        list.measured("temperature", Int16(bitPattern: UInt16(high) << 8 | first >> 8), exponent: -1, "°C")
        list.measured("humidity", humidity, "%")
        switch battery & 3 {
        case 0: list.add("battery level", word: "battery low")
        case 1: list.add("battery level", word: "battery medium")
        case 2: list.add("battery level", word: "battery full")
        default: break
        }
        let title = model(in: name).map { "ThermoPro \($0)" } ?? "ThermoPro"
        return DecodedAdvertisement(.thermoPro, title, list.fields)
    }

    static func isName(_ name: [UInt8]) -> Bool { name.starts(with: "TP3".utf8) }

    /// Returns the model, such as "TP357", from a name such as "TP357 (2A01)".
    static func model(in name: [UInt8]) -> String? {
        let model = name.prefix(5)
        guard model.count == 5, model.allSatisfy({ 0x30...0x39 ~= $0 || 0x41...0x5A ~= $0 }) else { return nil }
        return String(decoding: model, as: UTF8.self)
    }
}

/// SensorPush's sensors HT1, HT.w, HTP.xw and TC.x, known by their services.
///
///     humidity 12 bits | temperature 14 bits | product 5 bits                                HT1
///     page 2 bits, product 6 bits | temperature, humidity, pressure as one number of mixed radix      the others
///
/// Spec: none; reverse engineered by the projects bleparser and TheengsDecoder.
enum SensorPush {
    static func decode(_ first: UInt16, _ value: inout ByteReader, in whole: AdvertisingData) -> DecodedAdvertisement? {
        guard [2, 3, 5].contains(value.remaining) else { return nil }
        let services = whole.serviceUUIDs
        let bytes = [UInt8(truncatingIfNeeded: first), UInt8(first >> 8)] + value.rest()
        if bytes.count == 4, services.contains("ef090000-11d6-42ba-93b8-9dd7ec090aa9") { return ht1(bytes) }
        return services.contains("ef090000-11d6-42ba-93b8-9dd7ec090ab0") ? packed(bytes) : nil
    }

    private static func ht1(_ bytes: [UInt8]) -> DecodedAdvertisement? {
        var bits = BitReader(bytes)
        guard let humidity = bits.unsigned(12), let temperature = bits.unsigned(14), bits.unsigned(5) == 1 else {
            return nil
        }
        var list = FieldList()
        // The formulas of the sensor chip, whose steps are 0.01 °C and 0.03 %.
        list.add("temperature", Double(temperature) * 175.72 / 16_384 - 46.85, places: 2, "°C")
        list.add("humidity", min(100, max(0, Double(humidity) * 125 / 4096 - 6)), places: 2, "%")
        return DecodedAdvertisement(.sensorPush, "SensorPush HT1", list.fields)
    }

    private static func packed(_ bytes: [UInt8]) -> DecodedAdvertisement? {
        guard let head = bytes.first, head & 3 == 0 else { return nil }
        var number = bytes.dropFirst().reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        func next(_ count: UInt64) -> Double {
            defer { number /= count }
            return Double(number % count)
        }
        var list = FieldList()
        switch head >> 2 {
        case 0:
            list.add("temperature", next(72_001) * 0.0025 - 40, places: 2, "°C")
            list.add("humidity", next(40_001) * 0.0025, places: 2, "%")
            list.add("pressure", (next(95_001) + 30_000) / 100, places: 2, "hPa")
            return DecodedAdvertisement(.sensorPush, "SensorPush HTP.xw", list.fields)
        case 1:
            list.add("temperature", next(66_001) * 0.0025 - 40, places: 2, "°C")
            list.add("humidity", next(40_001) * 0.0025, places: 2, "%")
            return DecodedAdvertisement(.sensorPush, "SensorPush HT.w", list.fields)
        case 2:
            list.add("temperature", next(32_001) * 0.0625 - 200, places: 2, "°C")
            return DecodedAdvertisement(.sensorPush, "SensorPush TC.x", list.fields)
        default: return nil
        }
    }
}
