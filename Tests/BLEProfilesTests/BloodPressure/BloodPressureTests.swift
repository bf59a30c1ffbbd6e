import BLECore
import BLEProfiles
import Testing

@Suite struct BloodPressureTests {
    // Nordic's Android-BLE-Common-Library, BloodPressureMeasurementDataCallbackTest and
    // IntermediateCuffPressureDataCallbackTest: the bytes and what they must mean.
    static let goldens: [GoldenValue] = [
        GoldenValue(
            0x2A35, "1e8a005800780000000411" + "14293b3c00012700",
            "systolic 138 mmHg, diastolic 88 mmHg, mean 120 mmHg, pulse 60 bpm, user 1, status body movement, "
                + "status cuff too loose, status irregular pulse, status improper position, at ????-04-17 20:41:59",
            "Nordic: full"),
        GoldenValue(
            0x2A35, "15bdf00b009ff03c001200",
            "systolic 18.9 kPa, diastolic 11 kPa, mean 15.9 kPa, pulse 60 bpm, status cuff too loose, "
                + "status pulse below range", "Nordic: some"),
        GoldenValue(
            0x2A35, "00bdf00b009ff0", "systolic 18.9 mmHg, diastolic 11 mmHg, mean 15.9 mmHg", "Nordic: minimal"),
        GoldenValue(
            0x2A36, "1e0400000000000000041114293b3c00012700",
            "cuff pressure 4 mmHg, pulse 60 bpm, user 1, status body movement, status cuff too loose, "
                + "status irregular pulse, status improper position, at ????-04-17 20:41:59", "Nordic: full"),
        GoldenValue(
            0x2A36, "156ff0000000003c001200",
            "cuff pressure 11.1 kPa, pulse 60 bpm, status cuff too loose, status pulse below range", "Nordic: some"),
        GoldenValue(
            0x2A36, "00d7f0ff07ff07", "cuff pressure 21.5 mmHg", "Nordic: minimal, with NaN as the profile asks"),
        GoldenValue(
            0x2A49, "2500", "body movement detection, irregular pulse detection, multiple bonds",
            "the specification's table of features"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    @Test func fieldsOfAMeasurementAreDecoded() throws {
        let measurement = try BloodPressureMeasurement(value: Hex.decode("15bdf00b009ff03c001200"))
        #expect(abs(measurement.systolic.doubleValue - 18.9) < 0.001)
        #expect(measurement.unit == .kilopascals)
        #expect(measurement.pulseRate == MedicalFloat16(mantissa: 60, exponent: 0))
        #expect(measurement.userID == nil && measurement.timestamp == nil)
        #expect(measurement.status == [.cuffTooLoose, .pulseBelowRange])
    }

    @Test func anUnknownUserIsNone() throws {
        #expect(try BloodPressureMeasurement(value: [0x08, 0, 0, 0, 0, 0, 0, 0xFF]).userID == nil)
        #expect(try BloodPressureMeasurement(value: [0x08, 0, 0, 0, 0, 0, 0, 0x02]).userID == 2)
    }

    /// Nordic's two invalid cases.
    @Test(arguments: [[1, 2, 3, 4, 5, 6], [3, 2, 3, 4, 5, 6, 7]] as [[UInt8]])
    func incompleteBytesAreRefused(bytes: [UInt8]) {
        #expect(throws: MalformedPacket.self) { try BloodPressureMeasurement(value: bytes) }
        #expect(throws: MalformedPacket.self) { try IntermediateCuffPressure(value: bytes) }
    }
}
