import ArgumentParser
import Glibc

/// `--record`, for every command that scans or connects.
struct RecordingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to "
                + "standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.",
            valueName: "file"),
        completion: .file())
    var record: String?

    /// Whether the option names a file.
    var namesFile: Bool { record.map { $0 != "-" } ?? false }

    func validate() throws {
        if record == "-", isatty(STDOUT_FILENO) == 1 {
            throw ValidationError(
                "--record - writes packets to standard output, which is a terminal; add | wireshark -k -i - or > FILE.")
        }
        if record == "" { throw ValidationError("--record takes the name of a file.") }
    }
}
