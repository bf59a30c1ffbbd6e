import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import Testing

/// `--record`: the content of the file, and its state after a failure.
@Suite(.timeLimit(.minutes(3))) struct RecordTests {
    static let sessions: [[String]] = [
        ["explore", "demo:heart-rate"],
        ["read", "demo:long-value", "fff1", "--mtu", "23"],
        ["read", "demo:battery", "0x0099"],
        ["write", "demo:uart", "0x0008", "--hex", "05a0"],
        ["write", "demo:uart", "0x0008", "--text", "hello", "--without-response"],
        ["notify", "demo:heart-rate", "2a37", "--count", "2"],
    ]

    @Test(arguments: sessions) func everyPacketIsInTheFile(_ command: [String]) async throws {
        let folder = try TestFolder()
        let outcome = try await BuiltProgram.run(command + ["--trace", "--record", folder["visit.btsnoop"]])
        let traced = try Dialogue(Self.packets(of: outcome.errors)).steps.map(\.event)
        #expect(traced.count > 1)
        let links = try RecordedLink.links(in: folder["visit.btsnoop"])
        #expect(links.count == 1)
        #expect(links.first?.dialogue.steps.map(\.event).filter(\.isPacket) == traced)
        let attributes = try FileManager.default.attributesOfItem(atPath: folder["visit.btsnoop"])
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    /// A recording that failed before its first packet can be repeated unchanged.
    @Test func anEmptyRecordingIsRemoved() async throws {
        let folder = try TestFolder()
        for _ in 0..<2 {
            let outcome = try await BuiltProgram.run([
                "explore", "unix:\(folder["none"])", "--record", folder["visit.btsnoop"],
            ])
            #expect(outcome.status == 64)
            #expect(!FileManager.default.fileExists(atPath: folder["visit.btsnoop"]))
        }
    }

    @Test func anExistingFileIsLeftAlone() async throws {
        let folder = try TestFolder()
        try "a diary".write(toFile: folder["diary"], atomically: true, encoding: .utf8)
        let outcome = try await BuiltProgram.run(["read", "demo:battery", "2a19", "--record", folder["diary"]])
        #expect(outcome.status == 64)
        #expect(outcome.output.isEmpty, "there is no session without the file")
        #expect(
            outcome.errors
                == "blescan: \(folder["diary"]) already exists, and --record never overwrites\n"
                + "hint: Name another file, or remove this one.\n")
        #expect(try String(contentsOfFile: folder["diary"], encoding: .utf8) == "a diary")
        try FileManager.default.createSymbolicLink(
            atPath: folder["link"], withDestinationPath: folder["elsewhere"])
        #expect(try await BuiltProgram.run(["read", "demo:battery", "2a19", "--record", folder["link"]]).status == 64)
        #expect(!FileManager.default.fileExists(atPath: folder["elsewhere"]))
    }

    @Test func aRecordingThatCannotBeWrittenIsReported() async throws {
        let session = try await Golden.session([
            ["read", "demo:battery", "2a19", "--record", "/nowhere/visit.btsnoop"],
            ["read", "demo:battery", "2a19", "--record", "/dev/full"],
            ["read", "demo:battery", "2a19", "--record", "/dev/full", "--json"],
            ["read", "demo:battery", "2a19", "--record", "/dev/null"],
            ["read", "demo:battery", "2a19", "--record", ""],
            ["read", "demo:battery", "2a19", "--record", "/tmp"],
        ])
        try Golden.expect(session, matches: "record-failures.txt")
    }

    /// A limit of the process simulates a full disk.
    @Test func aFullDiskEndsTheRecordingAlone() async throws {
        let folder = try TestFolder()
        let command = "ulimit -f 1; exec \"$0\" explore demo:heart-rate --record \"$1\""
        let program = try RunningProgram(
            ["-c", command, BuiltProgram.url.path, folder["visit.btsnoop"]], of: URL(filePath: "/bin/bash"))
        let outcome = try await program.outcome()
        #expect(outcome.output.contains("values read"))
        #expect(
            outcome.errors
                == "blescan: the recording \(folder["visit.btsnoop"]) ends here: File too large [errno 27]\n"
                + "hint: What is in it can be read.\n")
        #expect(outcome.status == 74)
        let replayed = try await BuiltProgram.run(["replay", folder["visit.btsnoop"]])
        #expect(replayed.status == 0)
        #expect(replayed.output.contains("Read By Group Type Response"))
    }

    /// The reader of the recording was gone before its first byte.
    @Test func aCommandThatChangesADeviceGoesOnWithoutAReader() async throws {
        let outcome = try await BuiltProgram.run(
            ["write", "demo:uart", "0x0008", "--hex", "05a0", "--record", "-"], output: .closedPipe)
        #expect(outcome.status == 0)
        #expect(
            outcome.errors.hasPrefix(
                "blescan: nobody reads standard output any more: the recording ends here, and the command goes on\n"))
        #expect(outcome.errors.contains("wrote"))
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGKILL]) func whatEndsTheProgramLeavesAFile(_ signal: Int32) async throws {
        let folder = try TestFolder()
        let program = try RunningProgram(["notify", "demo:heart-rate", "2a37", "--record", folder["visit.btsnoop"]])
        try await program.printed("bpm")
        try await waited(for: "the value is in the file") {
            let links = try? RecordedLink.links(in: folder["visit.btsnoop"])
            return links?.first?.dialogue.steps.contains { $0.event.isNotification } ?? false
        }
        program.signal(signal)
        let outcome = try await program.outcome()
        #expect(outcome.status == (signal == SIGKILL ? 128 + SIGKILL : 0))
        let events = try #require(try RecordedLink.links(in: folder["visit.btsnoop"]).first).dialogue.steps.map(\.event)
        #expect(events.contains { $0.isNotification })
        if signal != SIGKILL { #expect(events.contains(.sent([0x12, 0x11, 0x00, 0x00, 0x00]))) }
        #expect(try await BuiltProgram.run(["replay", folder["visit.btsnoop"]]).status == 0)
    }

    /// The lines of standard error that are a dialogue.
    private static func packets(of errors: String) -> String {
        errors.split(separator: "\n").filter { "<>#".contains($0.prefix(1)) }.joined(separator: "\n")
    }
}

