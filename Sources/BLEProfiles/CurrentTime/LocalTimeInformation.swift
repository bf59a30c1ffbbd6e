public import BLECore

/// The offset of a device's local time from UTC.
///
///     time zone 1 | daylight saving 1
///
/// Spec: Local Time Information (0x2A0F), Current Time Service 1.1, 3.2.
public struct LocalTimeInformation: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The offset of the standard time from UTC in units of 15 minutes, -48 to 56; -128 is unknown.
    public var timeZone: Int8
    /// The daylight saving offset in units of 15 minutes: 0, 2, 4 or 8; 255 is unknown.
    public var daylightSaving: UInt8
    /// The specification's name.
    public static var formatName: String { "Local Time Information" }

    /// Creates an offset from a time zone and a daylight saving offset, both in units of 15 minutes.
    public init(timeZone: Int8, daylightSaving: UInt8) {
        self.timeZone = timeZone
        self.daylightSaving = daylightSaving
    }

    /// Reads 2 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        timeZone = try reader.read()
        daylightSaving = try reader.read()
    }

    /// Appends 2 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.i8(timeZone)
        writer.u8(daylightSaving)
    }

    /// The current offset of local time from UTC, or `nil` if either part is unknown.
    public var offset: Duration? {
        guard timeZone != -128, daylightSaving != 255 else { return nil }
        return .seconds(900 * (Int64(timeZone) + Int64(daylightSaving)))
    }
}

extension LocalTimeInformation: DescribedValue {
    package var fields: [ValueField] {
        [
            timeZone == -128
                ? ValueField("time zone", .missing("unknown"))
                : .scaled("time zone", Int(timeZone) * 25, exponent: -2, "h"),
            daylightSaving == 255
                ? ValueField("daylight saving", .missing("unknown"))
                : .scaled("daylight saving", Int(daylightSaving) * 25, exponent: -2, "h"),
        ]
    }
}

extension CharacteristicKey where Value == LocalTimeInformation {
    /// Local Time Information, 0x2A0F.
    public static var localTimeInformation: Self { Self(0x2A0F) }
}
