import BLECore
import Testing

/// Bytes that are stored in place up to a limit, and in an array above it.
@Suite struct CompactBytesTests {
    @Test("every length around the limit keeps its bytes", arguments: 0...64)
    func everyLengthAroundTheLimitKeepsItsBytes(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: 255 - $0) }
        for compact in [CompactBytes(bytes), CompactBytes(copying: bytes.span)] {
            #expect(compact.array == bytes && compact.count == count && compact.isEmpty == (count == 0))
            #expect(compact.withSpan { $0.count } == count)
            #expect(compact == CompactBytes(bytes) && compact.hashValue == CompactBytes(bytes).hashValue)
            #expect(compact != CompactBytes(bytes + [0]))
        }
    }

    @Test func textIsUTF8WithReplacementCharacters() {
        #expect(CompactBytes([0x41, 0xFF, 0xC3, 0xA9]).text == "A\u{FFFD}é")
        #expect(CompactBytes([UInt8](repeating: 0x61, count: 40)).text == String(repeating: "a", count: 40))
    }
}
