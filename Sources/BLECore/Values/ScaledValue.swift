/// How the numbers of one kind of measurement are sent, and what they count.
public struct ValueScale: Hashable, Sendable {
    /// How many bytes a number takes, 1 to 8, least significant first.
    public let byteCount: Int
    /// Whether the number has a sign, in two's complement.
    public let isSigned: Bool
    /// What the number is multiplied with, before `exponent`.
    public let multiplier: Int64
    /// The power of ten that the number is multiplied with.
    public let exponent: Int
    /// The unit's sign, such as "°C"; empty for a number without unit.
    public let unit: String
    /// The number that says that the value is not known, if there is one.
    public let unknown: Int64?

    /// A scale: a number of so many bytes, times `multiplier`, times 10^`exponent`, counts `unit`.
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

    /// The numbers that fit. Those of 8 bytes are kept as they are, with or without sign.
    var numbers: ClosedRange<Int64> {
        guard byteCount < 8 else { return .min ... .max }
        let half = Int64(1) << Int64(8 * byteCount - 1)
        return isSigned ? (0 - half)...(half - 1) : 0...(2 * half - 1)
    }
}

/// A kind of measurement that is sent as one scaled number.
public protocol ScaledQuantity: SendableMetatype {
    /// The specification's name.
    static var formatName: String { get }
    /// How its numbers are sent.
    static var scale: ValueScale { get }
}

/// One scaled number, such as a temperature in hundredths of a degree.
public struct ScaledValue<Quantity: ScaledQuantity>: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The number as it is sent.
    public let rawValue: Int64
    /// The specification's name.
    public static var formatName: String { Quantity.formatName }

    /// The value that is sent as this number.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// The value that is nearest to `quantity` in the unit of the scale; `nil` when no number of this width is, or when that
    /// number means that the value is not known.
    public init?(_ quantity: Double) {
        let scale = Quantity.scale
        var count = quantity / Double(scale.multiplier)
        for _ in 0..<min(scale.exponent.magnitude, 400) { count = scale.exponent < 0 ? count * 10 : count / 10 }
        guard let number = Int64(exactly: count.rounded()), scale.numbers.contains(number), number != scale.unknown
        else { return nil }
        rawValue = number
    }

    /// Reads as many bytes as the scale says.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let scale = Quantity.scale
        guard let number = reader.unsigned(scale.byteCount) else { throw reader.tooShort }
        let unused = Int64(64 - 8 * scale.byteCount)
        let bits = Int64(bitPattern: number)
        rawValue = scale.isSigned ? (bits << unused) >> unused : bits
    }

    /// Appends as many bytes as the scale says: the nearest number where the raw value does not fit.
    public func write(to writer: inout ByteWriter) {
        let scale = Quantity.scale
        let number = min(max(rawValue, scale.numbers.lowerBound), scale.numbers.upperBound)
        writer.littleEndian(UInt64(bitPattern: number), scale.byteCount)
    }

    /// The value in the unit of the scale; `nil` when the device does not know it.
    public var doubleValue: Double? { decimal?.double }

    /// The unit's sign, such as "°C".
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
