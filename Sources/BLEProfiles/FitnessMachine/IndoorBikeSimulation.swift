public import BLECore

/// The road conditions that a bicycle trainer simulates.
///
///     wind 2 | slope 2 | rolling resistance 1 | wind resistance 1
///
/// Spec: Set Indoor Bike Simulation Parameters, Fitness Machine Service 1.0, 4.16.2.18.
public struct IndoorBikeSimulation: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The wind speed in m/s, with a resolution of 0.001; positive is headwind.
    public var windSpeed: Double
    /// The grade of the road in percent, with a resolution of 0.01.
    public var grade: Double
    /// The coefficient of rolling resistance, with a resolution of 0.0001 and a maximum of 0.0255.
    public var rollingResistance: Double
    /// The coefficient of wind resistance in kg/m, with a resolution of 0.01 and a maximum of 2.55.
    public var windResistance: Double
    /// The specification's name for the parameters.
    public static var formatName: String { "Indoor Bike Simulation Parameters" }

    /// Creates simulation parameters; the default coefficients are those of a typical bicycle.
    public init(windSpeed: Double = 0, grade: Double, rollingResistance: Double = 0.004, windResistance: Double = 0.51)
    {
        self.windSpeed = windSpeed
        self.grade = grade
        self.rollingResistance = rollingResistance
        self.windResistance = windResistance
    }

    /// Reads 6 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        windSpeed = try reader.read(Int16.self, per: 1000)
        grade = try reader.read(Int16.self, per: 100)
        rollingResistance = try reader.read(UInt8.self, per: 10_000)
        windResistance = try reader.read(UInt8.self, per: 100)
    }

    /// Appends 6 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.write(Int16(counting: windSpeed, per: 1000))
        writer.write(Int16(counting: grade, per: 100))
        writer.u8(UInt8(counting: rollingResistance, per: 10_000))
        writer.u8(UInt8(counting: windResistance, per: 100))
    }

    func add(to list: inout FieldList) {
        list.add("wind", windSpeed, places: 3, "m/s")
        list.add("grade", grade, places: 2, "%")
        list.add("rolling resistance", rollingResistance, places: 4)
        list.add("wind resistance", windResistance, places: 2, "kg/m")
    }
}
