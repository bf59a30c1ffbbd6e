internal import BLECore

/// An object in a MiBeacon: type 2, length 1, value.
///
/// Spec: Xiaomi IoT developer documentation, MiBeacon protocol, object definitions.
enum MiBeaconObject {
    /// Decodes an object. One of unknown type or unexpected length is shown as raw bytes.
    static func fields(_ type: UInt16, _ value: inout ByteReader) -> [ValueField] {
        var copy = value
        if let fields = climate(type, &copy), copy.isAtEnd { return fields }
        copy = value
        if let field = state(type, &copy), copy.isAtEnd { return [field] }
        let name = "object " + Hex.encode([UInt8(type >> 8), UInt8(type & 0xFF)])
        let bytes = value.rest()
        return [ValueField(name, .text(bytes.isEmpty ? "(empty)" : Hex.encode(bytes)))]
    }

    private static func climate(_ type: UInt16, _ value: inout ByteReader) -> [ValueField]? {
        switch type {
        case 0x1004:
            guard let temperature = value.i16() else { return nil }
            return [.scaled("temperature", temperature, exponent: -1, "°C")]
        case 0x1006:
            guard let humidity = value.u16() else { return nil }
            return [.scaled("humidity", humidity, exponent: -1, "%")]
        case 0x1007:
            guard let light = value.u24() else { return nil }
            return [.number("illuminance", light, "lx")]
        case 0x1008:
            guard let moisture = value.u8() else { return nil }
            return [.number("moisture", moisture, "%")]
        case 0x1009:
            guard let conductivity = value.u16() else { return nil }
            return [.number("conductivity", conductivity, "µS/cm")]
        case 0x100A:
            guard let battery = value.u8() else { return nil }
            return [.number("battery", battery, "%").ofSender]
        case 0x100D:
            guard let temperature = value.i16(), let humidity = value.u16() else { return nil }
            return [
                .scaled("temperature", temperature, exponent: -1, "°C"),
                .scaled("humidity", humidity, exponent: -1, "%"),
            ]
        case 0x1010:
            guard let formaldehyde = value.u16() else { return nil }
            return [.scaled("formaldehyde", formaldehyde, exponent: -2, "mg/m³")]
        case 0x000A:
            guard let temperature = value.i16() else { return nil }
            return [.scaled("temperature", temperature, exponent: -2, "°C")]
        case 0x000F:
            guard let light = value.u24() else { return nil }
            return [ValueField("motion", .flag(true)), .number("light level", light)]
        case 0x4803, 0x4C03:
            guard let battery = value.u8() else { return nil }
            return [.number("battery", battery, "%").ofSender]
        case 0x4818:
            guard let seconds = value.u16() else { return nil }
            return [.number("idle time", seconds, "s")]
        case 0x4A08:
            guard let light = value.u32() else { return nil }
            return field("illuminance", light, places: 0, "lx").map { [ValueField("motion", .flag(true)), $0] }
        case 0x4C01:
            guard let temperature = value.u32() else { return nil }
            return field("temperature", temperature, places: 2, "°C").map { [$0] }
        case 0x4C02:
            guard let humidity = value.u8() else { return nil }
            return [.number("humidity", humidity, "%")]
        case 0x4C08:
            guard let humidity = value.u32() else { return nil }
            return field("humidity", humidity, places: 1, "%").map { [$0] }
        default:
            return nil
        }
    }

    /// Returns a field from the bits of a binary floating-point number.
    private static func field(_ name: String, _ bits: UInt32, places: Int, _ unit: String) -> ValueField? {
        FieldList.decimal(Double(Float(bitPattern: bits)), places: places).map { ValueField(name, $0, unit: unit) }
    }

    private static func state(_ type: UInt16, _ value: inout ByteReader) -> ValueField? {
        if type == 0x1017 {
            guard let seconds = value.u32() else { return nil }
            return .number("idle time", seconds, "s")
        }
        if type == 0x1001 {
            guard let button = value.u16(), let press = value.u8() else { return nil }
            return ValueField("button", .text("\(button) \(word(forPress: press))"))
        }
        guard let byte = value.u8() else { return nil }
        switch type {
        case 0x1012: return ValueField("power", .flag(byte != 0))
        case 0x1013: return .number("consumable", byte, "%")
        case 0x1014: return ValueField("wetness", .flag(byte != 0))
        case 0x1015: return ValueField("smoke", .flag(byte == 1))
        case 0x1018: return ValueField("light", .flag(byte != 0))
        case 0x1019: return ValueField("door", .text(word(forDoor: byte)))
        case 0x4804 where byte == 1 || byte == 2, 0x4A12 where byte == 1 || byte == 2:
            return ValueField("door", .text(byte == 1 ? "open" : "closed"))
        case 0x4A0C, 0x4A0D, 0x4A0E:
            return ValueField("button", .text("\(byte) \(word(forPress: UInt8(truncatingIfNeeded: type - 0x4A0C)))"))
        default: return nil
        }
    }

    private static func word(forPress code: UInt8) -> String {
        switch code {
        case 0: "pressed"
        case 1: "pressed twice"
        case 2: "pressed long"
        case 3: "pressed three times"
        default: "event \(code)"
        }
    }

    private static func word(forDoor code: UInt8) -> String {
        switch code {
        case 0: "open"
        case 1: "closed"
        case 2: "left open"
        default: "state \(code)"
        }
    }
}
