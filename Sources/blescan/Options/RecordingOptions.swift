import ArgumentParser

/// `--record`, for every command that scans or connects.
struct RecordingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay. ATT packets are wrapped in "
                + "synthetic ACL headers.",
            valueName: "file"))
    var record: String?

    func validate() throws {
        if record == "-" {
            throw ValidationError(
                "--record needs a file; standard output has the results. Name a file, or ./- for one called so.")
        }
        if record == "" { throw ValidationError("--record takes the name of a file.") }
    }
}
