import BLELinux
import BareBLE
import Dispatch
import Glibc
import Synchronization

/// The one rewritten line on standard error that says what takes so long, where that is a terminal; elsewhere nothing.
///
/// A timer draws it, so that work that waits for an answer has a line too. `Console` takes it away before it prints.
///
/// A terminal may take nothing for as long as it likes. So nobody who says what is being done waits for one that writes: of the two
/// locks only `turn`, which keeps what is written apart, is held while something is written.
final class Progress: Sendable {
    /// How often the line may change.
    private static let period: DispatchTimeInterval = .milliseconds(250)

    private struct State {
        var line = ProgressLine()
        var timer: (any DispatchSourceTimer)?
    }

    /// Whether anybody sees it.
    let isOn: Bool
    private let state = Lock(State())
    /// Whose turn it is to write; taken before `state`.
    private let turn = Mutex(())
    private let width: @Sendable () -> Int?
    private let now: @Sendable () -> ContinuousClock.Instant
    private let write: @Sendable (String) -> Void

    init(
        isOn: Bool, width: @escaping @Sendable () -> Int?,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock().now },
        write: @escaping @Sendable (String) -> Void
    ) {
        self.isOn = isOn
        self.width = width
        self.now = now
        self.write = write
    }

    /// Something begins that may take long.
    func begin(_ text: @autoclosure () -> String) {
        guard isOn else { return }
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

    /// What is being done by now.
    func update(_ text: @autoclosure () -> String) {
        guard isOn else { return }
        let text = text()
        state.withLock { $0.line.update(text) }
    }

    /// How far the whole of it has come.
    func step(_ text: @autoclosure () -> String?) {
        guard isOn else { return }
        let text = text()
        state.withLock { $0.line.step(text) }
    }

    /// It is done; the line goes.
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

    /// Runs `body`, which prints on the same terminal, where no line is in its way.
    func makingRoom<Value>(for body: () -> Value) -> Value {
        guard isOn else { return body() }
        return turn.withLock { _ in
            put(state.withLock { $0.line.makeRoom(at: now()) })
            return body()
        }
    }

    private func draw() {
        // A screen has all of the terminal.
        guard !Terminal.isTaken else { return }
        // Whoever writes now makes the next line late, not this thread.
        _ = turn.withLockIfAvailable { _ in put(state.withLock { $0.line.due(at: now(), width: width()) }) }
    }

    private func put(_ text: String) {
        if !text.isEmpty { write(text) }
    }
}

extension Progress {
    /// Has links that are made with `configuration` say what they are doing.
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
