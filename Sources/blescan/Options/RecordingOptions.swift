import ArgumentParser

/// `--record`, which every command understands that hears or talks to devices.
struct RecordingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write the packets to this new btsnoop file, for Wireshark, btmon -r and replay. ATT packets come from a "
                + "socket; their ACL frames are made for the file.",
            valueName: "file"))
    var record: String?

    func validate() throws {
        if record == "" { throw ValidationError("--record takes the name of a file.") }
    }

    /// Makes the file, if one is wanted.
    func begin() throws(Failure) -> SessionRecording? {
        guard let record else { return nil }
        return try SessionRecording(record)
    }
}
