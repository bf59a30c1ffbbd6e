import BLECore
import Testing

/// The values are those of zlib's `crc32`; the first is the check value that catalogues of such algorithms give.
@Suite struct CRC32Tests {
    @Test(
        arguments: [("123456789", 0xCBF4_3926), ("", 0), ("a", 0xE8B7_BE43), ("BareBLE", 0x2BDE_3FF7)]
            as [(String, UInt32)])
    func agreesWithZlib(text: String, expected: UInt32) {
        #expect(CRC32.checksum(Array(text.utf8)) == expected)
    }
}
