import BLELinux
import Dispatch

/// `blescan replay FILE --screen`: the advertisements of a recording in the live table, at the recorded speed, and what
/// it has of links.
struct ReplayScreen {
    let path: String
    let speed: Double
    let look: ScreenLook
    /// Whether addresses and names are masked.
    let redacts: Bool
    /// Whether only reports with measurements are shown.
    let onlySensors: Bool

    /// Shows them until the user quits; the last state stays when the file is at its end, or cannot be read any
    /// further.
    ///
    /// - Throws: The file's defect, after the terminal has been restored.
    func run() async throws {
        let pace = ReplayPace(speed)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let mode =
            (speed == 1 ? "recording" : "recording ×\(Self.number(speed))") + (onlySensors ? " of sensors" : "")
        let table = ScanScreen(.init(source: name, address: nil, mode: mode), look)
        let (path, redacts, onlySensors) = (path, redacts, onlySensors)
        let failure = Lock<Failure?>(nil)
        let links: ScanBrowser.Links =
            redacts ? .unavailable("--redact masks the addresses; replay without it to see recorded links") : .recorded
        let blank = ScanBrowser(table, links)
        let last = try await LiveScreen.during(
            blank, seek: { pace.seek(by: $0) }, clock: { pace.now() }
        ) { live in
            let damage: Failure? = try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { ended in
                    DispatchQueue(label: "replay").async {
                        let player = RecordingPlayer(
                            path, redacts: redacts, onlySensors: onlySensors, pace, blank: blank
                        ) { live.change($0) }
                        ended.resume(with: Result { try player.run() })
                    }
                }
            } onCancel: {
                pace.stop()
            }
            failure.withLock { $0 = damage }
        }.table
        Console.note("blescan: " + last.closing(after: pace.elapsed))
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value))" : "\(value)"
    }
}
