import BLECore
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// `replay --check` and `replay --as-fixture`: recorded sessions that are checked, and played again.
@Suite("blescan replay of sessions", .timeLimit(.minutes(3)))
struct ReplaySessionTests {
    private static let fixtures = RepositoryFiles.root.appending(path: "Fixtures")
    private static let recording = fixtures.appending(path: "hci/three-devices.btsnoop").path

    @Test(
        "A session that is recorded, made a fixture and played by a scripted peer gives the same results",
        arguments: RecordTests.sessions)
    func endToEnd(_ command: [String]) async throws {
        let folder = try TestFolder()
        let lived = try await BuiltProgram.run(command + ["--record", folder["visit.btsnoop"]])
        let written = try await BuiltProgram.run(
            ["replay", folder["visit.btsnoop"], "--as-fixture", folder["visit"], "--json"])
        #expect(written.status == 0 && written.errors.isEmpty)
        let about = try #require(try written.objects().first)
        #expect(about["file"] as? String == folder["visit.dialogue"])

        let dialogue = try Dialogue(String(contentsOfFile: folder["visit.dialogue"], encoding: .utf8))
        #expect(dialogue.header("test") == "visit")
        #expect(about["packets"] as? Int == dialogue.steps.count)
        let scripted = ScriptedPeripheral(dialogue)
        let peer = try SocketPeer(link: try await scripted.connect())
        let arguments = command.map { $0.hasPrefix("demo:") ? "unix:\(peer.path)" : $0 }
        let played = try await BuiltProgram.run(arguments)
        let report = await scripted.finish()
        #expect(report.isComplete, "\(report)")
        #expect(played.status == lived.status)
        let names = [(command[1], "PEER"), ("unix:\(peer.path)", "PEER")]
        #expect(Self.bare(played.output, names) == Self.bare(lived.output, names))
        #expect(Self.bare(played.errors, names) == Self.bare(lived.errors, names))

        for file in ["visit.btsnoop", "visit.dialogue"] {
            let checked = try await BuiltProgram.run(["replay", folder[file], "--check"])
            #expect(checked.status == 0 && checked.output.hasSuffix(": no disagreement\n"))
        }
    }

    @Test("Each link of a capture becomes a file of its own, which is replayed packet by packet")
    func severalLinks() async throws {
        let folder = try TestFolder()
        let written = try await BuiltProgram.run(["replay", Self.recording, "--as-fixture", folder["three.dialogue"]])
        #expect(written.status == 0)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        let lines = written.output.split(separator: "\n").map(String.init)
        #expect(lines.count == files.count && lines[0].hasPrefix(folder["three.dialogue"] + "  "))
        var packets = 0
        for file in files {
            let replayed = try await BuiltProgram.run(["replay", folder[file], "--only", "att"])
            packets += replayed.output.split(separator: "\n").filter { $0.hasPrefix("#") }.count
        }
        // Counted by btmon 5.66 while it recorded.
        #expect(packets == 39)
        let again = try await BuiltProgram.run(["replay", Self.recording, "--as-fixture", folder["three"]])
        #expect(again.status == 64)
        #expect(again.errors.contains("already exists, and --as-fixture never overwrites"))
    }

