import BLELinux
import BareBLETestKit
import Foundation
import Glibc
import TestSupport
import Testing

@testable import blescan

/// The line of progress on a real terminal, with peers that respond slowly.
@Suite struct ProgressTests {
    private static let erase = "\r\u{1B}[K"

    /// Expects no sequence except the one that clears the line, and no line wider than the terminal.
    private func expectTidy(_ text: String, columns: Int = 80) {
        let rest = text.replacingOccurrences(of: Self.erase, with: "\n")
        #expect(!rest.contains("\u{1B}") && !rest.contains("\r"), "\(text.debugDescription)")
        for part in text.components(separatedBy: Self.erase).dropFirst() where !part.contains("\n") {
            #expect(part.count < columns)
        }
    }

    @Test(arguments: [
        (["explore", "PEER"], "exchanging the MTU, "),
        (["explore", "PEER", "--mtu", "23"], "discovering the database, 1 request, at 0x0001, "),
        (["read", "PEER", "0x0003", "--mtu", "23"], "reading 0x0003, "),
        (["write", "PEER", "0x0003", "--u8", "1", "--mtu", "23", "--json"], "writing 0x0003, "),
    ])
    func waitingHasALine(_ command: [String], _ line: String) async throws {
        let peer = try SocketPeer { _ in .silence }
        let terminal = try PseudoTerminal(columns: 132)
        let name = "unix:\(peer.path)"
        let program = try RunningProgram(
            command.map { $0 == "PEER" ? name : $0 } + ["--timeout", "5m", "--color", "never"], errors: terminal)
        try await terminal.shown("\(Self.erase)\(name): \(line)")
        peer.disconnect()
        #expect(try await program.outcome().status == 74)
        // The failure is alone on its line.
        try await terminal.shown(
            Self.erase + (command.contains("--json") ? "{\"v\":1,\"error\"" : "blescan: could not"))
        let text = try await terminal.whole()
        #expect(text.hasSuffix("\n"))
        expectTidy(text, columns: 132)
    }

    /// The overall progress follows the current operation.
    @Test func exploringCountsTheValues() async throws {
        let server = Lock(AttributeServer(.battery))
        let peer = try SocketPeer { packet in
            // This peer does not respond to the second Read Request.
            if packet == [0x0A, 0x05, 0x00] { return .silence }
            return server.withLock { $0.received(packet).first.map { .response($0) } ?? .silence }
        }
        let terminal = try PseudoTerminal(columns: 132)
        let program = try RunningProgram(
            ["explore", "unix:\(peer.path)", "--timeout", "5m", "--color", "never"], errors: terminal)
        try await terminal.shown("reading 0x0005, value 2 of 4, ")
        peer.disconnect()
        let outcome = try await program.outcome()
        #expect(outcome.status == 74)
        #expect(outcome.output.contains("1 value read"))
        expectTidy(try await terminal.whole(), columns: 132)
    }

    @Test func itIsCutToTheTerminal() async throws {
        let peer = try SocketPeer { _ in .silence }
        let terminal = try PseudoTerminal(columns: 12)
        let program = try RunningProgram(["read", "unix:\(peer.path)", "2a19", "--timeout", "5m"], errors: terminal)
        try await terminal.shown(Self.erase + "unix:/tmp/b")
        peer.disconnect()
        _ = try await program.outcome()
        #expect(try await !terminal.whole().contains(Self.erase + "unix:/tmp/bl"))
    }

    /// The results go elsewhere, so the line may stay until they arrive; it is cleared then.
    @Test func listeningShowsThatItWaits() async throws {
        let peer = try await SocketPeer(.battery)
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["notify", "unix:\(peer.path)", "2a19"], errors: terminal)
        try await terminal.shown("subscribed, waiting for values, ")
        program.signal(SIGINT)
        #expect(try await program.outcome().status == 0)
        let text = try await terminal.whole()
        #expect(text.contains(Self.erase + "unsubscribed\n"))
        #expect(!text.contains("waiting for values\n"), "it is in the line, which is cleared")
        expectTidy(text)
    }

    /// The command's time-out is longer than the delay of a line.
    @Test func aDumbTerminalHasNone() async throws {
        let peer = try SocketPeer { _ in .silence }
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(
            ["read", "unix:\(peer.path)", "2a19", "--timeout", "2s"], errors: terminal, environment: ["TERM": "dumb"])
        #expect(try await program.outcome().status == 75)
        let text = try await terminal.whole()
        #expect(text.contains("blescan: could not"))
        #expect(!text.contains("\u{1B}") && !text.contains("agreeing"))
    }

    @Test func aPipeHasNone() async throws {
        let peer = try SocketPeer { _ in .silence }
        let outcome = try await BuiltProgram.run(["read", "unix:\(peer.path)", "2a19", "--timeout", "2s"])
        #expect(outcome.errors.hasPrefix("blescan: could not") && !outcome.errors.contains("\u{1B}"))
    }

    /// A pipe has no size; a file does.
    @Test func filesAreReportedInPerCent() throws {
        let folder = try TestFolder()
        try Data(count: 2000).write(to: URL(filePath: folder["capture"]))
        let descriptor = unsafe open(folder["capture"], O_RDONLY)
        defer { close(descriptor) }
        var progress = FileProgress(descriptor, named: folder["capture"])
        #expect(progress.text == "capture: 0 %")
        progress.advance(by: 860)
        #expect(progress.text == "capture: 43 %")
        progress.advance(by: 1139)
        #expect(progress.text == "capture: 99 %")
        progress.advance(by: 5000)
        #expect(progress.text == "capture: 100 %")
        var unknown = FileProgress(-1, named: "standard input")
        unknown.advance(by: 3_500_000)
        #expect(unknown.text == "standard input: 3 MB")
    }

    /// A pipe without a writer for a while.
    @Test func waitingForAFileHasALine() async throws {
        let folder = try TestFolder()
        #expect(unsafe mkfifo(folder["pipe"], 0o600) == 0)
        let terminal = try PseudoTerminal()
        // Read and write: opening it does not wait, and neither does the program.
        let writer = unsafe open(folder["pipe"], O_RDWR | O_CLOEXEC)
        let program = try RunningProgram(["replay", folder["pipe"]], errors: terminal)
        try await terminal.shown("reading pipe, ")
        let root = RepositoryFiles.root
        let capture = try Data(contentsOf: root.appending(path: "Fixtures/hci/three-devices.btsnoop"))
        #expect(unsafe capture.withUnsafeBytes { unsafe write(writer, $0.baseAddress, $0.count) } == capture.count)
        close(writer)
        #expect(try await program.outcome().status == 0)
        let text = try await terminal.whole()
        #expect(text.hasSuffix(Self.erase))
        expectTidy(text)
    }

    /// A screen that is suspended gives the terminal to the shell: a line there would stay when the screen is back.
    @Test func theWorkOfAScreenHasNone() {
        let isScreenShown = Lock(true)
        let moment = Lock(ContinuousClock().now)
        let written = Lock("")
        let progress = Progress(
            isOn: true, width: { 80 }, isScreenShown: { isScreenShown.withLock(\.self) },
            now: { moment.withLock(\.self) }, write: { text in written.withLock { $0 += text } })
        progress.begin("connecting")
        isScreenShown.withLock { $0 = false }
        moment.withLock { $0 = $0.advanced(by: .seconds(5)) }
        progress.draw()
        progress.end()
        #expect(written.withLock(\.self).isEmpty)
    }
}
