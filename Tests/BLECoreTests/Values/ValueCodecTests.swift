import BLECore
import BLEProfiles
import Testing

/// A codec as a user would write it.
private struct TankLevel: GATTReadable, GATTWritable, Hashable {
    let litres: UInt16
    let pressure: Int32
    let alarm: Bool?

    init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags: UInt8 = try reader.read()
        if flags > 1 { throw reader.invalid("flags") }
        litres = try reader.read(order: .bigEndian)
        pressure = try reader.read(Int24.self).value
        alarm = try reader.read(if: flags == 1)
    }

    func write(to writer: inout ByteWriter) {
        writer.write(UInt8(alarm == nil ? 0 : 1))
        writer.write(litres, order: .bigEndian)
        writer.write(Int24(clamping: pressure))
        writer.write(ifPresent: alarm)
    }
}

@Suite struct ValueCodecTests {
    @Test func integersOfEveryWidthAreCoded() throws {
        #expect(try UInt8(value: [0xFE]) == 0xFE)
        #expect(try Int8(value: [0xFE]) == -2)
        #expect(try UInt16(value: [0x01, 0x80]) == 0x8001)
        #expect(try Int16(value: [0x01, 0x80]) == -0x7FFF)
        #expect(try UInt24(value: [1, 2, 0x83]).value == 0x830201)
        #expect(try Int24(value: [0xFF, 0xFF, 0xFF]).value == -1)
        #expect(try Int24(value: [0x00, 0x00, 0x80]).value == -0x80_0000)
        #expect(try UInt32(value: [1, 2, 3, 4]) == 0x0403_0201)
        #expect(try Int32(value: [0xFE, 0xFF, 0xFF, 0xFF]) == -2)
        #expect(try UInt48(value: [1, 2, 3, 4, 5, 6]).value == 0x0605_0403_0201)
        #expect(try UInt64(value: [1, 2, 3, 4, 5, 6, 7, 8]) == 0x0807_0605_0403_0201)
        #expect(try Int64(value: [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == -2)
    }

    @Test func integersAreWrittenLeastSignificantFirst() {
        #expect(UInt16(0x8001).valueBytes == [0x01, 0x80])
        #expect(Int16(-2).valueBytes == [0xFE, 0xFF])
        #expect(UInt24(clamping: 0x830201).valueBytes == [1, 2, 0x83])
        #expect(Int24(clamping: -2).valueBytes == [0xFE, 0xFF, 0xFF])
        #expect(UInt48(clamping: 0x0605_0403_0201 as UInt64).valueBytes == [1, 2, 3, 4, 5, 6])
        #expect(Int64(-2).valueBytes == [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        #expect(UInt24(clamping: -1).value == 0)
        #expect(UInt24(clamping: Int.max).value == 0xFF_FFFF)
        #expect(Int24(clamping: Int.min).value == -0x80_0000)
        #expect(UInt48(clamping: UInt64.max).value == 0xFFFF_FFFF_FFFF)
    }

    @Test func anOwnCodecReadsAndWrites() throws {
        let bytes: [UInt8] = [1, 0x01, 0x02, 0xFE, 0xFF, 0xFF, 1]
        let level = try TankLevel(value: bytes)
        #expect(level.litres == 0x0102)
        #expect(level.pressure == -2)
        #expect(level.alarm == true)
        #expect(level.valueBytes == bytes)
        #expect(try TankLevel(value: [0, 0, 1, 0, 0, 0]).alarm == nil)
    }

    @Test func errorsNameTheFormatAndThePlace() {
        #expect(throws: MalformedPacket(format: "uint16", offset: 0, reason: .tooShort)) { try UInt16(value: [1]) }
        #expect(throws: MalformedPacket(format: "uint8", offset: 1, reason: .trailingBytes(2))) {
            try UInt8(value: [1, 2, 3])
        }
        #expect(throws: MalformedPacket(format: "the value", offset: 1, reason: .invalidField("flags"))) {
            try TankLevel(value: [2, 0])
        }
        #expect(throws: MalformedPacket(format: "the value", offset: 3, reason: .tooShort)) {
            try TankLevel(value: [0, 0, 1, 0])
        }
        #expect(throws: MalformedPacket(format: "boolean", offset: 1, reason: .invalidField("boolean"))) {
            try Bool(value: [2])
        }
    }

    @Test func textIsUTF8AndMayEndInZeros() throws {
        #expect(try String(value: [0x4C, 0xC3, 0xA4]) == "Lä")
        #expect(try String(value: [0x4C, 0x00, 0x00]) == "L")
        #expect(try String(value: [0x4C, 0x00, 0x4D]) == "L\0M")
        #expect(try String(value: []) == "")
        #expect(throws: MalformedPacket(format: "utf8s", offset: 0, reason: .invalidField("UTF-8 text"))) {
            try String(value: [0x4C, 0xC3])
        }
        #expect("Lä".valueBytes == [0x4C, 0xC3, 0xA4])
    }

    @Test func bytesAreThemselves() throws {
        #expect(try [UInt8](value: [1, 2]) == [1, 2])
        #expect([UInt8]([1, 2]).valueBytes == [1, 2])
        #expect(true.valueBytes == [1])
        #expect(try Bool(value: [0]) == false)
    }

    @Test func aListOfNothingEnds() {
        struct Nothing: GATTReadable {
            init(reading reader: inout ByteReader) throws(MalformedPacket) {}
        }
        struct Nothings: GATTReadable {
            init(reading reader: inout ByteReader) throws(MalformedPacket) {
                let all: [Nothing] = try reader.readToEnd()
                if !all.isEmpty { throw reader.invalid("list") }
            }
        }
        #expect(throws: MalformedPacket.self) { try Nothings(value: [1]) }
    }

    @Test func keysCarryServiceAndIndex() {
        let key = CharacteristicKey<UInt8>(0x2A19, in: 0x180F)
        #expect(key.at(1) == CharacteristicKey<UInt8>(0x2A19, in: 0x180F, index: 1))
        #expect(key.at(1) != key)
        #expect(CharacteristicKey.heartRateMeasurement.uuid == 0x2A37)
    }
}
