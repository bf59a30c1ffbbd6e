/// The value of a medical floating-point number: a decimal number or one of five special values.
///
/// Spec: IEEE 11073-20601, 4.2.2.6 (SFLOAT-Type and FLOAT-Type); Personal Health Devices Transcoding White Paper, 2.2.
public enum MedicalNumber: Hashable, Sendable {
    /// `mantissa` x 10^`exponent`. The exponent also expresses the precision: 36.40 is not 36.4.
    case finite(mantissa: Int32, exponent: Int8)
    /// NaN: the device has no valid result.
    case notANumber
    /// NRes: the result cannot be expressed at this resolution.
    case notAtThisResolution
    /// +INFINITY: above the measurable range.
    case positiveInfinity
    /// -INFINITY: below the measurable range.
    case negativeInfinity
    /// The reserved code.
    case reserved

    /// The nearest `Double`; NaN for special values that are not numbers.
    public var doubleValue: Double {
        switch self {
        case .finite(let mantissa, let exponent): DecimalNumber(mantissa, exponent: Int(exponent)).double
        case .notANumber, .notAtThisResolution, .reserved: .nan
        case .positiveInfinity: .infinity
        case .negativeInfinity: -.infinity
        }
    }

    /// The number as field content.
    package var content: ValueField.Content {
        switch self {
        case .finite(let mantissa, let exponent): .decimal(DecimalNumber(mantissa, exponent: Int(exponent)))
        case .notANumber: .missing("not a number")
        case .notAtThisResolution: .missing("not at this resolution")
        case .positiveInfinity: .missing("above the range")
        case .negativeInfinity: .missing("below the range")
        case .reserved: .missing("reserved")
        }
    }
}

extension MedicalNumber: CustomStringConvertible {
    /// The number with all its decimal places, or words such as "not a number".
    public var description: String { ValueField(content).text }
}

/// SFLOAT: a 16-bit decimal number with a signed 12-bit mantissa and a signed 4-bit exponent.
///
/// Spec: IEEE 11073-20601, SFLOAT-Type; GATT format type `medfloat16`.
public struct MedicalFloat16: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The name in the Characteristic Presentation Format.
    public static var formatName: String { "medfloat16" }

    /// Creates a number from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Creates `mantissa` x 10^`exponent`. Returns `nil` if it does not fit (-2048 to 2047, -8 to 7) or if its bits
    /// encode a special value.
    public init?(mantissa: Int, exponent: Int) {
        guard mantissa >= -0x800, mantissa <= 0x7FF, exponent >= -8, exponent <= 7 else { return nil }
        let low = UInt16(truncatingIfNeeded: mantissa) & 0x0FFF
        rawValue = UInt16(truncatingIfNeeded: exponent) << 12 | low
        guard case .finite = number else { return nil }
    }

    /// The decoded number.
    public var number: MedicalNumber {
        switch rawValue {
        case 0x07FE: return .positiveInfinity
        case 0x07FF: return .notANumber
        case 0x0800: return .notAtThisResolution
        case 0x0801: return .reserved
        case 0x0802: return .negativeInfinity
        default:
            let bits = Int16(bitPattern: rawValue)
            return .finite(mantissa: Int32((bits << 4) >> 4), exponent: Int8(truncatingIfNeeded: bits >> 12))
        }
    }

    /// The nearest `Double`; NaN for special values that are not numbers.
    public var doubleValue: Double { number.doubleValue }

    /// Reads 2 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        rawValue = try reader.read()
    }

    /// Appends 2 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.u16(rawValue)
    }
}

/// FLOAT: a 32-bit decimal number with a signed 24-bit mantissa and a signed 8-bit exponent.
///
/// Spec: IEEE 11073-20601, FLOAT-Type; GATT format type `medfloat32`.
public struct MedicalFloat32: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt32
    /// The name in the Characteristic Presentation Format.
    public static var formatName: String { "medfloat32" }

    /// Creates a number from raw bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Creates `mantissa` x 10^`exponent`. Returns `nil` if it does not fit (24 and 8 bits) or if its bits encode a
    /// special value.
    public init?(mantissa: Int, exponent: Int) {
        guard mantissa >= -0x80_0000, mantissa <= 0x7F_FFFF, exponent >= -128, exponent <= 127 else { return nil }
        let low = UInt32(truncatingIfNeeded: mantissa) & 0xFF_FFFF
        rawValue = UInt32(truncatingIfNeeded: exponent) << 24 | low
        guard case .finite = number else { return nil }
    }

    /// The decoded number.
    public var number: MedicalNumber {
        switch rawValue {
        case 0x007F_FFFE: return .positiveInfinity
        case 0x007F_FFFF: return .notANumber
        case 0x0080_0000: return .notAtThisResolution
        case 0x0080_0001: return .reserved
        case 0x0080_0002: return .negativeInfinity
        default:
            let bits = Int32(bitPattern: rawValue)
            return .finite(mantissa: (bits << 8) >> 8, exponent: Int8(truncatingIfNeeded: bits >> 24))
        }
    }

    /// The nearest `Double`; NaN for special values that are not numbers.
    public var doubleValue: Double { number.doubleValue }

    /// Reads 4 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        rawValue = try reader.read()
    }

    /// Appends 4 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.u32(rawValue)
    }
}
