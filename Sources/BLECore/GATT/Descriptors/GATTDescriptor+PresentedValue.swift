extension GATTDescriptor {
    /// A value decoded by its Characteristic Presentation Format.
    public enum PresentedValue: Hashable, Sendable {
        /// A Boolean value.
        case boolean(Bool)
        /// `mantissa` x 10^`exponent`.
        case decimal(mantissa: Int64, exponent: Int8)
        /// A binary floating-point number.
        case float(Double)
        /// A number in a medical format.
        case medical(MedicalNumber)
        /// Text.
        case text(String)

        /// The nearest `Double`; `nil` for text and for Boolean values.
        public var doubleValue: Double? {
            switch self {
            case .boolean, .text: nil
            case .decimal(let mantissa, let exponent): DecimalNumber(mantissa, exponent: Int(exponent)).double
            case .float(let number): number
            case .medical(let number): number.doubleValue
            }
        }
    }
}

/// The former name of `GATTDescriptor.PresentedValue`.
@available(*, deprecated, renamed: "GATTDescriptor.PresentedValue")
public typealias PresentedValue = GATTDescriptor.PresentedValue

extension GATTDescriptor.PresentationFormat {
    /// Returns `value` decoded by this format, with the exponent applied.
    ///
    /// Returns `nil` for bytes that do not fit the format, for formats that are structures, and for integers that
    /// exceed a signed 64-bit integer.
    public func value(of value: [UInt8]) -> GATTDescriptor.PresentedValue? {
        switch format {
        case 0x01: value == [0] || value == [1] ? .boolean(value == [1]) : nil
        case 0x02: unsigned(value, count: 1, bits: 2, exponent: 0)
        case 0x03: unsigned(value, count: 1, bits: 4, exponent: 0)
        case 0x04: unsigned(value, count: 1, bits: 8, exponent: exponent)
        case 0x05: unsigned(value, count: 2, bits: 12, exponent: exponent)
        case 0x06: unsigned(value, count: 2, bits: 16, exponent: exponent)
        case 0x07: unsigned(value, count: 3, bits: 24, exponent: exponent)
        case 0x08: unsigned(value, count: 4, bits: 32, exponent: exponent)
        case 0x09: unsigned(value, count: 6, bits: 48, exponent: exponent)
        case 0x0A: unsigned(value, count: 8, bits: 64, exponent: exponent)
        case 0x0C: signed(value, count: 1, bits: 8)
        case 0x0D: signed(value, count: 2, bits: 12)
        case 0x0E: signed(value, count: 2, bits: 16)
        case 0x0F: signed(value, count: 3, bits: 24)
        case 0x10: signed(value, count: 4, bits: 32)
        case 0x11: signed(value, count: 6, bits: 48)
        case 0x12: signed(value, count: 8, bits: 64)
        case 0x14: (try? UInt32(value: value)).map { .float(Double(Float(bitPattern: $0))) }
        case 0x15: (try? UInt64(value: value)).map { .float(Double(bitPattern: $0)) }
        case 0x16: (try? MedicalFloat16(value: value)).map { .medical($0.number) }
        case 0x17: (try? MedicalFloat32(value: value)).map { .medical($0.number) }
        case 0x19: (try? String(value: value)).map { .text($0) }
        default: nil
        }
    }

    private func number(_ value: [UInt8], count: Int) -> UInt64? {
        guard value.count == count else { return nil }
        var reader = ByteReader(value.span)
        return reader.unsigned(count)
    }

    private func unsigned(_ value: [UInt8], count: Int, bits: Int, exponent: Int8) -> GATTDescriptor.PresentedValue? {
        guard let number = number(value, count: count) else { return nil }
        guard let mantissa = Int64(exactly: number & (.max >> UInt64(64 - bits))) else { return nil }
        return .decimal(mantissa: mantissa, exponent: exponent)
    }

    private func signed(_ value: [UInt8], count: Int, bits: Int) -> GATTDescriptor.PresentedValue? {
        guard let number = number(value, count: count) else { return nil }
        let unused = Int64(64 - bits)
        return .decimal(mantissa: (Int64(bitPattern: number) << unused) >> unused, exponent: exponent)
    }
}

extension GATTDescriptor.PresentationFormat {
    /// Returns the fields of `value` in this format, for people and programs.
    package func describe(_ value: [UInt8]) -> [ValueField]? {
        switch self.value(of: value) {
        case nil: nil
        case .boolean(let isTrue): [ValueField(.text(isTrue ? "true" : "false"))]
        case .decimal(let mantissa, let exponent):
            [ValueField(.decimal(DecimalNumber(mantissa, exponent: Int(exponent))), unit: symbol)]
        case .float(let number): [ValueField(.float(number), unit: symbol)]
        case .medical(let number): [ValueField(number.content, unit: symbol)]
        case .text(let text): [ValueField(.quoted(text))]
        }
    }

    /// The common symbol of the unit, or else the name in parentheses in the SIG's list.
    private var symbol: String {
        switch unit {
        case 0x2700: return ""
        case 0x2701: return "m"
        case 0x2702: return "kg"
        case 0x2703: return "s"
        case 0x2704: return "A"
        case 0x2705: return "K"
        case 0x2712: return "m/s"
        case 0x2722: return "Hz"
        case 0x2724: return "Pa"
        case 0x2725: return "J"
        case 0x2726: return "W"
        case 0x2728: return "V"
        case 0x272F: return "°C"
        case 0x2731: return "lx"
        case 0x2763: return "°"
        case 0x27A6: return "km/h"
        case 0x27A7: return "mph"
        case 0x27A8: return "rpm"
        case 0x27AC: return "°F"
        case 0x27AD: return "%"
        case 0x27AF: return "bpm"
        case 0x27C4: return "ppm"
        case 0x27C5: return "ppb"
        default: break
        }
        guard let name = unitName else { return "" }
        guard let open = name.firstIndex(of: "("), name.hasSuffix(")") else { return name }
        return String(name[name.index(after: open)...].dropLast())
    }
}
