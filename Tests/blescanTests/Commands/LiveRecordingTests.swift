import BLECapture
import Foundation
import Glibc
import Testing

@testable import blescan

/// `--record` to a pipe: what Wireshark reads while a command runs.
@Suite(.timeLimit(.minutes(10))) struct LiveRecordingTests {
    /// The bytes that tcpdump.org's page on the format gives: magic, version 2.4, link type 201.
    private static let header: [UInt8] =
        [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0] + [UInt8](repeating: 0, count: 8) + [0, 0, 4, 0, 201, 0, 0, 0]

    private func packets(_ path: String) async throws -> [String] {
        let outcome = try await BuiltProgram.run(["replay", path, "--only", "att", "--json"])
        return try outcome.objects().compactMap { $0["hex"] as? String }
    }

    @Test func standardOutputHasThePacketsAndStandardErrorTheResults() async throws {
        let folder = try TestFolder()
        let command = "\"$0\" read demo:battery 2a19 --record - > \"$1\""
        let outcome = try await RunningProgram(
            ["-c", command, BuiltProgram.url.path, folder["live.pcap"]], of: URL(filePath: "/bin/bash")
        ).outcome()
        #expect(outcome.status == 0 && outcome.errors == "40  64 %\n", "\(outcome)")
        let bytes = try Data(contentsOf: URL(filePath: folder["live.pcap"]))
        #expect(Array(bytes.prefix(24)) == Self.header)
        let file = try await BuiltProgram.run(
            ["read", "demo:battery", "2a19", "--record", folder["file.btsnoop"]])
        #expect(file.status == 0)
        let live = try await packets(folder["live.pcap"])
        #expect(live.count >= 4)
        #expect(try await packets(folder["file.btsnoop"]) == live, "the same packets as in a file")
    }

    @Test func aFIFOWaitsForItsReader() async throws {
        let folder = try TestFolder()
        let fifo = folder["fifo"]
        _ = unsafe mkfifo(fifo, 0o600)
        let program = try RunningProgram(["read", "demo:battery", "2a19", "--record", fifo])
        let reader = try await RunningProgram(
            ["-c", "cat \"$0\" > \"$1\"", fifo, folder["copy.pcap"]], of: URL(filePath: "/bin/bash")
        ).outcome()
        let outcome = try await program.outcome()
        #expect(reader.status == 0)
        #expect(outcome.status == 0 && outcome.output == "40  64 %\n", "\(outcome)")
        #expect(try await packets(folder["copy.pcap"]).count >= 4)
        #expect(FileManager.default.fileExists(atPath: fifo), "it is not ours to remove")
    }

    /// As for results: the reader has what it needs.
    @Test func aReaderThatGoesEndsTheCommand() async throws {
        let folder = try TestFolder()
        let fifo = folder["fifo"]
        _ = unsafe mkfifo(fifo, 0o600)
        let program = try RunningProgram(
            ["watch", "demo:battery", "2a19", "--every", "10ms", "--record", fifo])
        let reader = try await RunningProgram(
            ["-c", "head -c 24 \"$0\" | wc -c", fifo], of: URL(filePath: "/bin/bash")
        ).outcome()
        #expect(reader.output.contains("24"))
        let outcome = try await program.outcome()
        #expect(outcome.status == 0 && !outcome.errors.contains("recording"), "\(outcome.errors)")
    }

    /// A reader that takes nothing stops neither the command nor ^C.
    @Test func aReaderThatStopsReadingHoldsNothingUp() async throws {
        let folder = try TestFolder()
        let fifo = folder["fifo"]
        _ = unsafe mkfifo(fifo, 0o600)
        let reader = unsafe open(fifo, O_RDWR | O_CLOEXEC)
        defer { close(reader) }
        let outcome = try await BuiltProgram.run(
            ["watch", "demo:long-value", "fff1", "--every", "1ms", "-n", "400", "--record", fifo])
        #expect(outcome.status == 74 && outcome.errors.contains("the reader, is too slow"), "\(outcome.errors)")
        #expect(outcome.output.split(separator: "\n").count == 400)
    }

    @Test(.enabled(if: geteuid() == 0)) func aFIFOOfAnotherUserIsRefused() async throws {
        let folder = try TestFolder()
        _ = unsafe mkfifo(folder["fifo"], 0o666)
        _ = unsafe chown(folder["fifo"], 1, 1)
        let outcome = try await BuiltProgram.run(["read", "demo:battery", "2a19", "--record", folder["fifo"]])
        #expect(outcome.status == 77 && outcome.output.isEmpty, "\(outcome.errors)")
    }

    @Test func aTerminalGetsNoPackets() async throws {
        let terminal = try PseudoTerminal()
        let outcome = try await RunningProgram(
            ["read", "demo:battery", "2a19", "--record", "-"], output: .terminal(terminal)
        ).outcome()
        #expect(outcome.status == 64 && outcome.errors.contains("which is a terminal"))
    }
}
