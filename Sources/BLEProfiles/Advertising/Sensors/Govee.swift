internal import BLECore

/// Govee thermometers, which advertise under company identifiers of others.
///
///     0xEC88 | 00 | packed 3 | battery 1 | 00                            H5072, H5075
///     0xEC88 | 00 | temperature 2 | humidity 2 | battery 1 | …           H5074, H5051, H5052, H5071
///     0x0001 | 01 01 | packed 3 | battery 1                              H5100 to H5105, H5174, H5177
///     0x0001 | 01 01 | packed 4                                          H5106
///     0x0001 | 01 01 | which sensor 1 | packed 3 | battery 1 | …         H5178
///     0x8801 | EC 00 01 01 | temperature 2 | humidity 2 | battery 1      H5179
///
/// A packed number is big-endian: the sign bit, then tenths of a degree times 1000, plus tenths of a percent. Bit 7 of
/// the battery byte indicates a sensor failure. Spec: none; reverse engineered by the projects govee-ble and
/// wcbonner/GoveeBTTempLogger.
enum Govee {
    static func decode(
        _ company: UInt16, _ value: inout ByteReader, in whole: AdvertisingData
    ) -> DecodedAdvertisement? {
        let model = whole.name.flatMap { Self.model(in: $0.bytes) }
        let title = model.map { "Govee \($0)" } ?? "Govee"
        var list = FieldList()
        switch (company, value.remaining) {
        case (0xEC88, 6):
            guard value.skip(1), addPacked(&value, to: &list) else { return nil }
        case (0xEC88, 7), (0xEC88, 9):
            guard value.skip(1), addPlain(&value, to: &list) else { return nil }
        case (0x8801, 9):
            guard value.skip(4), addPlain(&value, to: &list) else { return nil }
        case (0x0001, 6) where model == "H5106":
            guard value.skip(2), addAirQuality(&value, to: &list) else { return nil }
        case (0x0001, 6) where model != nil, (0x0001, 8) where model == "H5108":
            guard value.u16() == 0x0101, addPacked(&value, to: &list) else { return nil }
        case (0x0001, 9) where model == "H5178":
            guard value.u16() == 0x0101, let sensor = value.u8() else { return nil }
            list.add("sensor", word: sensor == 0 ? "near" : "remote")
            guard addPacked(&value, to: &list) else { return nil }
        default: return nil
        }
        return DecodedAdvertisement(.govee, title, list.fields)
    }

    private static func addPacked(_ value: inout ByteReader, to list: inout FieldList) -> Bool {
        guard let packed = value.bigEndian24(), let battery = value.u8() else { return false }
        let number = Int32(bitPattern: packed & 0x7FFFFF)
        let isGood = battery & 0x80 == 0
        let temperature = packed & 0x800000 == 0 ? number / 1000 : 0 - number / 1000
        list.measured("temperature", isGood ? temperature : nil, exponent: -1, "°C")
        list.measured("humidity", isGood ? number % 1000 : nil, exponent: -1, "%")
        list.ofSender { $0.measured("battery", battery & 0x7F, "%") }
        return true
    }

    private static func addPlain(_ value: inout ByteReader, to list: inout FieldList) -> Bool {
        guard let temperature = value.i16(), let humidity = value.u16(), let battery = value.u8(), humidity <= 10_000
        else {
            return false
        }
        list.measured("temperature", temperature, exponent: -2, "°C")
        list.measured("humidity", humidity, exponent: -2, "%")
        list.ofSender { $0.measured("battery", battery & 0x7F, "%") }
        return true
    }

    private static func addAirQuality(_ value: inout ByteReader, to list: inout FieldList) -> Bool {
        guard let high = value.bigEndian16(), let low = value.bigEndian16() else { return false }
        let number = Int32(high & 0x7FFF) << 16 | Int32(low)
        let temperature = number / 1_000_000
        list.measured("temperature", high & 0x8000 == 0 ? temperature : 0 - temperature, exponent: -1, "°C")
        list.measured("humidity", number % 1_000_000 / 1000, exponent: -1, "%")
        list.measured("pm2.5", number % 1000, "µg/m³")
        return true
    }

    /// Returns the model, such as "H5075", from a name such as "GVH5075_CB9B", "Govee_H5074_5FF4" or "B5178C545".
    static func model(in name: [UInt8]) -> String? {
        let isGovee =
            name.starts(with: "GV".utf8) || name.starts(with: "Govee_".utf8) || name.starts(with: "B5178".utf8)
        guard isGovee, let start = name.firstIndex(of: 0x35) else { return nil }
        let digits = name[start...].prefix(4)
        guard digits.count == 4, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return "H" + String(decoding: digits, as: UTF8.self)
    }
}
