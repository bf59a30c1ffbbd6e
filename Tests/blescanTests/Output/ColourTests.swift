import BLECore
import Foundation
import TestSupport
import Testing

@testable import blescan

/// The colours of printed lines: those of the live table, which change no character.
@Suite struct ColourTests {
    private static let coloured = ScreenLook(isColoured: true, isUnicode: true)

    private func scanResult(_ payload: String, rssi: Int8?) -> ScanResult {
        var table = DeviceTable()
        let report = AdvertisingReport(
            address: BluetoothAddress(rawValue: 0xA4C1_3856_5384), addressType: .public, properties: [.legacy],
            rssi: rssi, data: AirCapture.bytes(payload))
        let outcome = table.record(report, at: .zero)
        return table[outcome?.place ?? 0]
    }

    /// Returns the text without the sequences that switch styles on and off, and without blanks at the ends of lines.
    private func bare(_ text: String) -> [String] {
        text.replacing(/\u{1B}\[(0|1|2|1;31|3[123])m/, with: "").split(
            separator: "\n", omittingEmptySubsequences: false
        )
        .map { String($0.replacing(/\ +$/, with: "")) }
    }

    /// A name of two letters, and a structure that is cut off.
    @Test func aScanLineHasTheStylesOfTheTable() {
        let line = PlainLine.styled(scanResult("03094f6b1eff4c", rssi: -41), at: "08:00").painted(Self.coloured)
        #expect(
            line == "\u{1B}[2m08:00\u{1B}[0m  \u{1B}[32m -41\u{1B}[0m  A4:C1:38:56:53:84  public    "
                + "\u{1B}[1mOk              \u{1B}[0m  \u{1B}[31mmalformed\u{1B}[0m")
    }

    @Test(
        arguments: [
            (Int8(-41), "\u{1B}[32m -41\u{1B}[0m"), (-60, "\u{1B}[32m -60\u{1B}[0m"), (-61, "\u{1B}[33m -61\u{1B}[0m"),
            (-80, "\u{1B}[33m -80\u{1B}[0m"), (-81, "\u{1B}[31m -81\u{1B}[0m"), (nil, "     ?  A4:"),
        ] as [(Int8?, String)])
    func theStrengthHasItsColour(_ rssi: Int8?, _ text: String) {
        let line = PlainLine.styled(scanResult("020106", rssi: rssi), at: "").painted(Self.coloured)
        #expect(line.contains(text), "\(line.debugDescription)")
    }

    @Test func aSensorsValuesAreGreen() {
        let scanResult = scanResult("12161a1884535638c1a4a00a7412730b47060e", rssi: -41)
        let line = PlainLine.styled(scanResult, at: "").painted(Self.coloured)
        #expect(line.contains(/\u{1B}\[32m[^\u{1B}]*°C[^\u{1B}]*\u{1B}\[0m/), "\(line.debugDescription)")
        // The bytes come after what they mean.
        #expect(line.contains(/°C.*181a=/), "\(line.debugDescription)")
    }

    /// Only the styles are added, in each form of `replay`.
    @Test(arguments: [
        [], ["--as-scan"], ["--only", "att"], ["--only", "adv"], ["--as-scan", "--json"],
        ["--as-scan", "--format", "csv"],
        ["--json"],
    ])
    func aReplayInColourHasTheSameText(_ options: [String]) async throws {
        let plain = try await BuiltProgram.run(["replay", Fixtures.threeDevices] + options)
        let coloured = try await BuiltProgram.run(["replay", Fixtures.threeDevices, "--color", "always"] + options)
        #expect(plain.status == 0 && coloured.status == 0 && !plain.output.contains("\u{1B}"))
        #expect(bare(coloured.output) == bare(plain.output))
        let isForUsers = !options.contains("--json") && !options.contains("csv")
        #expect(coloured.output.contains("\u{1B}[2m") == isForUsers)
    }

    @Test func aRefusalInARecordingIsRed() async throws {
        let outcome = try await BuiltProgram.run(
            ["replay", Fixtures.threeDevices, "--only", "att", "--color", "always"])
        let refusals = outcome.output.split(separator: "\n").filter { $0.contains("Error Response (0x01)") }
        #expect(!refusals.isEmpty && refusals.allSatisfy { $0.contains("\u{1B}[31mError Response (0x01)") })
        #expect(outcome.output.contains("\u{1B}[1mExchange MTU Request (0x02)"))
    }

    @Test func aPayloadIsExplainedInColour() async throws {
        let outcome = try await BuiltProgram.run(["replay", "--hex", "020106", "--color", "always"])
        #expect(outcome.status == 0 && outcome.output.contains("\u{1B}[1m"))
    }

    /// The name clears the screen, and sets the title of the window.
    @Test(arguments: [[], ["--as-scan"]])
    func aNameIsNoSequence(_ options: [String]) async throws {
        let folder = try TestFolder()
        var capture = AirCapture()
        capture.add("0a091b5b324a1b5d303b78", from: "A4:C1:38:00:00:01")
        capture.add("05099b324a07", from: "A4:C1:38:00:00:02")
        try capture.write(to: folder["air.btsnoop"])
        let outcome = try await BuiltProgram.run(["replay", folder["air.btsnoop"], "--color", "always"] + options)
        #expect(outcome.status == 0 && outcome.output.contains("\u{1B}[2m"))
        let scalars = bare(outcome.output).joined().unicodeScalars
        #expect(!scalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }, "\(outcome.output)")
    }

