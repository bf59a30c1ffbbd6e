public import BLECore

/// A body composition measurement.
///
///     flags 2 | body fat 2 | bit 1: time 7 | bit 2: user 1 | bit 3: basal metabolism 2 | bit 4: muscle share 2
///     | bit 5: muscle mass 2 | bit 6: fat-free mass 2 | bit 7: soft lean mass 2 | bit 8: body water mass 2
///     | bit 9: impedance 2 | bit 10: weight 2 | bit 11: height 2      bit 0: imperial   bit 12: one of several packets
///
/// Spec: Body Composition Measurement (0x2A9C), Body Composition Service 1.0, 3.2.
public struct BodyCompositionMeasurement: GATTReadable, Hashable, Sendable {
    /// The units of masses and height.
    public let system: MeasurementSystem
    /// The body fat in percent, with a resolution of 0.1, or `nil` if the scale could not measure it.
    public let bodyFatPercentage: Double?
    /// The time of the measurement, by the scale's clock.
    public let timestamp: GATTDateTime?
    /// The index of the user; also `nil` if the scale does not know it.
    public let userID: UInt8?
    /// The basal metabolism in kilojoules per day.
    public let basalMetabolism: UInt16?
    /// The muscle percentage, with a resolution of 0.1.
    public let musclePercentage: Double?
    /// The muscle mass.
    public let muscleMass: Double?
    /// The fat-free mass.
    public let fatFreeMass: Double?
    /// The soft lean mass: without fat and bones.
    public let softLeanMass: Double?
    /// The body water mass.
    public let bodyWaterMass: Double?
    /// The body impedance in ohms, with a resolution of 0.1.
    public let impedance: Double?
    /// The weight.
    public let weight: Double?
    /// The height.
    public let height: Double?
    /// A Boolean value that indicates whether this is one of several packets of the measurement.
    public let isOneOfSeveral: Bool
    /// The specification's name.
    public static var formatName: String { "Body Composition Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt16.self, known: 13, reading: &reader)
        system = flags[0] ? .imperial : .metric
        bodyFatPercentage = try reader.read(UInt16.self, per: 10, if: true, unless: .max)
        timestamp = try reader.read(if: flags[1])
        userID = try reader.read(UInt8.self, if: flags[2], unless: .max)
        basalMetabolism = try reader.read(if: flags[3])
        musclePercentage = try reader.read(UInt16.self, per: 10, if: flags[4])
        muscleMass = try reader.readMass(system, if: flags[5])
        fatFreeMass = try reader.readMass(system, if: flags[6])
        softLeanMass = try reader.readMass(system, if: flags[7])
        bodyWaterMass = try reader.readMass(system, if: flags[8])
        impedance = try reader.read(UInt16.self, per: 10, if: flags[9])
        weight = try reader.readMass(system, if: flags[10])
        height = try reader.readHeight(system, if: flags[11])
        isOneOfSeveral = flags[12]
        reader.skipReserved(flags)
    }
}

extension BodyCompositionMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        if bodyFatPercentage == nil { list.add("body fat", missing: "not measured") }
        list.add("body fat", bodyFatPercentage, places: 1, "%")
        list.add("basal metabolism", basalMetabolism, "kJ")
        list.add("muscles", musclePercentage, places: 1, "%")
        system.add("muscle mass", mass: muscleMass, to: &list)
        system.add("fat-free mass", mass: fatFreeMass, to: &list)
        system.add("soft lean mass", mass: softLeanMass, to: &list)
        system.add("body water mass", mass: bodyWaterMass, to: &list)
        list.add("impedance", impedance, places: 1, "Ω")
        system.add("weight", mass: weight, to: &list)
        system.add(height: height, to: &list)
        list.add("user", userID)
        list.add("at", timestamp)
        if isOneOfSeveral { list.add("one of several packets", flag: true) }
        return list.fields
    }
}

extension CharacteristicKey where Value == BodyCompositionMeasurement {
    /// Body Composition Measurement, 0x2A9C: indicated when a measurement is complete.
    public static var bodyCompositionMeasurement: Self { Self(0x2A9C) }
}
