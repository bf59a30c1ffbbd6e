import BLECore
import BareBLECrypto
import Testing

/// The signed writes of BlueZ's unit tests (test-crypto.c and test-gatt.c, GATT/GAW/CL/BV-02-C).
@Suite("Signatures of writes")
struct WriteSignerKeyTests {
    @Test(
        "A write carries the signature that its key makes",
        arguments: [
            ("505e42df9691ec72d31fcdfbeb641b61", 1, 0x0012, "1337", "d21200133701000000f1871e933c900ff2"),
            ("d8515948451fea320dc05a2e88308188", 0, 0x0007, "010203", "d2070001020300000000311f0acd1c3a5b0a"),
        ] as [(String, UInt32, AttributeHandle, String, String)])
    func aWriteCarriesTheSignatureOfItsKey(
        key: String, counter: UInt32, handle: AttributeHandle, value: String, pdu: String
    ) throws {
        var signer = try #require(WriteSigner(key: try Hex.decode(key), counter: counter))
        let signed = try #require(signer.sign(try Hex.decode(value), for: handle))
        #expect(Hex.encode(signed.bytes) == pdu)
        #expect(signer.counter == counter + 1)
        let bytes = try Hex.decode(key)
        let unchecked = Secret128(bytes.span)
        let secret = try #require(unchecked)
        let message = WriteSignatureMessage(key: secret, packet: signed.bytes.dropLast(8))
        #expect(message.code == signed.bytes.suffix(8))
        #expect(!"\(message)".contains("\(bytes[0]), \(bytes[1])"))
        // The next number makes another signature.
        #expect(signer.sign(try Hex.decode(value), for: handle) != signed)
    }

    @Test("A key of another length makes no signer", arguments: [0, 15, 17])
    func keyLength(count: Int) {
        #expect(WriteSigner(key: [UInt8](repeating: 7, count: count), counter: 0) == nil)
    }
}
