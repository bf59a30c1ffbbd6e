import Testing

@testable import blescan

/// Failures, warnings and hints on terminals that are narrower than they are.
@Suite struct MessageWidthTests {
    private static let text =
        "Load the module with `sudo modprobe bluetooth`; in a container use the host's network. "
        + "`blescan doctor` finds out more."

    private func lines(_ text: StyledText, _ columns: Int) -> [String] { text.wrapped(to: columns).map(\.plain) }

    @Test func linesEndBetweenWordsAndCommandsStayWhole() {
        let hint = Console.hint(Self.text)
        #expect(
            lines(hint, 40) == [
                "hint: Load the module with", "  `sudo modprobe bluetooth`; in a",
                "  container use the host's network.",
                "  `blescan doctor` finds out more.",
            ])
        #expect(
            lines(hint, 80) == [
                "hint: Load the module with `sudo modprobe bluetooth`; in a container use the",
                "  host's network. `blescan doctor` finds out more.",
            ])
        #expect(lines(hint, 200) == ["hint: " + Self.text])
        #expect(
            lines(hint, 20).prefix(4) == [
                "hint: Load the", "  module with", "  `sudo modprobe bluetooth`;", "  in a container use",
            ], "the command is wider than the screen")
    }

    /// Devices choose their names.
    @Test func aSingleBacktickBeginsNoCommand() {
        let message = Console.titled("run `blescan pair`: Bob`s lamp has no bond yet", .failure)
        #expect(lines(message, 24) == ["blescan: run", "  `blescan pair`: Bob`s", "  lamp has no bond yet"])
    }

    /// Nor do two of them in a value, which is no sentence.
    @Test func backticksInAValueKeepNoWordsTogether() {
        let value = StyledText("0x0003  one `two three` four")
        #expect(lines(value, 12) == ["0x0003  one", "  `two", "  three`", "  four"])
    }

    /// The terminal breaks what has no blanks, such as a path.
    @Test func nothingIsCut() {
        let path = "/" + String(repeating: "a", count: 90)
        let message = Console.titled("\(path) does not exist", .failure)
        #expect(lines(message, 80) == ["blescan:", "  " + path, "  does not exist"])
        for columns in 1..<100 {
            let joined = lines(Console.hint(Self.text), columns).enumerated().map { number, line in
                number == 0 ? line : String(line.dropFirst(2))
            }
            #expect(joined.joined(separator: " ") == "hint: " + Self.text)
        }
    }

    /// As in the texts of the other screens.
    @Test func aNumberStaysWithItsUnit() {
        let message = Console.titled("it was silent for 1 min 30 s, and is gone", .failure)
        #expect(lines(message, 32) == ["blescan: it was silent for 1 min", "  30 s, and is gone"])
        #expect(lines(message, 31) == ["blescan: it was silent for", "  1 min 30 s, and is gone"])
    }

    @Test func theNameOfTheProgramKeepsItsStyle() {
        let message = Console.titled("could not read 2a6e: it is not there", .failure).wrapped(to: 24)
        let coloured = ScreenLook(isColoured: true, isUnicode: true)
        #expect(
            message.map { $0.painted(coloured) } == [
                "\u{1B}[1;31mblescan:\u{1B}[0m could not read", "  2a6e: it is not there",
            ])
    }

    @Test func aTerminalGetsLinesAndAPipeALine() async throws {
        let command = ["read", "demo:battery", "2a6e", "--color", "never"]
        let terminal = try PseudoTerminal(columns: 40)
        #expect(try await RunningProgram(command, errors: terminal).outcome().status == 1)
        let shown = try await terminal.whole()
        #expect(shown.contains("hint: List what the peer has with\n  `blescan explore`.\n"), "\(shown)")
        let piped = try await BuiltProgram.run(command)
        #expect(piped.errors.hasSuffix("\nhint: List what the peer has with `blescan explore`.\n"))
    }

    /// The hint has 65 columns with `…`, and 67 with `...`.
    @Test func aMessageFitsATerminalWithoutUnicode() async throws {
        let terminal = try PseudoTerminal(columns: 66)
        let program = try RunningProgram(
            ["talk", "demo:uart", "read", "2a00", "--color", "never"], errors: terminal,
            environment: ["LC_ALL": "C"])
        #expect(try await program.outcome().status == 64)
        let shown = try await terminal.whole()
        #expect(
            shown.contains("hint: Put each operation in quotes:\n  `blescan talk ... 'read 2a00'`.\n"), "\(shown)")
    }

    /// Objects are read by programs, also from a terminal.
    @Test func anObjectIsALine() async throws {
        let terminal = try PseudoTerminal(columns: 40)
        #expect(
            try await RunningProgram(["read", "demo:battery", "2a6e", "--json"], errors: terminal).outcome().status == 1
        )
        let shown = try await terminal.whole()
        #expect(shown.split(separator: "\n").count { $0.contains("{\"v\":1,\"error\"") && $0.hasSuffix("}") } == 1)
    }
}
