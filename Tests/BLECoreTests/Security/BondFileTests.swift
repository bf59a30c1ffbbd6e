import TestSupport
import Testing

@testable import BLECore

@Suite struct BondFileTests {
    private let file = BondFile(generation: 9, records: [RecordedBonds.first, RecordedBonds.second])
    private let text = Array(RecordedBonds.file.utf8)

    /// Encloses lines in a file, by zlib's checksum.
    private func enclosed(_ lines: [String], header: String = "BareBLE bonds 1 generation 9") -> [UInt8] {
        let body = ([header] + lines).map { $0 + "\n" }.joined()
        var remainder = UInt32.max
        for byte in body.utf8 {
            remainder ^= UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 0 ? remainder >> 1 : remainder >> 1 ^ 0xEDB8_8320 }
        }
        let digits = String(~remainder, radix: 16)
        return Array((body + "checksum " + String(repeating: "0", count: 8 - digits.count) + digits + "\n").utf8)
    }

    private var line: String { String(RecordedBonds.firstLine.dropLast()) }

    @Test func aFileIsAsLaidOut() throws {
        #expect(String(decoding: file.bytes, as: UTF8.self) == RecordedBonds.file)
        #expect(try BondFile(bytes: text) == file)
        #expect(enclosed([line, String(RecordedBonds.secondLine.dropLast())]) == text)
        #expect(BondFile().bytes == Array("BareBLE bonds 1 generation 0\nchecksum c184c925\n".utf8))
        #expect(try BondFile(bytes: BondFile().bytes) == BondFile())
    }

    @Test func everyTruncationIsNoticed() {
        for count in 0..<text.count {
            #expect(throws: MalformedPacket.self) { try BondFile(bytes: Array(text.prefix(count))) }
        }
        #expect(throws: MalformedPacket.self) { try BondFile(bytes: text + [0x0A]) }
    }

    @Test func everyFlippedBitIsNoticed() {
        for index in text.indices {
            for bit in 0..<8 {
                var flipped = text
                flipped[index] ^= 1 << bit
                #expect(throws: MalformedPacket.self, "byte \(index), bit \(bit)") { try BondFile(bytes: flipped) }
            }
        }
    }

    @Test func anotherVersionIsNotDamage() {
        let newer = Array("BareBLE bonds 2 generation 9\nx\nchecksum 62337766\n".utf8)
        #expect(throws: MalformedPacket.self) { try BondFile(bytes: newer) }
        func isOther(_ bytes: [UInt8]) -> Bool {
            do throws(MalformedPacket) {
                _ = try BondFile(bytes: bytes)
                return false
            } catch {
                return BondFile.isOtherVersion(error)
            }
        }
        #expect(isOther(newer))
        #expect(!isOther(Array(newer.dropLast(2)) + [0x30, 0x0A]))
        for header in [
            "BareBLE cache 1 generation 9", "BareBLE bonds", "BareBLE bonds x generation 9", "BareBLE bonds 1",
            "BareBLE bonds 1 generation", "BareBLE bonds 1 generation x", "BareBLE bonds 1 generation 9 x",
            "BareBLE bonds 01 generation 9", "",
        ] {
            let bytes = enclosed([line], header: header)
            #expect(throws: MalformedPacket.self, "\(header)") { try BondFile(bytes: bytes) }
            #expect(!isOther(bytes))
        }
    }

    /// Each is a line that no version of the library has written, in a file with the right checksum.
    @Test(arguments: [
        "", " ", "x", "C6:55:44:33:22:11/random",
        RecordedBonds.firstLine.replacing("C6:", with: "c6:"),
        RecordedBonds.firstLine.replacing("/random", with: ""),
        RecordedBonds.firstLine.replacing("level=4", with: "level=1"),
        RecordedBonds.firstLine.replacing("level=4", with: "level=04"),
        RecordedBonds.firstLine.replacing("level=4 ", with: ""),
        RecordedBonds.firstLine.replacing("level=4", with: "level=260"),
        RecordedBonds.firstLine.replacing("passkey-typed", with: "guessed"),
        RecordedBonds.firstLine.replacing("io=0", with: "io=5"),
        RecordedBonds.firstLine.replacing("=1790000000", with: "=99999999999999999999"),
        RecordedBonds.firstLine.replacing("=1790000000", with: "=-1"),
        RecordedBonds.firstLine.replacing("=1790000000", with: "="),
        RecordedBonds.firstLine.replacing("state=good", with: "state=bad"),
        RecordedBonds.firstLine.replacing("state=good", with: "state=rejected:"),
        RecordedBonds.firstLine.replacing("generation=7 ", with: ""),
        RecordedBonds.firstLine.replacing("ltk=11", with: "ltk=1"),
        RecordedBonds.firstLine.replacing("ltk=11", with: "ltk=xx"),
        RecordedBonds.firstLine.replacing("ltk=11", with: "ltk=12"),
        RecordedBonds.firstLine.replacing("c6020300", with: "c6020302"),
        RecordedBonds.firstLine.replacing("irk=00", with: "irk=0"),
        RecordedBonds.firstLine.replacing("irk=00", with: "irq=00"),
        RecordedBonds.firstLine.replacing("Front%20door", with: "Front%2"),
        RecordedBonds.firstLine.replacing("Front%20door", with: "Front%ff"),
        RecordedBonds.firstLine.replacing("Front%20door", with: "Front door"),
        RecordedBonds.firstLine.replacing("Front%20door", with: String(repeating: "x", count: 129)),
        RecordedBonds.firstLine.replacing(" name", with: "  name"),
        RecordedBonds.secondLine.replacing(":41", with: ":4294967296"),
        RecordedBonds.secondLine.replacing(":41", with: ""),
        RecordedBonds.secondLine.replacing(":41", with: ":41:1"),
        RecordedBonds.secondLine.replacing("irk=shared", with: "irk=stolen"),
        RecordedBonds.secondLine.replacing("%25", with: "%25 and=more"),
    ]) func aDamagedLineIsSetAsideAlone(_ damaged: String) throws {
        let damaged = damaged.replacing("\n", with: "")
        let third = RecordedBonds.numbered(3)
        let good = BondFile(generation: 9, records: [third])
        let goodLine = String(decoding: good.bytes, as: UTF8.self).split(separator: "\n")[1]
        let read = try BondFile(bytes: enclosed([damaged, String(goodLine)]))
        #expect(read.records == [third])
        #expect(read.generation == 9)
        #expect(read.damagedLines.map(\.number) == [2])
        #expect(read.bytes == good.bytes)
        #expect(read.bytesOfDamaged == enclosed([damaged]))
    }

    /// Cut anywhere, and of any version.
    @Test func aFileThatIsNotUsedShowsWhoseBondsItHas() {
        let (first, second) = (RecordedBonds.first.identity, RecordedBonds.second.identity)
        // Each identity counts from its last letter on.
        let ends = ["/random", "/public"].compactMap { RecordedBonds.file.firstRange(of: $0)?.upperBound }
            .map { RecordedBonds.file.utf8.distance(from: RecordedBonds.file.startIndex, to: $0) }
        #expect(ends.count == 2)
        for count in 0...text.count {
            let known = zip(ends, [first, second]).filter { $0.0 <= count }.map { $0.1 }
            #expect(BondFile.peers(ofUnused: Array(text.prefix(count))) == Set(known), "\(count) bytes")
        }
        let newer = enclosed([line + " colour=red"], header: "BareBLE bonds 2 of another form")
        #expect(BondFile.peers(ofUnused: newer) == [first])
        for line in ["", "nonsense", "c6:55:44:33:22:11/random x", " C6:55:44:33:22:11/random", "C6:55:44:33:22:11 x"] {
            #expect(BondFile.peers(ofUnused: enclosed([line])) == [], "\(line)")
        }
    }

    /// The other lines are as they were, and a file that was intact still is.
    @Test func thePeersLinesAreRemovedFromAFileThatIsNotUsed() {
        let (first, second) = (RecordedBonds.first.identity, RecordedBonds.second.identity)
        let other = String(RecordedBonds.secondLine.dropLast())
        #expect(BondFile.bytes(ofUnused: enclosed([line, other]), without: first) == enclosed([other]))
        #expect(BondFile.bytes(ofUnused: enclosed([line, "nonsense", line]), without: first) == enclosed(["nonsense"]))
        let damaged = Array("x BareBLE\n\(line)\n\(other)\nchecksum 00".utf8)
        #expect(
            BondFile.bytes(ofUnused: damaged, without: first) == Array("x BareBLE\n\(other)\nchecksum 00".utf8))
        #expect(BondFile.bytes(ofUnused: Array("\(line)\n\(other)".utf8), without: first) == Array(other.utf8))
        for bytes in [enclosed([line]), enclosed([line]) + [0x0A], Array(line.utf8)] {
            #expect(BondFile.bytes(ofUnused: bytes, without: first) == [], "no bond is left")
            #expect(BondFile.bytes(ofUnused: bytes, without: second) == nil)
        }
        #expect(BondFile.bytes(ofUnused: [], without: first) == nil)
    }

    @Test func aBondIsThereOnce() throws {
        let read = try BondFile(bytes: enclosed([line, line.replacing("Front", with: "Back")]))
        #expect(read.records == [RecordedBonds.first])
        #expect(read.damagedLines.map { "\($0)" } == ["line 3 (identity)"])
    }

    @Test func valuesOfEachKindReadAsThemselves() throws {
        var records: [BondRecord] = []
        for method in PairingMethod.allCases {
            for key: BondRecord.IdentityKey in [
                .none, .key(RecordedBonds.secret("202122232425262728292a2b2c2d2e2f")), .unusable(.zero),
                .unusable(.published), .unusable(.shared),
            ] {
                for (level, capability): (BondRecord.Level, IOCapability?) in [
                    (.encrypted, nil), (.authenticated, .keyboardDisplay), (.secureConnections, .noInputNoOutput),
                ] {
                    let bond = RecordedBonds.numbered(records.count)
                    records.append(
                        BondRecord(
                            identity: bond.identity, name: ["", "a b\n%\u{7F}ü🔑", nil][records.count % 3],
                            keys: bond.keys, identityKey: key, level: level, method: method,
                            peerCapability: capability, bondedAt: .max, lastEncryptedAt: 0,
                            state: .rejected(since: .max),
                            signing: .init(key: .zero, counter: records.count % 2 == 0 ? nil : .max),
                            peerSigning: records.count % 3 == 0 ? nil : .init(key: .zero, counter: 0),
                            generation: .max, adapterPin: ""))
                }
            }
        }
        let file = BondFile(generation: .max, records: records)
        #expect(try BondFile(bytes: file.bytes) == file)
    }

    @Test func theKeyOfThePeerForSignaturesFollowsOurOwn() throws {
        let key = RecordedBonds.secret("202122232425262728292a2b2c2d2e2f")
        var record = RecordedBonds.numbered(1)
        record.signing = .init(key: key, counter: 64)
        record.peerSigning = .init(key: key, counter: 7)
        let text = String(decoding: BondFile(records: [record]).bytes, as: UTF8.self)
        let digits = "202122232425262728292a2b2c2d2e2f"
        #expect(text.contains(" csrk=\(digits):64 peer-csrk=\(digits):7\n"))
        record.peerSigning?.counter = nil
        #expect(try BondFile(bytes: BondFile(records: [record]).bytes).records == [record])
    }

    @Test func theLargestFileIsRead() throws {
        let text = String(repeating: "\u{1}", count: 500)
        let records = (0..<BondFile.recordLimit).map { number in
            let bond = RecordedBonds.numbered(number)
            let key = RecordedBonds.secret("202122232425262728292a2b2c2d2e2f")
            return BondRecord(
                identity: bond.identity, name: text, keys: bond.keys + bond.keys, identityKey: .key(key),
                level: .secureConnections, method: .numericComparison, peerCapability: .keyboardDisplay,
                bondedAt: .max, lastEncryptedAt: .max, state: .rejected(since: .max),
                signing: .init(key: key, counter: .max), peerSigning: .init(key: key, counter: .max), generation: .max,
                adapterPin: text)
        }
        let file = BondFile(generation: .max, records: records)
        #expect(file.bytes.count <= BondFile.byteLimit)
        #expect(try BondFile(bytes: file.bytes) == file)
        #expect(records[0].name?.utf8.count == BondRecord.nameLimit)
        #expect(records[0].adapterPin?.utf8.count == BondRecord.adapterPinLimit)
        let one = String(decoding: BondFile(records: [RecordedBonds.numbered(1)]).bytes, as: UTF8.self)
        let lines = [String](repeating: String(one.split(separator: "\n")[1]), count: BondFile.recordLimit + 1)
        #expect(throws: MalformedPacket.self) { try BondFile(bytes: enclosed(lines)) }
        let tooLong = enclosed([String(repeating: "x", count: BondFile.byteLimit)])
        #expect(throws: MalformedPacket.self) { try BondFile(bytes: tooLong) }
    }

    @Test func aNameIsCutBetweenCharacters() {
        let bond = RecordedBonds.numbered(1)
        let name = String(repeating: "x", count: 127) + "ü"
        let record = BondRecord(
            identity: bond.identity, name: name, keys: bond.keys, level: .encrypted, method: .justWorks, bondedAt: 0)
        #expect(record.name == String(repeating: "x", count: 127))
        #expect(bond.with(adapterPin: name).isFor(adapter: name))
    }

    /// In hexadecimal digits, in decimal numbers as an array is shown, and as the halves of an integer.
    @Test func noKeyIsShown() throws {
        let damaged = try BondFile(bytes: enclosed([line + " x"]))
        var shown: [String] = []
        for record in file.records {
            shown += ["\(record)", String(reflecting: record), "\(record.keys)", "\(record.identityKey)"]
            shown += ["\(String(describing: record.signing))", "\(BondRules.keyLists(of: [record]))"]
        }
        shown += ["\(file)", "\(damaged)", String(reflecting: damaged), "\(damaged.damagedLines)"]
        for text in shown {
            let text = text.lowercased()
            for key in ["ef8c26", "a4e41d", "d970e7", "000102", "202122", "239, 140", "101, 102, 56", "1683690671"] {
                #expect(!text.contains(key), "\(text)")
            }
        }
        #expect("\(RecordedBonds.first)" == "bond with C6:55:44:33:22:11/random, passkey-typed, level 4, 16 bytes")
    }
}
