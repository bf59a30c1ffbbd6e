import BLECore
import BLELinux
import BareBLETestKit
import Foundation
import Testing

@testable import blescan

/// The forms of `read`, `notify` and `watch`: bytes alone, CSV, colours, plots.
@Suite(.timeLimit(.minutes(10))) struct ValueLineTests {
    private static let heart = ["notify", "demo:heart-rate", "2a37", "-n", "2"]

    @Test func hexOnlyPrintsNothingButBytes() async throws {
        let outcome = try await BuiltProgram.run(Self.heart + ["--hex-only"])
        #expect(outcome.status == 0)
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.count == 2 && lines.allSatisfy { $0.allSatisfy(\.isHexDigit) }, "\(outcome.output)")
    }

    /// A file has the bytes and nothing else, not even a newline.
    @Test func rawIsTheValueItself() async throws {
        let folder = try TestFolder()
        let file = folder["value"]
        try Data().write(to: URL(filePath: file))
        let outcome = try await BuiltProgram.run(
            ["read", "demo:long-value", "fff1", "--raw"], output: .file(file))
        #expect(outcome.status == 0 && outcome.errors.isEmpty)
        let bytes = try Data(contentsOf: URL(filePath: file))
        #expect(bytes == Data((0..<512).map { UInt8(truncatingIfNeeded: $0) }))
        let failure = try await BuiltProgram.run(["read", "demo:battery", "2a6e", "--raw"])
        #expect(failure.status == 1 && failure.output.isEmpty)
    }

    @Test(arguments: [
        ["2a19", "--json"], ["2a19", "--hex-only"], ["2a19", "--format", "csv"], ["2a19", "2a00"], ["battery"],
        ["2a19", "--record", "-"],
    ])
    func rawIsForOneValueAlone(_ arguments: [String]) async throws {
        let outcome = try await BuiltProgram.run(["read", "demo:battery", "--raw"] + arguments)
        #expect(outcome.status == 64 && outcome.output.isEmpty)
    }

    /// What a device has sent could control it.
    @Test func rawIsNotForATerminal() async throws {
        let terminal = try PseudoTerminal()
        let outcome = try await BuiltProgram.run(
            ["read", "demo:battery", "2a19", "--raw"], output: .terminal(terminal))
        #expect(outcome.status == 64 && outcome.errors.contains("which is a terminal"))
        #expect(terminal.text.isEmpty)
    }

    @Test func aTableHasOneLineForEachValue() async throws {
        let header = "t,peer,handle,uuid,name,event,hex,value"
        let read = try await BuiltProgram.run(
            ["read", "demo:heart-rate", "2a19", "2a00", "2a38", "2a01", "--format", "csv"])
        let lines = read.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 5 && lines[0] == header)
        #expect(lines[1].hasSuffix(",2a19,Battery Level,read,57,87"), "a number alone, as in objects")
        #expect(lines[2].hasSuffix(",Virtual HRM"), "a text without quotes")
        #expect(lines[3].hasSuffix(",2a38,Body Sensor Location,read,01,chest"), "a code in words")
        #expect(lines[4].hasSuffix(",2a01,Appearance,read,4103,Heart Rate Belt"))
        #expect(lines[1].contains("Z,demo:heart-rate,24,") || lines[1].contains(",demo:heart-rate,24,"))
        let notify = try await BuiltProgram.run(Self.heart + ["--format", "csv"])
        let values = notify.output.split(separator: "\n")
        #expect(values.count == 3 && values[0] == header)
        #expect(values[1].contains(",Heart Rate Measurement,notification,"))
        // The meaning has commas.
        #expect(values[1].hasSuffix("\"") && values[1].contains(",\"heart rate "))
        let watch = try await BuiltProgram.run(
            ["watch", "demo:battery", "2a19", "--every", "10ms", "-n", "2", "--format", "csv"])
        #expect(watch.output.split(separator: "\n").count == 3)
    }

    /// A spreadsheet skips an empty cell in a column of numbers.
    @Test func anUnknownValueIsAnEmptyCell() async throws {
        let device = VirtualDevice(
            name: "Probe",
            services: [VirtualService(0x181A, [VirtualCharacteristic(0x2A6E, .read, value: [0x00, 0x80])])])
        let peer = try await SocketPeer(device)
        let outcome = try await BuiltProgram.run(["read", "unix:\(peer.path)", "2a6e", "--format", "csv"])
        #expect(outcome.output.hasSuffix(",2a6e,Temperature,read,0080,\n"), "\(outcome.output)")
    }

    /// Vendors use the UUIDs of companies for characteristics of their own.
    @Test func noValueHasTheNameOfACompany() async throws {
        for command in [
            ["read", "demo:long-value", "fff1", "0x0007"], ["write", "demo:long-value", "fff1", "--hex", "00"],
            ["talk", "demo:long-value", "read fff1", "write fff1 00"],
        ] {
            let named = try await BuiltProgram.run(command + ["--json"]).objects().filter { $0["handle"] as? Int == 8 }
            #expect(!named.isEmpty && named.allSatisfy { $0["name"] == nil }, "\(command)")
        }
        let table = try await BuiltProgram.run(["read", "demo:long-value", "fff1", "--format", "csv"])
        #expect(table.output.contains(",8,fff1,,read,000102"), "\(table.output)")
        let others = try await BuiltProgram.run(["read", "demo:heart-rate", "0x0001", "2a19", "--json"])
        #expect(try others.objects().map { $0["name"] as? String } == ["Primary Service", "Battery Level"])
    }

    /// A device's text is no formula.
    @Test func noValueIsAFormula() async throws {
        let device = VirtualDevice(
            name: "=cmd|'/C calc'!A0",
            services: [
                VirtualService(0x1800, [VirtualCharacteristic(0x2A00, .read, value: Array("=1+1".utf8))]),
                VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: Array("@SUM(A1),\"x".utf8))]),
            ])
        let peer = try await SocketPeer(device)
        let outcome = try await BuiltProgram.run(["read", "unix:\(peer.path)", "fff1", "--format", "csv"])
        let cells = outcome.output.split(separator: "\n").last.map(String.init) ?? ""
        #expect(cells.hasSuffix(#","'@SUM(A1),""x""#), "\(cells)")
        for line in outcome.output.split(separator: "\n") {
            #expect(!line.contains(",=") && !line.contains(",@") && !line.contains(",+"))
        }
    }

    @Test(arguments: [
        ["read", "demo:battery", "2a19"], ["notify", "demo:heart-rate", "2a37", "-n", "1"],
        ["watch", "demo:battery", "2a19", "-n", "1"],
        ["decode", "--hex", "02010603030d18060950756c7365"],
    ])
    func coloursAreAskedFor(_ command: [String]) async throws {
        let plain = try await BuiltProgram.run(command)
        #expect(!plain.output.contains("\u{1B}"))
        let coloured = try await BuiltProgram.run(command + ["--color", "always"])
        #expect(coloured.output.contains("\u{1B}[32m"), "\(coloured.output)")
        let never = try await BuiltProgram.run(command + ["--color", "never"])
        #expect(!never.output.contains("\u{1B}"))
    }

    /// Those of other outputs are one line each, and so are the bytes of a value wherever they are copied from.
    @Test func linesEndBetweenWordsOnATerminal() {
        func lines(_ value: [UInt8], _ form: OperationOutput.Form = .plain, in columns: Int?) -> [String] {
            let output = OperationOutput(peer: "demo:heart-rate", form: form, columns: { columns })
            let line = output.line(ofReading: value, at: 0x0010, 0x2A37, label: "0x0010 Heart Rate Measurement")
            return String(decoding: line, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        let value: [UInt8] = [0x16, 0x48, 0x55, 0x03]
        let (start, end) = ("0x0010 Heart Rate Measurement  16485503  heart rate", "72 bpm, skin contact, RR 0.833 s")
        #expect(lines(value, in: nil) == [start + " " + end])
        #expect(lines(value, in: 84) == [start + " " + end])
        #expect(lines(value, in: 56) == [start, "  " + end])
        #expect(lines(value, in: 20).contains("  16485503  heart"))
        for form in [OperationOutput.Form.json, .csv, .hex] { #expect(lines(value, form, in: 20).count == 1) }
        let long = [UInt8](repeating: 0xAB, count: 30)
        #expect(lines(long, in: 40).contains { $0.hasPrefix("  " + Hex.encode(long)) })
    }

    /// What the peer sends, and the same operation in `talk`.
    @Test(arguments: [
        ["notify", "demo:heart-rate", "2a37", "-n", "1"],
        ["talk", "demo:heart-rate", "notify 2a37", "wait"],
    ])
    func aTerminalGetsNoLineThatIsWiderThanItIs(_ command: [String]) async throws {
        let terminal = try PseudoTerminal(columns: 44)
        let outcome = try await BuiltProgram.run(command + ["--color", "never"], output: .terminal(terminal))
        #expect(outcome.status == 0)
        let lines = try await terminal.whole().split(whereSeparator: \.isNewline)
        #expect(lines.count > 1 && lines.allSatisfy { $0.count <= 44 }, "\(lines)")
        #expect(lines.dropFirst().contains { $0.hasPrefix("  ") }, "\(lines)")
        let words = lines.map { $0.drop { $0 == " " } }.joined(separator: " ")
        #expect(words.contains(" bpm, skin contact, RR "), "\(lines)")
    }

    @Test(arguments: [
        ["--hex-only", "--json"], ["--hex-only", "--format", "csv"], ["--format", "csv", "--json"],
        ["--plot", "--json"], ["--plot", "--hex-only"], ["--plot", "--format", "csv"],
    ])
    func formsExcludeEachOther(_ options: [String]) async throws {
        for command in [["read"], ["notify"], ["watch"]] {
            let outcome = try await BuiltProgram.run(command + ["demo:heart-rate", "2a19"] + options)
            #expect(outcome.status == 64 && outcome.output.isEmpty, "\(command) \(options): \(outcome.errors)")
        }
    }

    // MARK: Several values

    @Test func theOthersAreReadAfterAFailure() async throws {
        let outcome = try await BuiltProgram.run(
            ["read", "demo:heart-rate", "2a19", "2a37", "fff9", "2a38"])
        #expect(outcome.output.contains("87 %") && outcome.output.contains("Body Sensor Location"))
        #expect(outcome.errors.components(separatedBy: "blescan: ").count == 3, "\(outcome.errors)")
        #expect(outcome.status == 76, "the first failure's: read not permitted")
        let turned = try await BuiltProgram.run(["read", "demo:heart-rate", "fff9", "2a37", "2a19"])
        #expect(turned.status == 1 && turned.output.contains("87 %"))
        let objects = try await BuiltProgram.run(["read", "demo:heart-rate", "fff9", "2a37", "2a19", "--json"])
        #expect(objects.status == 1)
        let failures = objects.errors.split(separator: "\n")
        #expect(failures.count == 2 && failures.allSatisfy { $0.contains("\"error\"") && $0.contains("\"code\"") })
    }

    // MARK: Watch

    @Test func valuesAreReadAgain() async throws {
        let outcome = try await BuiltProgram.run(
            ["watch", "demo:battery", "2a19", "--every", "10ms", "--count", "3", "--utc"])
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.count == 3)
        for line in lines { #expect(line.contains(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  40  64 %$/), "\(line)") }
        let objects = try await BuiltProgram.run(
            ["watch", "demo:battery", "2a19", "2a00", "--every", "10ms", "-n", "4", "--json"]).objects()
        #expect(objects.map { $0["uuid"] as? String } == ["2a19", "2a00", "2a19", "2a00"])
        #expect(objects.allSatisfy { $0["t"] is String })
    }

    @Test func watchingEnds() async throws {
        let timed = try await BuiltProgram.run(["watch", "demo:battery", "2a19", "--every", "1m", "--for", "1s"])
        #expect(timed.status == 0 && timed.output.split(separator: "\n").count == 1)
        let few = try await BuiltProgram.run([
            "watch", "demo:battery", "2a19", "--every", "1m", "--for", "1s", "-n", "9",
        ])
        #expect(few.status == 75 && few.errors.contains("only 1 of 9 values could be read"))
        let none = try await BuiltProgram.run(["watch", "demo:battery", "fff9"])
        #expect(none.status == 1 && none.output.isEmpty)
        let program = try RunningProgram(["watch", "demo:battery", "2a19", "--every", "1m"])
        try await program.printed("64 %")
        program.signal(SIGINT)
        #expect(try await program.outcome().status == 0)
        let closed = try await BuiltProgram.run(
            ["watch", "demo:battery", "2a19", "--every", "10ms"], output: .closedPipe)
        #expect(closed.status == 0)
    }

    @Test func theEndOfTheLinkEndsWatching() async throws {
        let peer = try await SocketPeer(.battery)
        let program = try RunningProgram(["watch", "unix:\(peer.path)", "2a19", "--every", "20ms"])
        try await program.printed("64 %")
        peer.disconnect()
        let outcome = try await program.outcome()
        #expect(outcome.status == 74, "\(outcome.errors)")
    }

    // MARK: Plots

    private func line(_ numbers: [Double], _ text: String, _ width: Int, isUnicode: Bool = true) -> String {
        var plot = ValuePlot()
        for number in numbers { plot.add(number, digits: "\(Int(number))") }
        return plot.line(text, in: width, ScreenLook(isColoured: false, isUnicode: isUnicode)).plain
    }

    @Test func aPlotFitsItsWidth() {
        #expect(line([1, 2, 3, 4, 5, 6, 7, 8], "x 8", 80) == "x 8  min 1  mean 5  max 8  ▁▂▃▄▅▆▇█")
        #expect(line([1, 2, 3, 4, 5, 6, 7, 8], "x 8", 80, isUnicode: false) == "x 8  min 1  mean 5  max 8  _.-:=+*#")
        #expect(line([5, 5], "x 5", 80) == "x 5  min 5  mean 5  max 5  ▅▅")
        #expect(line([1, 2, 3], "x 3", 29) == "x 3  min 1  max 3  ▁▅█", "the mean goes first")
        #expect(line([], "no number", 80) == "no number")
        // The newest ones, then no extremes, then no row.
        #expect(line([1, 2, 3, 4, 5, 6, 7, 8], "x 8", 10) == "x 8  ▁▃▅▆█")
        #expect(line([1, 2, 3], "x 3", 5) == "x 3")
        #expect(line([1, 2, 3], "a long text", 6) == "a long")
    }

    /// Means that are computed by hand.
    @Test(arguments: [
        (["21.5", "21.6", "21.8"], "21.6"), (["-0.5", "0.5"], "0.0"), (["-2", "-3"], "-3"), (["0.04", "0.08"], "0.06"),
        (["7"], "7"), (["-40.25", "-40.75"], "-40.50"),
    ]) func theMeanHasTheDigitsOfTheFormat(_ digits: [String], _ mean: String) {
        var plot = ValuePlot()
        for text in digits { plot.add(Double(text) ?? 0, digits: text) }
        let line = plot.line("x", in: 80, ScreenLook(isColoured: false, isUnicode: true)).plain
        #expect(line.contains("  mean \(mean)  "), "\(line)")
    }

    @Test func extremeNumbersHaveAPlace() {
        let greatest = Double.greatestFiniteMagnitude
        var plot = ValuePlot()
        for number in [-greatest, 0, greatest, .nan, .infinity] { plot.add(number, digits: "?") }
        let look = ScreenLook(isColoured: false, isUnicode: true)
        #expect(plot.line("x", in: 60, look).plain == "x  min ?  max ?  ▁▅█")
    }

    @Test(arguments: [12, 20, 40, 80, 200]) func noLineIsWiderThanItsTerminal(width: Int) {
        for count in [1, 5, 700] {
            let numbers = (0..<count).map { Double($0 % 97) }
            for text in ["x 8", "temperature 21.50 °C", String(repeating: "wide ", count: 60)] {
                #expect(ScreenText.width(line(numbers, text, width)) <= width)
            }
        }
    }

    /// Where `°` is four columns. A line that the terminal wraps could not be rewritten.
    @Test(arguments: 12...60) func noPlotIsWiderThanItsTerminalInASCII(_ width: Int) {
        var plots = PlotOutput(look: ScreenLook(isColoured: false, isUnicode: false), in: nil)
        for value in [[0x66, 0x08], [0x70, 0x08]] as [[UInt8]] {
            let line = plots.line(of: value, at: 0x0003, 0x2A6E, label: nil, in: width)
            #expect(line.count < width && line.allSatisfy { $0 < 0x80 }, "\(String(decoding: line, as: UTF8.self))")
        }
    }

    @Test func aPlotIsRewrittenOnATerminal() async throws {
        let terminal = try PseudoTerminal(columns: 40)
        let program = try RunningProgram(
            ["notify", "demo:heart-rate", "2a37", "-n", "3", "--plot", "--color", "never"], output: .terminal(terminal))
        let outcome = try await program.outcome()
        #expect(outcome.status == 0)
        let text = try await terminal.whole()
        #expect(text.components(separatedBy: "\u{1B}[1A\r\u{1B}[2K").count == 3, "\(text)")
        #expect(text.contains("heart rate 7") && text.contains("█"))
    }

    /// The value cannot be read once: what is said about that stays, and the plot goes on below it.
    @Test func aMessageStaysAboveThePlot() async throws {
        let reads = Lock(0)
        let peer = try SocketPeer { packet in
            switch packet.first {
            case 0x02: return .response([0x03, 0x17, 0x00])
            // The type of 0x0003: Battery Level.
            case 0x04: return .response([0x05, 0x01, 0x03, 0x00, 0x19, 0x2A])
            case 0x0A:
                let number = reads.withLock { reads in
                    reads += 1
                    return reads
                }
                return .response(number == 3 ? [0x01, 0x0A, 0x03, 0x00, 0x0E] : [0x0B, UInt8(80 + number)])
            default: return .response([0x01, packet.first ?? 0, 0x01, 0x00, 0x0A])
            }
        }
        let terminal = try PseudoTerminal(columns: 100)
        let program = try RunningProgram(
            ["watch", "unix:\(peer.path)", "0x0003", "--every", "10ms", "-n", "4", "--plot", "--color", "never"],
            output: .terminal(terminal), errors: terminal)
        #expect(try await program.outcome().status == 0)
        var display = Display()
        display.write(try await terminal.whole())
        let lines = display.lines
        #expect(lines.count { $0.hasPrefix("blescan: ") } == 1, "\(lines)")
        #expect(lines.filter { $0.contains(" min ") }.map { $0.prefix(4) } == ["85 %"], "\(lines)")
        #expect(lines.last?.contains(" min ") == true, "\(lines)")
    }

    @Test func messagesComeAboveTheLineAndBelowItAtTheEnd() {
        var (display, place) = (Display(), RewrittenLine())
        func message(_ text: String) { display.write(place.above(Array((text + "\n").utf8))) }
        func show(_ text: String, meanwhile: () -> Void = {}) {
            let bytes = place.replacing(with: Array(text.utf8))
            meanwhile()
            display.write(bytes + [0x0A])
            place.wrote(Array(text.utf8))
        }
        message("a")
        show("1")
        show("2")
        message("b")
        message("c")
        #expect(display.lines == ["a", "b", "c", "2"])
        show("3", meanwhile: { message("d") })
        #expect(display.lines == ["a", "b", "c", "d", "3"])
        place.end()
        message("e")
        #expect(display.lines == ["a", "b", "c", "d", "3", "e"])
        // Nothing is lost where the first line and a message are written at the same time.
        place = RewrittenLine()
        show("4", meanwhile: { message("f") })
        show("5")
        show("6")
        #expect(display.lines == ["a", "b", "c", "d", "3", "e", "f", "4", "6"])
        place = RewrittenLine()
        let bytes = place.replacing(with: Array("7".utf8))
        display.write(bytes + [0x0A])
        message("g")
        place.wrote(Array("7".utf8))
        show("8")
        #expect(display.lines.suffix(3) == ["7", "g", "8"])
    }

    @Test func aPlotInAPipeHasALineForEachValue() async throws {
        let outcome = try await BuiltProgram.run(["notify", "demo:heart-rate", "2a37", "-n", "3", "--plot"])
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.count == 3 && !outcome.output.contains("\u{1B}"))
        #expect(lines.allSatisfy { $0.hasPrefix("heart rate ") && $0.contains(" min ") })
        let ascii = try await BuiltProgram.run(
            ["notify", "demo:heart-rate", "2a37", "-n", "3", "--plot"], environment: ["LANG": "C"])
        #expect(ascii.output.utf8.allSatisfy { $0 < 0x80 })
    }
}

/// What a terminal shows after lines, and sequences that rewrite the last ones.
private struct Display {
    private var rows = [""]
    private var row = 0

    /// The lines that are not empty.
    var lines: [String] { rows.filter { !$0.isEmpty } }

    mutating func write(_ bytes: [UInt8]) { write(String(decoding: bytes, as: UTF8.self)) }

    mutating func write(_ text: String) {
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\n":
                row += 1
                if row == rows.count { rows.append("") }
            case "\r": break
            case "\u{1B}":
                rest.removeFirst()
                let number = String(String.UnicodeScalarView(rest.prefix { $0.properties.numericType != nil }))
                rest = rest.dropFirst(number.count)
                switch rest.popFirst() {
                case "A": row = max(0, row - (Int(number) ?? 1))
                case "K": rows[row] = ""
                default: break
                }
            default: rows[row].unicodeScalars.append(scalar)
            }
        }
    }
}
