/// The encoding and the unit of a scaled number.
public struct ValueScale: Hashable, Sendable {
    /// The number of bytes, 1 to 8, little-endian.
    public let byteCount: Int
    /// A Boolean value that indicates whether the number is signed, in two's complement.
    public let isSigned: Bool
    /// The factor that the number is multiplied by, before `exponent`.
    public let multiplier: Int64
    /// The power of ten that the number is multiplied by.
    public let exponent: Int
    /// The unit's symbol, such as "°C"; empty for a number without a unit.
    public let unit: String
    /// The number that means that the value is not known, if there is one.
    public let unknown: Int64?

    /// Creates a scale: the number times `multiplier`, times 10^`exponent`, is in `unit`.
    public init(
        byteCount: Int, isSigned: Bool = false, multiplier: Int64 = 1, exponent: Int = 0, unit: String,
        unknown: Int64? = nil
    ) {
        self.byteCount = min(max(byteCount, 1), 8)
        self.isSigned = isSigned
        self.multiplier = multiplier
        self.exponent = exponent
        self.unit = unit
        self.unknown = unknown
    }

    /// The range of encodable numbers. Numbers of 8 bytes are preserved as they are, signed or unsigned.
    var numbers: ClosedRange<Int64> {
        guard byteCount < 8 else { return .min ... .max }
        let half = Int64(1) << Int64(8 * byteCount - 1)
        return isSigned ? (0 - half)...(half - 1) : 0...(2 * half - 1)
    }
}

/// A quantity that is encoded as one scaled number.
public protocol ScaledQuantity: SendableMetatype {
    /// The specification's name.
    static var formatName: String { get }
    /// The encoding of the value.
    static var scale: ValueScale { get }
}

/// A scaled number, such as a temperature in hundredths of a degree.
public struct ScaledValue<Quantity: ScaledQuantity>: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The encoded number.
    public let rawValue: Int64
    /// The specification's name.
    public static var formatName: String { Quantity.formatName }

    /// Creates a value from its encoded number.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Creates the value nearest to `quantity`, which is in the scale's unit. Returns `nil` if `quantity` is out of
    /// range, or if the encoded number means that the value is not known.
    public init?(_ quantity: Double) {
        let scale = Quantity.scale
        var count = quantity / Double(scale.multiplier)
        for _ in 0..<min(scale.exponent.magnitude, 400) { count = scale.exponent < 0 ? count * 10 : count / 10 }
        guard let number = Int64(exactly: count.rounded()), scale.numbers.contains(number), number != scale.unknown
        else { return nil }
        rawValue = number
    }

    /// Reads as many bytes as the scale defines.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let scale = Quantity.scale
        guard let number = reader.unsigned(scale.byteCount) else { throw reader.tooShort }
        let unused = Int64(64 - 8 * scale.byteCount)
        let bits = Int64(bitPattern: number)
        rawValue = scale.isSigned ? (bits << unused) >> unused : bits
    }

    /// Appends as many bytes as the scale defines; a raw value out of range is clamped.
    public func write(to writer: inout ByteWriter) {
        let scale = Quantity.scale
        let number = min(max(rawValue, scale.numbers.lowerBound), scale.numbers.upperBound)
        writer.littleEndian(UInt64(bitPattern: number), scale.byteCount)
    }

    /// The value in the scale's unit, or `nil` if the device reports it as unknown.
    public var doubleValue: Double? { decimal?.double }

    /// The unit's symbol, such as "°C".
    public static var unit: String { Quantity.scale.unit }

    private var decimal: DecimalNumber? {
        let scale = Quantity.scale
        if rawValue == scale.unknown { return nil }
        let (mantissa, overflow) = rawValue.multipliedReportingOverflow(by: scale.multiplier)
        return overflow ? nil : DecimalNumber(mantissa, exponent: scale.exponent)
    }
}

extension ScaledValue: DescribedValue {
    package var fields: [ValueField] {
        guard let decimal else { return [ValueField(.missing("not known"))] }
        if decimal.exponent == 0 { return [.number("", decimal.mantissa, Self.unit)] }
        return [ValueField(.decimal(decimal), unit: Self.unit)]
    }
}
