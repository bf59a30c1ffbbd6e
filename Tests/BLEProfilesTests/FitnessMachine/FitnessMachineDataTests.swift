import BLECore
import BLEProfiles
import Testing

// What the later version changed (two bytes for a pace, one for a resistance) rests on one library,
// bluetooth-sig-python:
/// no device's capture of it was found.
@Suite struct FitnessMachineDataTests {
    static let goldens: [GoldenValue] = treadmills + crossTrainers + rowers + bikes

    private static let treadmills: [GoldenValue] = [
        // A Horizon treadmill at rest, qdomyos-zwift issue 175.
        GoldenValue(
            0x2ACD, "8404000000000000000000000000",
            "speed 0.00 km/h, distance 0 m, energy 0 kcal, energy per hour 0 kcal, energy per minute 0 kcal, elapsed 0 s",
            "Horizon"),
        // The form of Star Trac's and True's treadmills: these flags in 32 bytes, a byte for each pace (a thread at
        // codewithsundeep.com/discussion/solution/79100470). Packed by Python's struct with other numbers.
        GoldenValue(
            0x2ACD, "fe173201360132000032001d00190003000102040040010562233b0000005800",
            "speed 3.06 km/h, average speed 3.10 km/h, distance 50 m, inclination 5.0 %, ramp 2.9 °, ascent 2.5 m, "
                + "descent 0.3 m, pace 0.1 km/min, average pace 0.2 km/min, force 0 N, power 88 W, energy 4 kcal, "
                + "energy per hour 320 kcal, energy per minute 5 kcal, heart rate 98 bpm, metabolic equivalent 3.5, "
                + "elapsed 59 s", "Star Trac's form"),
        // The same in the later version, with two bytes for each pace.
        GoldenValue(
            0x2ACD, "fe173201360132000032001d001900030076007900040040010562233b0000005800",
            "speed 3.06 km/h, average speed 3.10 km/h, distance 50 m, inclination 5.0 %, ramp 2.9 °, ascent 2.5 m, "
                + "descent 0.3 m, pace 118 s, average pace 121 s, force 0 N, power 88 W, energy 4 kcal, "
                + "energy per hour 320 kcal, energy per minute 5 kcal, heart rate 98 bpm, metabolic equivalent 3.5, "
                + "elapsed 59 s", "the GATT Specification Supplement's table"),
        // bluetooth-sig-python, test_treadmill_data: all fields of the later version.
        GoldenValue(
            0x2ACD, "fe1f2003ee02881300ceff1e00640032002c013601f40158020a8c55080758029cfffa00",
            "speed 8.00 km/h, average speed 7.50 km/h, distance 5000 m, inclination -5.0 %, ramp 3.0 °, ascent 10.0 m, "
                + "descent 5.0 m, pace 300 s, average pace 310 s, force -100 N, power 250 W, energy 500 kcal, "
                + "energy per hour 600 kcal, energy per minute 10 kcal, heart rate 140 bpm, metabolic equivalent 8.5, "
                + "elapsed 1800 s, remaining 600 s", "bluetooth-sig-python: all fields"),
        GoldenValue(
            0x2ACD, "0201e204b0049b", "speed 12.50 km/h, average speed 12.00 km/h, heart rate 155 bpm",
            "bluetooth-sig-python: speed, average, heart rate"),
        GoldenValue(0x2ACD, "0100", "more data", "bluetooth-sig-python: flags only"),
        GoldenValue(
            0x2ACD, "8910ff7fff7fffffffffffff7fff7f", "more data", "the specification's marks of what is not available"),
        // The layout that hughesjs/FitnessMachine found out of a Citysports treadmill: a reserved bit, with three bytes
        // after the known fields.
        GoldenValue(
            0x2ACD, "8424" + "c800" + "0a0000" + "0300ffffff" + "3c00" + "2d0000",
            "speed 2.00 km/h, distance 10 m, energy 3 kcal, elapsed 60 s", "Citysports' form"),
    ]

