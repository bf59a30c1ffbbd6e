internal import BLECore
internal import BLELinux
internal import BareBLE
internal import Dispatch
internal import Glibc
internal import Synchronization

/// The progress line on standard error, rewritten in place, if that is a terminal; otherwise nothing.
///
/// A timer draws it, so that work that waits for a response has a line too. `Console` clears it before it prints.
///
/// A terminal may take nothing for any time. So reporting progress never waits for a write: of the two locks only
/// `turn`, which separates the writes, is held during a write.
final class Progress: Sendable {
    /// The shortest time between two changes of the line.
    private static let period: DispatchTimeInterval = .milliseconds(250)

    private struct State {
        var line = ProgressLine()
        var timer: (any DispatchSourceTimer)?
    }

    /// Whether the line is shown.
    let isOn: Bool
    private let state = Lock(State())
    /// Serializes the writes; taken before `state`.
    private let turn = Mutex(())
    private let width: @Sendable () -> Int?
    /// Whether a screen uses the whole terminal.
    private let isScreenShown: @Sendable () -> Bool
    private let now: @Sendable () -> ContinuousClock.Instant
    private let write: @Sendable (String) -> Void

    init(
        isOn: Bool, width: @escaping @Sendable () -> Int?,
        isScreenShown: @escaping @Sendable () -> Bool = { Terminal.isTaken },
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock().now },
        write: @escaping @Sendable (String) -> Void
    ) {
        self.isOn = isOn
        self.width = width
        self.isScreenShown = isScreenShown
        self.now = now
        self.write = write
    }

    /// Begins work that may take long.
    ///
    /// That of a screen has no line, nor has it one while the screen is suspended: it could not be cleared once the
    /// screen is back.
    func begin(_ text: @autoclosure () -> String) {
        guard isOn, !isScreenShown() else { return }
        let text = text()
        state.withLock { state in
            state.line.begin(text, at: now())
            guard state.timer == nil else { return }
            let timer = DispatchSource.makeTimerSource(queue: .global())
            timer.schedule(deadline: .now() + Self.period, repeating: Self.period)
            timer.setEventHandler { [weak self] in self?.draw() }
            timer.resume()
            state.timer = timer
        }
    }

    /// Changes the current activity.
    func update(_ text: @autoclosure () -> String) {
        guard isOn else { return }
        let text = text()
        state.withLock { $0.line.update(text) }
    }

    /// Changes the progress of the whole.
    func step(_ text: @autoclosure () -> String?) {
        guard isOn else { return }
        let text = text()
        state.withLock { $0.line.step(text) }
    }

    /// Ends the work and clears the line.
    func end() {
        guard isOn else { return }
        turn.withLock { _ in
            put(
                state.withLock { state in
                    state.timer?.cancel()
                    state.timer = nil
                    return state.line.end()
                })
        }
    }

    /// Runs `body`, which prints on the same terminal, with the line cleared.
    func makingRoom<Value>(for body: () -> Value) -> Value {
        guard isOn else { return body() }
        return turn.withLock { _ in
            put(state.withLock { $0.line.makeRoom(at: now()) })
            return body()
        }
    }

    /// Draws the line if it is due; the timer calls it.
    func draw() {
        guard !isScreenShown() else { return }
        // A write in progress delays the next line, not this thread.
        _ = turn.withLockIfAvailable { _ in put(state.withLock { $0.line.due(at: now(), width: width()) }) }
    }

    private func put(_ text: String) {
        if !text.isEmpty { write(text) }
    }
}

extension Progress {
    /// Reports the activity of links that are made with `configuration`.
    func attach(to configuration: inout Configuration) {
        guard isOn else { return }
        let trace = configuration.trace
        let activity = Lock(LinkActivity())
        configuration.trace = { pdu in
            trace?(pdu)
            guard pdu.isOutgoing else { return }
            if let text = activity.withLock({ $0.sent(pdu.bytes) }) { self.update("\(pdu.peer): \(text)") }
        }
    }
}

/// The activity of a link, derived from its requests.
struct LinkActivity {
    private var requests = 0

    /// Returns the activity from this packet on; `nil` if it is unchanged.
    mutating func sent(_ pdu: [UInt8]) -> String? {
        guard let first = pdu.first, ATTOpcode(rawValue: first).isRequest, let packet = try? ATTPacket(pdu) else {
            return nil
        }
        requests += 1
        let summary = packet.summary
        let handle = summary.handle.map { CharacteristicReference.handle($0) }
        let progress = summary.offset.map { ", \(Int($0).counted("byte")) so far" } ?? ""
        switch (summary.purpose, handle) {
        case (.mtuExchange, _): return "exchanging the MTU"
        case (.discovery, let handle?):
            return "discovering the database, \(requests.counted("request")), at \(handle)"
        case (.read, let handle?): return "reading \(summary.type.map { "\($0)" } ?? "\(handle)")\(progress)"
        case (.write, let handle?): return "writing \(handle)\(progress)"
        default: return nil
        }
    }
}
