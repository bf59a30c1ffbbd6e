public import BLECore

/// The time of a device's clock, and the reason for its last adjustment.
///
///     exact time 9 | adjust reason 1
///
/// Spec: Current Time (0x2A2B), Current Time Service 1.1, 3.1.
public struct CurrentTime: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The reasons for which a clock was adjusted.
    public struct AdjustReason: OptionSet, Hashable, Sendable {
        /// The raw bits.
        public let rawValue: UInt8

        /// Creates a set of reasons from raw bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The names of the set bits, lowest bit first.
        public var names: [String] { words }

        /// Set manually.
        public static let manualUpdate = Self(rawValue: 0x01)
        /// Set from an external reference clock.
        public static let referenceUpdate = Self(rawValue: 0x02)
        /// The time zone changed.
        public static let timeZoneChange = Self(rawValue: 0x04)
        /// Daylight saving time began or ended.
        public static let daylightSavingChange = Self(rawValue: 0x08)
    }

    /// The current time.
    public var time: ExactTime256
    /// The reasons for the last adjustment.
    public var adjustReason: AdjustReason
    /// The specification's name.
    public static var formatName: String { "Current Time" }

    /// Creates a current time.
    public init(time: ExactTime256, adjustReason: AdjustReason = []) {
        self.time = time
        self.adjustReason = adjustReason
    }

    /// Reads 10 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        time = try reader.read()
        adjustReason = AdjustReason(rawValue: try reader.read())
    }

    /// Appends 10 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.write(time)
        writer.u8(adjustReason.rawValue)
    }
}

extension CurrentTime.AdjustReason: NamedBits {
    package static var names: [String] { ["by hand", "by a reference", "new time zone", "daylight saving"] }
}

extension CurrentTime: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("adjusted", adjustReason)
        return time.fields + list.fields
    }
}

extension CharacteristicKey where Value == CurrentTime {
    /// Current Time, 0x2A2B.
    public static var currentTime: Self { Self(0x2A2B) }
}
