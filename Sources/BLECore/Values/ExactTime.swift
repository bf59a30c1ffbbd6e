/// A day of the week.
///
/// Spec: Day of Week (0x2A09), GATT Specification Supplement.
public enum DayOfWeek: UInt8, Hashable, Sendable {
    /// The device does not know.
    case unknown = 0
    /// Monday.
    case monday
    /// Tuesday.
    case tuesday
    /// Wednesday.
    case wednesday
    /// Thursday.
    case thursday
    /// Friday.
    case friday
    /// Saturday.
    case saturday
    /// Sunday.
    case sunday

    /// The English name, in lowercase.
    package var name: String {
        switch self {
        case .unknown: "unknown day"
        case .monday: "Monday"
        case .tuesday: "Tuesday"
        case .wednesday: "Wednesday"
        case .thursday: "Thursday"
        case .friday: "Friday"
        case .saturday: "Saturday"
        case .sunday: "Sunday"
        }
    }
}

extension DayOfWeek: GATTReadable, GATTWritable {
    /// The specification's name.
    public static var formatName: String { "Day of Week" }

    /// Reads 1 byte; a number above 7 is an unknown day.
    ///
    /// - Throws: `MalformedPacket` when there is none.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        self = Self(rawValue: try reader.read()) ?? .unknown
    }

    /// Appends 1 byte.
    public func write(to writer: inout ByteWriter) {
        writer.u8(rawValue)
    }
}

/// A date, a time of day, the day of the week and 256ths of a second.
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
    /// 256ths of a second.
    public var fractions: UInt8
    /// The specification's name.
    public static var formatName: String { "Exact Time 256" }

    /// The moment that a clock shows so.
    public init(dateTime: GATTDateTime, dayOfWeek: DayOfWeek = .unknown, fractions: UInt8 = 0) {
        self.dateTime = dateTime
        self.dayOfWeek = dayOfWeek
        self.fractions = fractions
    }

    /// Reads 9 bytes.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
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
        if dayOfWeek != .unknown { fields.append(ValueField("day", .text(dayOfWeek.name))) }
        return fields
    }
}
