public import BLECore

/// The connection parameters that a peripheral prefers.
///
///     minimum interval 2 | maximum interval 2 | latency 2 | timeout 2
///
/// Spec: Peripheral Preferred Connection Parameters (0x2A04), Core Vol 3 Part C, 12.3.
public struct PreferredConnectionParameters: GATTReadable, Hashable, Sendable {
    /// The minimum interval in units of 1.25 ms; 0xFFFF means no preference.
    public let shortestInterval: UInt16
    /// The maximum interval in units of 1.25 ms; 0xFFFF means no preference.
    public let longestInterval: UInt16
    /// The peripheral latency, in connection events.
    public let latency: UInt16
    /// The supervision timeout in units of 10 ms; 0xFFFF means no preference.
    public let timeout: UInt16
    /// The specification's name.
    public static var formatName: String { "Peripheral Preferred Connection Parameters" }

    /// Reads 8 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        shortestInterval = try reader.read()
        longestInterval = try reader.read()
        latency = try reader.read()
        timeout = try reader.read()
    }

    /// The preference as connection parameters, or `nil` if a part is unspecified or the specification does not allow
    /// the combination.
    public var connectionParameters: ConnectionParameters? {
        guard shortestInterval <= longestInterval, longestInterval != 0xFFFF, timeout != 0xFFFF else { return nil }
        return try? ConnectionParameters(
            interval: .microseconds(1250 * Int64(shortestInterval)) ... .microseconds(1250 * Int64(longestInterval)),
            latency: Int(latency), supervisionTimeout: .milliseconds(10 * Int64(timeout)))
    }
}

extension PreferredConnectionParameters: DescribedValue {
    package var fields: [ValueField] {
        [
            Self.time("shortest interval", shortestInterval, hundredths: 125),
            Self.time("longest interval", longestInterval, hundredths: 125),
            .number("latency", latency),
            timeout == 0xFFFF
                ? ValueField("time-out", .missing("any")) : .number("time-out", Int(timeout) * 10, "ms"),
        ]
    }

    private static func time(_ name: String, _ units: UInt16, hundredths: Int) -> ValueField {
        units == 0xFFFF
            ? ValueField(name, .missing("any")) : .scaled(name, Int(units) * hundredths, exponent: -2, "ms")
    }
}

extension CharacteristicKey where Value == PreferredConnectionParameters {
    /// Peripheral Preferred Connection Parameters, 0x2A04.
    public static var preferredConnectionParameters: Self { Self(0x2A04) }
}
