public import BLECore

/// A running speed and cadence measurement.
///
///     flags 1 | speed 2 | cadence 1 | bit 0: stride 2 | bit 1: distance 4      bit 2: running, not walking
///
/// Spec: RSC Measurement (0x2A53), Running Speed and Cadence Service 1.0, 3.1.
public struct RSCMeasurement: GATTReadable, Hashable, Sendable {
    /// The speed in m/s, with a resolution of 1/256.
    public let speed: Double
    /// The cadence in steps per minute.
    public let cadence: UInt8
    /// The stride length in metres, with a resolution of 0.01.
    public let strideLength: Double?
    /// The total distance in metres, with a resolution of 0.1, since the counter was set.
    public let totalDistance: Double?
    /// A Boolean value that indicates whether the user is running; otherwise walking.
    public let isRunning: Bool
    /// The specification's name.
    public static var formatName: String { "RSC Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 3, reading: &reader)
        speed = try reader.read(UInt16.self, per: 256)
        cadence = try reader.read()
        strideLength = try reader.read(UInt16.self, per: 100, if: flags[0])
        totalDistance = try reader.read(UInt32.self, per: 10, if: flags[1])
        isRunning = flags[2]
        reader.skipReserved(flags)
    }
}

extension RSCMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("speed", speed, places: 3, "m/s")
        list.add("cadence", cadence, "steps/min")
        list.add("stride", strideLength, places: 2, "m")
        list.add("distance", totalDistance, places: 1, "m")
        list.add("gait", text: isRunning ? "running" : "walking")
        return list.fields
    }
}

extension CharacteristicKey where Value == RSCMeasurement {
    /// RSC Measurement, 0x2A53: notified about once a second.
    public static var rscMeasurement: Self { Self(0x2A53) }
}
