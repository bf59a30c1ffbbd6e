public import BLECore

/// The context of a glucose measurement: meals, health, exercise and medication.
///
///     flags 1 | sequence number 2 | bit 7: extended flags 1 | bit 0: carbohydrate 1, amount 2 | bit 1: meal 1
///     | bit 2: tester and health 1 | bit 3: exercise 2, intensity 1 | bit 4: medication 1, amount 2 | bit 6: HbA1c 2
///     bit 5: the medication is in litres, not kilograms
///
/// Spec: Glucose Measurement Context (0x2A34), Glucose Service 1.0, 3.2.
public struct GlucoseMeasurementContext: GATTReadable, Hashable, Sendable {
    /// The sequence number of the measurement that this belongs to.
    public let sequenceNumber: UInt16
    /// The carbohydrate consumed.
    public let carbohydrate: GlucoseCarbohydrate?
    /// The amount of carbohydrate, in kilograms.
    public let carbohydrateAmount: MedicalFloat16?
    /// The relation of the measurement to a meal.
    public let meal: GlucoseMeal?
    /// The person who took the sample.
    public let tester: GlucoseTester?
    /// The user's health.
    public let health: GlucoseHealth?
    /// The duration of exercise; also `nil` if it exceeds the encodable range.
    public let exerciseDuration: Duration?
    /// The intensity of exercise, in percent.
    public let exerciseIntensity: UInt8?
    /// The medication taken.
    public let medication: GlucoseMedication?
    /// The amount of medication, in litres or kilograms.
    public let medicationAmount: MedicalFloat16?
    /// A Boolean value that indicates whether the medication is in litres; otherwise in kilograms.
    public let isMedicationInLitres: Bool
    /// The share of glycated haemoglobin (HbA1c), in percent.
    public let hba1c: MedicalFloat16?
    /// The specification's name.
    public static var formatName: String { "Glucose Measurement Context" }

    /// Reads one context.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 8, reading: &reader)
        sequenceNumber = try reader.read()
        let extendedFlags = try reader.read(UInt8.self, if: flags[7])
        carbohydrate = try reader.read(UInt8.self, if: flags[0]).map { GlucoseCarbohydrate(rawValue: $0) }
        carbohydrateAmount = try reader.read(if: flags[0])
        meal = try reader.read(UInt8.self, if: flags[1]).map { GlucoseMeal(rawValue: $0) }
        let testerAndHealth = try reader.read(UInt8.self, if: flags[2])
        tester = testerAndHealth.map { GlucoseTester(rawValue: $0 & 0xF) }
        health = testerAndHealth.map { GlucoseHealth(rawValue: $0 >> 4) }
        exerciseDuration = try reader.read(UInt16.self, if: flags[3], unless: .max).map { .seconds($0) }
        exerciseIntensity = try reader.read(if: flags[3])
        medication = try reader.read(UInt8.self, if: flags[4]).map { GlucoseMedication(rawValue: $0) }
        medicationAmount = try reader.read(if: flags[4])
        isMedicationInLitres = flags[5]
        hba1c = try reader.read(if: flags[6])
        // No extended flag is assigned yet, so any of them may announce a field of a later version.
        if let extendedFlags, extendedFlags != 0 { _ = reader.rest() }
    }
}

extension GlucoseMeasurementContext: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("record", sequenceNumber)
        list.add("carbohydrate", carbohydrate)
        list.add("carbohydrate amount", carbohydrateAmount, shiftedBy: 3, "g")
        list.add("meal", meal)
        list.add("tester", tester)
        list.add("health", health)
        list.add("exercise", exerciseDuration)
        list.add("intensity", exerciseIntensity, "%")
        list.add("medication", medication)
        list.add(
            "medication amount", medicationAmount, shiftedBy: isMedicationInLitres ? 3 : 6,
            isMedicationInLitres ? "mL" : "mg")
        list.add("HbA1c", hba1c, "%")
        return list.fields
    }
}

extension CharacteristicKey where Value == GlucoseMeasurementContext {
    /// Glucose Measurement Context, 0x2A34: notified after the measurement that it belongs to.
    public static var glucoseMeasurementContext: Self { Self(0x2A34) }
}
