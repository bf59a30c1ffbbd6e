internal import BLECore

/// A BTHome object type and the encoding of its value.
///
/// Spec: bthome.io, format v2, Sensor data, Binary sensor data, Events, Device information.
indirect enum BTHomeObject {
    case number(String, ValueScale)
    /// About the sensor itself.
    case ofSender(BTHomeObject)
    /// One byte: a Boolean value.
    case flag(String)
    /// One byte, with the words for 1 and 0.
    case word(String, String, String)
    case button
    case dimmer
    /// A length byte and that many bytes.
    case text
    case raw

    func field(_ value: inout ByteReader) -> ValueField? {
        switch self {
        case .number(let name, let scale):
            guard let number = value.unsigned(scale.byteCount) else { return nil }
            let unused = UInt64(64 - 8 * scale.byteCount)
            let bits = Int64(bitPattern: number << unused)
            let signed = scale.isSigned ? bits >> Int64(unused) : Int64(bitPattern: number)
            // At most four bytes times a small number.
            let (mantissa, _) = signed.multipliedReportingOverflow(by: scale.multiplier)
            if scale.exponent == 0 { return .number(name, mantissa, scale.unit) }
            return .scaled(name, mantissa, exponent: scale.exponent, scale.unit)
        case .ofSender(let object): return object.field(&value)?.ofSender
        case .flag(let name):
            guard let byte = value.u8(), byte <= 1 else { return nil }
            return ValueField(name, .flag(byte == 1))
        case .word(let name, let yes, let no):
            guard let byte = value.u8(), byte <= 1 else { return nil }
            return ValueField(name, .text(byte == 1 ? yes : no))
        case .button:
            guard let event = value.u8() else { return nil }
            return ValueField("button", .text(Self.press(event)))
        case .dimmer:
            guard let direction = value.u8(), let steps = value.u8() else { return nil }
            return .number("dimmer", direction == 1 ? 0 - Int16(steps) : direction == 2 ? Int16(steps) : 0, "steps")
        case .text:
            guard let length = value.u8(), let bytes = value.array(Int(length)) else { return nil }
            return ValueField("text", .quoted(String(decoding: bytes, as: UTF8.self)))
        case .raw:
            guard let length = value.u8(), let bytes = value.array(Int(length)) else { return nil }
            return ValueField("raw", .text(Hex.encode(bytes)))
        }
    }

    private static func press(_ event: UInt8) -> String {
        switch event {
        case 0x00: "not pressed"
        case 0x01: "pressed"
        case 0x02: "pressed twice"
        case 0x03: "pressed three times"
        case 0x04: "pressed long"
        case 0x05: "pressed long twice"
        case 0x06: "pressed long three times"
        case 0x80: "held"
        default: "event \(event)"
        }
    }

    /// Returns `nil` for an unknown number, whose length is unknown too.
    init?(_ identifier: UInt8) {
        switch identifier {
        case 0x3A: self = .button
        case 0x3C: self = .dimmer
        case 0x53: self = .text
        case 0x54: self = .raw
        default:
            guard let object = Self.measured(identifier) ?? Self.counted(identifier) ?? Self.binary(identifier) else {
                return nil
            }
            self = object
        }
    }
}
