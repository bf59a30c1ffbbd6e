import BLECore
import BLEProfiles
import Testing

@Suite struct CyclingTests {
    static let goldens: [GoldenValue] = [
        // nRF Connect's own reading of a Wahoo sensor, OpenTracks issue 1054.
        GoldenValue(
            0x2A5B, "03000000001001" + "2100c6eb",
            "wheel turns 0, last wheel event 0.266 s, crank turns 33, last crank event 58.943 s",
            "Wahoo sensor: wheel 0 at 272, cranks 33 at 60358"),
        // Nordic's Android-BLE-Common-Library, CyclingSpeedAndCadenceMeasurementDataCallbackTest.
        GoldenValue(
            0x2A5B, "0139300000e803", "wheel turns 12345, last wheel event 0.977 s", "Nordic: wheel 12345 at 1000"),
        GoldenValue(
            0x2A5B, "025901d007", "crank turns 345, last crank event 1.953 s", "Nordic: cranks 345 at 2000"),
        GoldenValue(0x2A5B, "00", "", "Nordic: no data"),
        GoldenValue(0x2A5C, "0300", "wheel revolutions, crank revolutions", "Nordic: features 3"),
        GoldenValue(0x2A5D, "05", "left crank", "the specification's table of sensor locations"),
        GoldenValue(0x2A5D, "10", "chain ring", "the specification's table of sensor locations"),
        GoldenValue(0x2A5D, "7f", "code 127", "reserved"),
        // Nordic, SpeedAndCadenceControlPointDataCallbackTest.
        GoldenValue(0x2A55, "100101", "response to request 1, result success", "Nordic: completed"),
        GoldenValue(0x2A55, "100202", "response to request 2, result not supported", "Nordic: error 2"),
        GoldenValue(
            0x2A55, "100401010203", "response to request 4, result success, parameter 010203", "Nordic: locations"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    @Test func newFieldsOfALaterVersionAreSkipped() throws {
        let measurement = try CSCMeasurement(value: Hex.decode("065901d007ffff"))
        #expect(measurement.crank == CrankRevolutions(count: 345, eventTime: 2000))
        #expect(throws: MalformedPacket(format: "CSC Measurement", offset: 5, reason: .trailingBytes(2))) {
            try CSCMeasurement(value: Hex.decode("025901d007ffff"))
        }
        #expect(throws: MalformedPacket(format: "CSC Measurement", offset: 3, reason: .tooShort)) {
            try CSCMeasurement(value: Hex.decode("025901d0"))
        }
    }

    /// Five values of a Zwift Hub as nRF Connect read them, simcline issue 7; the rates are worked out by hand from its
    /// decimal counters: 2 turns in 1114/1024 s on 2.105 m, 60 x 1 turn in 1049/1024 s.
    @Test func speedAndCadenceOfTwoMeasurements() throws {
        let earlier = try CSCMeasurement(value: Hex.decode("03a4000000184e" + "4000a74c"))
        let later = try CSCMeasurement(value: Hex.decode("03a60000007252" + "4100c050"))
        let wheel = try #require(earlier.wheel), wheelLater = try #require(later.wheel)
        let crank = try #require(earlier.crank), crankLater = try #require(later.crank)
        #expect(wheel.eventTime == 19992 && wheelLater.eventTime == 21106)
        #expect(crank.eventTime == 19623 && crankLater.eventTime == 20672)
        #expect(abs(try #require(wheelLater.speed(since: wheel, circumference: 2.105)) - 3.86987) < 0.0001)
        #expect(abs(try #require(crankLater.cadence(since: crank)) - 58.57007) < 0.0001)
        #expect(wheelLater.turns(since: wheel) == 2)
    }

    /// Nordic's test of the same: 10 turns of 2.34 m in a second, and one turn of the cranks.
    @Test func theRatesAreThoseOfNordicsTest() throws {
        let speed = WheelRevolutions(count: 20, eventTime: 1024)
            .speed(since: WheelRevolutions(count: 10, eventTime: 0), circumference: 2.34)
        #expect(abs(try #require(speed) - 23.4) < 0.000001)
        let cadence = CrankRevolutions(count: 11, eventTime: 1024).cadence(
            since: CrankRevolutions(count: 10, eventTime: 0))
        #expect(cadence == 60)
    }

