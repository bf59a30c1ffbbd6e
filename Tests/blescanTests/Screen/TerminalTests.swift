import BLECapture
import BLECore
import Foundation
import Glibc
import TestSupport
import Testing

@testable import blescan

/// `blescan replay FILE --screen` on a real terminal: its display, its keys, and the state that it leaves.
@Suite(.enabled(if: TmuxTerminal.available(for: "TerminalTests")), .timeLimit(.minutes(5)))
struct TerminalTests {
    private static let recording = RepositoryFiles.root.appending(path: "Fixtures/hci/three-devices.btsnoop")
        .path
    private static let end = "end of the recording"

    /// Plays the recording to its end, and stores its process number, its status and the terminal's settings in files.
    private func play(_ terminal: TmuxTerminal, _ file: String = recording, _ options: String = "") async throws {
        let script = """
            trap : INT
            ulimit -c 0
            stty -g >"$0/before"
            echo the shell was here
            sh -c 'echo $$ >"$0/process"; exec "$@"' "$0" "$@"
            echo $? >"$0/status"
            stty -g >"$0/after"
            """
        try script.write(toFile: terminal.folder["script"], atomically: true, encoding: .utf8)
        // A shell has programs in the background ignore SIGQUIT, and these tests may be one.
        let program = "env --default-signal=QUIT '\(BuiltProgram.url.path)'"
        let command = "\(program) replay '\(file)' --screen --speed 100 \(options)"
        // The script finds its folder in $0.
        try "cd '\(terminal.folder.path)'; sh -c \"$(cat script)\" '\(terminal.folder.path)' \(command)\n"
            .write(toFile: terminal.folder["start"], atomically: true, encoding: .utf8)
        try await terminal.keys("clear; . '\(terminal.folder["start"])'", "Enter")
    }

    /// Plays the recording to its end, and stops the terminal: something is to be drawn, and cannot be written.
    private func playOnStoppedTerminal(_ terminal: TmuxTerminal) async throws -> (process: pid_t, device: FileHandle) {
        try await play(terminal)
        try await terminal.shows(Self.end)
        let process = try #require(pid_t(try await terminal.line(in: "process")))
        let device = try await terminal.device()
        #expect(tcflow(device.fileDescriptor, TCOOFF) == 0)
        try await terminal.keys("Down")
        return (process, device)
    }

    /// Expects that the program has ended with that status, and that everything is as before.
    private func left(_ terminal: TmuxTerminal, status: String = "0") async throws {
        #expect(try await terminal.line(in: "status") == status)
        let (before, after) = (try await terminal.line(in: "before"), try await terminal.line(in: "after"))
        #expect(before == after)
        let screen = try await terminal.shows("the prompt") { $0.contains("ready>") && $0.contains("blescan: ") }
        let lines = screen.split(separator: "\n").map(String.init)
        let begin = try #require(lines.firstIndex(of: "the shell was here"), "the shell's screen is back")
        #expect(lines[begin + 1].hasPrefix("blescan: 3 devices at the end, 41 advertisements in 2 s, 0 dropped"))
        #expect(lines[begin + 2] == "ready>")
    }

    @Test func keysMoveThroughTheRecording() async throws {
        let terminal = try await TmuxTerminal()
        try await play(terminal)
        try Golden.expect(try await terminal.shows(Self.end), matches: "screen-tmux-table.txt")
        try await terminal.keys("Down", "r")
        try Golden.expect(try await terminal.shows("Heart Rate Belt"), matches: "screen-tmux-structures.txt")
        // An arrow in three pieces, of which the first looks like Escape.
        try await terminal.keys("r", "Down")
        try await terminal.bytes([0x1B, 0x5B])
        try await terminal.bytes([0x42])
        try await terminal.shows("the third row selected") { $0.contains(">  -81") }
        try await terminal.keys("Enter")
        try Golden.expect(try await terminal.shows("ADVERTISEMENT"), matches: "screen-tmux-device.txt")
        try await terminal.keys("Escape")
        try await terminal.keys("/", "kit")
        try Golden.expect(try await terminal.shows("/kit▏  1 of 3"), matches: "screen-tmux-filter.txt")
        try await terminal.keys("Escape")
        try await terminal.shows("all of them") { $0.contains("Virtual HRM") }
        try await terminal.keys("s")
        try await terminal.shows("NAME↓")
        try await terminal.keys("?")
        try await terminal.shows("any other key goes back")
        try await terminal.keys("x")
        try await terminal.shows("NAME↓")
        try await terminal.keys("q")
        try await left(terminal)
    }

