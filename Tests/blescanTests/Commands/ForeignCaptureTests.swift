import Foundation
import Testing

/// Captures written by other programs.
@Suite("blescan replay of others' captures", .timeLimit(.minutes(3)))
struct ForeignCaptureTests {
    @Test("What a sniffer has heard, as on the golden page")
    func theGoldenPageShowsWhatASnifferHasHeard() async throws {
        let session = try await Golden.session([
            ["replay", "Fixtures/hci/sniffed-256.pcap"],
            ["replay", "Fixtures/hci/sniffed-256.pcap", "--check"],
            ["replay", "Fixtures/hci/sniffed-251.pcap", "--only", "att"],
        ])
        try Golden.expect(session, matches: "replay-sniffed.txt")
    }

    @Test("The link type of a sniffer does not matter")
    func linkTypes() async throws {
        let pages = try await [256, 272].asyncMap {
            try await BuiltProgram.run(["replay", "Fixtures/hci/sniffed-\($0).pcap"]).output
        }
        #expect(!pages[0].isEmpty && pages[0] == pages[1])
    }
}

/// Wireshark's reading of the same files, and other formats that it converts them to.
@Suite(
    .enabled(if: Referee.available(Referee.tshark, "tshark", for: "ForeignCapturesByWiresharkTests")),
    .timeLimit(.minutes(3)))
struct ForeignCapturesByWiresharkTests {
    @Test("Addresses and ATT packets are those that Wireshark sees in the air", arguments: [256, 272])
    func packetsAreThoseThatWiresharkSees(_ linkType: Int) async throws {
        let capture = "Fixtures/hci/sniffed-\(linkType).pcap"
        let seen = try await Referee.fields(
            of: capture, "btle",
            ["btle.advertising_address", "btatt.opcode", "btatt.handle", "_ws.malformed", "btle.crc.incorrect"])
        #expect(seen.allSatisfy { $0[3].isEmpty && $0[4].isEmpty })
        let page = try await BuiltProgram.run(["replay", capture]).output
        for address in Set(seen.map { $0[0] }) where !address.isEmpty {
            #expect(page.contains(address.uppercased()), "\(address)")
        }
        // One of the responses was sent twice.
        let opcodes = seen.map { $0[1] }.filter { !$0.isEmpty }
        #expect(opcodes == ["0x02", "0x03", "0x03", "0x0a", "0x0b"])
        let told = page.split(separator: "\n").compactMap {
            $0.firstMatch(of: /(Request|Response) \((0x..)\)/)?.output.2
        }
        #expect(told.map(String.init) == ["0x02", "0x03", "0x0a", "0x0b"])
    }

    /// btmon's format becomes link type 254, that of --record 201.
    @Test("The same packets in pcap, pcapng and with nanoseconds", arguments: ["pcap", "nsecpcap", "pcapng"])
    func everyFormatHoldsTheSamePackets(_ format: String) async throws {
        let folder = try TestFolder()
        let own = folder["own.btsnoop"]
        #expect(try await BuiltProgram.run(["explore", "demo:heart-rate", "--record", own]).status == 0)
        for source in ["Fixtures/hci/three-devices.btsnoop", own] {
            let copy = folder["copy"]
            let arguments = ["-r", source, "-F", format, "-w", copy]
            #expect(try await RunningProgram(arguments, of: #require(Referee.tshark)).outcome().status == 0)
            let pages = try await [source, copy].asyncMap { try await BuiltProgram.run(["replay", $0]).output }
            #expect(!pages[0].isEmpty && pages[0] == pages[1], "\(source) as \(format)")
            try FileManager.default.removeItem(atPath: copy)
        }
    }
}

extension Array {
    /// Returns the results in order, one after the other.
    fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async throws -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
