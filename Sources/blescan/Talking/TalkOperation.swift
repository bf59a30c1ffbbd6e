import ArgumentParser
import BLECore
import BareBLE

/// One operation of `talk`.
enum TalkOperation {
    case read([ReadArgument])
    case write(AttributeArgument, ValueOptions, Peripheral.WriteKind)
    case notify([AttributeArgument], SubscribeOptions.Kind)
    case stop([AttributeArgument])
    case wait(count: Int?, time: DurationArgument?)
    case explore
    case help
    case quit

    /// Parses a line of input; `nil` for an empty one and a comment.
    ///
    /// - Throws: `Failure`, which names what is wrong.
    init?(_ line: InputLine) throws(Failure) {
        switch line {
        case .whole(let text): try self.init(text)
        case .tooLong(let length):
            throw Failure(
                message: "the line is too long: \(length)", hint: "A line has one operation.", status: .usage)
        }
    }

    /// Parses a line; `nil` for an empty one and a comment.
    ///
    /// - Throws: `Failure`, which names what is wrong.
    init?(_ line: String) throws(Failure) {
        // A comment has no words: an apostrophe in it begins no quote.
        if line.first(where: { !$0.isWhitespace }) == "#" { return nil }
        var words = try TalkWords.split(line)
        guard let name = words.first else { return nil }
        words.removeFirst()
        if ValueOptions.withoutTexts(words).contains("--help") || words == ["-h"] {
            self = .help
            return
        }
        switch name {
        case "read": self = .read(try Self.parsed(ReadWords.self, words, name).attribute)
        case "write":
            let parsed = try Self.parsed(WriteWords.self, try Self.withForm(words), name)
            self = .write(parsed.attribute, parsed.value, parsed.withoutResponse ? .withoutResponse : .withResponse)
        case "notify":
            let parsed = try Self.parsed(NotifyWords.self, words, name)
            self = .notify(parsed.attribute, parsed.indications ? .indications : .notifications)
        case "stop": self = .stop(try Self.parsed(StopWords.self, words, name).attribute)
        case "wait":
            let parsed = try Self.parsed(WaitWords.self, words, name)
            self = .wait(count: parsed.count, time: parsed.duration)
        case "explore", "help", "?", "quit", "exit", "q":
            _ = try Self.parsed(NoWords.self, words, name)
            self = name == "explore" ? .explore : ["help", "?"].contains(name) ? .help : .quit
        default:
            let near = Self.synonyms[name].map { [$0] } ?? NearNames.slips(name, in: Self.names)
            throw Failure(
                message: "there is no operation '\(name.excerpt())'",
                hint: near.isEmpty
                    ? "The operations are \(Self.names.joined(separator: ", "))."
                    : "Did you mean \(NearNames.list(near))?", status: .usage)
        }
    }

    /// Whether it takes its bytes from standard input.
    var readsStandardInput: Bool {
        if case .write(_, let value, _) = self { return value.file == "-" }
        return false
    }

    /// Whether it names a file that has its bytes.
    var namesFile: Bool {
        if case .write(_, let value, _) = self { return value.file.map { $0 != "-" } ?? false }
        return false
    }

    /// Their names.
    static let names = ["read", "write", "notify", "stop", "wait", "explore", "help", "quit"]

    /// Returns the words that may follow others, which begin a line: an operation, or what it can be performed on.
    static func completions(after words: [String], in database: GATTDatabase) -> [String] {
        func attributes(_ isOffered: (CharacteristicProperties) -> Bool) -> [String] {
            Completions.names(of: database.characteristics.filter { isOffered($0.properties) }.map(\.uuid))
        }
        switch words.first {
        case nil: return names
        case "read": return attributes { $0.contains(.read) }
        // Bytes follow the one attribute.
        case "write" where words.count > 1: return []
        case "write": return attributes { !$0.isDisjoint(with: [.write, .writeWithoutResponse]) }
        case "notify", "stop": return attributes { $0.canSubscribe }
        case "wait": return words.contains("--for") ? [] : ["--for"]
        default: return []
        }
    }

    /// The operations that other tools have under another name.
    private static let synonyms = [
        "subscribe": "notify", "listen": "notify", "unsubscribe": "stop", "get": "read", "set": "write",
        "sleep": "wait", "services": "explore", "list": "explore", "disconnect": "quit",
    ]

    /// The description of the operations.
    static let usage = """
        read ATTRIBUTE ...                  read values
        write ATTRIBUTE BYTES               write; --text, --u8 … of `blescan write`
        write ATTRIBUTE … --without-response
        notify ATTRIBUTE ... [--indications] subscribe: values are printed as they come
        stop [ATTRIBUTE ...]                unsubscribe
        wait [N] [--for TIME]               wait for N values (1), or for the time
        explore                             list the attributes, without values
        help                                explain the operations
        quit                                disconnect
        """

