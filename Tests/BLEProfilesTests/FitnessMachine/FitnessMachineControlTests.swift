import BLECore
import BLEProfiles
import Testing

@Suite struct FitnessMachineControlTests {
    static let goldens: [GoldenValue] = [
        // The tests of a web client for FTMS: parseFitnessMachineFeature, parseTrainingStatus, parseMachineStatus.
        GoldenValue(
            0x2ACC, "0652000000000000",
            "measures cadence, measures total distance, measures expended energy, measures elapsed time, "
                + "measures power, targets none", "a web client's tests"),
        GoldenValue(
            0x2ACC, "0000000008200100",
            "measures none, targets power, targets indoor bike simulation, targets cadence", "a web client's tests"),
        GoldenValue(0x2AD3, "000d", "training manual mode", "a web client's tests"),
        GoldenValue(
            0x2AD3, "0104537072696e74", "training high intensity interval, text \"Sprint\"", "a web client's tests"),
        // An Elite Direto XR, simcline issue 4.
        GoldenValue(0x2AD3, "0001", "training idle", "Elite Direto XR"),
        GoldenValue(0x2AD3, "000a", "training speed too high", "Elite Direto XR"),
        GoldenValue(0x2ADA, "0201", "machine stopped", "Elite Direto XR"),
        GoldenValue(0x2ADA, "04", "machine started", "Elite Direto XR"),
        GoldenValue(
            0x2ADA, "120000ffff2833",
            "wind 0.000 m/s, grade -0.01 %, rolling resistance 0.0040, wind resistance 0.51 kg/m", "Elite Direto XR"),
        GoldenValue(0x2AD9, "800001", "response to request 0, result success", "Elite Direto XR"),
        GoldenValue(0x2AD9, "800803", "response to request 8, result invalid parameter", "Zwift Hub, simcline issue 7"),
        GoldenValue(0x2ADA, "0202", "machine paused", "a web client's tests"),
        GoldenValue(0x2ADA, "ff", "machine control permission lost", "a web client's tests"),
        // The specification's table of status op codes, packed by Python's struct.
        GoldenValue(0x2ADA, "01", "machine reset", "the specification's table"),
        GoldenValue(0x2ADA, "03", "machine stopped by safety key", "the specification's table"),
        GoldenValue(0x2ADA, "05e204", "target speed 12.50 km/h", "the specification's table"),
        GoldenValue(0x2ADA, "06ddff", "target inclination -3.5 %", "the specification's table"),
        GoldenValue(0x2ADA, "0737", "target resistance 5.5", "the specification's table"),
        GoldenValue(0x2ADA, "073700", "target resistance 5.5", "a machine that sends two bytes"),
        GoldenValue(0x2ADA, "08fa00", "target power 250 W", "the specification's table"),
        GoldenValue(0x2ADA, "0996", "target heart rate 150 bpm", "the specification's table"),
        GoldenValue(0x2ADA, "0a2c01", "target energy 300 kcal", "the specification's table"),
        GoldenValue(0x2ADA, "0b8813", "target steps 5000", "the specification's table"),
        GoldenValue(0x2ADA, "0cc409", "target strides 2500", "the specification's table"),
        GoldenValue(0x2ADA, "0d102700", "target distance 10000 m", "the specification's table"),
        GoldenValue(0x2ADA, "0e0807", "target time 1800 s", "the specification's table"),
        GoldenValue(
            0x2ADA, "0f3c007800", "target times in zones 60 s, target times in zones 120 s", "the specification's table"
        ),
        GoldenValue(
            0x2ADA, "103c007800b400",
            "target times in zones 60 s, target times in zones 120 s, target times in zones 180 s",
            "the specification's table"),
        GoldenValue(
            0x2ADA, "1101000200030004000500",
            "target times in zones 1 s, target times in zones 2 s, target times in zones 3 s, target times in zones 4 s, "
                + "target times in zones 5 s", "the specification's table"),
        GoldenValue(0x2ADA, "13e051", "wheel circumference 2096.0 mm", "the specification's table"),
        GoldenValue(0x2ADA, "1404", "spin down stop pedalling", "the specification's table"),
        GoldenValue(0x2ADA, "15b500", "target cadence 90.5 /min", "the specification's table"),
        GoldenValue(0x2ADA, "420102", "machine status 420102", "an op code of a later version"),
        GoldenValue(
            0x2AD4, "6400d0070a00", "minimum 1.00 km/h, maximum 20.00 km/h, increment 0.10 km/h",
            "the specification's table"),
        GoldenValue(
            0x2AD5, "e2ff96000500", "minimum -3.0 %, maximum 15.0 %, increment 0.5 %", "the specification's table"),
        // A JetBlack Volt, simcline issue 9.
        GoldenValue(0x2AD6, "000064000100", "minimum 0.0, maximum 10.0, increment 0.1", "JetBlack Volt"),
        GoldenValue(
            0x2AD6, "00006400ffff", "minimum 0.0, maximum 10.0, increment 6553.5",
            "the specification's table, where only the increment has no sign"),
        GoldenValue(0x2AD6, "000a01", "minimum 0.0, maximum 100.0, increment 10.0", "the later version's table"),
        GoldenValue(0x2AD7, "28dc01", "minimum 40 bpm, maximum 220 bpm, increment 1 bpm", "the specification's table"),
        GoldenValue(0x2AD8, "0000d0070100", "minimum 0 W, maximum 2000 W, increment 1 W", "the specification's table"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    private typealias Request = FitnessMachineControlPointRequest

    /// What the machines' owners write: simcline (00), hughesjs/FitnessMachine (0801, 02 and a speed in 0.01 km/h); the
    /// others follow the specification's table of op codes.
    @Test func aRequestHasTheSpecifiedBytes() {
        #expect(Request.requestControl.valueBytes == [0x00])
        #expect(Request.reset.valueBytes == [0x01])
        #expect(Request.startOrResume.valueBytes == [0x07])
        #expect(Request.stop.valueBytes == [0x08, 0x01])
        #expect(Request.pause.valueBytes == [0x08, 0x02])
        #expect(Request.startSpinDown.valueBytes == [0x13, 0x01])
        #expect(Request.ignoreSpinDown.valueBytes == [0x13, 0x02])
    }

    @Test func aTargetHasTheSpecifiedUnitAndBytes() {
        #expect(Request.setTarget(.speed(12.5)).valueBytes == [0x02, 0xE2, 0x04])
        #expect(Request.setTarget(.inclination(-3.5)).valueBytes == [0x03, 0xDD, 0xFF])
        #expect(Request.setTarget(.resistanceLevel(5.5)).valueBytes == [0x04, 0x37])
        #expect(Request.setTarget(.power(250)).valueBytes == [0x05, 0xFA, 0x00])
        #expect(Request.setTarget(.heartRate(150)).valueBytes == [0x06, 0x96])
        #expect(Request.setTarget(.energy(300)).valueBytes == [0x09, 0x2C, 0x01])
        #expect(Request.setTarget(.steps(5000)).valueBytes == [0x0A, 0x88, 0x13])
        #expect(Request.setTarget(.strides(2500)).valueBytes == [0x0B, 0xC4, 0x09])
        #expect(Request.setTarget(.distance(10_000)).valueBytes == [0x0C, 0x10, 0x27, 0x00])
        #expect(Request.setTarget(.trainingTime(.seconds(1800))).valueBytes == [0x0D, 0x08, 0x07])
        #expect(Request.setTarget(.wheelCircumference(2096)).valueBytes == [0x12, 0xE0, 0x51])
        #expect(Request.setTarget(.cadence(90.5)).valueBytes == [0x14, 0xB5, 0x00])
        let simulation = IndoorBikeSimulation(grade: -0.01)
        #expect(Request.setTarget(.simulation(simulation)).valueBytes == [0x11, 0, 0, 0xFF, 0xFF, 0x28, 0x33])
    }

    @Test func timesInZonesHaveTheSpecifiedBytes() throws {
        let two = FitnessMachineTarget.timesInTwoZones(.seconds(60), .seconds(120))
        #expect(Request.setTarget(two).valueBytes == [0x0E, 60, 0, 120, 0])
        let three = FitnessMachineTarget.timesInThreeZones(.seconds(60), .seconds(120), .seconds(180))
        #expect(Request.setTarget(three).valueBytes == [0x0F, 60, 0, 120, 0, 180, 0])
        let five = FitnessMachineTarget.timesInFiveZones(
            .seconds(1), .seconds(2), .seconds(3), .seconds(4), .seconds(5))
        #expect(Request.setTarget(five).valueBytes == [0x10, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0])
        #expect(try FitnessMachineStatus(value: [0x0F, 60, 0, 120, 0]) == .targetChanged(two))
    }

    @Test func numbersThatDoNotFitAreTheNearest() {
        #expect(Request.setTarget(.speed(1000)).valueBytes == [0x02, 0xFF, 0xFF])
        #expect(Request.setTarget(.inclination(-1e9)).valueBytes == [0x03, 0x00, 0x80])
        #expect(Request.setTarget(.resistanceLevel(.nan)).valueBytes == [0x04, 0x00])
        #expect(Request.setTarget(.distance(.max)).valueBytes == [0x0C, 0xFF, 0xFF, 0xFF])
        #expect(Request.setTarget(.trainingTime(.seconds(-5))).valueBytes == [0x0D, 0x00, 0x00])
    }

    @Test func aResponseIsReadWithItsParameters() throws {
        let response = try FitnessMachineControlPointResponse(value: [0x80, 0x13, 1, 0xE8, 0x03, 0xB8, 0x0B])
        #expect(response.spinDownSpeeds?.low == 10 && response.spinDownSpeeds?.high == 30)
        let refused = try FitnessMachineControlPointResponse(value: [0x80, 0x05, 5])
        #expect(refused.result == .controlNotPermitted && refused.spinDownSpeeds == nil)
    }

    @Test func whatIsIncompleteOrOfALaterVersion() throws {
        #expect(try FitnessMachineStatus(value: [2, 3]) == .other(2, [3]))
        #expect(try FitnessMachineStatus(value: [0x14, 9]) == .spinDown(.init(rawValue: 9)))
        #expect(throws: MalformedPacket(format: "Fitness Machine Status", offset: 1, reason: .trailingBytes(1))) {
            try FitnessMachineStatus(value: [0x04, 0])
        }
        #expect(throws: MalformedPacket.self) { try FitnessMachineStatus(value: [0x02]) }
        #expect(throws: MalformedPacket.self) { try SupportedResistanceLevelRange(value: [1, 2, 3, 4]) }
    }

    @Test func textMayBeCut() throws {
        let status = try TrainingStatus(value: [3, 2, 0x57, 0xC3])
        #expect(status.isTextCut && status.text == "W\u{FFFD}")
        #expect(try TrainingStatus(value: [1, 2, 0x57, 0, 0]).text == "W")
    }
}
