/// A date and time by a device's own clock, without a time zone.
///
///     year 2 | month 1 | day 1 | hours 1 | minutes 1 | seconds 1
///
/// Reading preserves what the device sent, even a 13th month: a clock that was never set must not make the whole
/// measurement unreadable. Use ``isValid`` to check.
///
/// Spec: Date Time (0x2A08), GATT Specification Supplement.
public struct GATTDateTime: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The year, 1582 to 9999; 0 is unknown.
    public var year: UInt16
    /// The month, 1 to 12; 0 is unknown.
    public var month: UInt8
    /// The day of the month, 1 to 31; 0 is unknown.
    public var day: UInt8
    /// The hour, 0 to 23.
    public var hours: UInt8
    /// The minute, 0 to 59.
    public var minutes: UInt8
    /// The second, 0 to 59.
    public var seconds: UInt8
    /// The specification's name.
    public static var formatName: String { "Date Time" }

    /// Creates a date and time.
    public init(year: UInt16, month: UInt8, day: UInt8, hours: UInt8 = 0, minutes: UInt8 = 0, seconds: UInt8 = 0) {
        self.year = year
        self.month = month
        self.day = day
        self.hours = hours
        self.minutes = minutes
        self.seconds = seconds
    }

    /// Reads 7 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        year = try reader.read()
        month = try reader.read()
        day = try reader.read()
        hours = try reader.read()
        minutes = try reader.read()
        seconds = try reader.read()
    }

    /// Appends 7 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.u16(year)
        for part in [month, day, hours, minutes, seconds] { writer.u8(part) }
    }

    /// A Boolean value that indicates whether year, month and day are all known.
    public var hasDate: Bool { year != 0 && month != 0 && day != 0 }

    /// A Boolean value that indicates whether every part is within the specified range; unknown parts count as valid.
    public var isValid: Bool {
        (year == 0 || (year >= 1582 && year <= 9999)) && month <= 12 && day <= 31 && hours <= 23 && minutes <= 59
            && seconds <= 59
    }
}

extension GATTDateTime: CustomStringConvertible {
    /// The date and time, such as "2026-11-21 09:05:00", with question marks for unknown parts of the date.
    public var description: String {
        let date = [part(year, 4), part(month, 2), part(day, 2)].joined(separator: "-")
        return "\(date) \(padded(hours, 2)):\(padded(minutes, 2)):\(padded(seconds, 2))"
    }

    private func part(_ number: some FixedWidthInteger, _ width: Int) -> String {
        number == 0 ? String(repeating: "?", count: width) : padded(number, width)
    }

    private func padded(_ number: some FixedWidthInteger, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

extension GATTDateTime: DescribedValue {
    package var fields: [ValueField] { [ValueField(.text(description))] }
}
