public import BLECore

/// A weight measurement.
///
///     flags 1 | weight 2 | bit 1: time 7 | bit 2: user 1 | bit 3: body mass index 2, height 2      bit 0: imperial
///
/// Spec: Weight Measurement (0x2A9D), Weight Scale Service 1.0, 3.2.
public struct WeightMeasurement: GATTReadable, Hashable, Sendable {
    /// The units of weight and height.
    public let system: MeasurementSystem
    /// The weight, or `nil` if the scale could not measure it.
    public let weight: Double?
    /// The time of the measurement, by the scale's clock.
    public let timestamp: GATTDateTime?
    /// The index of the user; also `nil` if the scale does not know it.
    public let userID: UInt8?
    /// The body mass index, with a resolution of 0.1.
    public let bodyMassIndex: Double?
    /// The height of the user.
    public let height: Double?
    /// The specification's name.
    public static var formatName: String { "Weight Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 4, reading: &reader)
        system = flags[0] ? .imperial : .metric
        weight = try reader.readMass(system)
        timestamp = try reader.read(if: flags[1])
        userID = try reader.read(UInt8.self, if: flags[2], unless: .max)
        bodyMassIndex = try reader.read(UInt16.self, per: 10, if: flags[3])
        height = try reader.readHeight(system, if: flags[3])
        reader.skipReserved(flags)
    }

    /// The weight in kilograms, regardless of the unit system.
    public var kilograms: Double? {
        weight.map { system == .metric ? $0 : $0 * 0.45359237 }
    }
}

extension WeightMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        if weight == nil { list.add("weight", missing: "not measured") }
        system.add("weight", mass: weight, to: &list)
        list.add("body mass index", bodyMassIndex, places: 1)
        system.add(height: height, to: &list)
        list.add("user", userID)
        list.add("at", timestamp)
        return list.fields
    }
}

extension CharacteristicKey where Value == WeightMeasurement {
    /// Weight Measurement, 0x2A9D: indicated when the weight is stable.
    public static var weightMeasurement: Self { Self(0x2A9D) }
}
