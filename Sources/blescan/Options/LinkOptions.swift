import ArgumentParser
import BLECore
import BareBLE

/// The options of every command that makes a link.
struct LinkOptions: ParsableArguments {
    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp("Adapter to use: hci0, or its address.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var adapter: AdapterArgument?

    @Option(
        name: [.long, .customShort("t")], parsing: .unconditional,
        help: ArgumentHelp(
            "Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, "
                + "500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)",
            valueName: "time"),
        transform: DurationArgument.init(argument:))
    var timeout: DurationArgument?

    @OptionGroup var bonds: BondOptions
}

/// The options of every command that prints what happens on a link.
struct OutputOptions: ParsableArguments {
    @OptionGroup var recording: RecordingOptions

    @Flag(name: [.long, .customShort("v")], help: "Print every ATT packet to standard error.")
    var trace = false

    @Flag(name: [.long, .customShort("j")], help: "Print one JSON object per line.")
    var json = false
}

/// `--bonds`, for every command that uses bonds.
struct BondOptions: ParsableArguments {
    @Option(
        name: .customLong("bonds"),
        help: ArgumentHelp(
            "The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.",
            valueName: "dir"),
        completion: .directory)
    var directory: String?

    func validate() throws {
        if directory == "" { throw ValidationError("--bonds takes the name of a directory.") }
    }
}

/// A passkey on the command line: six digits.
struct PasskeyArgument: Hashable, Sendable {
    let passkey: Passkey

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        guard let passkey = Passkey(argument) else { throw BadValue(description: "write up to six digits, as 012345.") }
        self.passkey = passkey
    }
}