/// Wireshark's reading of a recorded session.
@Suite(
    .enabled(if: Referee.available(Referee.tshark, "tshark", for: "RecordedByWiresharkTests")), .timeLimit(.minutes(3)))
struct RecordedByWiresharkTests {
    @Test(arguments: RecordTests.sessions) func tsharkSeesTheSamePacketsAndPairs(_ command: [String]) async throws {
        let folder = try TestFolder()
        let capture = folder["visit.btsnoop"]
        _ = try await BuiltProgram.run(command + ["--record", capture])
        let seen = try await Referee.fields(
            of: capture, "btatt",
            [
                "frame.number", "btatt.opcode", "btatt.handle", "btatt.request_in_frame", "hci_h4.direction",
                "_ws.malformed",
            ])
        let steps = try #require(try RecordedLink.links(in: capture).first).dialogue.steps.filter(\.event.isPacket)
        #expect(seen.count == steps.count)
        var request = 0
        for (columns, step) in zip(seen, steps) {
            let (pdu, isSent) = try #require(step.event.packet)
            #expect(columns[0] == "\(step.line)")
            #expect(columns[1] == "0x" + Hex.encode(pdu.prefix(1)))
            #expect(columns[4] == (isSent ? "0x00" : "0x01"))
            #expect(columns[5].isEmpty, "tshark calls \(Hex.encode(pdu)) malformed")
            let kind = ATTOpcode(rawValue: pdu[0])
            if let handle = Self.handle(of: pdu) { #expect(columns[2].hasPrefix(handle)) }
            if kind.isRequest { request = step.line }
            // tshark has no pair for an error, and none for an unsolicited PDU.
            if kind.isResponse, kind != .errorResponse { #expect(columns[3] == "\(request)") }
        }
    }

    /// The recording of `scan` and of a connect over the radio: the controller's own packets around those of ATT.
    @Test func aRecordingOfARadioReadsInOtherPrograms() async throws {
        let folder = try TestFolder()
        let capture = folder["radio.btsnoop"]
        try await RadioVisit.record(to: capture)
        let seen = try await Referee.fields(
            of: capture, "bluetooth",
            ["hci_h4.type", "bthci_cmd.opcode", "bthci_evt.le_meta_subevent", "btatt.opcode", "_ws.malformed"])
        #expect(seen.allSatisfy { $0[4].isEmpty })
        // LE Set Extended Scan Parameters and Enable, and LE Extended Create Connection.
        for command in ["0x2041", "0x2042", "0x2043"] { #expect(seen.contains { $0[1] == command }) }
        #expect(seen.contains { $0[2] == "0x0d" }, "extended advertising reports")
        #expect(seen.filter { ["0x01", "0x0a"].contains($0[2]) }.count == 1, "one link has come up")
        #expect(seen.map { $0[3] }.filter { !$0.isEmpty }.contains("0x09"))
    }

    /// Returns the handle at the beginning of a packet, if it has one.
    private static func handle(of pdu: [UInt8]) -> String? {
        switch ATTOpcode(rawValue: pdu[0]) {
        case .readRequest, .readBlobRequest, .writeRequest, .writeCommand, .handleValueNotification,
            .handleValueIndication:
            "0x" + Hex.encode([pdu[2], pdu[1]])
        default: nil
        }
    }
}

/// BlueZ's monitor's reading of a recorded session. That of BlueZ 5.66 ends at any Read By Type Request, also in its
/// own files, so these sessions have none.
@Suite(.enabled(if: Referee.available(Referee.btmon, "btmon", for: "RecordedByMonitorTests")), .timeLimit(.minutes(3)))
struct RecordedByMonitorTests {
    @Test func aRecordingHasThePacketsThatBtmonReads() async throws {
        let folder = try TestFolder()
        _ = try await BuiltProgram.run(["write", "demo:uart", "0x0008", "--hex", "05a0", "--record", folder["write"]])
        _ = try await BuiltProgram.run([
            "read", "demo:battery", "0x0008", "--hex-only", "--mtu", "23", "--record", folder["read"],
        ])
        var lines: [String] = []
        for name in ["write", "read"] {
            let outcome = try await Referee.monitored(folder[name])
            #expect(outcome.status == 0)
            lines += outcome.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let told = lines.filter { line in
            ["ATT:", "Handle:", "Data:", "Value:", "Client RX", "Server RX", "Reason:"].contains { line.hasPrefix($0) }
        }
        let event = ["Handle: 65"]
        let end = ["Handle: 65", "Reason: Connection Terminated By Local Host (0x16)"]
        #expect(
            told == event + [
                "ATT: Exchange MTU Request (0x02) len 2", "Client RX MTU: 517",
                "ATT: Exchange MTU Response (0x03) len 2", "Server RX MTU: 517",
                "ATT: Write Request (0x12) len 4", "Handle: 0x0008", "Data: 05a0", "ATT: Write Response (0x13) len 0",
            ] + end + event + [
                "ATT: Read Request (0x0a) len 2", "Handle: 0x0008", "ATT: Read Response (0x0b) len 1", "Value: 40",
            ] + end)
    }
}

/// A scan, a connect and a read on a virtual radio, recorded as `--record` does.
enum RadioVisit {
    static func record(to path: String) async throws {
        let recorder = try Recorder(btsnoop: path)
        var configuration = Configuration()
        recorder.attach(to: &configuration)
        let radio = VirtualRadio()
        await radio.add(.heartRate)
        let device = try await Central(configuration, radio: radio).connect(toFirst: .services(0x180D)).peripheral
        _ = try await device.read(0x2A38)
        await device.disconnect()
        try await recorder.finish()
    }
}

extension Dialogue.Event {
    /// A packet, and whether the client sent it.
    var packet: (bytes: [UInt8], isSent: Bool)? {
        switch self {
        case .sent(let pdu): (pdu, true)
        case .received(let pdu): (pdu, false)
        case .wait, .linkLost: nil
        }
    }

    var isPacket: Bool { packet != nil }

    var isNotification: Bool { packet.map { !$0.isSent && $0.bytes.first == 0x1B } ?? false }
}
