public import BLECore

/// A glucose measurement from a meter's records.
///
///     flags 1 | sequence number 2 | base time 7 | bit 0: time offset 2 | bit 1: concentration 2, type and location 1
///     | bit 3: status 2      bit 2: mol/L, not kg/L   bit 4: a context follows
///
/// Spec: Glucose Measurement (0x2A18), Glucose Service 1.0, 3.1.
public struct GlucoseMeasurement: GATTReadable, Hashable, Sendable {
    /// The unit of a concentration.
    public enum Unit: Hashable, Sendable {
        /// Kilograms per litre: 1 kg/L is 100,000 mg/dL.
        case kilogramsPerLitre
        /// Moles per litre: 1 mol/L is 1000 mmol/L.
        case molesPerLitre
    }

    /// The record's sequence number; a context with the same number belongs to it.
    public let sequenceNumber: UInt16
    /// The time of the measurement by the meter's clock, before the offset.
    public let baseTime: GATTDateTime
    /// The offset to add to the base time, in whole minutes: the user has since adjusted the clock. Also `nil` if it is
    /// outside the encodable range.
    public let timeOffset: Duration?
    /// The concentration in its ``unit``.
    public let concentration: MedicalFloat16?
    /// The unit of the concentration.
    public let unit: Unit
    /// The type of the sample.
    public let sampleType: GlucoseSampleType?
    /// The location where the sample was taken.
    public let sampleLocation: GlucoseSampleLocation?
    /// The problems detected during the measurement; empty if there were none.
    public let status: GlucoseSensorStatus?
    /// A Boolean value that indicates whether a ``GlucoseMeasurementContext`` with the same number follows.
    public let isContextFollowing: Bool
    /// The specification's name.
    public static var formatName: String { "Glucose Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 5, reading: &reader)
        sequenceNumber = try reader.read()
        baseTime = try reader.read()
        timeOffset = Self.duration(try reader.read(Int16.self, if: flags[0]))
        concentration = try reader.read(if: flags[1])
        unit = flags[2] ? .molesPerLitre : .kilogramsPerLitre
        let sample = try reader.read(UInt8.self, if: flags[1])
        sampleType = sample.map { GlucoseSampleType(rawValue: $0 & 0xF) }
        sampleLocation = sample.map { GlucoseSampleLocation(rawValue: $0 >> 4) }
        status = try reader.read(if: flags[3])
        isContextFollowing = flags[4]
        reader.skipReserved(flags)
    }

    /// The largest and the smallest number mean "overrun" and "underrun".
    private static func duration(_ minutes: Int16?) -> Duration? {
        guard let minutes, minutes != .max, minutes != .min else { return nil }
        return .seconds(60 * Int64(minutes))
    }

    /// The concentration in mg/dL, regardless of the meter's unit; NaN if it is not a number.
    public var milligramsPerDecilitre: Double? {
        switch unit {
        case .kilogramsPerLitre: concentration.map { $0.doubleValue * 100_000 }
        case .molesPerLitre: concentration.map { $0.doubleValue * 1000 * Self.milligramsPerMillimole }
        }
    }

    /// The concentration in mmol/L, regardless of the meter's unit; NaN if it is not a number.
    public var millimolesPerLitre: Double? {
        switch unit {
        case .kilogramsPerLitre: concentration.map { $0.doubleValue * 100_000 / Self.milligramsPerMillimole }
        case .molesPerLitre: concentration.map { $0.doubleValue * 1000 }
        }
    }

    /// The mg/dL in 1 mmol/L: the molar mass of glucose is 180.156 g/mol.
    private static let milligramsPerMillimole = 18.0156
}

extension GlucoseMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("record", sequenceNumber)
        let isMass = unit == .kilogramsPerLitre
        list.add("glucose", concentration, shiftedBy: isMass ? 5 : 3, isMass ? "mg/dL" : "mmol/L")
        list.add("sample", sampleType)
        list.add("from", sampleLocation)
        list.add("status", status)
        list.add("at", baseTime)
        list.add("time offset", timeOffset)
        if isContextFollowing { list.add("context follows", flag: true) }
        return list.fields
    }
}

extension CharacteristicKey where Value == GlucoseMeasurement {
    /// Glucose Measurement, 0x2A18: notified once for each requested record.
    public static var glucoseMeasurement: Self { Self(0x2A18) }
}