    private static let crossTrainers: [GoldenValue] = [
        // bluetooth-sig-python, test_cross_trainer_data.
        GoldenValue(0x2ACE, "010000", "direction forward, more data", "bluetooth-sig-python: flags only"),
        GoldenValue(
            0x2ACE, "008800dc05a0", "speed 15.00 km/h, direction backward, heart rate 160 bpm",
            "bluetooth-sig-python: backwards"),
        GoldenValue(
            0x2ACE, "1c0500e803b80b0078007300f401c8002c01900107",
            "speed 10.00 km/h, distance 3000 m, steps 120 /min, average steps 115 /min, strides 50.0, power 200 W, "
                + "direction forward, energy 300 kcal, energy per hour 400 kcal, energy per minute 7 kcal",
            "bluetooth-sig-python: several fields"),
        GoldenValue(
            0x2ACE, "81000005", "resistance 50.0, direction forward, more data",
            "bluetooth-sig-python: resistance of the later version"),
        // Packed by Python's struct from the specification's table: the first version, then the later one.
        GoldenValue(
            0x2ACE, "feff001a04d4038a0c003e003c00fb000c000700ecff1e003700fbffb4002c01ffff0779555802b004",
            "speed 10.50 km/h, average speed 9.80 km/h, distance 3210 m, steps 62 /min, average steps 60 /min, "
                + "strides 25.1, ascent 12 m, descent 7 m, inclination -2.0 %, ramp 3.0 °, resistance 5.5, power -5 W, "
                + "average power 180 W, direction backward, energy 300 kcal, energy per minute 7 kcal, "
                + "heart rate 121 bpm, metabolic equivalent 8.5, elapsed 600 s, remaining 1200 s",
            "the specification's table"),
        GoldenValue(
            0x2ACE, "feff001a04d4038a0c003e003c00fb000c000700ecff1e0005fbffb4002c01ffff0779555802b004",
            "speed 10.50 km/h, average speed 9.80 km/h, distance 3210 m, steps 62 /min, average steps 60 /min, "
                + "strides 25.1, ascent 12 m, descent 7 m, inclination -2.0 %, ramp 3.0 °, resistance 50.0, power -5 W, "
                + "average power 180 W, direction backward, energy 300 kcal, energy per minute 7 kcal, "
                + "heart rate 121 bpm, metabolic equivalent 8.5, elapsed 600 s, remaining 1200 s",
            "the GATT Specification Supplement's table"),
    ]

    private static let rowers: [GoldenValue] = [
        // A First Degree Viking Pro V as nRF Connect read it, ArduRower issue 1: one round in three values.
        GoldenValue(
            0x2AD1, "f800260b00c70000002c001b000200",
            "stroke rate 19.0 /min, strokes 11, pace 199 s, average pace 0 s, power 44 W, average power 27 W, resistance 2",
            "Viking: last of a round"),
        GoldenValue(
            0x2AD1, "050a5a0000002e00", "distance 90 m, heart rate 0 bpm, elapsed 46 s, more data", "Viking: first"),
        GoldenValue(
            0x2AD1, "01010400c50107", "energy 4 kcal, energy per hour 453 kcal, energy per minute 7 kcal, more data",
            "Viking: second"),
        // bluetooth-sig-python, test_rower_data: all fields of the later version.
        GoldenValue(
            0x2AD1, "fe1f32c8003088130078007d00fa00f00005f4012c01058241100eb004",
            "stroke rate 25.0 /min, strokes 200, average stroke rate 24.0 /min, distance 5000 m, pace 120 s, "
                + "average pace 125 s, power 250 W, average power 240 W, resistance 50, energy 500 kcal, "
                + "energy per hour 300 kcal, energy per minute 5 kcal, heart rate 130 bpm, metabolic equivalent 6.5, "
                + "elapsed 3600 s, remaining 1200 s", "bluetooth-sig-python: all fields"),
    ]

