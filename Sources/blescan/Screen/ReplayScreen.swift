import BLECore
import Dispatch
import Synchronization

/// `blescan replay FILE --screen`: the advertisements of a recording in the live table, at the speed at which they came.
struct ReplayScreen {
    let path: String
    let speed: Double
    let look: ScreenLook
    /// Whether addresses and names are masked.
    let redacts: Bool

    /// Shows them until the user quits; the last state stands when the file is at its end.
    func run() async throws {
        let pace = ReplayPace(speed)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let mode = speed == 1 ? "recording" : "recording ×\(Self.number(speed))"
        let table = ScanScreen(.init(source: name, address: nil, mode: mode), look)
        let (path, redacts) = (path, redacts)
        let last = try await LiveScreen.during(table) {
            pace.now()
        } _: { live in
            let warning = try await withTaskCancellationHandler {
                try await Self.play(path, redacts, pace, live)
            } onCancel: {
                pace.stop()
            }
            if Task.isCancelled { return }
            pace.end()
            live.change { screen in
                screen.heading.mode = "end of the recording" + (warning == nil ? "" : ", which is cut off")
                screen.sort(at: pace.now())
            }
            // Until the user quits.
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            for await _ in stream {}
            continuation.finish()
        }
        Console.note("blescan: " + last.closing(after: pace.elapsed))
    }

    /// Reads the file in a thread of its own, which waits until each report is due; answers what is wrong with the file's end.
    private static func play(
        _ path: String, _ redacts: Bool, _ pace: ReplayPace, _ live: LiveScreen
    ) async throws -> String? {
        try await withCheckedThrowingContinuation { ended in
            DispatchQueue(label: "replay").async {
                ended.resume(with: Result { try read(path, redacts, pace, live) })
            }
        }
    }

    private static func read(
        _ path: String, _ redacts: Bool, _ pace: ReplayPace, _ live: LiveScreen
    ) throws -> String? {
        var printer = PacketPrinter()
        var assembler = ReportAssembler()
        var table = DeviceTable()
        var redaction = redacts ? Redaction() : nil
        var isEmpty = true
        do {
            let warning = try Recording.read(path) { packet in
                for fragment in printer.print(packet).reports {
                    isEmpty = false
                    guard let now = pace.wait(until: packet.timestamp) else { throw CancellationError() }
                    guard let report = assembler.received(fragment, at: now) else { continue }
                    guard let outcome = table.record(report, at: now) else { continue }
                    let sighting = redaction?.redacted(table[outcome.place]) ?? table[outcome.place]
                    let evicted = outcome.evicted.map { redaction?.redacted($0) ?? $0 }
                    live.change { screen in
                        if let evicted { screen.remove(evicted.id) }
                        screen.take(sighting)
                    }
                }
            } dialogue: { _ in
            }
            if isEmpty { throw Failure(message: "\(path) has no advertisements.", status: .notFound) }
            return warning
        } catch is CancellationError {
            return nil
        }
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value))" : "\(value)"
    }
}

/// The clock of a recording: it begins with the first report, goes at the speed that is wanted, and never goes back.
final class ReplayPace: Sendable {
    private struct State {
        /// The first report, in the recording and here.
        var beginning: (recorded: BootInstant, here: BootInstant)?
        var newest = BootInstant.zero
        var isOver = false
    }

    private let state = Mutex(State())
    private let stopped = DispatchSemaphore(value: 0)
    private let speed: Double

    init(_ speed: Double) {
        self.speed = speed
    }

    /// The recording's time; it stands still where there is nothing to come.
    func now() -> BootInstant {
        state.withLock { state in
            guard let beginning = state.beginning, !state.isOver else { return state.newest }
            let passed = (Terminal.now() - beginning.here) * speed
            return max(state.newest, beginning.recorded + passed)
        }
    }

    /// How much of the recording's time has passed.
    var elapsed: Duration {
        let now = now()
        return state.withLock { state in state.beginning.map { now - $0.recorded } ?? .zero }
    }

    /// Waits until a report is due, and answers its time; `nil` when nobody wants to see it any more.
    func wait(until timestamp: Duration) -> BootInstant? {
        let recorded = BootInstant(nanoseconds: timestamp.saturatedNanoseconds)
        let (due, pause) = state.withLock { state in
            let beginning = state.beginning ?? (recorded, Terminal.now())
            state.beginning = beginning
            // The clock of the machine that recorded may have been put back.
            let due = max(recorded, state.newest)
            let passed = (Terminal.now() - beginning.here) * speed
            return (due, (due - beginning.recorded - passed) / speed)
        }
        let seconds = min(max(pause / .seconds(1), 0), 1e9)
        guard stopped.wait(timeout: .now() + seconds) == .timedOut else {
            stopped.signal()
            return nil
        }
        state.withLock { $0.newest = max($0.newest, due) }
        return due
    }

    /// Nobody wants to see more.
    func stop() {
        stopped.signal()
    }

    /// Nothing comes any more: the clock stands still at the last report.
    func end() {
        state.withLock { $0.isOver = true }
    }
}
