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
        let mode = speed == 1 ? "recording" : "recording ×\(Self.number(speed))"
        let table = ScanScreen(.init(source: name, address: nil, mode: mode), look, onlySensors: onlySensors)
        let (path, redacts) = (path, redacts)
        let failure = Lock<Failure?>(nil)
        let links: ScanBrowser.Links =
            redacts ? .unavailable("--redact masks the addresses; replay without it to see recorded links") : .recorded
        let blank = ScanBrowser(table, links)
        let last = try await LiveScreen.during(
            blank, seek: { pace.seek(by: $0) }, clock: { pace.now() }
        ) { live in
            let reading = Reading()
            try await withTaskCancellationHandler {
                try await reading.run {
                    DispatchQueue(label: "replay").async {
                        let player = RecordingPlayer(path, redacts: redacts, pace, blank: blank) { live.change($0) }
                        reading.end(
                            Result { try player.run(reporting: { damage in failure.withLock { $0 = damage } }) })
                    }
                }
            } onCancel: {
                pace.stop()
                reading.end(.success(()))
            }
        }.table
        Console.note("blescan: " + last.closing(after: pace.elapsed))
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value))" : "\(value)"
    }
}

/// The reading in a thread, which is not waited for once the user has quit: the writer of a pipe may be silent for any
/// time.
private final class Reading: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Void, any Error>?
        var isOver = false
    }

    private let state = Lock(State())

    /// Runs `begin`, which begins it, and returns when it has ended.
    func run(_ begin: () -> Void) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let isOver = state.withLock { state in
                if !state.isOver { state.continuation = continuation }
                return state.isOver
            }
            if isOver { return continuation.resume() }
            begin()
        }
    }

    /// It has ended, or nobody waits for it any more; only the first call counts.
    func end(_ result: Result<Void, any Error>) {
        let continuation = state.withLock { state in
            state.isOver = true
            return state.continuation.take()
        }
        continuation?.resume(with: result)
    }
}
