import BLECore
import BLEProfiles
import Testing

@Suite struct CyclingPowerTests {
    static let goldens: [GoldenValue] = [
        // A 4iiii crank meter, OpenTracks issue 1352, which reads 12 turns at 17125 out of it.
        GoldenValue(
            0x2A63, "2c0000009f000c00e542",
            "power 0 W, crank torque 4.96875 Nm, crank turns 12, last crank event 16.724 s", "4iiii: 12 at 17125"),
        // An SRM PM9, GoldenCheetah issue 4774.
        GoldenValue(
            0x2A63, "2f0021000eb4040e00d91d",
            "power 33 W, left pedal 7.0 %, crank torque 37.62500 Nm, crank turns 14, last crank event 7.462 s",
            "SRM: 33 W"),
        // A trainer with a wheel, from the tests of BluetoothThing.
        GoldenValue(
            0x2A63, "140049007731550600008f7c",
            "power 73 W, wheel torque 395.71875 Nm, wheel turns 1621, last wheel event 15.570 s", "73 W, 1621 turns"),
        // bluetooth-sig-python, test_cycling_power_measurement.
        GoldenValue(0x2A63, "0000fa00", "power 250 W", "bluetooth-sig-python"),
        GoldenValue(0x2A63, "01002c0164", "power 300 W, pedal balance 50.0 %", "bluetooth-sig-python"),
        GoldenValue(
            0x2A63, "20007001900100" + "04", "power 368 W, crank turns 400, last crank event 1.000 s",
            "bluetooth-sig-python"),
        // Packed by Python's struct from the specification's table.
        GoldenValue(
            0x2A63, "c01ff6ffa401ddff0005c0ff5fe0100a00be002a00",
            "power -10 W, maximum force 420 N, minimum force -35 N, maximum torque 40.00000 Nm, "
                + "minimum torque -2.00000 Nm, maximum angle 95 °, minimum angle 270 °, top dead spot 10 °, "
                + "bottom dead spot 190 °, energy 42 kJ, offset compensation", "the specification's table"),
        GoldenValue(
            0x2A64, "17e80300045a0064009600" + "9cff",
            "crank turns 1000, last crank event 1.000 s, first angle 90 °, direction tangential, forces 100 N, "
                + "forces 150 N, forces -100 N", "the specification's table"),
        GoldenValue(
            0x2A64, "2ab400a000c0ff", "first angle 180 °, direction radial, torques 5.00000 Nm, torques -2.00000 Nm",
            "the specification's table"),
        // An Elite Direto XR, simcline issue 4, with the features that it lists.
        GoldenValue(
            0x2A65, "0d020000", "pedal power balance, wheel revolutions, crank revolutions, offset compensation",
            "Elite Direto XR"),
        GoldenValue(0x2A66, "200301", "response to request 3, result success", "bluetooth-sig-python"),
        GoldenValue(
            0x2A66, "2005015901", "response to request 5, result success, parameter 5901", "the specification's table"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    @Test func theCadenceOfAPowerMeterIsCounted() throws {
        // 4iiii's two values: 31 turns in 45908/1024 s.
        let earlier = try CyclingPowerMeasurement(value: Hex.decode("2c0000009f000c00e542"))
        let later = try CyclingPowerMeasurement(value: Hex.decode("2c000000df002b0039f6"))
        let before = try #require(earlier.crank), after = try #require(later.crank)
        #expect(abs(try #require(after.cadence(since: before)) - 41.48820) < 0.0001)
        #expect(later.accumulatedTorque == 6.96875)
        #expect(later.torqueSource == .crank)
    }

    @Test func aVectorHasForcesOrTorques() {
        #expect(
            throws: MalformedPacket(
                format: "Cycling Power Vector", offset: 1, reason: .invalidField("flags: forces or torques"))
        ) {
            try CyclingPowerVector(value: [0x0C, 1, 2])
        }
        #expect(throws: MalformedPacket.self) { try CyclingPowerVector(value: [0x04, 1, 2, 3]) }
    }

    /// From bluetooth-sig-python's test_cycling_power_control_point; the others by the specification's table.
    @Test func requestsToTheControlPointAreEncoded() {
        typealias Request = CyclingPowerControlPointRequest
        #expect(Request.setCumulativeValue(123_456).valueBytes == [0x01, 0x40, 0xE2, 0x01, 0x00])
        #expect(Request.updateSensorLocation(.leftCrank).valueBytes == [0x02, 0x05])
        #expect(Request.requestSupportedSensorLocations.valueBytes == [0x03])
        #expect(Request.setCrankLength(175).valueBytes == [0x04, 0x5E, 0x01])
        #expect(Request.setCrankLength(172.5).valueBytes == [0x04, 0x59, 0x01])
        #expect(Request.requestCrankLength.valueBytes == [0x05])
        #expect(Request.setChainLength(1410).valueBytes == [0x06, 0x82, 0x05])
        #expect(Request.requestChainLength.valueBytes == [0x07])
        #expect(Request.setChainWeight(500).valueBytes == [0x08, 0xF4, 0x01])
        #expect(Request.requestChainWeight.valueBytes == [0x09])
        #expect(Request.setSpanLength(400).valueBytes == [0x0A, 0x90, 0x01])
        #expect(Request.requestSpanLength.valueBytes == [0x0B])
        #expect(Request.startOffsetCompensation.valueBytes == [0x0C])
        #expect(Request.requestSamplingRate.valueBytes == [0x0E])
        #expect(Request.requestFactoryCalibrationDate.valueBytes == [0x0F])
        // The op codes and the bits of the mask as in BTstack's server.
        #expect(
            Request.maskMeasurementContent([.extremeMagnitudes, .accumulatedEnergy]).valueBytes == [0x0D, 0x10, 0x01])
        #expect(Request.startEnhancedOffsetCompensation.valueBytes == [0x10])
    }

