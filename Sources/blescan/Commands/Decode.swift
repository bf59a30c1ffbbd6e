import ArgumentParser
import BLECore

/// Explains advertisements in hexadecimal; needs no radio.
struct Decode: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain advertising data or HCI report events given in hexadecimal.",
        usage: "blescan decode [<file>|--hex <bytes>] [--keys <file>] [--json]",
        discussion: """
            EXAMPLES
              blescan decode --hex 02010603030d18060950756c7365
              blescan decode --json recorded.txt
              echo 02010603030d18060950756c7365 | blescan decode

            Reads one payload per line: the bare advertising data, or a whole HCI event
            that begins with 043e. Spaces, colons, dashes and a leading 0x are skipped,
            and so are empty lines and lines that begin with #. A file that gzip has
            compressed is read as it was before.

            With --keys, data without an address is tried with every key.

            Advertising data that is cut off or malformed is explained as far as
            possible, and is not a failure. The status is 65 for an event without a
            report that can be read, and for a line that is not hexadecimal or has more
            than 65536 bytes; --hex with anything but hexadecimal is wrong usage, 64.
            """
    )

    @Argument(help: "A file with one payload per line; - or nothing is standard input.", completion: .file())
    var file: String?

    @Option(name: .long, help: ArgumentHelp("The payload itself, instead of a file.", valueName: "bytes"))
    var hex: String?

    @OptionGroup var keys: KeyOptions

    @OptionGroup var color: ColorOptions

    @Flag(name: [.long, .customShort("j")], help: "Print one JSON object per line, in the order of the input.")
    var json = false

    func validate() throws {
        if file != nil && hex != nil { throw ValidationError("Give a file or --hex, not both.") }
    }

    func run() async throws {
        try keys.read()
        if let hex {
            let input = DecodedInput(line: hex)
            if case .unreadable(let reason) = input {
                throw Failure(
                    message: "--hex is not hexadecimal: \(reason)", hint: "Write two digits a byte, such as 020106.",
                    status: .usage)
            }
            show(input, line: nil)
            if !input.isDecoded {
                throw Failure(
                    message: "the event in --hex has no advertising reports that can be read",
                    hint: "The output states the reason.", status: .badData)
            }
            return
        }
        let path = file == "-" ? nil : file
        let name = path ?? "standard input"
        var lines = try InputLines(path: path, unpacks: true)
        if lines.isTerminal { Console.warn("reading hexadecimal lines from the terminal; Ctrl-D ends") }
        var number = 0
        var read = 0
        var undecoded = 0
        var isText = false
        // A table, until it is known whether it has a heading: that is, whether another one follows.
        var first: (input: DecodedInput, line: Int, deadline: ContinuousClock.Instant)?
        let clock = ContinuousClock()
        while true {
            // Comments and empty lines give it no more time.
            if let held = first, !lines.isReady(within: clock.now.duration(to: held.deadline)) {
                show(held.input, line: held.line)
                first = nil
            }
            guard let line = lines.next() else { break }
            number += 1
            if number == 1, lines.beginning.starts(with: InputFile.compressed) {
                throw InputFile.compressedTwice(name)
            }
            if case .whole(let text) = line, Self.isSkipped(text) { continue }
            let input = DecodedInput(line)
            if !input.isDecoded { undecoded += 1 }
            if case .unreadable = input {} else { isText = true }
            read += 1
            if read == 1, !json {
                first = (input, number, clock.now + Self.longestDelay)
                continue
            }
            if let held = first {
                show(held.input, line: held.line)
                first = nil
            }
            show(input, line: number, isFirst: read == 1)
        }
        if let held = first { show(held.input, line: held.line, isAlone: true) }
        if let failure = lines.failure { throw failure }
        if read == 0 {
            Console.warn(
                Failure(
                    message: "\(name) has nothing to decode",
                    hint: "Give the bytes with --hex, or a file with one payload in each line.", status: .notFound))
        }
        // A line of a capture may be too long, or hexadecimal by chance.
        let isCapture = Recording.isCapture(lines.beginning)
        if read > 0, isCapture || !isText {
            throw Failure(
                message: isCapture ? "\(name) is a capture, not text" : "no line of \(name) is hexadecimal",
                hint: "Decode reads text, two digits a byte; for a capture use `blescan replay`.",
                status: .badData)
        }
        if undecoded > 0 {
            throw Failure(
                message: "\(undecoded.counted("line")) of \(read) could not be decoded",
                hint: "The output states the reason.",
                status: .badData)
        }
    }

    /// How long the table of the first line waits for the next line of a pipe.
    private static let longestDelay: Duration = .seconds(1)

    /// Returns whether a line is empty, or a comment.
    private static func isSkipped(_ line: String) -> Bool {
        line.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 } || line.utf8.first == UInt8(ascii: "#")
    }

    private func show(_ input: DecodedInput, line: Int?, isFirst: Bool = true, isAlone: Bool = false) {
        if json {
            Console.out(JSONLine(input, line: line).bytes)
        } else {
            if !isFirst { Console.out("") }
            // Spelled before it is laid out: in ASCII it may be wider.
            let table = Console.spelled(AdvertisementTable.text(of: input, line: line, isAlone: isAlone))
            Console.out(AdvertisementTable.painted(table, color.look, in: Console.resultWidth))
        }
    }
}
