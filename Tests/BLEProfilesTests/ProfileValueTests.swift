import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct ProfileValueTests {
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

    @Test func batteryValuesAreRead() throws {
        let status = try BatteryLevelStatus(value: Hex.decode("07210612014b01"))
        #expect(status.isPresent)
        #expect(status.wiredPower == .no)
        #expect(status.chargeState == .charging)
        #expect(status.chargeLevel == .unknown)
        #expect(status.chargingType == .trickle)
        #expect(status.identifier == 0x0112)
        #expect(status.level == BatteryLevel(percentage: 75))
        #expect(status.needsService == .yes)
        // All bits of the power state set: eisaev/blevalueparser, BatteryLevelStatusTest.
        let all = try BatteryLevelStatus(value: [0, 0xFF, 0xFF])
        #expect(all.wiredPower == .reserved)
        #expect(all.wirelessPower == .reserved)
        #expect(all.chargeState == .dischargingInactive)
        #expect(all.chargeLevel == .critical)
        #expect(all.chargingType.rawValue == 7 && all.chargingType.name == nil)
        #expect(all.hasChargingFaultOfBattery && all.hasChargingFaultOfPowerSource && all.hasOtherChargingFault)
        #expect(all.needsService == nil && all.hasBatteryFault == nil)
        // The battery's own fault is another bit: Zephyr's Battery Service.
        let faulty = try BatteryLevelStatus(value: [4, 1, 0, 4])
        #expect(faulty.hasBatteryFault == true && !faulty.hasChargingFaultOfBattery && faulty.needsService == .no)
    }

    @Test func deviceInformationIsRead() throws {
        let identity = try PnPID(value: Hex.decode("01590001000200"))
        #expect(identity == PnPID(vendorSource: 1, vendor: 0x0059, product: 1, version: 2))
        #expect(identity.companyName == "Nordic Semiconductor ASA")
        #expect(identity.valueBytes == [1, 0x59, 0, 1, 0, 2, 0])
        let system = try SystemID(value: Hex.decode("123456feffabcdef"))
        #expect(system.organization == 0xEFCDAB)
        #expect(system.identifier == 0xFF_FE56_3412)
        #expect(Hex.encode(system.valueBytes) == "123456feffabcdef")
    }

    @Test func aTemperatureMeasurementIsReadWithItsUnit() throws {
        let value = try TemperatureMeasurement(value: Hex.decode("07da0300ffe3070415140e2d06"))
        #expect(value.isFahrenheit)
        #expect(value.temperature.number == .finite(mantissa: 986, exponent: -1))
        #expect(abs(value.celsius - 37) < 1e-9)
        #expect(value.type == .mouth)
        #expect(value.time == GATTDateTime(year: 2019, month: 4, day: 21, hours: 20, minutes: 14, seconds: 45))
    }

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

    @Test func quantitiesThatAreWritten() {
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

    @Test func theCurrentTimeIsReadWithItsFractions() throws {
        let bytes = try Hex.decode("e707010214160701ff01")
        let value = try CurrentTime(value: bytes)
        #expect(value.time.dateTime == GATTDateTime(year: 2023, month: 1, day: 2, hours: 20, minutes: 22, seconds: 7))
        #expect(value.time.dayOfWeek == .monday)
        #expect(value.time.fractions == 255)
        #expect(value.adjustReason.names == ["by hand"])
        #expect(try DayOfWeek(value: [9]).rawValue == 9)
        #expect(try TimeSource(value: [6]) == .cellularNetwork)
        #expect(value.adjustReason == .manualUpdate)
        #expect(value.valueBytes == bytes)
        #expect(try LocalTimeInformation(value: [4, 4]).offset == .seconds(7200))
        #expect(try LocalTimeInformation(value: [0x80, 4]).offset == nil)
        #expect(try ReferenceTimeInformation(value: [1, 16, 2, 5]).drift == .seconds(2))
        #expect(try ReferenceTimeInformation(value: [1, 254, 2, 5]).drift == nil)
        #expect(value.time.dateTime.hasDate)
        #expect(!GATTDateTime(year: 2023, month: 0, day: 1).hasDate)
        #expect(!GATTDateTime(year: 2023, month: 13, day: 1).isValid)
        #expect(GATTDateTime(year: 0, month: 0, day: 0).isValid)
    }

    @Test func genericAccessValuesAreRead() throws {
        #expect(try Appearance(value: [0x41, 0x03]).name == "Heart Rate Belt")
        let wish = try PreferredConnectionParameters(value: Hex.decode("180028000000a401"))
        #expect(wish.connectionParameters?.interval == .milliseconds(30) ... .milliseconds(50))
        #expect(wish.connectionParameters?.supervisionTimeout == .milliseconds(4200))
        #expect(try PreferredConnectionParameters(value: Hex.decode("ffffffff0000ffff")).connectionParameters == nil)
        #expect(CharacteristicKey.nordicUARTReceive.uuid.description == "6e400002-b5a3-f393-e0a9-e50e24dcca9e")
    }
}
