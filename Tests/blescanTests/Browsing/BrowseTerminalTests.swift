import BLECore
import BareBLETestKit
import Foundation
import Glibc
import TestSupport
import Testing

@testable import blescan

/// `blescan browse` on a real terminal: its display, its keys, the end of its link and the state that it leaves.
@Suite(.enabled(if: TmuxTerminal.available(for: "BrowseTerminalTests")), .timeLimit(.minutes(5)))
struct BrowseTerminalTests {
    /// Starts it, and stores its process number, its status and the terminal's settings in files.
    private func browse(_ terminal: TmuxTerminal, _ arguments: String) async throws {
        let script = """
            trap : INT
            stty -g >before
            echo the shell was here
            sh -c 'echo $$ >process; exec "$@"' sh "$@"
            echo $? >status
            stty -g >after
            """
        try script.write(toFile: terminal.folder["script"], atomically: true, encoding: .utf8)
        try "cd '\(terminal.folder.path)'; sh script '\(BuiltProgram.url.path)' \(arguments)\n"
            .write(toFile: terminal.folder["start"], atomically: true, encoding: .utf8)
        try await terminal.keys("clear; . '\(terminal.folder["start"])'", "Enter")
    }

    /// Expects that the program has ended with that status, and that everything is as before.
    private func left(_ terminal: TmuxTerminal, status: String = "0") async throws {
        #expect(try await terminal.line(in: "status") == status)
        let (before, after) = (try await terminal.line(in: "before"), try await terminal.line(in: "after"))
        #expect(before == after)
        try await terminal.shows("the shell") { $0.contains("the shell was here") && $0.contains("ready>") }
    }

    @Test func keysBrowseAVirtualDevice() async throws {
        let terminal = try await TmuxTerminal(columns: 80, rows: 24)
        try await browse(terminal, "browse demo:uart")
        try await terminal.shows("\"Echo\"")
        try Golden.expect(try await terminal.screen(), matches: "browse-tmux.txt")
        try await terminal.keys("End", "Up", "Up")
        try await terminal.shows("notify demo:uart 0x000a")
        try await terminal.keys("s")
        try await terminal.shows("subscribed to 0x000a")
        try await terminal.keys("Up", "w")
        try await terminal.shows("write 0x0008:")
        try await terminal.keys("-l", "--", "--text 'hi there'")
        try await terminal.shows("notify demo:uart 0x000a --after 0x0008=6869207468657265")
        try await terminal.keys("Enter")
        try await terminal.shows("the echo, counted") { $0.contains("\"hi there\"") && $0.contains("×1") }
        try await terminal.keys("Enter")
        try await terminal.shows("it is not readable")
        try await terminal.resize(columns: 40, rows: 12)
        try await terminal.shows("fewer columns") { $0.contains(">") && !$0.contains("Esc disconnect") }
        try await terminal.resize(columns: 120, rows: 30)
        try await terminal.shows("connected  MTU 517")
        try await terminal.keys("q")
        try await left(terminal)
    }

    @Test func theCommandIsOnTheClipboard() async throws {
        let terminal = try await TmuxTerminal(columns: 80, rows: 24)
        try await terminal.option("set-clipboard", "on")
        try await browse(terminal, "browse demo:battery")
        try await terminal.shows("64 %")
        try await terminal.keys("End", "Up", "y")
        try await terminal.shows("copied")
        #expect(try await terminal.clipboard() == "blescan read demo:battery 0x0008")
        try await terminal.keys("Escape")
        try await left(terminal)
    }

    @Test(arguments: ["C-c", "SIGTERM", "SIGHUP"]) func everyEndDisconnects(_ end: String) async throws {
        let peer = try await SocketPeer(.battery)
        let terminal = try await TmuxTerminal(columns: 80, rows: 24)
        try await browse(terminal, "browse unix:\(peer.path)")
        try await terminal.shows("64 %")
        if end == "C-c" {
            try await terminal.keys("C-c")
        } else {
            kill(try #require(pid_t(try await terminal.line(in: "process"))), end == "SIGTERM" ? SIGTERM : SIGHUP)
        }
        try await left(terminal)
    }

    @Test func aLostLinkIsReportedAndTheScreenGoesOn() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let peer = try SocketPeer(link: try await peripheral.connect())
        let terminal = try await TmuxTerminal(columns: 80, rows: 24)
        try await browse(terminal, "browse unix:\(peer.path)")
        try await terminal.shows("64 %")
        await peripheral.disconnect()
        try await terminal.shows("the reason") {
            $0.contains("disconnected") && $0.contains("could not keep the link") && $0.contains("64 %")
        }
        try await terminal.keys("q")
        try await left(terminal)
    }

