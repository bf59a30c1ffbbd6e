import BLECore
import BLEProfiles
import Testing

@Suite struct GlucoseTests {
    static let goldens: [GoldenValue] = [
        // A meter that showed 120 mg/dL, react-native-ble-plx issue 652.
        GoldenValue(
            0x2A18, "030600e407040d10260a000078b0f1",
            "record 6, glucose 120 mg/dL, sample capillary whole blood, from location not available, "
                + "at 2020-04-13 16:38:10, time offset 0 s", "a meter that showed 120"),
        // Nordic's Android-BLE-Common-Library, GlucoseMeasurementDataCallbackTest.
        GoldenValue(
            0x2A18, "1b0100e307021b0b0a1efbff1e00120501",
            "record 1, glucose 3000000 mg/dL, sample capillary plasma, from finger, status battery low, "
                + "status sample too small, status temperature too low, at 2019-02-27 11:10:30, time offset -300 s, "
                + "context follows", "Nordic: 30 kg/L, -5 minutes, status 261"),
        // Packed by Python's struct from the specification's table.
        GoldenValue(
            0x2A18, "060700e807021d0805003dc019",
            "record 7, glucose 6.1 mmol/L, sample interstitial fluid, from finger, at 2024-02-29 08:05:00",
            "the specification's table: mol/L"),
        // The two marks of an offset that is out of range.
        GoldenValue(
            0x2A18, "010700e807021d080500ff7f", "record 7, at 2024-02-29 08:05:00", "the specification: overrun"),
        GoldenValue(
            0x2A18, "010700e807021d0805000080", "record 7, at 2024-02-29 08:05:00", "the specification: underrun"),
        // Nordic, GlucoseMeasurementContextDataCallbackTest.
        GoldenValue(
            0x2A34, "ff0000b303640004123c003204d2f459f1",
            "record 0, carbohydrate dinner, carbohydrate amount 100000 g, meal casual, tester health care professional, "
                + "health minor issues, exercise 60 s, intensity 50 %, medication long acting insulin, "
                + "medication amount 123400 mL, HbA1c 34.5 %", "Nordic: full"),
        GoldenValue(0x2A34, "000100", "record 1", "Nordic: empty"),
        GoldenValue(
            0x2A34, "110900012dd0010ca0",
            "record 9, carbohydrate breakfast, carbohydrate amount 45 g, medication rapid acting insulin, "
                + "medication amount 12 mg", "the specification's table: 45 g, 12 mg"),
        // Nordic, GlucoseFeatureDataCallbackTest.
        GoldenValue(
            0x2A51, "f003",
            "strip type error detection, result range detection, temperature range detection, read interrupt detection, "
                + "general device fault, time fault", "Nordic: features"),
        // Nordic, RecordAccessControlPointDataCallbackTest.
        GoldenValue(0x2A52, "06000101", "response to request 1, result success", "Nordic: completed"),
        GoldenValue(0x2A52, "06000106", "response to request 1, result no records found", "Nordic: no records"),
        GoldenValue(0x2A52, "06000c02", "response to request 12, result not supported", "Nordic: op code"),
        GoldenValue(0x2A52, "05000201", "records 258", "Nordic: uint16"),
        GoldenValue(0x2A52, "050001", "records 1", "Nordic: uint8"),
        GoldenValue(0x2A52, "050004030201", "records 16909060", "Nordic: uint32"),
    ]

    @Test(arguments: goldens) func valuesReadAndWriteAsInTheTable(value: GoldenValue) throws {
        try value.check()
    }

    @Test func concentrationsAreDecodedInBothUnits() throws {
        let mass = try GlucoseMeasurement(value: Hex.decode("030600e407040d10260a000078b0f1"))
        #expect(abs(try #require(mass.milligramsPerDecilitre) - 120) < 0.0001)
        #expect(abs(try #require(mass.millimolesPerLitre) - 6.6609) < 0.0001)
        #expect(mass.timeOffset == .zero)
        #expect(mass.sampleLocation == .notAvailable)
        let moles = try GlucoseMeasurement(value: Hex.decode("060700e807021d0805003dc019"))
        #expect(abs(try #require(moles.millimolesPerLitre) - 6.1) < 0.0001)
        #expect(abs(try #require(moles.milligramsPerDecilitre) - 109.8952) < 0.0001)
        #expect(try GlucoseMeasurement(value: Hex.decode("000700e807021d080500")).milligramsPerDecilitre == nil)
    }

