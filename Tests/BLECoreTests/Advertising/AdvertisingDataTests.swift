import BLECore
import TestSupport
import Testing

/// The walk over structures.
@Suite struct AdvertisingDataTests {
    private func data(_ hex: String) throws -> AdvertisingData {
        AdvertisingData(try Hex.decode(hex))
    }

    @Test func structuresStayInOrder() throws {
        let data = try data("0201041AFF590000150112233445566778899AABBCCDDEEFF0FFFFFFFFC3")
        #expect(data.structures.map(\.type) == [.flags, .manufacturerSpecificData])
        #expect(data.structures.first?.value == [0x04])
        #expect(data.defects.isEmpty)
    }

    @Test("a zero length octet ends the data", .row("A01", "W25"))
    func zeroLength() throws {
        let early = try data("02010600020A04")
        #expect(early.structures.count == 1)
        #expect(early.defects == [.dataAfterEnd(offset: 3)])
        let padded = try data("0201060000000000")
        #expect(padded.structures.count == 1 && padded.defects.isEmpty)
    }

    @Test("a structure that runs past the end is dropped", .row("A02"))
    func aStructureThatRunsPastTheEndIsDropped() throws {
        let data = try data("0201061EFF4C")
        #expect(data.structures.count == 1)
        #expect(data.defects == [.overrun(offset: 3, missing: 28)])
    }

    @Test("the last byte is a length", .row("A03"))
    func lengthAtTheEnd() throws {
        #expect(try data("020106FF").defects == [.overrun(offset: 3, missing: 255)])
        #expect(try data("FF").structures.isEmpty)
    }

    @Test("825 empty structures", .row("A04"))
    func structuresAreLimitedAndTheRestIsCounted() {
        let data = AdvertisingData((0..<825).flatMap { _ in [0x01, 0x09] as [UInt8] })
        #expect(data.structures.count == 256)
        #expect(data.defects == [.tooManyStructures(omitted: 569)])
    }

    @Test("a list that is no multiple of its element", .row("A07"))
    func partialUUID() throws {
        #expect(try data("04030F18AA").defects == [.partialUUID(offset: 0, extra: 1)])
    }
}
