import BLECore
import BareBLECrypto
import Testing

@Suite("AES-CCM and counter mode")
struct EncryptedMessageTests {
    private func message(
        _ key: String, _ nonce: String, _ associated: String, _ bytes: String, _ tag: String
    ) throws -> EncryptedMessage {
        EncryptedMessage(
            key: try Self.secret(key),
            .ccm(
                nonce: try Hex.decode(nonce), associatedData: try Hex.decode(associated), tag: try Hex.decode(tag)),
            try Hex.decode(bytes))
    }

    private static func secret(_ hex: String) throws -> Secret128 {
        let bytes = try Hex.decode(hex)
        guard let key = Secret128(bytes.span) else { throw Hex.ParsingError.oddNumberOfDigits }
        return key
    }

    private static let associated = "000102030405060708090a0b0c0d0e0f10111213"
    private static let plain = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f4041424344"

    /// The first is packet vector 1 of RFC 3610, section 8. The others are the work of PyCryptodome, with every length
    /// of nonce and tag that the sensors use, and others.
    static let vectors: [(key: String, nonce: String, associated: String, bytes: String, tag: String, plain: String)] =
        [
            (
                "c0c1c2c3c4c5c6c7c8c9cacbcccdcecf", "00000003020100a0a1a2a3a4a5", "0001020304050607",
                "588c979a61c663d2f066d0c2c0f989806d5f6b61dac384", "17e8d12cfdf926e0",
                "08090a0b0c0d0e0f101112131415161718191a1b1c1d1e"
            ),
            (
                "404142434445464748494a4b4c4d4e4f", "101112131415161718191a1b1c", associated,
                "69915dad1e84c6376a68c2967e4dab615ae0fd1faec44cc484828529463ccf7232ec7cb9e0", "ad88489d", plain
            ),
            (
                "404142434445464748494a4b4c4d4e4f", "101112131415161718191a1b", associated,
                "e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5541bd1d416fa0ce3ec37af206e", "8dca2f5edd54d600", plain
            ),
            (
                "404142434445464748494a4b4c4d4e4f", "10111213141516", associated,
                "7162015bc051951e5918aeaf3c11f3d4ac363f8d5b6af3d369603b04f24cae29964e2f2bf9",
                "95e382e360f5447645b0db6d8e3021e7", plain
            ),
            (
                "404142434445464748494a4b4c4d4e4f", "101112131415161718191a", associated,
                "d6d28b1b24b85b4ffbe0998809dab62e35428a3cca41bdc880d80004b03a18e37ecd2758ab", "53311e6b86aa1a981698",
                plain
            ),
        ]

    @Test("What others have encrypted is decrypted", arguments: vectors.indices)
    func whatOthersHaveEncryptedIsDecrypted(index: Int) throws {
        let vector = Self.vectors[index]
        let whole = try message(vector.key, vector.nonce, vector.associated, vector.bytes, vector.tag)
        #expect(whole.plaintext == (try Hex.decode(vector.plain)))
    }

    @Test("Nothing comes of another key, nonce, associated data, tag or byte")
    func damagedMessagesAreNotDecrypted() throws {
        let (key, nonce, associated, bytes, tag, _) = Self.vectors[1]
        func flipped(_ hex: String) -> String { (hex.hasPrefix("0") ? "1" : "0") + hex.dropFirst() }
        for part in 0..<5 {
            var parts = [key, nonce, associated, bytes, tag]
            parts[part] = flipped(parts[part])
            #expect(try message(parts[0], parts[1], parts[2], parts[3], parts[4]).plaintext == nil, "part \(part)")
        }
    }

    @Test("Lengths that the mode does not have give nothing", arguments: [0, 6, 14, 15, 16, 40])
    func nonceLengths(count: Int) throws {
        let nonce = String(repeating: "11", count: count)
        #expect(try message(Self.vectors[1].key, nonce, "", "00", "11223344").plaintext == nil)
    }

    @Test("A tag of another length gives nothing", arguments: [0, 1, 2, 3, 5, 7, 15, 17, 18])
    func tagLengths(count: Int) throws {
        let tag = String(repeating: "11", count: count)
        #expect(try message(Self.vectors[1].key, Self.vectors[1].nonce, "", "00", tag).plaintext == nil)
    }

    /// NIST SP 800-38A, F.5.1, the first two blocks.
    @Test("Counter mode counts from the block on")
    func counterMode() throws {
        let key = try Self.secret("2b7e151628aed2a6abf7158809cf4f3c")
        let block = try Hex.decode("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
        let bytes = try Hex.decode("874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff")
        let plain = try Hex.decode("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
        #expect(EncryptedMessage(key: key, .counter(block: block), bytes).plaintext == plain)
        #expect(EncryptedMessage(key: key, .counter(block: Array(block.dropLast())), bytes).plaintext == nil)
    }
}
