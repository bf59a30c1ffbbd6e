import ArgumentParser
import BLECore
import FoundationEssentials

/// The command line word by word, for the message about one that the parser has refused: the parser reports the first
/// word that it cannot place, which is often the value of an option that does not exist.
struct CommandWords {
    /// What the parser reports about a command.
    private struct Command: Decodable {
        struct Argument: Decodable {
            struct Name: Decodable {
                let kind: String
                let name: String
            }

            let kind: String
            let names: [Name]?
            let parsingStrategy: String?

            var takesValue: Bool { kind == "option" }

            /// Whether the next word is the value, even if it begins with a dash.
            var takesAnyWord: Bool { parsingStrategy == "unconditional" }
        }

        let commandName: String
        let arguments: [Argument]?
        let subcommands: [Command]?
    }

    private struct Program: Decodable {
        let command: Command
    }

    /// The name of the command; `nil` if the line does not begin with one.
    let name: String?
    private let command: Command
    private let program: Command
    private let words: ArraySlice<String>

    /// Creates the words of a command line, without the name of the program; `nil` if the parser does not describe its
    /// commands.
    init?(_ words: ArraySlice<String>) {
        let description = Array(Blescan._dumpHelp().utf8)
        guard let program = try? JSONDecoder().decode(Program.self, from: Data(description)).command else { return nil }
        let subcommands = program.subcommands ?? []
        let named = subcommands.first { $0.commandName == words.first }
        // Without a name it is the default command.
        guard let command = named ?? subcommands.first(where: { $0.commandName == Scan._commandName }) else {
            return nil
        }
        name = named?.commandName
        self.command = command
        self.program = program
        self.words = named == nil ? words : words.dropFirst()
    }

    /// Returns the failure that explains the line best; `nil` if all options are known and in their place.
    var failure: Failure? {
        var rest = words
        var operands: [String] = []
        // What is in the place of the value is more important than a peer that is missing then.
        var isPeerTaken = false
        while let word = rest.popFirst() {
            if word == "--" { return nil }
            guard let option = Self.option(word) else {
                if name == nil, isCommand(word) { return misplaced(word) }
                if command.commandName == Scan._commandName, let peer = try? PeerDesignation(argument: word) {
                    return surplus(word, peer)
                }
                operands.append(word)
                if command.commandName == Write._commandName, operands.count > 2, !hasForm {
                    return formless(([word] + rest.prefix { Self.option($0) == nil }).joined(separator: " "))
                }
                if let failure = misunderstood(word, before: rest) { return failure }
                continue
            }
            let unknownLetter = unknownOption(in: word)
            guard let argument = argument(option.name), unknownLetter == nil else {
                if name == nil, let word = rest.first(where: isCommand) { return misplaced(word) }
                return unknown(unknownLetter ?? option.name)
            }
            if argument.takesValue, !option.hasValue, let next = rest.first,
                argument.takesAnyWord || Self.option(next) == nil
            {
                isPeerTaken = isPeerTaken || (try? PeerDesignation(argument: next)) != nil
                rest.removeFirst()
                if let failure = unquoted(option.name, next, before: rest, after: operands.count) { return failure }
            }
        }
        return isPeerTaken ? nil : missing(after: operands) ?? unusable(operands)
    }

    /// Returns a command line with joined short options apart, as getopt reads them: `-jn1` is `-j -n 1`.
    static func apart(_ words: ArraySlice<String>) -> ArraySlice<String> {
        let options = words.prefix { $0 != "--" }
        guard options.contains(where: isJoined), let described = CommandWords(words) else { return words }
        return described.apart
    }

    private var apart: ArraySlice<String> {
        var result = name.map { [$0] } ?? []
        var rest = words
        while let word = rest.popFirst() {
            if word == "--" { return (result + [word] + rest)[...] }
            let parts = parts(of: word) ?? [word]
            result += parts
            if let last = parts.last, let option = Self.option(last), !option.hasValue,
                let argument = argument(option.name), argument.takesValue, argument.takesAnyWord,
                let value = rest.popFirst()
            {
                result.append(value)
            }
        }
        return result[...]
    }

