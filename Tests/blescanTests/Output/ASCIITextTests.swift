import Testing

@testable import blescan

/// Screens of terminals that show ASCII only.
@Suite struct ASCIITextTests {
    @Test func signsAreSpelledOtherwise() {
        #expect(
            "temperature 25.00 °C, 5 µg/m³ … → 90° ← ± 1 × 2 · ü\u{10FFFF}".ascii
                == "temperature 25.00 deg C, 5 ug/m3 ... -> 90deg  <- +/- 1 x 2 | ??")
        #expect("plain\n".ascii == "plain\n")
    }

    @Test(arguments: [("LC_ALL", "C"), ("LC_CTYPE", "POSIX"), ("LANG", "de_DE.ISO-8859-1")])
    func aTerminalWithoutUnicodeGetsNone(_ variable: String, _ locale: String) async throws {
        let terminal = try PseudoTerminal(columns: 132)
        let program = try RunningProgram(
            ["explore", "demo:long-value"], output: .terminal(terminal), environment: [variable: locale])
        #expect(try await program.outcome().status == 0)
        let text = try await terminal.whole()
        #expect(text.contains("values read") && text.contains("... (512 bytes)"))
        #expect(text.utf8.allSatisfy { $0 < 0x80 })
    }

    /// The output for other programs does not depend on the locale.
    @Test func pipesHaveUnicode() async throws {
        let outcome = try await BuiltProgram.run(["explore", "demo:long-value"], environment: ["LC_ALL": "C"])
        #expect(outcome.output.contains("… (512 bytes)"))
    }
}
