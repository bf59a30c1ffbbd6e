import ArgumentParser
import BLECore
import BareBLE

/// Prints recorded packets; no radio is needed.
struct Replay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the packets of a capture, and the devices that advertise in it.",
        discussion: """
            EXAMPLES
              blescan replay capture.btsnoop
              blescan replay capture.btsnoop --only att
              blescan replay capture.btsnoop --only adv --json
              blescan replay --hex 02010603030d18060950756c7365

            Reads btsnoop (btmon -w, Android's HCI log), pcap and pcapng with traffic
            between a host and its controller, and .dialogue files, such as --trace
            prints. < goes from the host to the controller, > comes back; answers tell
            how long they took.
            """)

    /// Which packets to print.
    enum Layer: String, ExpressibleByArgument, CaseIterable {
        case att, hci, adv

        /// `hci` leaves out what the other two show.
        func shows(_ layer: PrintedPacket.Layer) -> Bool {
            switch self {
            case .att: layer == .att
            case .adv: layer == .advertising
            case .hci: layer == .hci || layer == .note
            }
        }
    }

    @Argument(help: "A capture: btsnoop, pcap, pcapng or .dialogue.")
    var file: String?

    @Option(help: ArgumentHelp("Print these packets alone.", valueName: "kind"))
    var only: Layer?

    @Flag(help: "Print one JSON object a packet.")
    var json = false

    @Option(
        help: ArgumentHelp("Explain this payload as `decode --hex` does, instead of a file.", valueName: "bytes"))
    var hex: String?

    func validate() throws {
        if (file == nil) == (hex == nil) { throw ValidationError("Name a capture, or give a payload with --hex.") }
    }

    func run() async throws {
        if let hex {
            return try await Decode.parse(["--hex", hex] + (json ? ["--json"] : [])).run()
        }
        guard let file else { return }
        var output = ReplayOutput(only: only, json: json)
        if file.hasSuffix(".dialogue") {
            try replay(dialogue: file, &output)
        } else {
            try replay(capture: file, &output)
        }
        output.finish()
        if output.shownCount == 0 {
            throw Failure(message: "\(file) has no such packets.", status: .notFound)
        }
    }

    private func replay(dialogue path: String, _ output: inout ReplayOutput) throws {
        let bytes = try FileBytes.read(path, atMost: 1 << 24)
        do throws(Dialogue.ParsingError) {
            for step in try Dialogue(String(decoding: bytes, as: UTF8.self)).steps { output.show(step) }
        } catch {
            throw Failure(
                message:
                    "\(path) is no dialogue: \(error). Each PDU stands on a line of its own, such as \"< 0a 0300\".",
                status: .badData)
        }
    }

    private func replay(capture path: String, _ output: inout ReplayOutput) throws {
        var chunks = try FileChunks(path)
        var reader = CaptureReader()
        do throws(CaptureError) {
            while let chunk = chunks.next() {
                reader.append(chunk)
                while let packet = try reader.next() { output.show(packet) }
            }
            try reader.finish()
        } catch .truncated(let count) where count > 0 {
            // The recorder was stopped while it wrote: everything before is good.
            output.warning =
                "the last record is cut off; \(count.counted("packet")) before it \(count == 1 ? "is" : "are") whole."
        } catch {
            output.finish()
            throw Failure(message: "\(path): \(error). \(advice(error))", status: .badData)
        }
    }

    private func advice(_ error: CaptureError) -> String {
        switch error {
        case .notACapture: "Record one with `btmon -w FILE`; hexadecimal text is read by `blescan decode`."
        case .unsupportedDatalink: "Record between host and controller, with `btmon -w FILE` or Android's HCI log."
        case .unsupportedVersion: "Convert it with a newer tool."
        case .truncated, .corruptRecord: "What was readable is printed above."
        }
    }
}
