import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct CurrentTimeTests {
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
}
