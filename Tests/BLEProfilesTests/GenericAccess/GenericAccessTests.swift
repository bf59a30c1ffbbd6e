import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct GenericAccessTests {
    @Test func genericAccessValuesAreRead() throws {
        #expect(try Appearance(value: [0x41, 0x03]).name == "Heart Rate Belt")
        let wish = try PreferredConnectionParameters(value: Hex.decode("180028000000a401"))
        #expect(wish.connectionParameters?.interval == .milliseconds(30) ... .milliseconds(50))
        #expect(wish.connectionParameters?.supervisionTimeout == .milliseconds(4200))
        #expect(try PreferredConnectionParameters(value: Hex.decode("ffffffff0000ffff")).connectionParameters == nil)
        #expect(CharacteristicKey.nordicUARTReceive.uuid.description == "6e400002-b5a3-f393-e0a9-e50e24dcca9e")
    }
}
