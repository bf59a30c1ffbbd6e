import BLECore
import BLEProfiles
import Testing

@Suite struct PulseOximeterTests {
    // Packed by Python's struct from our own copy of the tables of the specification: no device's capture and no other
    // implementation's test has confirmed them yet. The medical floats are tested on their own.
    static let goldens: [GoldenValue] = [
        GoldenValue(
            0x2A5E, "1f61004800e7070c190e1e2d800120200023f0",
            "SpO2 97 %, pulse 72 bpm, pulse amplitude 3.5 %, measurement status validated, "
                + "measurement status fully qualified, device status low perfusion, device status sensor displaced, "
                + "at 2023-12-25 14:30:45, clock not set", "the specification's table: all fields"),
        GoldenValue(
            0x2A5E, "006200ff07", "SpO2 98 %, pulse not a number", "the specification's table: no pulse found"),
        GoldenValue(
            0x2A5F, "1f600046005f004700c4f3c1f220000008000c00",
            "SpO2 96 %, pulse 70 bpm, fast SpO2 95 %, fast pulse 71 bpm, slow SpO2 96.4 %, slow pulse 70.5 bpm, "
                + "pulse amplitude 12 %, measurement status ongoing, device status sensor unconnected to user",
            "the specification's table: all fields"),
        GoldenValue(0x2A5F, "0062004800", "SpO2 98 %, pulse 72 bpm", "the specification's table: normal only"),
        GoldenValue(
            0x2A60, "7b00e00100c000",
            "features measurement status, features device status, features timestamp, features fast average, "
                + "features slow average, features pulse amplitude index, measurement status ongoing, "
                + "measurement status early estimate, measurement status validated, measurement status fully qualified, "
                + "device status sensor malfunction, device status sensor disconnected", "the specification's table"),
        GoldenValue(0x2A60, "0c00", "features storage, features timestamp", "the specification's table"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    @Test func theFieldsOfMeasurementsAreRead() throws {
        let spot = try PLXSpotCheckMeasurement(value: Hex.decode("1f61004800e7070c190e1e2d800120200023f0"))
        #expect(spot.value.saturation.doubleValue == 97)
        #expect(spot.quality.measurementStatus == [.validated, .fullyQualified])
        #expect(spot.quality.deviceStatus == [.lowPerfusion, .sensorDisplaced])
        #expect(spot.isClockNotSet)
        let slowOnly = try PLXContinuousMeasurement(value: [2, 0x62, 0, 0x48, 0, 0x63, 0, 0x46, 0])
        #expect(slowOnly.fast == nil)
        #expect(slowOnly.slow?.pulseRate.doubleValue == 70)
    }

    @Test func featuresOfALaterVersionAreKept() throws {
        #expect(try PLXFeatures(value: [0x00, 0x01, 1, 2]).supported.rawValue == 0x100)
        #expect(throws: MalformedPacket(format: "PLX Features", offset: 2, reason: .trailingBytes(2))) {
            try PLXFeatures(value: [0x04, 0x00, 1, 2])
        }
    }
}