    /// Those of one level have one colour, and nothing else has any.
    @Test func aDiagnosisHasColouredLevels() async throws {
        let machine = try FakeMachine()
        try machine.rfkill("hci0", soft: true, hard: false)
        let plain = try await machine.doctor()
        let coloured = try await machine.doctor(["--color", "always"])
        #expect(!plain.output.contains("\u{1B}") && coloured.status == plain.status)
        #expect(bare(coloured.output) == bare(plain.output))
        for line in coloured.output.split(separator: "\n") {
            let word = bare(String(line)).joined().prefix { $0 != " " }
            let colours = ["ok": "32", "warn": "33", "FAIL": "1;31", "skip": "2"]
            guard let colour = colours[String(word)] else { continue }
            #expect(line.hasPrefix("\u{1B}[\(colour)m\(word)"), "\(line.debugDescription)")
        }
        let last = coloured.output.split(separator: "\n").last
        #expect(last?.hasPrefix("\u{1B}[1;31m") == true, "the summary is that of the worst: \(last ?? "")")
    }

    @Test func operationsAreColoured() async throws {
        let operations = ["read 2a19", "explore"]
        let plain = try await BuiltProgram.run(["talk", "demo:battery"] + operations)
        let coloured = try await BuiltProgram.run(["talk", "demo:battery", "--color", "always"] + operations)
        #expect(!plain.output.contains("\u{1B}"))
        #expect(bare(coloured.output) == bare(plain.output))
        #expect(coloured.output.hasPrefix("40  \u{1B}[32m64 %\u{1B}[0m\n"), "\(coloured.output.debugDescription)")
        #expect(coloured.output.contains("\u{1B}[1mBattery 180f\u{1B}[0m"))
        let written = try await BuiltProgram.run([
            "write", "demo:uart", "nordic-uart-rx", "--text", "hi", "--color", "always",
        ])
        #expect(written.output == "\u{1B}[1mwrote\u{1B}[0m 2 bytes to nordic-uart-rx (0x0008)\n")
    }

    /// The name of the program shows a failure or a warning; a text from the command line has no effect.
    @Test(
        arguments: [
            ([], [:], true), (["--color", "never"], [:], false), (["--color=never"], [:], false),
            ([], ["NO_COLOR": "1"], false),
            ([], ["TERM": "dumb"], false), ([], ["TERM": ""], false), (["--json"], [:], false),
        ] as [([String], [String: String], Bool)])
    func failuresOnATerminalAreRed(_ options: [String], _ environment: [String: String], _ isColoured: Bool)
        async throws
    {
        let terminal = try PseudoTerminal(columns: 200)
        let program = try RunningProgram(
            ["read", "demo:battery", "\u{1B}[2Jtea"] + options, errors: terminal, environment: environment)
        #expect(try await program.outcome().status == 64)
        let text = try await terminal.whole()
        #expect(text.contains("\u{1B}[1;31mblescan:\u{1B}[0m ") == isColoured, "\(text.debugDescription)")
        #expect(text.contains("\u{1B}") == isColoured && !text.contains("\u{1B}[2J"))
    }

    @Test func failuresInAPipeAreRedWhereThatIsWanted() async throws {
        let plain = try await BuiltProgram.run(["scan", "--tea"])
        let coloured = try await BuiltProgram.run(["scan", "--tea", "--color", "always"])
        #expect(plain.errors.hasPrefix("blescan: unknown option --tea\n"))
        #expect(coloured.errors.hasPrefix("\u{1B}[1;31mblescan:\u{1B}[0m unknown option --tea\n"))
        #expect(bare(coloured.errors) == bare(plain.errors))
    }

    @Test(
        arguments: [
            (["scan", "--color", "always"], ColorChoice.always), (["--color=never", "--color", "auto"], .auto),
            (["scan", "--color"], nil), (["talk", "--", "--color", "always"], nil), (["--color", "red"], nil),
            (["write", "x", "--text", "--color=never"], nil),
            (["write", "x", "--text", "--", "--color", "always"], .always), ([], nil),
        ] as [([String], ColorChoice?)])
    func theLastChoiceCounts(_ words: [String], _ choice: ColorChoice?) {
        #expect(ColorChoice(in: words[...]) == choice)
    }

    /// On a terminal they need no option.
    @Test(
        arguments: [
            ([:], [], true), (["NO_COLOR": "1"], [], false), (["TERM": "dumb"], [], false),
            ([:], ["--color", "never"], false), (["NO_COLOR": "1"], ["--color", "always"], true),
        ] as [([String: String], [String], Bool)])
    func aTerminalShowsColours(_ environment: [String: String], _ options: [String], _ isColoured: Bool) async throws {
        for command in [["replay", Fixtures.threeDevices, "--as-scan"], ["talk", "demo:battery", "read 2a19"]] {
            let terminal = try PseudoTerminal(columns: 200)
            let program = try RunningProgram(
                command + options, output: .terminal(terminal), environment: environment)
            #expect(try await program.outcome().status == 0)
            #expect(try await terminal.whole().contains("\u{1B}[32m") == isColoured, "\(command)")
        }
    }
}