    /// Returns the options that are joined in a word, the last one with its value; `nil` for another word.
    private func parts(of word: String) -> [String]? {
        guard Self.isJoined(word) else { return nil }
        var parts: [String] = []
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            guard let argument = argument("-\(letter)") else { return nil }
            parts.append("-\(letter)")
            if argument.takesValue {
                // -n=1 is for the parser.
                if letters.first == "=" { return nil }
                return letters.isEmpty ? parts : parts + [String(letters)]
            }
        }
        return parts
    }

    /// Returns whether a word is several short options, or one with its value.
    private static func isJoined(_ word: String) -> Bool {
        word.hasPrefix("-") && !word.hasPrefix("--") && word.count > 2 && !NumberArgument.isNegative(word)
    }

    /// Returns the first of joined options that does not exist.
    private func unknownOption(in word: String) -> String? {
        guard Self.isJoined(word) else { return nil }
        for letter in word.dropFirst() {
            guard let argument = argument("-\(letter)") else { return "-\(letter)" }
            if argument.takesValue { return nil }
        }
        return nil
    }

    /// Returns the first option in these words that the command does not have.
    private func unknownOption(among words: ArraySlice<String>) -> String? {
        var rest = words
        while let word = rest.popFirst() {
            guard let option = Self.option(word) else { continue }
            guard let argument = argument(option.name) else { return option.name }
            if let unknown = unknownOption(in: word) { return unknown }
            if argument.takesValue, !option.hasValue, let next = rest.first,
                argument.takesAnyWord || Self.option(next) == nil
            {
                rest.removeFirst()
            }
        }
        return nil
    }

    /// The words that show the help of the command.
    var help: String {
        "blescan \(name ?? command.commandName) --help"
    }

    private func unknown(_ option: String) -> Failure {
        let names = (command.arguments ?? []).flatMap { $0.names ?? [] }.filter { $0.kind == "long" }.map(\.name)
        let word = String(option.drop { $0 == "-" })
        // The time of doctor is that of its scan alone.
        let isTaken = command.commandName == Doctor._commandName && Self.synonyms[word] == "for"
        let synonyms = isTaken ? [] : Self.synonyms[word].map { [$0] } ?? []
        let near = (synonyms.contains { names.contains($0) } ? synonyms : NearNames.slips(word, in: names))
            .map { "--" + $0 }
        let hint = near.isEmpty ? "`\(help)` lists the options." : "Did you mean \(NearNames.list(near))?"
        return Failure(message: "unknown option \(option)", hint: hint, status: .usage)
    }

    /// The options that other tools have under another name. A device is the adapter of some, and the peer of others.
    private static let synonyms = [
        "timeout": "for", "duration": "for", "time": "for", "seconds": "for", "limit": "count", "max": "count",
        "interval": "every", "hci": "adapter", "interface": "adapter", "controller": "adapter",
        "verbose": "trace", "debug": "trace", "uuid": "service", "mac": "address", "addr": "address",
        "rssi": "min-rssi", "pin": "passkey", "filter": "name", "pcap": "record", "save": "record",
        // Letters that other commands, or ping and btmon, have for them.
        "t": "for", "c": "count", "w": "record",
        // Values of `write`.
        "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8", "int16": "i16", "int32": "i32",
        "int64": "i64", "float": "f32", "float32": "f32", "double": "f64", "float64": "f64", "string": "text",
        "bytes": "hex",
    ]

    /// Returns the failure for a word that is meant as an option, or as another command; `nil` for another one.
    private func misunderstood(_ word: String, before rest: ArraySlice<String>) -> Failure? {
        let hint: String
        if let digits = word.dropped(prefix: "hci"), UInt16(digits) != nil, argument("--adapter") != nil {
            return Failure(message: "\(word) is an adapter", hint: "Write `--adapter \(word)`.", status: .usage)
        }
        switch command.commandName {
        case Scan._commandName:
            // 180d is 180 days as well; 1800 is a time more often than Generic Access.
            if word.contains(where: \.isLetter), let uuid = BluetoothUUID(written: word),
                AssignedNumbers.serviceName(uuid) != nil
            {
                hint = "Write `--service \(word)` for the devices that advertise it."
            } else {
                guard (try? DurationArgument(argument: word)) != nil else { return nil }
                hint = "Write `--for \(word)` for a time."
            }
        case Advertise._commandName:
            if let name = word.dropped(prefix: "demo:"), VirtualPeer(named: name) != nil {
                hint = "`blescan serve \(word)` serves a virtual device."
            } else {
                // After an option it may be the end of that one's value.
                guard words.first == word else { return nil }
                let name = ([word] + rest.prefix { Self.option($0) == nil }).joined(separator: " ")
                hint = "Write `--name \(name.shellQuoted)` for the device's name."
            }
        case Bonds._commandName:
            guard ["delete", "forget", "remove", "rm", "unpair"].contains(word) else { return nil }
            hint = "`blescan forget PEER` removes a bond."
        case SelfTest._commandName:
            guard word.hasPrefix("demo:") else { return nil }
            hint = "Write `--adapter \(word.shellQuoted)`."
        case Doctor._commandName:
            if SelfTestDemo.allNames.contains(word) {
                hint = "`blescan selftest --adapter \(word)` tests a virtual adapter."
            } else {
                guard (try? PeerArgument(argument: word)) != nil else { return nil }
                hint = "Write `--connect \(word.shellQuoted)` to connect to it as well."
            }
        default: return nil
        }
        return Failure(message: "unexpected argument '\(word)'", hint: hint, status: .usage)
    }

    /// Returns the failure for a line that ends before the peer, or before what to do with it; `nil` for another one.
    private func missing(after operands: [String]) -> Failure? {
        let command = name ?? ""
        let attributes = [
            Read._commandName: "<attribute> ...", Notify._commandName: "<attribute> ...",
            Write._commandName: "<attribute>",
        ]
        let peers = [Explore._commandName, Browse._commandName, Talk._commandName, Pair._commandName]
        guard let peer = operands.first else {
            if peers.contains(command) || attributes[command] != nil {
                let demo = command == Pair._commandName ? "demo:lock" : "demo:heart-rate"
                return missing(
                    "<peer>",
                    "Name a device, by the address that `blescan scan` shows, or a virtual one, such as \(demo).")
            }
            switch command {
            case Forget._commandName: return missing("<peer>", "`blescan bonds` lists the peers with a bond.")
            case Serve._commandName:
                return missing(
                    "<device>", "Name a file with a declaration, or a virtual device: \(VirtualPeer.names).")
            default: return nil
            }
        }
        guard operands.count == 1, let attribute = attributes[command],
            let designation = try? PeerDesignation(argument: peer)
        else { return nil }
        return absent(designation)
            ?? missing(attribute, "`blescan explore \(peer.shellQuoted)` lists what the peer has.")
    }

    /// Returns the failure for a virtual device that does not exist; `nil` for another peer.
    private func absent(_ peer: PeerDesignation) -> Failure? {
        guard case .known(.demo(let name)) = peer, VirtualPeer(named: name) == nil else { return nil }
        return VirtualPeer.absence(of: name)
    }

    private func missing(_ argument: String, _ hint: String) -> Failure {
        Failure(message: "missing expected argument '\(argument)'", hint: hint, status: .usage)
    }

    /// The commands that take any peer first.
    private static let withPeer: Set<String> = [
        Explore._commandName, Browse._commandName, Read._commandName, Write._commandName, Notify._commandName,
        Watch._commandName, Talk._commandName,
    ]
    /// Those of them that take attributes after it.
    private static let withAttributes: Set<String> = [
        Read._commandName, Write._commandName, Notify._commandName, Watch._commandName,
    ]

    /// Returns the failure for a peer or an attribute that cannot be one, with what was probably meant; `nil` for
    /// another line.
    private func unusable(_ operands: [String]) -> Failure? {
        guard Self.withPeer.contains(command.commandName), let first = operands.first else { return nil }
        let others = operands.dropFirst()
        do throws(BadValue) {
            let peer = try PeerDesignation(argument: first)
            return unusable(others, of: first, peer)
        } catch {
            if Self.withAttributes.contains(command.commandName), defect(ofAttribute: first) == nil,
                let peer = others.first(where: { (try? PeerDesignation(argument: $0)) != nil })
            {
                return Failure(
                    message: "the peer goes before the attribute",
                    hint: "Write `\(line([command.commandName, peer], without: peer))`.", status: .usage)
            }
            return error.suggestion.map { invalid(first, "<peer>", "it names no peer", $0) }
        }
    }

    /// Returns the failure for the words after a peer.
    private func unusable(_ words: ArraySlice<String>, of name: String, _ peer: PeerDesignation) -> Failure? {
        // A peer in the place of a command has become the peer of `explore`.
        if command.commandName == Explore._commandName, let word = words.first,
            Self.withPeer.contains(word) || word == Pair._commandName || word == Forget._commandName
        {
            return Failure(
                message: "the command goes before the peer", hint: "Write `\(line([word], without: word))`.",
                status: .usage)
        }
        guard Self.withAttributes.contains(command.commandName) else { return nil }
        for word in command.commandName == Write._commandName ? words.prefix(1) : words {
            if let defect = defect(ofAttribute: word) {
                return absent(peer) ?? invalid(word, "<attribute>", defect.reason, defect.hint(for: name))
            }
        }
        guard command.commandName == Watch._commandName, words.contains("rssi"), !peer.isInTheAir else { return nil }
        if let failure = absent(peer) { return failure }
        return Failure(
            message: "rssi is measured by an adapter, and \(name) needs none",
            hint: words.contains { $0 != "rssi" }
                ? "Leave out `rssi`." : "Name a value; `blescan explore \(name.shellQuoted)` lists them.",
            status: .usage)
    }

    /// Returns why a word is no attribute for this command; `nil` if it is one.
    private func defect(ofAttribute word: String) -> NotAnAttribute? {
        do throws(NotAnAttribute) {
            switch command.commandName {
            case Read._commandName: _ = try ReadArgument(argument: word)
            case Watch._commandName: _ = try WatchArgument(argument: word)
            default: _ = try AttributeArgument(argument: word)
            }
            return nil
        } catch {
            return error
        }
    }

    private func invalid(_ word: String, _ argument: String, _ reason: String, _ hint: String) -> Failure {
        Failure(message: "the value '\(word)' is invalid for '\(argument)': \(reason)", hint: hint, status: .usage)
    }

    /// Returns a line that begins with `start`, and goes on with the words of this one but for one of them, for a shell.
    private func line(_ start: [String], without word: String) -> String {
        var rest = Array(words)
        if let place = rest.firstIndex(of: word) { rest.remove(at: place) }
        return (["blescan"] + start + rest).map(\.shellQuoted).joined(separator: " ")
    }

    /// Returns the failure for a value that the shell has taken apart; `nil` for another one.
    ///
    /// - Parameters:
    ///   - option: The option that has got the beginning of the value.
    ///   - rest: The words after the beginning.
    ///   - operands: The number of operands before the option.
    private func unquoted(
        _ option: String, _ value: String, before rest: ArraySlice<String>, after operands: Int
    ) -> Failure? {
        let more = rest.prefix { Self.option($0) == nil }
        guard let word = more.first else { return nil }
        switch command.commandName {
        // Before the peer and the attribute, the next words may be these.
        case Write._commandName: guard operands >= 2, option == "--hex" || option == "--text" else { return nil }
        case Decode._commandName, Replay._commandName: guard option == "--hex" else { return nil }
        default: return nil
        }
        let parts = [value] + more
        if option == "--hex" {
            for part in parts {
                guard let bytes = try? Hex.decode(part), !bytes.isEmpty else { return nil }
            }
        }
        return Failure(
            message: "unexpected argument '\(word)'",
            hint: "Write `\(option) \(parts.joined(separator: " ").shellQuoted)` for all of it.", status: .usage)
    }

    /// Returns the failure for options before the command that `word` is.
    private func misplaced(_ word: String) -> Failure {
        let options = words.prefix { $0 != word }
        let line = ["blescan", word] + words.drop { $0 != word }.dropFirst() + options
        // After the command, an option that it does not have is no better.
        if let there = CommandWords(line.dropFirst()), let unknown = there.unknownOption(among: options) {
            return there.unknown(unknown)
        }
        // It can be pasted into a shell, which has removed the quotes.
        let text = line.map(\.shellQuoted).joined(separator: " ")
        return Failure(message: "options go after the command", hint: "Write `\(text)`.", status: .usage)
    }

    /// Returns the failure for the peer of a scan, which has none.
    private func surplus(_ word: String, _ peer: PeerDesignation) -> Failure {
        if case .known(.demo(let name)) = peer, VirtualPeer(named: name) == nil {
            return Failure(
                message: "a scan takes no peer, and there is no demo:\(name)",
                hint: VirtualPeer.advice(for: name), status: .usage)
        }
        let options: String? =
            switch peer {
            case .advertised(let peer): peer.scanOptions
            case .known(.address(_, _)): "--address \(word.shellQuoted)"
            case .known: nil
            }
        let explore = "`blescan explore \(word.shellQuoted)`"
        let hint =
            options.map { "Write `blescan scan \($0)` to hear it alone, or \(explore) for its attributes." }
            ?? "Write \(explore) for its attributes."
        return Failure(message: "a scan takes no peer, and \(word) is one", hint: hint, status: .usage)
    }

    /// Whether the options of `write` have a value.
    private var hasForm: Bool {
        words.prefix { $0 != "--" }.contains { word in
            Self.option(word).map { ValueOptions.forms.contains($0.name) } ?? false
        }
    }

    /// Returns the failure for a value whose form is not named; `word` is all of it.
    private func formless(_ word: String) -> Failure {
        let isHex = !word.isEmpty && (try? Hex.decode(word)) != nil
        let text = "`--text \(TextBytes.argument(word).shellQuoted)`"
        return Failure(
            message: "unexpected argument '\(word)'",
            hint: isHex
                ? "Write `--hex \(word.shellQuoted)` for bytes, or \(text) for a text." : "Write \(text) for a text.",
            status: .usage)
    }

    private func isCommand(_ word: String) -> Bool {
        (program.subcommands ?? []).contains { $0.commandName == word }
    }

    private func argument(_ option: String) -> Command.Argument? {
        let isLong = option.hasPrefix("--")
        let name = String(option.drop { $0 == "-" })
        if name == "help" || name == "h" || name == "version" {
            return .init(kind: "flag", names: nil, parsingStrategy: nil)
        }
        return (command.arguments ?? []).first { argument in
            (argument.names ?? []).contains { $0.name == name && ($0.kind == "long") == isLong }
        }
    }

    /// Returns the option that a word is: its name with the dashes, and whether a value is in the same word.
    private static func option(_ word: String) -> (name: String, hasValue: Bool)? {
        guard word.hasPrefix("-"), word.count > 1, !NumberArgument.isNegative(word) else { return nil }
        guard word.hasPrefix("--") else {
            // The rest is other short options, or the value.
            return (String(word.prefix(2)), word.count > 2)
        }
        let name = word.prefix { $0 != "=" }
        return (String(name), name.count < word.count)
    }
}