    @Test func theRecordingIsSought() async throws {
        let terminal = try await TmuxTerminal()
        let command = "'\(BuiltProgram.url.path)' replay '\(Self.recording)' --screen --speed 0.01"
        try await terminal.keys("clear; \(command)", "Enter")
        // It would take minutes.
        try await terminal.shows("recording ×0.01 at 0:0")
        try await terminal.keys("]")
        try await terminal.shows("end of the recording at 0:02")
        try await terminal.keys("[")
        try await terminal.shows("recording ×0.01 at 0:0")
        try await terminal.keys("q")
        try await terminal.shows("the shell") { $0.contains("ready>") && !$0.contains("at 0:0") }
    }

    @Test func theSizeMayChange() async throws {
        let terminal = try await TmuxTerminal()
        try await play(terminal)
        try await terminal.shows(Self.end)
        try await terminal.resize(columns: 60, rows: 10)
        let narrow = try await terminal.shows("fewer columns") { $0.contains("SEEN") && !$0.contains("EVERY") }
        try Golden.expect(narrow, matches: "screen-tmux-60.txt")
        try await terminal.resize(columns: 20, rows: 3)
        let least = try await terminal.shows("names alone") { $0.contains("Virtual HRM") && !$0.contains("SEEN") }
        try Golden.expect(least, matches: "screen-tmux-20.txt")
        try await terminal.resize(columns: 160, rows: 30)
        try await terminal.shows("EVERY")
        try await terminal.keys("q")
        try await left(terminal)
    }

    @Test func theCLocaleShowsOnlyASCII() async throws {
        let terminal = try await TmuxTerminal(environment: ["LANG": "C.UTF-8", "LC_ALL": "C"])
        try await play(terminal)
        let screen = try await terminal.shows(Self.end)
        #expect(screen.utf8.allSatisfy { $0 < 0x80 })
        try Golden.expect(screen, matches: "screen-tmux-ascii.txt")
        try await terminal.keys("q")
        try await left(terminal)
    }

    @Test(arguments: [("", true), ("NO_COLOR", false), ("--color never", false), ("NO_COLOR --color always", true)])
    func coloursAreWanted(_ wish: String, _ isColoured: Bool) async throws {
        var environment = ["LANG": "C.UTF-8"]
        if wish.hasPrefix("NO_COLOR") { environment["NO_COLOR"] = "1" }
        let terminal = try await TmuxTerminal(environment: environment)
        try await play(terminal, Self.recording, wish.replacing("NO_COLOR", with: ""))
        try await terminal.shows(Self.end)
        let screen = try await terminal.screen(withStyles: true)
        #expect(screen.contains("\u{1B}[3") == isColoured)
        #expect(screen.contains("\u{1B}[1m") == isColoured)
        try await terminal.keys("q")
        try await left(terminal)
    }

    /// tmux has width tables of its own; where they differ from those here, columns are not aligned.
    @Test func namesOfAllKindsLeaveTheColumnsWhereTheyAre() async throws {
        let names = [
            "plain", "\u{1B}[2J\u{1B}[31mred", "\u{1B}]0;owned\u{7}\u{9}\u{D}\u{A}", "日本語の名前", "ｆｕｌｌ", "한국어",
            "👍🏽 ⌚ thumbs",
            "e\u{301}a\u{308}o\u{302}\u{301}\u{300}\u{303}", "\u{202E}drawkcab", "שלום", "नमस्ते", "Küche ☃ ½",
        ]
        let terminal = try await TmuxTerminal()
        let file = terminal.folder["names.btsnoop"]
        let writer = BTSnoopWriter()
        var capture = writer.header
        for (number, name) in names.enumerated() {
            let data = Air.named(name)
            // An LE Advertising Report of one report, Core Vol 4 Part E, 7.7.65.2.
            let report: [UInt8] =
                [
                    0x3E, UInt8(12 + data.count), 0x02, 0x01, 0x00, 0x01, UInt8(number), 0, 0, 0, 0, 0xC0,
                    UInt8(data.count),
                ]
                + data + [UInt8(bitPattern: Int8(-40 - number))]
            let packet = CapturedPacket(
                direction: .received, kind: .event, bytes: report, timestamp: .seconds(1_700_000_000))
            capture += try #require(writer.record(packet))
        }
        try Data(capture).write(to: URL(filePath: file))
        try await play(terminal, file)
        let screen = try await terminal.shows(Self.end)
        try Golden.expect(screen, matches: "screen-tmux-names.txt")
        let rows = screen.split(separator: "\n").dropFirst(2).prefix(names.count)
        let ends = rows.map { row in
            row.range(of: " connectable").map { ScreenText.width(String(row[..<$0.lowerBound])) }
        }
        #expect(Set(ends).count == 1 && ends.count == names.count, "\(ends)")
        try await terminal.keys("q")
        #expect(try await terminal.line(in: "status") == "0")
    }

