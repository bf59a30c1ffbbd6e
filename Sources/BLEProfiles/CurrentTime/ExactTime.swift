public import BLECore

/// A day of the week.
///
/// Spec: Day of Week (0x2A09), GATT Specification Supplement.
public struct DayOfWeek: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value: 1 is Monday, 7 is Sunday.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Day of Week" }

    /// Creates a day from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Unknown.
    public static let unknown = Self(rawValue: 0)
    /// Monday.
    public static let monday = Self(rawValue: 1)
    /// Tuesday.
    public static let tuesday = Self(rawValue: 2)
    /// Wednesday.
    public static let wednesday = Self(rawValue: 3)
    /// Thursday.
    public static let thursday = Self(rawValue: 4)
    /// Friday.
    public static let friday = Self(rawValue: 5)
    /// Saturday.
    public static let saturday = Self(rawValue: 6)
    /// Sunday.
    public static let sunday = Self(rawValue: 7)

    /// The English name, or `nil` if the value is not assigned.
    public var name: String? { assignedName }
}

extension DayOfWeek: NamedCode {
    package static var names: [String] {
        ["unknown day", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    }
}

/// A date and time with the day of the week and fractions of a second.
///
///     date time 7 | day of week 1 | fractions 1
///
/// The first eight bytes alone are the format Day Date Time (0x2A0A).
///
/// Spec: Exact Time 256 (0x2A0C), GATT Specification Supplement.
public struct ExactTime256: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The date and the time of day.
    public var dateTime: GATTDateTime
    /// The day of the week.
    public var dayOfWeek: DayOfWeek
    /// The fraction of a second, in units of 1/256 s.
    public var fractions: UInt8
    /// The specification's name.
    public static var formatName: String { "Exact Time 256" }

    /// Creates a date and time.
    public init(dateTime: GATTDateTime, dayOfWeek: DayOfWeek = .unknown, fractions: UInt8 = 0) {
        self.dateTime = dateTime
        self.dayOfWeek = dayOfWeek
        self.fractions = fractions
    }

    /// Reads 9 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        dateTime = try reader.read()
        dayOfWeek = try reader.read()
        fractions = try reader.read()
    }

    /// Appends 9 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.write(dateTime)
        writer.write(dayOfWeek)
        writer.u8(fractions)
    }
}

extension ExactTime256: DescribedValue {
    package var fields: [ValueField] {
        var text = dateTime.description
        if fractions > 0 {
            let digits = String(Int(fractions) * 1000 / 256)
            text += "." + String(repeating: "0", count: 3 - digits.utf8.count) + digits
        }
        var fields = [ValueField("time", .text(text))]
        if dayOfWeek != .unknown { fields.append(ValueField("day", dayOfWeek.content)) }
        return fields
    }
}
