import BLECore
import Testing

@Suite struct ByteReaderTests {
    /// A reader cannot escape into `#expect`, so a test collects what it read and compares that.
    private func read<Value>(_ bytes: [UInt8], _ body: (inout ByteReader) -> Value) -> Value {
        var reader = ByteReader(bytes.span)
        return body(&reader)
    }

    @Test func readsEveryWidthLittleEndian() {
        let numbers = read(Array(1...24)) { reader in
            [
                reader.u8().map(UInt64.init), reader.u16().map(UInt64.init), reader.u24().map(UInt64.init),
                reader.u32().map(UInt64.init), reader.u48(), reader.u64(),
            ]
        }
        #expect(numbers == [0x01, 0x0302, 0x060504, 0x0A09_0807, 0x100F_0E0D_0C0B, 0x1817_1615_1413_1211])
    }

    @Test func arraysFollowEachOther() {
        let arrays = read([25, 26, 27, 28]) { [$0.array(2), $0.rest(), $0.rest()] }
        #expect(arrays == [[25, 26], [27, 28], []])
    }

    @Test(arguments: 0..<8) func endsWithoutTrapAndKeepsItsPlace(count: Int) {
        let failed = read([UInt8](repeating: 7, count: count)) { reader in
            let number = reader.u64()
            let arrays = [reader.array(count + 1), reader.array(-1)]
            let skipped = reader.skip(count + 1)
            return (number, arrays, skipped, reader.offset, reader.rest().count, reader.u8())
        }
        #expect(failed.0 == nil)
        #expect(failed.1 == [nil, nil])
        #expect(!failed.2)
        #expect(failed.3 == 0)
        #expect(failed.4 == count)
        #expect(failed.5 == nil)
    }

    @Test func takeSplitsOffAPart() {
        let (part, next) = read([1, 2, 3]) { reader in
            guard var part = reader.take(2) else { return ([UInt8](), reader.u8()) }
            return (part.rest(), reader.u8())
        }
        #expect(part == [1, 2])
        #expect(next == 3)
    }

    @Test func leftoversAreAnError() {
        #expect(throws: MalformedPacket(format: "X", offset: 1, reason: .trailingBytes(1))) {
            let bytes: [UInt8] = [1, 2]
            var reader = ByteReader(bytes.span)
            _ = reader.u8()
            try reader.finish("X")
        }
    }
}
