import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct HealthThermometerTests {
    @Test func aTemperatureMeasurementIsReadWithItsUnit() throws {
        let value = try TemperatureMeasurement(value: Hex.decode("07da0300ffe3070415140e2d06"))
        #expect(value.isFahrenheit)
        #expect(value.temperature.number == .finite(mantissa: 986, exponent: -1))
        #expect(abs(value.celsius - 37) < 1e-9)
        #expect(value.type == .mouth)
        #expect(value.time == GATTDateTime(year: 2019, month: 4, day: 21, hours: 20, minutes: 14, seconds: 45))
    }
}