    @Test func fieldsOfAContextAreDecoded() throws {
        let context = try GlucoseMeasurementContext(value: Hex.decode("ff0000b303640004123c003204d2f459f1"))
        #expect(context.carbohydrate == .dinner)
        #expect(context.meal == .casual)
        #expect(context.tester == .healthCareProfessional && context.health == .minorIssues)
        #expect(context.exerciseDuration == .seconds(60))
        #expect(context.medication == .longActingInsulin && context.isMedicationInLitres)
        // An exercise longer than the field can contain, and codes without a meaning.
        let odd = try GlucoseMeasurementContext(value: [0x0E, 1, 0, 0x77, 0xEE, 0xFF, 0xFF, 10])
        #expect(odd.exerciseDuration == nil && odd.exerciseIntensity == 10)
        #expect(odd.meal?.rawValue == 0x77 && odd.tester?.rawValue == 0xE && odd.health?.rawValue == 0xE)
        #expect(odd.fields.contains(ValueField("meal", .named(0x77, "code 119"))))
    }

    /// Nordic's invalid cases: no time offset, an unknown length of the number, too short, no response, a wrong
    /// operator.
    @Test func incompleteBytesAreRefused() throws {
        #expect(throws: MalformedPacket.self) {
            try GlucoseMeasurement(value: Hex.decode("1b0000e207041a0b091e1e00120501"))
        }
        for bytes in [[5, 0, 3, 2, 1], [1, 1], [1, 3, 1, 2, 0], [6, 1, 1]] as [[UInt8]] {
            #expect(throws: MalformedPacket.self) { try RecordAccessControlPointResponse(value: bytes) }
        }
    }

    /// 0101, 0401, 0106, 0105 and 01030145 00 are what people wrote to real meters (flutter_blue issue 830,
    /// BluetoothLEExplorer issue 29); the others follow the specification's table.
    @Test func requestsForRecordsHaveTheSpecifiedBytes() {
        typealias Request = RecordAccessControlPointRequest
        #expect(Request.report(.all).valueBytes == [1, 1])
        #expect(Request.report(.last).valueBytes == [1, 6])
        #expect(Request.report(.first).valueBytes == [1, 5])
        #expect(Request.count(.all).valueBytes == [4, 1])
        #expect(Request.report(.sequenceNumbers(from: 45, through: nil)).valueBytes == [1, 3, 1, 45, 0])
        #expect(Request.report(.sequenceNumbers(from: nil, through: 0x0102)).valueBytes == [1, 2, 1, 2, 1])
        #expect(Request.delete(.sequenceNumbers(from: 1, through: 2)).valueBytes == [2, 4, 1, 1, 0, 2, 0])
        #expect(Request.delete(.sequenceNumbers(from: nil, through: nil)).valueBytes == [2, 1])
        #expect(Request.abort.valueBytes == [3, 0])
        let noon = GATTDateTime(year: 2024, month: 2, day: 29, hours: 12)
        #expect(
            Request.count(.userFacingTimes(from: noon, through: nil)).valueBytes
                == [4, 3, 2, 0xE8, 0x07, 2, 29, 12, 0, 0])
    }

    @Test func aResponseIsReadWithItsParameters() throws {
        typealias Response = RecordAccessControlPointResponse
        #expect(try Response(value: [6, 0, 3, 7]) == .ended(request: 3, .abortUnsuccessful))
        #expect(try Response(value: [6, 0, 1, 10]) == .ended(request: 1, RecordAccessResult(rawValue: 10)))
        #expect(try Response(value: [5, 0, 2, 1]) == .count(258))
    }
}
