import BLECore
import BLEProfiles
import Testing

@Suite struct RunningTests {
    static let goldens: [GoldenValue] = [
        // Nordic's Android-BLE-Common-Library, RunningSpeedAndCadenceMeasurementDataCallbackTest.
        GoldenValue(
            0x2A53, "07000312" + "5600010000f0",
            "speed 3.000 m/s, cadence 18 steps/min, stride 0.86 m, distance 402653184.1 m, gait running",
            "Nordic: 3 m/s, 18, 86 cm, 0xF0000001 dm, running"),
        GoldenValue(
            0x2A53, "00330154", "speed 1.199 m/s, cadence 84 steps/min, gait walking",
            "the specification's table: 307/256 m/s, 84, walking"),
        GoldenValue(
            0x2A54, "0700", "stride length, total distance, walking or running", "the specification's table of features"
        ),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    @Test func fieldsOfAMeasurementAreDecoded() throws {
        let measurement = try RSCMeasurement(value: Hex.decode("070003125600010000f0"))
        #expect(measurement.speed == 3)
        #expect(measurement.cadence == 18)
        #expect(measurement.strideLength == 0.86)
        #expect(measurement.totalDistance == 402_653_184.1)
        #expect(measurement.isRunning)
        // Nordic's invalid case: one byte of the distance is missing.
        #expect(throws: MalformedPacket.self) { try RSCMeasurement(value: Hex.decode("070003125600010000")) }
    }

    @Test func unknownFeatureBitsHaveNoWords() throws {
        #expect(try RSCFeature(value: [0x18, 0]) == [.calibration, .multipleSensorLocations])
        #expect(try RSCFeature(value: [0x00, 0x80]).words.isEmpty)
    }
}