    private static let bikes: [GoldenValue] = [
        // A Zwift Hub, simcline issue 7.
        GoldenValue(
            0x2AD2, "fe02fe0934088e007c004a01001400c700680000",
            "speed 25.58 km/h, average speed 21.00 km/h, cadence 71.0 /min, average cadence 62.0 /min, distance 330 m, "
                + "resistance 20, power 199 W, average power 104 W, heart rate 0 bpm", "Zwift Hub"),
        // A JetBlack Volt, simcline issue 9, which shows level 20.
        GoldenValue(
            0x2AD2, "64021d000000140000" + "0000",
            "speed 0.29 km/h, cadence 0.0 /min, resistance 20, power 0 W, heart rate 0 bpm", "JetBlack Volt"),
        // An Elite Direto XR, simcline issue 4: 53 turns a minute, 2 m, 55 W.
        GoldenValue(
            0x2AD2, "54082f076a00020000" + "37000000",
            "speed 18.39 km/h, cadence 53.0 /min, distance 2 m, power 55 W, elapsed 0 s", "Elite Direto XR"),
        // What nRF Connect reads as 8.5 km/h, 45.0 a minute, 8 W and 0 bpm.
        GoldenValue(
            0x2AD2, "440252035a00080000", "speed 8.50 km/h, cadence 45.0 /min, power 8 W, heart rate 0 bpm",
            "nRF Connect"),
        // bluetooth-sig-python, test_indoor_bike_data: all fields of the later version.
        GoldenValue(
            0x2AD2, "fe1fb80bf00aa000960010270007c800b90020039001079150181558" + "02",
            "speed 30.00 km/h, average speed 28.00 km/h, cadence 80.0 /min, average cadence 75.0 /min, distance 10000 m, "
                + "resistance 70, power 200 W, average power 185 W, energy 800 kcal, energy per hour 400 kcal, "
                + "energy per minute 7 kcal, heart rate 145 bpm, metabolic equivalent 8.0, elapsed 5400 s, "
                + "remaining 600 s", "bluetooth-sig-python: all fields"),
        GoldenValue(
            0x2AD2, "c100ceffe7ff", "power -50 W, average power -25 W, more data", "bluetooth-sig-python: signs"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    /// The first flag is the other way round: the first field is there where it is **not** set.
    @Test func theFirstFieldIsThereWhenNoMoreDataFollow() throws {
        let last = try IndoorBikeData(value: Hex.decode("0000dc05"))
        #expect(last.speed == 15 && !last.isMoreDataFollowing)
        let first = try IndoorBikeData(value: [1, 0])
        #expect(first.speed == nil && first.isMoreDataFollowing)
        #expect(throws: MalformedPacket.self) { try IndoorBikeData(value: [0, 0]) }
        #expect(try TreadmillData(value: Hex.decode("0000e803")).speed == 10)
        #expect(try CrossTrainerData(value: Hex.decode("000000e803")).speed == 10)
        #expect(try RowerData(value: Hex.decode("00003c0a00")).strokeRate == 30)
        #expect(try RowerData(value: [1, 0]).strokeCount == nil)
    }

    @Test func aRoundInThreeValuesAddsUp() throws {
        let round = try ["050a5a0000002e00", "01010400c50107", "f800260b00c70000002c001b000200"].map { hex in
            try RowerData(value: Hex.decode(hex))
        }
        #expect(round.map(\.isMoreDataFollowing) == [true, true, false])
        #expect(round[0].totalDistance == 90 && round[0].elapsedTime == .seconds(46))
        #expect(round[1].energy == 4)
        #expect(round[2].pace == .seconds(199) && round[2].resistanceLevel == 2)
    }

    @Test func whatIsNotAvailableIsNone() throws {
        let data = try TreadmillData(value: Hex.decode("8910ff7fff7fffffffffffff7fff7f"))
        #expect(data.inclination == nil && data.rampAngle == nil)
        #expect(data.energy == nil && data.energyPerHour == nil && data.energyPerMinute == nil)
        #expect(data.forceOnBelt == nil && data.power == nil)
    }

    @Test func pacesOfBothVersionsAreDecoded() throws {
        let first = try TreadmillData(value: [0x21, 0, 12])
        #expect(first.pace == .kilometresPerMinute(1.2))
        let later = try TreadmillData(value: [0x21, 0, 0x2C, 0x01])
        #expect(later.pace == .timePer500Metres(.seconds(300)))
        #expect(throws: MalformedPacket.self) { try TreadmillData(value: [0x21, 0, 1, 2, 3]) }
    }
}
