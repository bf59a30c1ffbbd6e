import BLECore
import Testing

@Suite struct ByteReaderTests {
    @Test func readsEveryWidthLittleEndian() {
        let bytes: [UInt8] = Array(1...30)
        var reader = ByteReader(bytes.span)
        #expect(reader.u8() == 0x01)
        #expect(reader.u16() == 0x0302)
        #expect(reader.u24() == 0x060504)
        #expect(reader.u32() == 0x0A09_0807)
        #expect(reader.u48() == 0x100F_0E0D_0C0B)
        #expect(reader.u64() == 0x1817_1615_1413_1211)
        #expect(reader.array(2) == [25, 26])
        #expect(reader.rest() == [27, 28, 29, 30])
        #expect(reader.isAtEnd)
    }

    @Test(arguments: 0..<8) func endsWithoutTrapAndKeepsItsPlace(count: Int) {
        let bytes = [UInt8](repeating: 7, count: count)
        var reader = ByteReader(bytes.span)
        #expect(reader.u64() == nil)
        #expect(reader.array(count + 1) == nil)
        #expect(reader.array(-1) == nil)
        #expect(!reader.skip(count + 1))
        #expect(reader.offset == 0)
        #expect(reader.rest().count == count)
        #expect(reader.u8() == nil)
    }

    @Test func takeSplitsOffAPart() {
        let bytes: [UInt8] = [1, 2, 3]
        var reader = ByteReader(bytes.span)
        guard var part = reader.take(2) else {
            Issue.record("two of three bytes are there")
            return
        }
        #expect(part.rest() == [1, 2])
        #expect(reader.u8() == 3)
    }

    @Test func leftoversAreAnError() {
        let bytes: [UInt8] = [1, 2]
        var reader = ByteReader(bytes.span)
        _ = reader.u8()
        do throws(MalformedPacket) {
            try reader.finish("X")
            Issue.record("a byte is left over")
        } catch {
            #expect(error == MalformedPacket(format: "X", offset: 1, reason: .trailingBytes(1)))
        }
    }
}
