import ArgumentParser
import BLECore

/// The forms of a value; exactly one of them must be given.
struct ValueOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The bytes: 05a0, 05:a0 or 05 a0.", valueName: "bytes"))
    var hex: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            #"UTF-8 text; \r, \n, \t, \0, \\ and \x1b stand for one character."#, valueName: "text"),
        transform: TextBytes.init(argument:))
    var text: TextBytes?

    @Option(
        name: .customLong("u8"), parsing: .unconditional,
        help: ArgumentHelp("A number in one byte: 10 or 0x0a.", valueName: "number"),
        transform: NumberBytes.integer(UInt8.self))
    var unsigned8: NumberBytes?

    @Option(
        name: .customLong("u16"), parsing: .unconditional,
        help: ArgumentHelp("A number in two bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.integer(UInt16.self))
    var unsigned16: NumberBytes?

    @Option(
        name: .customLong("u32"), parsing: .unconditional,
        help: ArgumentHelp("A number in four bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.integer(UInt32.self))
    var unsigned32: NumberBytes?

    @Option(
        name: .customLong("u64"), parsing: .unconditional,
        help: ArgumentHelp("A number in eight bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.integer(UInt64.self))
    var unsigned64: NumberBytes?

    @Option(
        name: .customLong("i8"), parsing: .unconditional,
        help: ArgumentHelp("A signed number in one byte.", valueName: "number"),
        transform: NumberBytes.integer(Int8.self))
    var signed8: NumberBytes?

    @Option(
        name: .customLong("i16"), parsing: .unconditional,
        help: ArgumentHelp("A signed number in two bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.integer(Int16.self))
    var signed16: NumberBytes?

    @Option(
        name: .customLong("i32"), parsing: .unconditional,
        help: ArgumentHelp("A signed number in four bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.integer(Int32.self))
    var signed32: NumberBytes?

    @Option(
        name: .customLong("i64"), parsing: .unconditional,
        help: ArgumentHelp("A signed number in eight bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.integer(Int64.self))
    var signed64: NumberBytes?

    @Option(
        name: .customLong("f32"), parsing: .unconditional,
        help: ArgumentHelp("A number of IEEE 754 in four bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.float)
    var float32: NumberBytes?

    @Option(
        name: .customLong("f64"), parsing: .unconditional,
        help: ArgumentHelp("A number of IEEE 754 in eight bytes, low byte first.", valueName: "number"),
        transform: NumberBytes.double)
    var float64: NumberBytes?

    @Flag(help: "Write the number with its high byte first.")
    var bigEndian = false

    @Option(
        help: ArgumentHelp("A file whose bytes are the value; - is standard input.", valueName: "path"),
        completion: .file())
    var file: String?

    /// The options that give a value.
    static let forms: Set<String> = [
        "--hex", "--text", "--u8", "--u16", "--u32", "--u64", "--i8", "--i16", "--i32", "--i64", "--f32", "--f64",
        "--file",
    ]

    /// Returns the words of a command line without texts, which may be written as options are: `--text --json`.
    static func withoutTexts(_ words: some Sequence<String>) -> [String] {
        var others: [String] = []
        var isText = false
        for word in words {
            if !isText { others.append(word) }
            isText = !isText && word == "--text"
        }
        return others
    }

    private var number: NumberBytes? {
        unsigned8 ?? unsigned16 ?? unsigned32 ?? unsigned64 ?? signed8 ?? signed16 ?? signed32 ?? signed64 ?? float32
            ?? float64
    }

    func validate() throws {
        let numbers = [
            unsigned8, unsigned16, unsigned32, unsigned64, signed8, signed16, signed32, signed64, float32, float64,
        ]
        let given = [hex != nil, text != nil, file != nil] + numbers.map { $0 != nil }
        guard given.filter(\.self).count == 1 else {
            throw ValidationError(
                "Give the value in exactly one form: --hex, --text, --u8 to --u64, --i8 to --i64, --f32, --f64 or --file."
            )
        }
        if bigEndian, number == nil { throw ValidationError("--big-endian is for numbers; leave it out.") }
        if let hex { _ = try Self.decode(hex) }
        guard file == nil else { return }
        guard try bytes().count <= ATTLimits.valueLength else {
            throw ValidationError("An attribute's value has at most \(ATTLimits.valueLength) bytes.")
        }
    }

    func bytes() throws -> [UInt8] {
        if let hex { return try Self.decode(hex) }
        if let text { return text.bytes }
        if let file { return try Self.contents(of: file) }
        let bytes = number?.bytes ?? []
        return bigEndian ? bytes.reversed() : bytes
    }

    /// Returns the bytes of the file, or of the pipe, at `path`.
    ///
    /// - Throws: `Failure` if it cannot be read, or is longer than a value.
    private static func contents(of path: String) throws(Failure) -> [UInt8] {
        InputFile.announce("the value", from: path)
        var file = try InputFile(path, advice: "Check the path.")
        var bytes: [UInt8] = []
        while true {
            let chunk: [UInt8]
            do throws(Failure) {
                chunk = try file.next()
            } catch {
                // A part of a value is none.
                throw Failure(message: error.message, hint: "Check the path.", status: .usage)
            }
            if chunk.isEmpty { return bytes }
            bytes += chunk
            guard bytes.count <= ATTLimits.valueLength else {
                throw Failure(
                    message: "\(InputFile.name(of: path)) has more than \(ATTLimits.valueLength) bytes",
                    hint: "Give a smaller file.", status: .usage)
            }
        }
    }

    private static func decode(_ hex: String) throws -> [UInt8] {
        do throws(Hex.ParsingError) {
            return try Hex.decode(hex)
        } catch {
            throw ValidationError("--hex: \(error.reason(in: hex)).")
        }
    }
}

extension Hex.ParsingError {
    /// Returns what is wrong with the text that was decoded, without a full stop.
    func reason(in word: String) -> String {
        switch self {
        case .invalidCharacter(let offset): "\(word.sign(atByte: offset)) is not a hex digit"
        case .oddNumberOfDigits: "an odd number of digits; each byte takes two"
        }
    }
}

/// A number on the command line as bytes, the low one first.
struct NumberBytes: Hashable, Sendable {
    let bytes: [UInt8]

    private init(_ number: some FixedWidthInteger) {
        bytes = (0..<number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    /// Returns the parser of integers of a type.
    static func integer<Number: FixedWidthInteger & SendableMetatype>(
        _ type: Number.Type
    ) -> @Sendable (String) throws -> NumberBytes {
        { text in
            let number: Number = try NumberArgument.parse(text)
            return NumberBytes(number)
        }
    }

    static func float(_ text: String) throws -> NumberBytes {
        guard let number = Float(text), number.isFinite else {
            throw BadValue(description: "it takes a number such as 21.5.")
        }
        return NumberBytes(number.bitPattern)
    }

    static func double(_ text: String) throws -> NumberBytes {
        guard let number = Double(text), number.isFinite else {
            throw BadValue(description: "it takes a number such as 21.5.")
        }
        return NumberBytes(number.bitPattern)
    }
}

/// A text on the command line, in which a backslash begins the name of a character.
struct TextBytes: Hashable, Sendable {
    let bytes: [UInt8]

    /// Returns the argument that stands for a text.
    static func argument(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar {
            case "\\": #"\\"#
            case "\n": #"\n"#
            case "\r": #"\r"#
            case "\t": #"\t"#
            case let control where control.value < 0x20 || control.value == 0x7F:
                #"\x"# + Hex.encode([UInt8(truncatingIfNeeded: control.value)])
            default: String(scalar)
            }
        }.joined()
    }

    /// Parses an argument.
    ///
    /// - Throws: `BadValue` for a backslash before anything else.
    init(argument: String) throws(BadValue) {
        var bytes: [UInt8] = []
        var rest = Array(argument.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "0"): bytes.append(0)
            case UInt8(ascii: "\\"): bytes.append(UInt8(ascii: "\\"))
            case UInt8(ascii: "x"):
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                guard digits.utf8.count == 2, let decoded = try? Hex.decode(digits), decoded.count == 1 else {
                    throw BadValue(description: #"\x is followed by two hexadecimal digits."#)
                }
                bytes += decoded
                rest = rest.dropFirst(2)
            default:
                throw BadValue(description: #"after a backslash comes r, n, t, 0, x and two digits, or a backslash."#)
            }
        }
        self.bytes = bytes
    }
}
