import BLECore
import Testing

@Suite struct GATTQuirkTests {
    private let all: [GATTDatabase.Quirk] = [
        .serviceEndClamped(0x0101), .serviceEndMissing(0x0102), .serviceDropped(0x0103), .serviceHidden(0x0104),
        .serviceListCutShort(0x0105), .characteristicDropped(0x0106), .characteristicOutsideService(0x0107),
        .characteristicListCutShort(0x0108), .includeDropped(0x0109), .includeWithoutUUID(0x010A),
        .declarationUnreadable(0x010B), .informationDropped(0x010C), .informationRefused(0x010D),
    ]

    /// A cache of today is read tomorrow: each kind has a number of its own, which is the last byte of its handle here.
    @Test func eachKindHasItsNumberInACache() throws {
        for quirk in all {
            let cache = GATTCache(database: GATTDatabase(quirks: [quirk]), coverage: .whole(.full))
            let bytes = cache.bytes
            // Number 1, handle 2 and a checksum of 4 end it.
            #expect(bytes.dropLast(4).suffix(3) == [UInt8(quirk.handle & 0xFF), UInt8(quirk.handle & 0xFF), 1])
            #expect(try GATTCache(bytes: bytes) == cache)
        }
    }

    @Test func eachKindHasItsOwnDescriptionWithItsHandle() {
        #expect(Set(all.map { $0.description.prefix { $0 != "(" } }).count == all.count)
        for quirk in all {
            #expect(quirk.description.hasSuffix("(handle 0x0\(String(quirk.handle, radix: 16)))"))
        }
    }

    @Test func failuresAreSentences() {
        let failures: [(GATTFailure, String)] = [
            (.malformed(MalformedPacket("ATT_READ_RSP", at: 1, .tooShort)), "ATT_READ_RSP"),
            (.valueTooLong(partial: [1]), "(1 byte is known)"),
            (.valueTooLong(partial: [1, 2]), "(2 bytes are known)"),
            (.reliableWriteMismatch(0x0012), "0x0012"), (.noCCCD(valueHandle: 0x0013), "0x0013"),
            (.attributeNotFound(0x2A19), "2a19"), (.noProgress(at: 0x0014), "0x0014"),
            (.outOfRange(0x0015), "0x0015"), (.databaseTooLarge(limit: 4_096), "4096"),
            (.quirk(.serviceDropped(0x0016)), "0x0016"),
        ]
        for (failure, text) in failures { #expect(failure.description.contains(text), "\(failure)") }
        #expect(Set(failures.map(\.0.description)).count == failures.count)
    }
}
