import BLECore
import BLEProfiles
import Testing

@Suite struct WeightScaleTests {
    static let goldens: [GoldenValue] = [
        // bluetooth-sig-python, test_weight_measurement.
        GoldenValue(0x2A9D, "00b036", "weight 70.000 kg", "bluetooth-sig-python: metric"),
        GoldenValue(0x2A9D, "01543d", "weight 157.00 lb", "bluetooth-sig-python: imperial"),
        GoldenValue(
            0x2A9D, "02b036e7070c190e1e2d", "weight 70.000 kg, at 2023-12-25 14:30:45",
            "bluetooth-sig-python: timestamp"),
        // Packed by Python's struct from the specification's table, where one bit stands for index and height.
        GoldenValue(
            0x2A9D, "0f543de7070c190e1e2d03f500a802",
            "weight 157.00 lb, body mass index 24.5, height 68.0 in, user 3, at 2023-12-25 14:30:45",
            "the specification's table: all fields"),
        GoldenValue(
            0x2A9D, "0cb036ffe500d606", "weight 70.000 kg, body mass index 22.9, height 1.750 m",
            "the specification's table: unknown user"),
        GoldenValue(0x2A9D, "00ffff", "weight not measured", "the specification's mark of an unsuccessful measurement"),
        GoldenValue(
            0x2A9E, "bf010000",
            "features timestamp, features multiple users, features body mass index, mass resolution 0.005 kg, "
                + "height resolution 0.001 m", "the specification's table"),
        // bluetooth-sig-python, test_body_composition_measurement.
        GoldenValue(0x2A9C, "00003200", "body fat 5.0 %", "bluetooth-sig-python: basic"),
        GoldenValue(
            0x2A9C, "03009600e80706140a1e00", "body fat 15.0 %, at 2024-06-20 10:30:00",
            "bluetooth-sig-python: imperial, time"),
        GoldenValue(
            0x2A9C, "c0015000e02e1027401f",
            "body fat 8.0 %, fat-free mass 60.000 kg, soft lean mass 50.000 kg, body water mass 40.000 kg",
            "bluetooth-sig-python: masses"),
        GoldenValue(
            0x2A9C, "000e4600401fb036e803", "body fat 7.0 %, impedance 800.0 Ω, weight 70.000 kg, height 1.000 m",
            "bluetooth-sig-python: impedance, weight, height"),
        // Packed by Python's struct from the specification's table.
        GoldenValue(
            0x2A9C, "fe1fb900e7070c190e1e2d02581b9c01c819e02e1027401f0514343f1207",
            "body fat 18.5 %, basal metabolism 7000 kJ, muscles 41.2 %, muscle mass 33.000 kg, fat-free mass 60.000 kg, "
                + "soft lean mass 50.000 kg, body water mass 40.000 kg, impedance 512.5 Ω, weight 80.900 kg, "
                + "height 1.810 m, user 2, at 2023-12-25 14:30:45, one of several packets",
            "the specification's table: all fields"),
        GoldenValue(
            0x2A9C, "0104ffff543d", "body fat not measured, weight 157.00 lb", "the specification's table: imperial"),
        GoldenValue(
            0x2A9B, "03b60000",
            "features timestamp, features multiple users, features weight, features height, mass resolution 0.010 kg, "
                + "height resolution 0.010 m", "the specification's table"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    @Test func weightsAreConvertedToKilograms() throws {
        #expect(try WeightMeasurement(value: Hex.decode("00b036")).kilograms == 70)
        let pounds = try WeightMeasurement(value: Hex.decode("01543d"))
        #expect(pounds.weight == 157 && pounds.system == .imperial)
        #expect(abs(try #require(pounds.kilograms) - 71.214) < 0.001)
        #expect(try WeightMeasurement(value: Hex.decode("00ffff")).kilograms == nil)
    }

    @Test func aResolutionIsReadFromTheFeatures() {
        #expect(WeightScaleFeature(rawValue: 0).massResolution == nil)
        #expect(WeightScaleFeature(rawValue: 1 << 3).massResolution?.kilograms == 0.5)
        #expect(WeightScaleFeature(rawValue: 8 << 3).massResolution == nil)
        #expect(WeightScaleFeature(rawValue: 2 << 7).heightResolution?.inches == 0.5)
        #expect(BodyCompositionFeature(rawValue: 4 << 11).massResolution?.pounds == 0.1)
        #expect(BodyCompositionFeature(rawValue: 7 << 15).heightResolution == nil)
    }
}
