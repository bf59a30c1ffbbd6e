import BLECore
import Testing

@Suite struct HexTests {
    @Test func encodesLowercase() {
        #expect(Hex.encode([0x00, 0x9A, 0xFF]) == "009aff")
        #expect(Hex.encode([] as [UInt8]) == "")
    }

    @Test(arguments: ["0201041AFF", "02 01 04 1a ff", "0x0201041aff", "02:01:04:1A:FF", "02-01-04-1a-ff"])
    func decodesTheUsualSpellings(text: String) throws {
        #expect(try Hex.decode(text) == [0x02, 0x01, 0x04, 0x1A, 0xFF])
    }

    @Test func refusesOtherTextWithTheOffset() {
        #expect(throws: Hex.ParsingError.invalidCharacter(offset: 2)) { try Hex.decode("01g2") }
        #expect(throws: Hex.ParsingError.oddNumberOfDigits) { try Hex.decode("012") }
        #expect(throws: Hex.ParsingError.invalidCharacter(offset: 3)) { try Hex.decode("010x02") }
    }
}
