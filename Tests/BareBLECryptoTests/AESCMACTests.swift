import BLECore
import BareBLECrypto
import Testing

/// The vectors of RFC 4493, section 4: one key, four messages.
@Suite("AES-CMAC")
struct AESCMACTests {
    private static let key = "2b7e151628aed2a6abf7158809cf4f3c"

    @Test(
        "The code is the one that the RFC gives",
        arguments: [
            ("", "bb1d6929e95937287fa37d129b756746"),
            ("6bc1bee22e409f96e93d7e117393172a", "070a16b46b4d4144f79bdd9dd04a287c"),
            (
                "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411",
                "dfa66747de9ae63030ca32611497c827"
            ),
            (
                "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
                    + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
                "51f0bebf7e3b9d92fc49741779363cfe"
            ),
        ])
    func theCodeIsTheOneOfTheRFC(message: String, code: String) throws {
        let found = AESCMAC.code(of: try Hex.decode(message), key: try Hex.decode(Self.key))
        #expect(found == (try Hex.decode(code)))
    }

    @Test("A key of another length gives no code", arguments: [0, 15, 17, 24, 32])
    func keyLength(count: Int) {
        #expect(AESCMAC.code(of: [1, 2, 3], key: [UInt8](repeating: 7, count: count)) == nil)
    }
}
