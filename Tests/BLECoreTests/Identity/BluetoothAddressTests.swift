import BLECore
import Testing

@Suite struct BluetoothAddressTests {
    @Test func textAndWireOrderAreOpposite() {
        let address = BluetoothAddress("5c:F3:70:9b:1A:02")
        #expect(address?.description == "5C:F3:70:9B:1A:02")
        #expect(address?.littleEndianBytes == [0x02, 0x1A, 0x9B, 0x70, 0xF3, 0x5C])
        #expect(BluetoothAddress("5CF3709B1A02") == address)
    }

    @Test(arguments: ["", "5C:F3:70:9B:1A", "5C:F3:70:9B:1A:0G", "5C:F3:70:9B:1A:02:", "5C.F3.70.9B.1A.02"])
    func refusesOtherForms(text: String) {
        #expect(BluetoothAddress(text) == nil)
    }

    /// The top two bits distinguish the kinds of random addresses: Core Vol 6 Part B, 1.3.2.
    @Test(arguments: [
        ("F2:0B:91:6C:33:D0/random", BluetoothAddress.Kind.static), ("54:94:5E:9F:64:C4/random", .resolvablePrivate),
        ("3E:94:5E:9F:64:C4/random", .nonResolvablePrivate), ("9E:94:5E:9F:64:C4/random", .reserved),
        ("F2:0B:91:6C:33:D0/public", .public),
    ])
    func kindIsReadFromTheTopBits(text: String, kind: BluetoothAddress.Kind) {
        #expect(PeerID(text)?.kind == kind)
        #expect(PeerID(text)?.description == text)
    }

    @Test func resolvedTypesNameTheIdentity() throws {
        let address = try #require(BluetoothAddress("F2:0B:91:6C:33:D0"))
        #expect(PeerID(address: address, type: .randomIdentity) == PeerID(address: address, type: .random))
        #expect(PeerID("F2:0B:91:6C:33:D0") == nil)
    }
}