    @Test func aPeerThatIsNotThereIsReportedAndIsTheStatus() async throws {
        let terminal = try await TmuxTerminal(columns: 80, rows: 24)
        try await browse(terminal, "browse unix:/nowhere/at/all")
        try await terminal.shows("disconnected") { $0.contains("disconnected") && $0.contains("no such socket") }
        try await terminal.keys("q")
        try await left(terminal, status: "64")
    }

    @Test func anAttemptIsCancelled() async throws {
        for (key, status) in [("q", "0"), ("C-c", "130")] {
            // It accepts, and never responds.
            let peer = try SocketPeer { _ in .silence }
            let terminal = try await TmuxTerminal(columns: 80, rows: 24)
            try await browse(terminal, "browse unix:\(peer.path) --timeout 100s")
            try await terminal.shows("connecting")
            try await terminal.keys(key)
            try await left(terminal, status: status)
        }
    }

    @Test func theShellMayHaveTheTerminalForAWhile() async throws {
        let terminal = try await TmuxTerminal(columns: 80, rows: 24)
        try await terminal.keys("clear; '\(BuiltProgram.url.path)' browse demo:heart-rate", "Enter")
        try await terminal.shows("87 %")
        try await terminal.keys("C-z")
        try await terminal.shows("the shell") { $0.contains("Stopped") && !$0.contains("87 %") }
        try await terminal.keys("fg", "Enter")
        try await terminal.shows("connected  MTU 517")
        try await terminal.keys("d")
        try await terminal.shows("the shell") { $0.contains("ready>") && !$0.contains("87 %") }
    }

    @Test func theTableOfARecordingShowsItsLink() async throws {
        let terminal = try await TmuxTerminal(columns: 80, rows: 24)
        let file = terminal.folder["visit.btsnoop"]
        #expect(try await BuiltProgram.run(["explore", "demo:uart", "--record", file]).status == 0)
        try await browse(terminal, "replay \(file) --screen --speed 1000")
        try await terminal.shows("the recorded values") { $0.contains("recorded") && $0.contains("\"Echo\"") }
        try await terminal.keys("r")
        try await terminal.shows("this is a recording")
        try await terminal.keys("q")
        try await terminal.shows("1 link")
        try await terminal.keys("q")
        try await left(terminal)
    }

    @Test func withoutATerminalNothingIsShown() async throws {
        for (arguments, words) in [
            (["browse", "demo:uart"], "browse needs a full terminal: standard input is not a terminal"),
            (["browse", "demo:uart", "--json"], "unknown option --json"),
            (["browse", "demo:uart", "--trace"], "unknown option --trace"),
            (["browse", "demo:uart", "--record", "-"], "needs standard output"),
            (["browse", "demo:lock", "--pair"], "add --passkey DIGITS, or pair first"),
        ] {
            let outcome = try await BuiltProgram.run(arguments)
            #expect(outcome.status == 64 && outcome.errors.contains(words), "\(outcome.errors)")
            #expect(outcome.output.isEmpty)
        }
    }
}

/// `blescan browse` on a terminal that cannot show a screen, and on one that goes away.
@Suite struct BrowseWithoutTerminalTests {
    @Test func aTerminalWithoutRowsIsRefused() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(
            ["browse", "demo:uart"], output: .terminal(terminal), keyboard: terminal, environment: ["TERM": "dumb"])
        let outcome = try await program.outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("browse needs a full terminal: TERM is dumb"), "\(outcome.errors)")
        #expect(terminal.text.isEmpty)
    }

    /// What is subscribed to is unsubscribed from before the link ends. The screen is in front only in a session of its
    /// own.
    @Test func theEndOfTheTerminalDisconnects() async throws {
        let peer = try await SocketPeer(.battery)
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(
            ["setsid", "--ctty", "--wait", BuiltProgram.url.path, "browse", "unix:\(peer.path)"],
            of: URL(filePath: "/usr/bin/env"), output: .terminal(terminal), keyboard: terminal)
        try await terminal.shown("64 %")
        // End, up: the level.
        terminal.type("\u{1B}[F\u{1B}[As")
        try await terminal.shown("subscribed to 0x0008")
        terminal.hangUp()
        #expect(try await program.outcome().status == 0)
        #expect(peer.packets.filter { $0.first == 0x12 } == [[0x12, 9, 0, 1, 0], [0x12, 9, 0, 0, 0]])
    }
}