    /// The most characters of a command, or of a message of the parser, which quotes words.
    private static let longestQuotation = 400

    private static func parsed<Words: ParsableArguments>(
        _ type: Words.Type, _ words: [String], _ name: String
    ) throws(Failure) -> Words {
        do {
            return try type.parse(words)
        } catch {
            throw failure(type.message(for: error), name)
        }
    }

    /// Returns the words of `write` with the option that bytes which stand alone are short for: write fff2 dda5.
    ///
    /// - Throws: `Failure` where there is no value, or no bytes in its place.
    private static func withForm(_ words: [String]) throws(Failure) -> [String] {
        let flags: Set = ["--without-response", "--big-endian"]
        let places = words.indices.filter { !flags.contains(words[$0]) }
        guard let attribute = places.first, !words[attribute].hasPrefix("-") else { return words }
        guard let value = places.dropFirst().first else {
            let example = "`write \(TalkWords.quoted(words[attribute].excerpt())) 05a0`"
            throw Failure(
                message: "write: the bytes are missing",
                hint: "They follow the attribute, as in \(example). Other forms are --text, --u8 to --u64, --i8 to "
                    + "--i64, --f32, --f64 and --file.", status: .usage)
        }
        guard !words[value].hasPrefix("-") else { return words }
        let others = words[..<value].filter { flags.contains($0) }
        let ordered: [String] = [words[attribute]] + Array(words[value...]) + others
        try expectBytes(ordered[1], in: ordered)
        return [ordered[0], "--hex"] + Array(ordered.dropFirst())
    }

    private static func expectBytes(_ word: String, in words: [String]) throws(Failure) {
        do throws(Hex.ParsingError) {
            _ = try Hex.decode(word)
        } catch {
            let text = words.dropFirst().prefix { !$0.hasPrefix("-") }
            let line =
                [words[0], "--text", TextBytes.argument(text.joined(separator: " "))]
                + words.dropFirst(1 + text.count)
            let command = "write \(line.map(TalkWords.quoted).joined(separator: " "))"
            throw Failure(
                message: "write: '\(word.excerpt())' is not bytes in hexadecimal digits: \(error.reason(in: word))",
                hint: "For a text write `\(command.excerpt(upTo: longestQuotation))`.", status: .usage)
        }
    }

    private static func failure(_ message: String, _ name: String) -> Failure {
        let reason = Failure.message(ofParser: message).excerpt(upTo: longestQuotation)
        return Failure(message: "\(name): \(reason)", hint: "`help` explains the operations.", status: .usage)
    }
}

private struct NoWords: ParsableArguments {}

private struct ReadWords: ParsableArguments {
    @Argument(transform: ReadArgument.init(argument:)) var attribute: [ReadArgument]
}

private struct WriteWords: ParsableArguments {
    @Argument(transform: AttributeArgument.init(argument:)) var attribute: AttributeArgument
    @OptionGroup var value: ValueOptions
    @Flag var withoutResponse = false
}

private struct NotifyWords: ParsableArguments {
    @Argument(transform: AttributeArgument.init(argument:)) var attribute: [AttributeArgument]
    @Flag var indications = false
}

private struct StopWords: ParsableArguments {
    @Argument(transform: AttributeArgument.init(argument:)) var attribute: [AttributeArgument] = []
}

private struct WaitWords: ParsableArguments {
    @Argument(transform: NumberArgument.count) var count: Int?
    @Option(name: .customLong("for"), parsing: .unconditional, transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("the number of values is from 1.") }
    }
}

/// The words of a line, as a shell separates them: by blanks, with quotes around words that contain some.
enum TalkWords {
    /// Returns a word as it is written in a line.
    static func quoted(_ word: String) -> String {
        // No backslash protects a quote there; the other kind of quotes does.
        if !word.contains("'") { return word.shellQuoted }
        return word.split(separator: "'", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? "" : String($0).shellQuoted }.joined(separator: #""'""#)
    }

    /// Returns the words of a line.
    ///
    /// - Throws: `Failure` for a quote without its end.
    static func split(_ line: String) throws(Failure) -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        for character in line {
            if let open = quote {
                if character == open { quote = nil } else { word?.append(character) }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character.isWhitespace {
                if let whole = word { words.append(whole) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        guard quote == nil else {
            throw Failure(
                message: "a quote has no end: \(line.excerpt())", hint: "Put quotes around a whole word.",
                status: .usage)
        }
        if let whole = word { words.append(whole) }
        return words
    }
}