    @Test func interruptIsAWayOut() async throws {
        let terminal = try await TmuxTerminal()
        try await play(terminal)
        try await terminal.shows(Self.end)
        try await terminal.keys("C-c")
        try await left(terminal)
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func signalsLeaveTheTerminalAsItWas(_ signal: Int32) async throws {
        let terminal = try await TmuxTerminal()
        try await play(terminal)
        try await terminal.shows(Self.end)
        kill(try #require(pid_t(try await terminal.line(in: "process"))), signal)
        try await left(terminal)
    }

    /// No task of the program takes part: SIGQUIT is sent to one that hangs.
    @Test(arguments: [SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU])
    func signalsThatNothingElseHandlesLeaveTheTerminalAsItWas(_ signal: Int32) async throws {
        let terminal = try await TmuxTerminal()
        try await play(terminal)
        try await terminal.shows(Self.end)
        try await terminal.keys("m")
        try await terminal.shows("the mouse selects rows")
        #expect(try await !terminal.isShells())
        kill(try #require(pid_t(try await terminal.line(in: "process"))), signal)
        #expect(try await terminal.line(in: "status") == "\(128 + signal)", "it ends the program as any other")
        let (before, after) = (try await terminal.line(in: "before"), try await terminal.line(in: "after"))
        #expect(before == after)
        let screen = try await terminal.shows("ready>")
        #expect(screen.contains("the shell was here"))
        #expect(try await terminal.isShells())
        #expect(try await !terminal.reportsMouse())
    }

    /// Drawing waits for the terminal then, as a program that hangs waits for something.
    @Test func aQuitWaitsForNothing() async throws {
        let terminal = try await TmuxTerminal()
        let (process, device) = try await playOnStoppedTerminal(terminal)
        defer { tcflow(device.fileDescriptor, TCOON) }
        kill(process, SIGQUIT)
        try await waited(for: "the program ends") { kill(process, 0) != 0 }
        // The shell reports the signal, which waits for the terminal.
        tcflow(device.fileDescriptor, TCOON)
        #expect(try await terminal.line(in: "status") == "131")
        let (before, after) = (try await terminal.line(in: "before"), try await terminal.line(in: "after"))
        #expect(before == after)
    }

    @Test func theShellMayHaveTheTerminalForAWhile() async throws {
        let terminal = try await TmuxTerminal()
        try await terminal.keys("stty -g >'\(terminal.folder["before"])'", "Enter")
        let before = try await terminal.line(in: "before")
        try await terminal.keys(
            "clear; '\(BuiltProgram.url.path)' replay '\(Self.recording)' --screen --speed 100", "Enter")
        try await terminal.shows(Self.end)
        try await terminal.keys("C-z")
        try await terminal.shows("the shell") { $0.contains("Stopped") && !$0.contains(Self.end) }
        try await terminal.keys("stty -g >'\(terminal.folder["between"])'", "Enter")
        #expect(try await terminal.line(in: "between") == before)
        try await terminal.keys("fg", "Enter")
        try await terminal.shows(Self.end)
        try await terminal.keys("q")
        try await terminal.shows("blescan: 3 devices at the end")
    }

    /// Otherwise nothing shows that it waits.
    @Test func aQuestionIsRepeatedAfterTheShell() async throws {
        let terminal = try await TmuxTerminal()
        try await terminal.keys("clear; '\(BuiltProgram.url.path)' pair demo:lock --timeout 5m", "Enter")
        try await terminal.shows("Passkey that demo:lock shows:")
        try await terminal.keys("C-z")
        try await terminal.shows("Stopped")
        try await terminal.keys("clear; fg", "Enter")
        try await terminal.shows("the question again") {
            $0.contains("Passkey that demo:lock shows:") && !$0.contains("Stopped")
        }
        try await terminal.keys("123456", "Enter")
        try await terminal.shows("bonded with demo:lock")
    }

    @Test func theLineOfTalkOutlivesTheShell() async throws {
        let terminal = try await TmuxTerminal()
        try await terminal.keys("clear; '\(BuiltProgram.url.path)' talk demo:uart", "Enter")
        try await terminal.shows("demo:uart>")
        try await terminal.keys("read 2a")
        try await terminal.shows("demo:uart> read 2a")
        try await terminal.keys("C-z")
        try await terminal.shows("Stopped")
        try await terminal.keys("clear; fg", "Enter")
        try await terminal.shows("the line again") { $0.contains("demo:uart> read 2a") && !$0.contains("Stopped") }
        try await terminal.keys("00", "Enter")
        try await terminal.shows("\"Virtual UART\"")
        try await terminal.keys("C-d")
        try await terminal.shows("the shell") { $0.split(separator: "\n").last?.hasPrefix("ready>") == true }
    }

    /// Only while the table is on the terminal, and only if the user wants it.
    @Test func theMouseIsBorrowed() async throws {
        let terminal = try await TmuxTerminal()
        try await terminal.keys(
            "clear; '\(BuiltProgram.url.path)' replay '\(Self.recording)' --screen --speed 100", "Enter")
        try await terminal.shows(Self.end)
        #expect(try await !terminal.reportsMouse())
        try await terminal.keys("m")
        try await terminal.shows("the mouse selects rows")
        #expect(try await terminal.reportsMouse())
        // The first device, twice.
        try await terminal.bytes(Array("\u{1B}[<0;4;3M\u{1B}[<0;4;3m\u{1B}[<0;4;3M".utf8))
        try await terminal.shows("ADVERTISEMENT")
        try await terminal.keys("C-z")
        try await terminal.shows("the shell") { $0.contains("Stopped") && !$0.contains("ADVERTISEMENT") }
        #expect(try await !terminal.reportsMouse())
        try await terminal.keys("fg", "Enter")
        try await terminal.shows("ADVERTISEMENT")
        #expect(try await terminal.reportsMouse())
        try await terminal.keys("q")
        try await terminal.shows("blescan: 3 devices at the end")
        #expect(try await !terminal.reportsMouse())
    }

    /// As with `ssh -t host blescan`: nothing could resume it.
    @Test func withoutAShellItIsNotStopped() async throws {
        let terminal = try await TmuxTerminal()
        try await terminal.keys(
            "exec '\(BuiltProgram.url.path)' replay '\(Self.recording)' --screen --speed 100", "Enter")
        try await terminal.shows(Self.end)
        try await terminal.keys("C-z", "Enter")
        try await terminal.shows("ADVERTISEMENT")
    }

    @Test func aTerminalThatTakesNothingDoesNotBlockTheShell() async throws {
        let terminal = try await TmuxTerminal()
        let (process, device) = try await playOnStoppedTerminal(terminal)
        defer { tcflow(device.fileDescriptor, TCOON) }
        kill(process, SIGTERM)
        try await waited(for: "the keyboard is the shell's again") {
            var settings = termios()
            return unsafe tcgetattr(device.fileDescriptor, &settings) == 0 && settings.c_lflag & tcflag_t(ICANON) != 0
        }
        // Its last output waits for the terminal; the second signal ends that.
        kill(process, SIGTERM)
        let status = try await terminal.line(in: "status")
        #expect(["0", "130", "143"].contains(status))
        #expect(try await terminal.line(in: "before") == (try await terminal.line(in: "after")))
    }

    /// The part before the damage can be viewed without a time limit.
    @Test func theTableOfADamagedRecordingStands() async throws {
        let terminal = try await TmuxTerminal()
        let file = terminal.folder["damaged.btsnoop"]
        var capture = try Data(contentsOf: URL(filePath: Self.recording))
        capture += Data(repeating: 0xA5, count: 500)
        try capture.write(to: URL(filePath: file))
        try await play(terminal, file)
        let screen = try await terminal.shows("end: damaged from here on")
        #expect(screen.contains("3 devices") && screen.contains("Virtual HRM"))
        try await terminal.keys("Down", "Enter")
        try await terminal.shows("ADVERTISEMENT")
        try await terminal.keys("q")
        #expect(try await terminal.line(in: "status") == "65")
        let after = try await terminal.shows("what is wrong") { screen in
            // Where the lines end depends on the length of the folder's path.
            screen.filter { !$0.isWhitespace }.contains("isdamagedafterpacket178hint:Thepartbeforethatwasread.")
        }
        #expect(after.contains("blescan: 3 devices at the end"))
    }

    /// Its writer may be silent for any time, as one that records live.
    @Test func aSilentPipeDoesNotKeepTheUser() async throws {
        let terminal = try await TmuxTerminal()
        let fifo = terminal.folder["fifo"]
        try #require(unsafe mkfifo(fifo, 0o600) == 0)
        // Opened for reading too, it waits for no reader; the pipe has room for all of the recording.
        let writer = FileHandle(fileDescriptor: unsafe open(fifo, O_RDWR | O_CLOEXEC), closeOnDealloc: true)
        try writer.write(contentsOf: Data(contentsOf: URL(filePath: Self.recording)))
        let command = "'\(BuiltProgram.url.path)' replay '\(fifo)' --screen --speed 100"
        try await terminal.keys("clear; \(command); echo status $?", "Enter")
        try await terminal.shows("Virtual HRM")
        try await terminal.keys("q")
        try await terminal.shows("status 0")
        try writer.close()
    }

    @Test func aFailureIsReportedOnTheShellsScreen() async throws {
        let terminal = try await TmuxTerminal()
        let file = terminal.folder["no.dialogue"]
        try "# nothing was recorded\n".write(toFile: file, atomically: true, encoding: .utf8)
        try await terminal.keys("cd '\(terminal.folder.path)'; clear", "Enter")
        try await terminal.keys("'\(BuiltProgram.url.path)' replay no.dialogue --screen; echo status $?", "Enter")
        let screen = try await terminal.shows("status 1")
        #expect(screen.contains("blescan: no.dialogue has no advertisements, and no links"))
    }

    @Test func withoutATerminalThereAreLinesOrNothing() async throws {
        let refused = try await BuiltProgram.run(["replay", Self.recording, "--screen"])
        #expect(refused.status == 64)
        #expect(
            refused.errors.contains(
                "--screen needs a full terminal: standard input is not a terminal; use --as-scan for plain lines")
        )
        let terminal = try await TmuxTerminal(columns: 200, environment: ["LANG": "C.UTF-8"])
        let command = "'\(BuiltProgram.url.path)' replay '\(Self.recording)' --screen"
        try await terminal.keys("TERM=dumb \(command)", "Enter")
        try await terminal.shows("needs a full terminal: TERM is dumb")
        try await terminal.keys("env -u TERM \(command)", "Enter")
        try await terminal.shows("needs a full terminal: TERM is not set")
        try await terminal.keys("\(command) &", "Enter")
        try await terminal.shows("needs a full terminal: this program is in the background")
        try await terminal.keys("clear; \(command) | cat", "Enter")
        try await terminal.shows("needs a full terminal: standard output is not a terminal")
    }

    @Test(arguments: [
        (["--only", "adv"], "--only"), (["--check"], "--check"), (["--as-fixture", "x"], "--as-fixture"),
        (["--json"], "--json"),
    ]) func otherWaysToShowARecordingAreRefused(_ options: [String], _ named: String) async throws {
        let outcome = try await BuiltProgram.run(["replay", Self.recording, "--screen"] + options)
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("leave out \(named)"))
    }

    @Test(arguments: [["--speed", "2"], ["--screen", "--speed", "0"]])
    func optionsOfTheTableNeedIt(_ options: [String]) async throws {
        let outcome = try await BuiltProgram.run(["replay", Self.recording] + options)
        #expect(outcome.status == 64)
    }
}