    @Test func countersMayStartAgain() throws {
        // The clock of a pair of pedals ran over between these two, SmartSpin2k issue 70: 1182 ticks apart.
        let before = CrankRevolutions(count: 0x6E0A, eventTime: 0xFCD7)
        let after = CrankRevolutions(count: 0x6E0B, eventTime: 0x0175)
        #expect(abs(try #require(after.cadence(since: before)) - 51.97969) < 0.0001)
        // Its next two, which it reads as 48 turns a minute.
        #expect(CrankRevolutions(count: 0x6E0C, eventTime: 0x0675).cadence(since: after) == 48)
        #expect(CrankRevolutions(count: 1, eventTime: 1024).cadence(since: .init(count: 0xFFFF, eventTime: 0)) == 120)
        let last = WheelRevolutions(count: .max, eventTime: 0xFE00)
        #expect(WheelRevolutions(count: 1, eventTime: 0x0200).speed(since: last, circumference: 2) == 4)
    }

    @Test func aRateNeedsAnEventInBetween() {
        let crank = CrankRevolutions(count: 5, eventTime: 700)
        #expect(crank.cadence(since: crank) == nil)
        #expect(CrankRevolutions(count: 9, eventTime: 700).cadence(since: crank) == nil)
        #expect(CrankRevolutions(count: 5, eventTime: 800).cadence(since: crank) == 0)
        let cranksReset = CrankRevolutions(count: 1, eventTime: 800)
        #expect(cranksReset.cadence(since: crank) == nil)
        #expect(cranksReset.turns(since: crank) == -4)
        let wheel = WheelRevolutions(count: 1000, eventTime: 700)
        #expect(wheel.speed(since: wheel, circumference: 2.1) == nil)
        let wheelReset = WheelRevolutions(count: 3, eventTime: 1700)
        #expect(wheelReset.speed(since: wheel, circumference: 2.1) == nil)
        #expect(wheelReset.turns(since: wheel) == -997)
    }

    @Test func ticksOfCyclingPowerAreHalfAsLong() {
        let earlier = WheelRevolutions(count: 10, eventTime: 0, ticksPerSecond: 2048)
        let later = WheelRevolutions(count: 20, eventTime: 2048, ticksPerSecond: 2048)
        #expect(later.speed(since: earlier, circumference: 2) == 20)
        let otherClock = WheelRevolutions(count: 20, eventTime: 2048, ticksPerSecond: 1024)
        #expect(otherClock.speed(since: earlier, circumference: 2) == nil)
        let broken = WheelRevolutions(count: 10, eventTime: 0, ticksPerSecond: 0)
        let brokenLater = WheelRevolutions(count: 20, eventTime: 2048, ticksPerSecond: 0)
        #expect(brokenLater.speed(since: broken, circumference: 2) == 0)
    }

    /// Laid out by the table of op codes in CSCS 1.0, 3.4.
    @Test func requestsToTheControlPointAreEncoded() {
        #expect(SCControlPointRequest.setCumulativeValue(0x0102_0304).valueBytes == [1, 4, 3, 2, 1])
        #expect(SCControlPointRequest.startSensorCalibration.valueBytes == [2])
        #expect(SCControlPointRequest.updateSensorLocation(.rearWheel).valueBytes == [3, 12])
        #expect(SCControlPointRequest.requestSupportedSensorLocations.valueBytes == [4])
    }

    @Test func responsesOfTheControlPointAreDecoded() throws {
        let response = try SCControlPointResponse(value: [0x10, 4, 1, 1, 2, 3])
        #expect(response.supportedLocations == [.topOfShoe, .inShoe, .hip])
        #expect(try SCControlPointResponse(value: [0x10, 4, 4]).supportedLocations == nil)
        #expect(throws: MalformedPacket(format: "SC Control Point", offset: 1, reason: .invalidField("response code")))
        {
            try SCControlPointResponse(value: [1, 1, 0, 0, 0])
        }
    }

    @Test func keysShareOneCharacteristic() {
        #expect(CharacteristicKey.scControlPointRequest.uuid == CharacteristicKey.scControlPointResponse.uuid)
        #expect(CharacteristicKey.cscMeasurement.uuid == 0x2A5B)
        #expect(CSCFeature([.wheelRevolutions, .crankRevolutions]).rawValue == 3)
    }
}