    @Test func numbersThatDoNotFitAreTheNearest() {
        typealias Request = CyclingPowerControlPointRequest
        #expect(Request.setCrankLength(-1).valueBytes == [0x04, 0x00, 0x00])
        #expect(Request.setCrankLength(1e300).valueBytes == [0x04, 0xFF, 0xFF])
        #expect(Request.setCrankLength(.infinity).valueBytes == [0x04, 0xFF, 0xFF])
        #expect(Request.setCrankLength(.nan).valueBytes == [0x04, 0x00, 0x00])
    }

    @Test func responsesOfTheControlPointAreDecoded() throws {
        typealias Response = CyclingPowerControlPointResponse
        #expect(try Response(value: [0x20, 3, 1, 5, 6]).supportedLocations == [.leftCrank, .rightCrank])
        #expect(try Response(value: [0x20, 5, 1, 0x59, 0x01]).crankLength == 172.5)
        #expect(try Response(value: [0x20, 5, 1, 0x59]).crankLength == nil)
        #expect(try Response(value: [0x20, 7, 1, 0x82, 0x05]).chainLength == 1410)
        #expect(try Response(value: [0x20, 9, 1, 0xF4, 0x01]).chainWeight == 500)
        #expect(try Response(value: [0x20, 11, 1, 0x90, 0x01]).spanLength == 400)
        #expect(try Response(value: [0x20, 12, 1, 0xFE, 0xFF]).offset == -2)
        #expect(try Response(value: [0x20, 14, 1, 200]).samplingRate == 200)
        let date = try Response(value: [0x20, 15, 1, 0xE3, 0x07, 2, 27, 11, 10, 30]).factoryCalibrationDate
        #expect(date == GATTDateTime(year: 2019, month: 2, day: 27, hours: 11, minutes: 10, seconds: 30))
        #expect(try Response(value: [0x20, 12, 4]).offset == nil)
        // BTstack's server lays it out so, with a zero byte after the manufacturer's two.
        let enhanced = try Response(value: [0x20, 16, 1, 0xFE, 0xFF, 0x59, 0x00, 2, 0xAB, 0xCD, 0]).enhancedOffset
        #expect(enhanced?.offset == -2 && enhanced?.company == 0x59 && enhanced?.manufacturerData == [0xAB, 0xCD])
        #expect(try Response(value: [0x20, 16, 1, 0xFE, 0xFF, 0x59, 0x00, 3, 0xAB, 0xCD]).enhancedOffset == nil)
    }
}
