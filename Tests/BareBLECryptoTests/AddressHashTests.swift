import BLECore
import BareBLECrypto
import Testing

@Suite("Random address hash")
struct AddressHashTests {
    private func secret(_ mostSignificantFirst: String) throws -> Secret128 {
        try secret(asOnAir: Array(Hex.decode(mostSignificantFirst).reversed()))
    }

    private func secret(asOnAir bytes: [UInt8]) throws -> Secret128 {
        let secret = Secret128(bytes.span)
        return try #require(secret)
    }

    private func encrypted(_ block: [UInt8], _ key: [UInt8]) -> [UInt8]? { AES128.encrypted(block, key: key.span) }

    @Test("A block is encrypted as FIPS 197 shows (appendices B and C.1)")
    func aBlockIsEncryptedAsPublished() throws {
        for (key, plain, encrypted) in [
            (
                "2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
                "3925841d02dc09fbdc118597196a0b32"
            ),
            (
                "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
                "69c4e0d86a7b0430d8cdb78070b4c55a"
            ),
        ] {
            let found = self.encrypted(try Hex.decode(plain), try Hex.decode(key))
            #expect(found == (try Hex.decode(encrypted)))
        }
    }

    @Test("A key or a block of another length encrypts nothing", arguments: [0, 15, 17, 24, 32])
    func anotherLengthEncryptsNothing(count: Int) {
        let (short, whole) = ([UInt8](repeating: 7, count: count), [UInt8](repeating: 7, count: 16))
        #expect(encrypted(whole, short) == nil)
        #expect(encrypted(short, whole) == nil)
    }

    /// Core Vol 3 Part H, D.7.
    @Test("The specification's sample has the specification's hash")
    func theSampleHasTheSpecificationsHash() throws {
        let key = try secret("ec0234a357c8ad05341010a60a397d9b")
        #expect(AddressHashMessage(key: key, random: 0x70_8194).hash == 0x0D_FBAA)
        #expect(AddressHashMessage(key: key, random: 0x70_8195).hash != 0x0D_FBAA)
    }

    /// Addresses and keys that a peer of another make used in pairings: its keys as they came on air, least significant
    /// byte first.
    @Test(
        "The addresses of a real peer are resolved",
        arguments: [
            ("62:CC:28:F3:EE:75", 1), ("77:12:FB:36:5B:CF", 2), ("5A:8D:ED:8E:AB:1E", 2), ("5A:8D:ED:8E:AB:1F", 0),
        ])
    func theAddressesOfARealPeerAreResolved(text: String, owner: UInt64) throws {
        let identities = (1...2 as ClosedRange<UInt64>).map {
            PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0000 + $0), type: .random)
        }
        let secrets = try ["000102030405060708090a0b0c0d0e0f", "202122232425262728292a2b2c2d2e2f"].map {
            try secret(asOnAir: Hex.decode($0))
        }
        var resolver = AddressResolver()
        resolver.setKeys(Dictionary(uniqueKeysWithValues: zip(identities, secrets))) { $0.hash }
        let peer = PeerID(address: try #require(BluetoothAddress(text)), type: .random)
        let identity = resolver.identity(of: peer)
        #expect(identity == identities.first { $0.address.rawValue & 0xF == owner })
    }
}
