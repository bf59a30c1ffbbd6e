import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct HeartRateTests {
    @Test func aHeartRateMeasurementIsReadWithItsIntervals() throws {
        let value = try HeartRateMeasurement(value: Hex.decode("1e5a0a00e80300042a03"))
        #expect(value.beatsPerMinute == 90)
        #expect(value.hasSkinContact == true)
        #expect(value.energyExpended == 10)
        #expect(value.rrIntervals == [.nanoseconds(976_562_500), .seconds(1), .nanoseconds(791_015_625)])
        #expect(try HeartRateMeasurement(value: [0, 72]).hasSkinContact == nil)
        #expect(HeartRateControlPoint.resetEnergyExpended.valueBytes == [1])
        #expect(try BodySensorLocation(value: [5]) == .earLobe)
    }

    /// The bytes are those of other implementations, as in `ValueDescriptionTests`.
    @Test(arguments: [
        ("0648", HeartRateMeasurement(beatsPerMinute: 72, hasSkinContact: true)),
        ("0448", HeartRateMeasurement(beatsPerMinute: 72, hasSkinContact: false)),
        ("08480a00", HeartRateMeasurement(beatsPerMinute: 72, energyExpended: 10)),
        ("104801030004", HeartRateMeasurement(beatsPerMinute: 72, rrIntervals1024: [769, 1024])),
        (
            "1e5a0a00e80300042a03",
            HeartRateMeasurement(
                beatsPerMinute: 90, hasSkinContact: true, energyExpended: 10, rrIntervals1024: [1000, 1024, 810])
        ),
        ("00ff", HeartRateMeasurement(beatsPerMinute: 255)), ("010001", HeartRateMeasurement(beatsPerMinute: 256)),
    ])
    func heartRatesAreEncodedAsSensorsSendThem(hex: String, value: HeartRateMeasurement) throws {
        #expect(Hex.encode(value.valueBytes) == hex)
        #expect(try HeartRateMeasurement(value: value.valueBytes) == value)
    }
}
