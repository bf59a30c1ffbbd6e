import Testing

@testable import blescan

/// The help screens, which document every command and option for users.
@Suite struct HelpTests {
    private static let commands = [
        "scan", "explore", "browse", "read", "write", "notify", "watch", "talk", "serve", "advertise", "pair", "forget",
        "bonds",
        "replay",
        "decode", "doctor",
        "selftest",
    ]

    @Test func theProgramExplainsItself() async throws {
        let outcome = try await BuiltProgram.run(["--help"])
        #expect(outcome.status == 0)
        try Golden.expect(outcome.output, matches: "help.txt")
    }

    @Test func theVersionHasAShortOption() async throws {
        let (long, short) = (try await BuiltProgram.run(["--version"]), try await BuiltProgram.run(["-V"]))
        #expect(short.status == 0 && !short.output.isEmpty && short.output == long.output)
        #expect(try await BuiltProgram.run(["--help"]).output.contains("`blescan -V`"))
    }

    @Test(arguments: commands) func everyCommandExplainsItself(_ command: String) async throws {
        let outcome = try await BuiltProgram.run([command, "--help"])
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("EXAMPLES"), "examples come first")
        // selftest has a list of its own.
        let page = command == "selftest" ? "EXIT STATUS\n" : "\n\nEXIT STATUS: see `blescan --help`, or blescan(1).\n"
        #expect(outcome.output.contains(page))
        try Golden.expect(outcome.output, matches: "help-\(command).txt")
    }

    /// Examples and numbers are written line by line; a narrow terminal wraps the rest.
    @Test(arguments: [[]] + commands.map { [$0] }) func blocksAreNeverWrapped(_ command: [String]) async throws {
        let usual = try await BuiltProgram.run(command + ["--help"]).output
        let narrow = try await BuiltProgram.run(command + ["--help"], environment: ["COLUMNS": "40"]).output
        let start = try #require(usual.firstRange(of: "EXAMPLES"))
        let end = try #require(usual.firstRange(of: "\n\nUSAGE:"))
        #expect(narrow.contains(usual[start.lowerBound..<end.lowerBound]))
        #expect(narrow.contains("Show help\n                          information."))
    }

    /// Also one without Unicode.
    @Test(arguments: [[]] + commands.map { [$0] }) func helpFitsATerminal(_ command: [String]) async throws {
        let outcome = try await BuiltProgram.run(command + ["--help"])
        for line in outcome.output.split(separator: "\n") {
            #expect(line.count <= 80 && String(line).ascii.count <= 80, "\(line)")
        }
    }
}
