public import BLECore

/// The reference clock by which a device's clock was set, and the time since that update.
///
///     source 1 | accuracy 1 | days 1 | hours 1
///
/// Spec: Reference Time Information (0x2A14), Current Time Service 1.1, 3.3.
public struct ReferenceTimeInformation: GATTReadable, Hashable, Sendable {
    /// The reference.
    public let source: TimeSource
    /// The maximum drift in units of 1/8 s; 254 is more than 31.625 s, 255 is unknown.
    public let accuracy: UInt8
    /// The whole days since the update; 255 means 255 or more.
    public let daysSinceUpdate: UInt8
    /// The hours in addition to the days; 255 if the days are 255.
    public let hoursSinceUpdate: UInt8
    /// The specification's name.
    public static var formatName: String { "Reference Time Information" }

    /// Reads 4 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        source = try reader.read()
        accuracy = try reader.read()
        daysSinceUpdate = try reader.read()
        hoursSinceUpdate = try reader.read()
    }

    /// The maximum drift, or `nil` if it is unknown or more than 31.625 s.
    public var drift: Duration? { accuracy > 253 ? nil : .milliseconds(125 * Int64(accuracy)) }
}

/// The reference that a clock is set by.
///
///     code 1
///
/// Spec: Time Source (0x2A13), GATT Specification Supplement.
public struct TimeSource: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Time Source" }

    /// Creates a source from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Unknown.
    public static let unknown = Self(rawValue: 0)
    /// Network Time Protocol.
    public static let networkTimeProtocol = Self(rawValue: 1)
    /// Satellite navigation.
    public static let gps = Self(rawValue: 2)
    /// A radio time signal.
    public static let radioTimeSignal = Self(rawValue: 3)
    /// Set manually.
    public static let manual = Self(rawValue: 4)
    /// An atomic clock.
    public static let atomicClock = Self(rawValue: 5)
    /// A cellular network.
    public static let cellularNetwork = Self(rawValue: 6)
    /// None: the clock has never been set.
    public static let notSynchronized = Self(rawValue: 7)

    /// The name, or `nil` if the value is not assigned.
    public var name: String? { assignedName }
}

extension TimeSource: NamedCode {
    package static var names: [String] {
        [
            "unknown", "network time protocol", "GPS", "radio time signal", "by hand", "atomic clock",
            "cellular network", "not synchronized",
        ]
    }
}

extension ReferenceTimeInformation: DescribedValue {
    package var fields: [ValueField] {
        var fields = [ValueField("source", source.content)]
        switch accuracy {
        case 255: fields.append(ValueField("accuracy", .missing("unknown")))
        case 254: fields.append(ValueField("accuracy", .missing("worse than 31.625 s")))
        default: fields.append(.scaled("accuracy", Int(accuracy) * 125, exponent: -3, "s"))
        }
        if daysSinceUpdate == 255 {
            fields.append(ValueField("days since update", .missing("255 or more")))
        } else {
            fields.append(.number("days since update", daysSinceUpdate))
            fields.append(.number("hours since update", hoursSinceUpdate))
        }
        return fields
    }
}

extension CharacteristicKey where Value == ReferenceTimeInformation {
    /// Reference Time Information, 0x2A14.
    public static var referenceTimeInformation: Self { Self(0x2A14) }
}
