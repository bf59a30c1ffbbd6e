import BLECore
import BareBLE

/// The command that does the same as a key: for a shell, so that what a device has sent is no word of it.
struct EquivalentCommand: Hashable, Sendable {
    /// The peer, and how the link to it is made.
    struct Target: Hashable, Sendable {
        let peer: String
        /// The given options of the link, as words of a command.
        var options: [String] = []
    }

    private let words: [String]

    private init(_ command: String, _ target: Target, _ words: String...) {
        self.init(command, target, words)
    }

    private init(_ command: String, _ target: Target, _ words: [String]) {
        self.words = [command, target.peer] + words + target.options
    }

    /// Creates the command that shows or reads an attribute, or prints its values.
    init(about row: AttributeRow, of target: Target) {
        let handle = Self.word(row.handle)
        switch row.kind {
        case .service: self.init("explore", target, "--service", row.type.map(\.description) ?? handle)
        case .include: self.init("explore", target)
        case .descriptor: self.init("read", target, handle)
        case .characteristic:
            if row.properties.contains(.read) {
                self.init("read", target, handle)
            } else if row.properties.canSubscribe {
                self.init("notify", target, handle)
            } else if row.properties.canWrite {
                self.init("write", target, handle, "--hex", "BYTES")
            } else {
                self.init("read", target, handle)
            }
        }
    }

    static func browsing(_ target: Target) -> EquivalentCommand { EquivalentCommand("browse", target) }

    static func reading(_ handle: AttributeHandle, of target: Target) -> EquivalentCommand {
        EquivalentCommand("read", target, word(handle))
    }

    static func subscribing(to handle: AttributeHandle, of target: Target) -> EquivalentCommand {
        EquivalentCommand("notify", target, word(handle))
    }

    static func writing(
        _ bytes: [UInt8], to handle: AttributeHandle, of target: Target, _ kind: Peripheral.WriteKind
    ) -> EquivalentCommand {
        var target = target
        if kind == .withoutResponse { target.options.insert("--without-response", at: 0) }
        return EquivalentCommand("write", target, word(handle), "--hex", Hex.encode(bytes))
    }

    /// Returns the command that subscribes to values, writes and prints what is sent then.
    static func subscribing(
        to sent: [AttributeHandle], writing bytes: [UInt8], to handle: AttributeHandle, of target: Target
    ) -> EquivalentCommand {
        var target = target
        target.options = ["--after", word(handle) + "=" + Hex.encode(bytes)] + target.options
        return EquivalentCommand("notify", target, sent.map(word))
    }

    static func writingFile(to handle: AttributeHandle, of target: Target) -> EquivalentCommand {
        EquivalentCommand("write", target, word(handle), "--file", "PATH")
    }

    private static func word(_ handle: AttributeHandle) -> String {
        CharacteristicReference.handle(handle).description
    }

    /// The command line.
    var text: String { (["blescan"] + words.map(\.shellQuoted)).joined(separator: " ") }
}

extension String {
    /// The text as one word of a command for a shell.
    var shellQuoted: String {
        let isPlain = unicodeScalars.allSatisfy { scalar in
            scalar.isASCII && (scalar.properties.isAlphabetic || "0123456789-_./:,=@%+".unicodeScalars.contains(scalar))
        }
        if isPlain, !isEmpty { return self }
        return "'" + replacing("'", with: #"'\''"#) + "'"
    }

    /// A path as one word of a command for a shell, and no option.
    var shellPath: String { (hasPrefix("-") ? "./" + self : self).shellQuoted }
}

extension CharacteristicProperties {
    /// Whether a value can be written.
    var canWrite: Bool { !isDisjoint(with: [.write, .writeWithoutResponse]) }
}

extension ConnectionOptions {
    /// The given options that decide how a link is made, as words of a command.
    ///
    /// The others belong to one command alone: a pairing is done by then, and its passkey is secret; the file of
    /// `--record` exists by then.
    var linkWords: [String] {
        var words = Self.words(adapter: adapter, bonds: link.bonds)
        if let timeout = link.timeout { words += ["--timeout", timeout.description] }
        if let mtu, mtu != Configuration().preferredMTU { words += ["--mtu", String(mtu)] }
        if let cache { words += ["--cache", cache] }
        if ignoresBonds { words.append("--no-bond") }
        return words
    }

    /// Returns the options of a link that is made from the table.
    static func words(adapter: AdapterArgument?, bonds: BondOptions) -> [String] {
        var words: [String] = []
        switch adapter?.selector {
        case .named(let name)?: words = ["--adapter", name]
        case .address(let address)?: words = ["--adapter", address.description]
        case .first?, nil: break
        }
        if let directory = bonds.directory { words += ["--bonds", directory] }
        return words
    }
}
