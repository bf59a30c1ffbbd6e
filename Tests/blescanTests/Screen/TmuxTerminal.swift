import Foundation
import Glibc

/// A real terminal, of a server that nothing else uses: a shell in it, keys, its size, and its display.
final class TmuxTerminal: Sendable {
    private static let tmux = URL(filePath: "/usr/bin/tmux")

    /// Whether tmux is installed; prints which suite is skipped if it is not.
    static func available(for suite: String) -> Bool {
        Referee.available(FileManager.default.isExecutableFile(atPath: tmux.path) ? tmux : nil, "tmux", for: suite)
    }

    /// The folder of its files.
    let folder: TestFolder

    private let server: RunningProgram

    /// Creates a terminal with a shell that waits, with `environment` in addition to its own.
    init(columns: Int = 120, rows: Int = 20, environment: [String: String] = ["LANG": "C.UTF-8"]) async throws {
        folder = try TestFolder()
        // A child of this process and not a daemon, so that it can be ended after any result of the test.
        server = try RunningProgram(["-S", folder["socket"], "-f", "/dev/null", "-D"], of: Self.tmux)
        let variables = environment.merging(RunningProgram.sanitizing) { $1 }.map { "\($0.key)=\($0.value)" }.joined(
            separator: " ")
        // Threads of this process block signals, which the server inherits; an interactive shell starts with none
        // blocked.
        let unblocked = "perl -MPOSIX=:signal_h -e 'sigprocmask(SIG_SETMASK, POSIX::SigSet->new); exec @ARGV'"
        let session = [
            "new-session", "-d", "-x", "\(columns)", "-y", "\(rows)",
            "exec \(unblocked) env -i PATH=/usr/bin:/bin TERM=screen PS1='ready> ' \(variables) /bin/sh -i",
        ]
        while try await run(session).status != 0 { try await Task.sleep(for: .milliseconds(20)) }
        try await shows("ready>")
    }

    deinit {
        server.signal(SIGKILL)
    }

    /// Types text or named keys, such as `Enter` and `Down`.
    func keys(_ keys: String...) async throws {
        _ = try await tmux(["send-keys"] + keys)
    }

    /// Types bytes as they are.
    func bytes(_ bytes: [UInt8]) async throws {
        _ = try await tmux(["send-keys", "-H"] + bytes.map { String($0, radix: 16) })
    }

    /// Sets an option of the terminal.
    func option(_ name: String, _ value: String) async throws {
        _ = try await tmux("set-option", "-s", name, value)
    }

    /// Waits until a program has put a text on the clipboard, and returns it.
    func clipboard() async throws -> String {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(300)
        while true {
            let outcome = try await run(["show-buffer"])
            if outcome.status == 0 { return outcome.output }
            if clock.now > end { throw WaitTimeout(what: "a program has set the clipboard") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Returns whether the programs in it get mouse reports with decimal numbers.
    func reportsMouse() async throws -> Bool {
        try await tmux("display-message", "-p", "#{mouse_standard_flag}#{mouse_sgr_flag}").hasPrefix("11")
    }

    /// Returns whether its display is as a shell has it: the main screen, with a cursor, and long lines are wrapped.
    func isShells() async throws -> Bool {
        try await tmux("display-message", "-p", "#{alternate_on}#{cursor_flag}#{wrap_flag}").hasPrefix("011")
    }

    /// Opens the terminal device of the programs in it.
    func device() async throws -> FileHandle {
        let path = try await tmux("display-message", "-p", "#{pane_tty}").trimmingCharacters(in: .newlines)
        let descriptor = unsafe open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    func resize(columns: Int, rows: Int) async throws {
        _ = try await tmux("resize-window", "-x", "\(columns)", "-y", "\(rows)")
    }

    /// Returns the display, optionally with the sequences for styles; trailing blanks are removed.
    func screen(withStyles: Bool = false) async throws -> String {
        try await tmux(["capture-pane", "-p"] + (withStyles ? ["-e"] : []))
    }

    /// Waits until the screen satisfies a condition, and returns it. A frame arrives in pieces: it is complete when it
    /// no longer changes.
    @discardableResult
    func shows(_ what: String, _ condition: (String) -> Bool) async throws -> String {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(300)
        var former = ""
        while true {
            let screen = try await screen()
            if screen == former, condition(screen) { return screen }
            former = screen
            if clock.now > end { throw WaitTimeout(what: "the terminal shows \(what); it shows:\n\(screen)") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Waits until the screen contains a text.
    @discardableResult
    func shows(_ text: String) async throws -> String {
        try await shows(text) { $0.contains(text) }
    }

    /// Waits until a file in the folder exists, and returns its first line.
    func line(in file: String) async throws -> String {
        var text = ""
        try await waited(for: "\(file) is written") {
            text = (try? String(contentsOfFile: folder[file], encoding: .utf8)) ?? ""
            return text.hasSuffix("\n")
        }
        return String(text.dropLast())
    }

    private func tmux(_ arguments: String...) async throws -> String { try await tmux(arguments) }

    private func tmux(_ arguments: [String]) async throws -> String {
        let outcome = try await run(arguments)
        guard outcome.status == 0 else { throw WaitTimeout(what: "tmux does \(arguments): \(outcome.errors)") }
        return outcome.output
    }

    private func run(_ arguments: [String]) async throws -> Outcome {
        try await RunningProgram(["-N", "-S", folder["socket"]] + arguments, of: Self.tmux).outcome()
    }
}
