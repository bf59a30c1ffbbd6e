import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct EnvironmentalSensingTests {
    @Test func environmentalValuesAreReadInTheirUnits() throws {
        #expect(try Temperature(value: [0x0B, 0x0A]).doubleValue == 25.71)
        #expect(try Temperature(value: [0x00, 0x80]).doubleValue == nil)
        #expect(Temperature(rawValue: -100).valueBytes == [0x9C, 0xFF])
        #expect(try Elevation(value: [0x10, 0xFE, 0xFF]).doubleValue == -4.96)
        #expect(try Illuminance(value: [0xFF, 0xFF, 0xFF]).doubleValue == nil)
        #expect(Pressure(rawValue: 1_013_116).valueBytes == [0x7C, 0x75, 0x0F, 0x00])
        #expect(Temperature.unit == "°C")
        #expect(try PressureTrend(value: [5]) == .fallingThenRisingLess)
    }

    @Test func quantitiesAreWrittenInTheirUnits() {
        #expect(Temperature(25.71)?.valueBytes == [0x0B, 0x0A])
        #expect(Temperature(-1)?.rawValue == -100)
        #expect(Temperature(327.67)?.rawValue == 32767)
        #expect(Temperature(327.68) == nil)
        // The number that means "not known" is no temperature.
        #expect(Temperature(-327.68) == nil)
        #expect(Temperature(.nan) == nil)
        #expect(Temperature(.infinity) == nil)
        // What does not fit is not cut off.
        #expect(Temperature(rawValue: 40_000).valueBytes == [0xFF, 0x7F])
        #expect(Temperature(rawValue: -40_000).valueBytes == [0x00, 0x80])
        #expect(Pressure(rawValue: -1).valueBytes == [0, 0, 0, 0])
        #expect(Pressure(101_311.6)?.valueBytes == [0x7C, 0x75, 0x0F, 0x00])
    }
}