    /// A limit of the process simulates a full disk: no byte can be written, or only a part of the dialogue.
    @Test("A fixture for which there is no room leaves no file, and can be written later", arguments: [0, 1])
    func fullDisk(_ limit: Int) async throws {
        let folder = try TestFolder()
        let command = "ulimit -f \(limit); exec \"$0\" replay \"$1\" --as-fixture \"$2\""
        let program = try RunningProgram(
            ["-c", command, BuiltProgram.url.path, Self.recording, folder["three"]], of: URL(filePath: "/bin/bash"))
        let outcome = try await program.outcome()
        #expect(outcome.status == 74)
        #expect(
            outcome.errors
                == "blescan: cannot write \(folder["three"]).dialogue: File too large\n"
                + "hint: Make room there, or name a file on another disk.\n")
        #expect(outcome.output.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        let again = try await BuiltProgram.run(["replay", Self.recording, "--as-fixture", folder["three"]])
        #expect(again.status == 0)
    }

    @Test("A fixture of a recording that is cut off is written with a warning")
    func cutOff() async throws {
        let folder = try TestFolder()
        try Data(contentsOf: URL(filePath: Self.recording)).dropLast(3).write(to: URL(filePath: folder["cut.btsnoop"]))
        let written = try await BuiltProgram.run(["replay", folder["cut.btsnoop"], "--as-fixture", folder["cut"]])
        #expect(written.status == 0 && written.output.contains("cut.dialogue"))
        #expect(written.errors.hasPrefix("blescan: the last record is cut off; "))
        #expect(written.errors.hasSuffix(" The last link may lack its end.\n"))
    }

    @Test("Requests without a response are no disagreement, but reported")
    func aRequestWithoutAResponseIsReported() async throws {
        let folder = try TestFolder()
        try "< 0a 0300\n> 0b 01\n< 0a 0500\n".write(toFile: folder["mute"], atomically: true, encoding: .utf8)
        let checked = try await BuiltProgram.run(["replay", folder["mute"], "--check"])
        #expect(checked.status == 0)
        #expect(checked.output == "1 link, 3 ATT packets, 2 requests: no disagreement\n")
        #expect(
            checked.errors
                == "blescan: no response came to 1 request, first to that of line 3: the link, or the recording, ends before it.\n"
        )
        let object = try #require(
            try await BuiltProgram.run(["replay", folder["mute"], "--check", "--json"]).objects().first)
        #expect(object["unanswered"] as? Int == 1)
    }

    @Test("The first disagreement is named, and ends it with 76")
    func theFirstDisagreementIsNamed() async throws {
        let folder = try TestFolder()
        let text = "< 0a 0300\n> 0b 01\n> 0b 02\n> 0b 03\n"
        try text.write(toFile: folder["twice"], atomically: true, encoding: .utf8)
        let checked = try await BuiltProgram.run(["replay", folder["twice"], "--check"])
        #expect(checked.status == 76)
        #expect(checked.output.isEmpty)
        #expect(
            checked.errors
                == "blescan: \(folder["twice"]), line 3: > Read Response (0x0b) 1 byte [0b02]. No request is waiting for this response\n"
                + "hint: `blescan replay \(folder["twice"]) --only att` shows it as #3, and what led to it.\n")
        // A comment is no packet, and the shell takes a blank as the end of a name.
        try ("# a comment\n" + text).write(toFile: folder["two words"], atomically: true, encoding: .utf8)
        let commented = try await BuiltProgram.run(["replay", folder["two words"], "--check"])
        #expect(commented.errors.contains("two words, line 4: "), "\(commented.errors)")
        #expect(
            commented.errors.hasSuffix(
                "hint: `blescan replay '\(folder["two words"])' --only att` shows it as #3, and what led to it.\n"))
        let object = try #require(
            try await BuiltProgram.run(["replay", folder["twice"], "--check", "--json"]).objects().first)
        #expect(object["agrees"] as? Bool == false)
        #expect(object["n"] as? Int == 3)
        #expect(object["hex"] as? String == "0b02")
    }

    @Test(
        "A recording of a server is refused: there is no client to check",
        arguments: [
            "role: peripheral\n\n< 02 0502\n> 03 0502\n", "> 0a 0300\n< 0b 01\n",
            "serving: Belt on unix:/tmp/belt; ^C ends it\n# 2026-11-21\n> 12 0400 0100\n< 13\n< 1d 0300 01\n> 1e\n",
        ])
    func aRecordingOfAServerIsRefused(_ text: String) async throws {
        let folder = try TestFolder()
        try text.write(toFile: folder["served"], atomically: true, encoding: .utf8)
        let checked = try await BuiltProgram.run(["replay", folder["served"], "--check"])
        #expect(checked.status == 1)
        #expect(checked.output.isEmpty)
        #expect(
            checked.errors
                == "blescan: \(folder["served"]) was recorded by a server, such as `blescan serve`, "
                + "and --check checks clients\n"
                + "hint: Check a recording of the client; `blescan replay \(folder["served"])` prints this one.\n")
        // Its fixture is that of a server too.
        let fixture = folder["fixture.dialogue"]
        #expect(try await BuiltProgram.run(["replay", folder["served"], "--as-fixture", fixture]).status == 0)
        let again = try await BuiltProgram.run(["replay", fixture, "--check"])
        #expect(again.status == 1 && again.errors.contains("was recorded by a server"), "\(again.errors)")
    }

    @Test("A client that also serves its peer is checked")
    func aClientThatAlsoServesIsChecked() async throws {
        let folder = try TestFolder()
        let text = "> 0a 0300\n< 0b 01\n< 0a 0300\n> 0b 01\n"
        try text.write(toFile: folder["both"], atomically: true, encoding: .utf8)
        let checked = try await BuiltProgram.run(["replay", folder["both"], "--check"])
        #expect(checked.status == 0)
        #expect(checked.output == "1 link, 4 ATT packets, 1 request: no disagreement\n")
    }

    @Test("The content decides what a file is, not its name")
    func theContentDecidesWhatAFileIs() async throws {
        let folder = try TestFolder()
        try FileManager.default.copyItem(atPath: Self.recording, toPath: folder["visit.dialogue"])
        #expect(try await BuiltProgram.run(["replay", folder["visit.dialogue"], "--only", "att"]).status == 0)
        try "< 0a\n".write(toFile: folder["short"], atomically: true, encoding: .utf8)
        #expect(try await BuiltProgram.run(["replay", folder["short"]]).output.hasPrefix("#1 < Read Request (0x0a)"))
        try "".write(toFile: folder["empty"], atomically: true, encoding: .utf8)
        let empty = try await BuiltProgram.run(["replay", folder["empty"]])
        #expect(empty.status == 65 && empty.errors.hasPrefix("blescan: \(folder["empty"]) is empty\nhint: "))
        let piped = try await BuiltProgram.run(["replay", "/dev/stdin"], input: "< 0a 0300\n> 0b 01\n")
        #expect(piped.output.hasSuffix("2 packets, 1 request\n"))
    }

    @Test func aCheckOfARecordingPrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["replay", "Fixtures/hci/three-devices.btsnoop", "--check"].map(Self.absolute),
            ["replay", "Fixtures/hci/three-devices.btsnoop", "--check", "--json"].map(Self.absolute),
            ["replay", "Fixtures/att/heart-rate-explored.dialogue", "--check"].map(Self.absolute),
            ["replay", "Fixtures/att/defects/empty-lists.dialogue", "--check"].map(Self.absolute),
            ["replay", "Fixtures/att/defects/empty-lists.dialogue", "--check", "--json"].map(Self.absolute),
            ["replay", "Fixtures/hci/three-devices.btsnoop", "--only", "l2cap"].map(Self.absolute),
            ["replay", "Fixtures/README.md", "--check"].map(Self.absolute),
            ["replay", "Fixtures/README.md", "--as-fixture", "/nowhere/visit"].map(Self.absolute),
            ["replay", "Fixtures/att/heart-rate-explored.dialogue", "--as-fixture", "/nowhere/visit"].map(
                Self.absolute),
        ])
        try Golden.expect(
            session.replacing(Self.fixtures.path, with: "Fixtures"), matches: "replay-sessions.txt")
    }

    private static func absolute(_ argument: String) -> String {
        argument.hasPrefix("Fixtures/") ? fixtures.path + argument.dropFirst("Fixtures".count) : argument
    }

    /// Returns the output of a command, without the parts that differ from run to run.
    private static func bare(_ text: String, _ names: [(String, String)]) -> String {
        var text = Golden.masked(text)
        for (name, mask) in names { text = text.replacing(name, with: mask) }
        return text
    }

    @Test(arguments: [["--check"], ["--as-fixture", "/nowhere/visit"]])
    func aRecordingWithoutLinksNamesWhatPrintsIt(_ mode: [String]) async throws {
        let path = Self.fixtures.appending(path: "hci/sniffed-251.pcap").path
        let outcome = try await BuiltProgram.run(["replay", path] + mode)
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasSuffix("hint: `blescan replay \(path)` prints what it has.\n"), "\(outcome.errors)")
    }
}
