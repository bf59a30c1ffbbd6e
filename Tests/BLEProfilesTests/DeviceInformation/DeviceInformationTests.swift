import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct DeviceInformationTests {
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
}
