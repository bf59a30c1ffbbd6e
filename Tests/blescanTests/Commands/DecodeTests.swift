import Foundation
import Testing

@testable import blescan

/// Input that `blescan decode` cannot decode, and its messages.
@Suite struct DecodeTests {
    private static let good = "02010603030d18060950756c7365"

    @Test(arguments: [
        ([good, "nonsense", good], "1 line of 3 could not be decoded"),
        (["0g", good, "043e0101"], "2 lines of 3 could not be decoded"),
        (["043e"], "1 line of 1 could not be decoded"),
    ])
    func badLinesAreCounted(_ lines: [String], _ message: String) async throws {
        let text = lines.joined(separator: "\n") + "\n"
        let outcome = try await BuiltProgram.run(["decode"], input: text)
        #expect(outcome.status == 65)
        #expect(outcome.errors == "blescan: \(message)\nhint: The output states the reason.\n")
        #expect(outcome.output.contains("Flags") == lines.contains(Self.good), "what is good is shown")
        let objects = try await BuiltProgram.run(["decode", "--json"], input: text)
        #expect(objects.status == 65)
        #expect(try objects.objects().count == lines.count)
        #expect(
            objects.errors
                == #"{"v":1,"error":"\#(message)","hint":"The output states the reason.","code":"badData","status":65}"#
                + "\n")
    }

    /// Lines are counted as editors count them.
    @Test func badLinesAreNamed() async throws {
        let text = "# a comment\n\n\(Self.good)\n0g\n043e0101\n"
        let outcome = try await BuiltProgram.run(["decode"], input: text)
        #expect(outcome.output.contains("!    line 4: not hexadecimal: 'g' is not a hex digit\n"))
        #expect(outcome.output.contains("!    line 5: "))
        let objects = try await BuiltProgram.run(["decode", "--json"], input: text)
        #expect(try objects.objects().map { $0["line"] as? Int } == [3, 4, 5])
        #expect(try objects.objects().map { $0["code"] as? String } == [nil, "badData", "badData"])
        let printed = objects.output.split(separator: "\n")
        #expect(printed.allSatisfy { $0.contains(/,"line":\d}$/) }, "the newest key is last")
        #expect(try await !BuiltProgram.run(["decode", "--json", "--hex", Self.good]).output.contains("\"line\""))
    }

    /// So are tables; a single payload needs no number.
    @Test func tablesAreNumbered() async throws {
        let event = "043e0c0201000001020304050600c0"
        let table = """
             LEN  TYPE                      VALUE
               2  01 Flags                  06  general discoverable, BR/EDR not supported

            """
        let several = try await BuiltProgram.run(["decode"], input: "020106\n# a comment\n020106\n\n\(event)\n0g\n")
        #expect(
            several.output.hasPrefix("line 1\n\(table)\nline 3\n\(table)\nline 5\n06:05:04:03:02:01 public"))
        #expect(several.output.hasSuffix("\n\n !    line 6: not hexadecimal: 'g' is not a hex digit\n"))
        let folder = try TestFolder()
        try "# a comment\n020106\n\n".write(toFile: folder["one"], atomically: true, encoding: .utf8)
        #expect(try await BuiltProgram.run(["decode", folder["one"]]).output == table)
        try "0g\n".write(toFile: folder["none"], atomically: true, encoding: .utf8)
        let none = try await BuiltProgram.run(["decode", folder["none"]])
        #expect(none.output == " !    line 1: not hexadecimal: 'g' is not a hex digit\n")
        #expect(try await BuiltProgram.run(["decode", "--hex", "020106"]).output == table)
    }

    /// As in the live table; what is no terminal gets each row as one line.
    @Test func rowsGoOnBelowTheirValuesOnATerminal() async throws {
        let terminal = try PseudoTerminal(columns: 60)
        let command = ["decode", "--hex", "020106", "--color", "never"]
        #expect(try await BuiltProgram.run(command, output: .terminal(terminal)).status == 0)
        let shown = try await terminal.whole()
        #expect(
            shown == """
                 LEN  TYPE                      VALUE
                   2  01 Flags                  06  general discoverable,
                                                BR/EDR not supported

                """)
        #expect(try await BuiltProgram.run(command).output.contains("06  general discoverable, BR/EDR not supported\n"))
    }

    /// The line about a sender, rows of bytes and decoded data, a defect, and a name of wide characters. No text and no
    /// style is lost; below four columns a wide character does not fit.
    @Test(arguments: 1...80) func tablesFitTheTerminalInColourToo(_ columns: Int) {
        let data = "020106" + "12161a1884535638c1a4a00a7412730b47060e" + "1eff4c000215b940"
        let hex = "043e2a020103010102030405061e" + data + "c0"
        let tables = [hex, "0a09e4bd93e6b8a9e8a888"].map { AdvertisementTable.text(of: DecodedInput(line: $0)) }
        let table = tables.joined(separator: "\n")
        let plain = AdvertisementTable.painted(table, .plain, in: columns)
        #expect(plain.filter { !$0.isWhitespace } == table.filter { !$0.isWhitespace })
        if columns >= 4 {
            #expect(plain.split(separator: "\n").allSatisfy { ScreenText.width(String($0)) <= columns }, "\(plain)")
        }
        let look = ScreenLook(isColoured: true, isUnicode: true)
        let coloured = AdvertisementTable.painted(table, look, in: columns)
        #expect(coloured.replacing(/\u{1B}\[[0-9;]*m/, with: "") == plain)
        let characters = Self.styledCharacters(of: coloured)
        #expect(characters == Self.styledCharacters(of: AdvertisementTable.painted(table, look, in: nil)))
        #expect(Set(["[1mV", "[2m8", "[31m!", "[32m体"]).isSubset(of: characters), "\(characters)")
    }

    /// Returns the characters but for blanks, each after the sequence of its style.
    private static func styledCharacters(of text: String) -> [String] {
        var (characters, style) = ([String](), "")
        for (number, part) in text.split(separator: "\u{1B}", omittingEmptySubsequences: false).enumerated() {
            var shown = part
            // What is before the first sequence has no style.
            if number > 0, let end = part.firstIndex(of: "m") {
                style = part[...end] == "[0m" ? "" : String(part[...end])
                shown = part[part.index(after: end)...]
            }
            characters += shown.filter { !$0.isWhitespace }.map { style + String($0) }
        }
        return characters
    }

    /// Its beginning would be other data.
    @Test func aLineThatIsTooLongIsNotCut() async throws {
        let long = String(repeating: "00", count: 40_000)
        let text = "\(Self.good)\n\(long)\n\(Self.good)\n"
        let outcome = try await BuiltProgram.run(["decode"], input: text)
        #expect(outcome.status == 65)
        #expect(outcome.errors == "blescan: 1 line of 3 could not be decoded\nhint: The output states the reason.\n")
        #expect(outcome.output.contains("\n !    line 2: too long: more than 65536 bytes\n"))
        let objects = try await BuiltProgram.run(["decode", "--json"], input: text)
        #expect(objects.status == 65)
        #expect(
            objects.output.contains(
                #"{"v":1,"structures":[],"error":"too long: more than 65536 bytes","code":"badData","line":2}"# + "\n"))
        #expect(try objects.objects().count == 3)
        let alone = try await BuiltProgram.run(["decode"], input: long)
        #expect(alone.status == 65 && alone.errors.contains("1 line of 1 could not be decoded"))
    }

    /// What is typed may be the only line, but is not held back until the next one.
    @Test func aTypedLineIsAnsweredAtOnce() async throws {
        let terminal = try PseudoTerminal(columns: 80)
        let program = try RunningProgram(["decode"], errors: terminal, keyboard: terminal)
        terminal.type("020106\n")
        try await program.printed("line 1\n LEN ")
        terminal.type("\u{04}")
        #expect(try await program.outcome().status == 0)
    }

    /// A UUID is written as everywhere else, and can be searched for.
    @Test(arguments: [
        ("0516d2fc4000", "16 Service data 16-bit    fcd2  "), ("0416aafe20", "16 Service data 16-bit    feaa  "),
        ("06200000cdab01", "20 Service data 32-bit    abcd0000-0000-1000-8000-00805f9b34fb\n"),
        ("12219ecadc240ee5a9e093f3a3b50100406e01", "6e400001-b5a3-f393-e0a9-e50e24dcca9e  Nordic UART\n"),
    ])
    func serviceDataNameTheirService(_ hex: String, _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["decode", "--hex", hex])
        #expect(outcome.status == 0 && outcome.output.contains(words), "\(outcome.output)")
    }

    @Test func inputWithoutHexadecimalTextIsRefused() async throws {
        let outcome = try await BuiltProgram.run(["decode"], input: "btsnoop\nnonsense\n")
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("no line of standard input is hexadecimal"))
    }

    /// A line of it may be longer than a line of text may be, and another one hexadecimal by chance.
    @Test(
        arguments: [
            Array("btsnoop\0".utf8), [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0], [0x0A, 0x0D, 0x0D, 0x0A, 0x1C, 0, 0, 0],
        ] as [[UInt8]])
    func aCaptureIsForAnotherCommandWhateverItsLines(_ beginning: [UInt8]) async throws {
        let folder = try TestFolder()
        let bytes = beginning + [UInt8](repeating: 0x41, count: 70_000) + Array("\n020106\n".utf8)
        try Data(bytes).write(to: URL(filePath: folder["air"]))
        let outcome = try await BuiltProgram.run(["decode", folder["air"]])
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("\(folder["air"]) is a capture, not text"))
        #expect(outcome.errors.contains("for a capture use `blescan replay`"))
    }

    @Test func anEventWithoutReports() async throws {
        let outcome = try await BuiltProgram.run(["decode", "--hex", "043e0101"])
        #expect(outcome.status == 65)
        #expect(outcome.output.contains("carries no advertising reports"))
    }

    /// Truncated data occurs on the air; the command must explain it.
    @Test(arguments: [
        ("0201", "1 byte is missing"), ("0509", "4 bytes are missing"), ("04030d180f", "ends with a stray byte"),
        ("043e0d020100000102030405060000ff", "1 byte follows the last report"),
    ])
    func oneByteIsNotOneBytes(_ hex: String, _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["decode", "--hex", hex])
        #expect(outcome.output.contains(words), "\(outcome.output)")
        #expect(outcome.status == 0)
    }

    /// A filter may get nothing, but a user who has forgotten the input should see that.
    @Test(arguments: ["", "# a comment\n\n"]) func nothingIsReportedAndNoFailure(_ input: String) async throws {
        let outcome = try await BuiltProgram.run(["decode"], input: input)
        #expect(outcome.status == 0 && outcome.output.isEmpty)
        #expect(
            outcome.errors
                == "blescan: standard input has nothing to decode\n"
                + "hint: Give the bytes with --hex, or a file with one payload in each line.\n")
    }
}
