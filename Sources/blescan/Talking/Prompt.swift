import BLELinux
import Dispatch
import Glibc

// The terminal sends keys as they are pressed while there is a prompt, and shows nothing by itself: otherwise what is
// printed meanwhile would be in the middle of what the user types, and could not be kept apart from it. ^C and ^Z still
// send their signals. Every end of the program but those that `TerminalState` names restores the terminal.
//
// Duties
// - Returns the lines that the user types, one for each call of `next`.
// - Keeps the prompt below everything that is printed meanwhile (`hidden`).
// - On ^C drops the line, or cancels the operation under way; the session ends only at an empty prompt (`interrupt`).
// - Leaves the terminal to the shell on ^Z, takes it again when the program continues, and restores it at the end.
//
// Invariants
// - The prompt is drawn only while a line is being typed, nobody prints, and the prompt is not over.
// - `printing` counts the calls of `hide` that no `show` has followed yet.
// - One line is read at a time, on `queue`. What was typed after its end waits in `typed` for the next one.
// - The settings of the terminal are changed by `TerminalState` alone, which restores them.

/// The prompt of `talk`: lines of the user on a terminal, below everything that is printed meanwhile.
final class Prompt: Sendable {
    private struct State {
        var line: PromptLine
        /// What was typed, and not taken yet.
        var typed: [UInt8] = []
        /// Whether a line is being typed.
        var isActive = false
        /// Cancels the operation under way.
        var cancel: (@Sendable () -> Void)?
        /// Whether ^C has come since the last line was typed.
        var isInterrupted = false
        /// The number of those who print at the moment.
        var printing = 0
        var isOver = false
        var sources: [any DispatchSourceSignal] = []
    }

    /// The prompt on the terminal, if there is one.
    private static let current = Lock<Prompt?>(nil)
    private static let isRegistered = Lock(false)

    private let state: Lock<State>
    private let wake = WakePipe()
    private let queue = DispatchQueue(label: "prompt")
    /// Signals react one after the other: two would change the reaction to SIGTSTP at once.
    private let signals = DispatchQueue(label: "signals")

    private init(_ line: PromptLine) {
        state = Lock(State(line: line))
    }

    /// Takes the terminal of standard input and standard error; `nil` if they are none on which a line can be changed.
    ///
    /// What the program prints goes above the prompt until `end`.
    static func begin(_ line: PromptLine) -> Prompt? {
        guard TerminalLine.isPossible, Terminal.limitation == nil else { return nil }
        isRegistered.withLock { isRegistered in
            if !isRegistered { atexit { Prompt.restore() } }
            isRegistered = true
        }
        guard takeKeys() else { return nil }
        let prompt = Prompt(line)
        prompt.watch()
        current.withLock { $0 = prompt }
        Interrupt.offer { [weak prompt] in prompt?.interrupt() ?? false }
        return prompt
    }

    /// Restores the terminal.
    func end() {
        Interrupt.offer(to: nil)
        Self.current.withLock { $0 = nil }
        state.withLock { state in
            for source in state.sources { source.cancel() }
            state.sources = []
            state.isOver = true
        }
        Self.restore()
    }

    /// Returns the next line; `nil` at the end of the input, and to a cancelled task.
    func next() async -> InputLine? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [self] in continuation.resume(returning: read()) }
            }
        } onCancel: {
            wake.wake()
        }
    }

    /// Runs `body`, an operation between two lines, in a task that ^C cancels.
    func performing<Value: Sendable>(
        _ body: @Sendable @escaping () async throws -> Value
    ) async throws -> Value {
        let task = Task { try await body() }
        let isInterrupted = state.withLock { state in
            state.cancel = { task.cancel() }
            return state.isInterrupted
        }
        defer { state.withLock { $0.cancel = nil } }
        if isInterrupted { task.cancel() }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Whether ^C has come since the last line was typed.
    var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

    /// Runs `body`, which prints, with the prompt hidden meanwhile if there is one.
    static func hidden(_ body: () -> Void) {
        let prompt = current.withLock(\.self)
        prompt?.hide()
        defer { prompt?.show() }
        body()
    }

    /// Runs `body`, which prints, with the prompt hidden meanwhile if there is one.
    static func hidden<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        let prompt = current.withLock(\.self)
        prompt?.hide()
        defer { prompt?.show() }
        return try await body()
    }

    /// Clears the row of the prompt, until `show` is called as often.
    private func hide() {
        state.withLock { state in
            state.printing += 1
            if state.printing == 1, state.isActive { Self.write(PromptLine.erase) }
        }
    }

    /// Draws the prompt again, with what was typed.
    private func show() {
        state.withLock { state in
            state.printing -= 1
            Self.draw(state)
        }
    }

    // MARK: Keys

    private func read() -> InputLine? {
        state.withLock { state in
            state.isActive = true
            state.isInterrupted = false
            Self.draw(state)
        }
        let line = readLine()
        state.withLock { Self.leave(&$0) }
        return line
    }

    /// Leaves the row of the line, which is complete.
    private static func leave(_ state: inout State) {
        guard state.isActive else { return }
        state.isActive = false
        if state.printing == 0 { write("\n") }
    }

    private func readLine() -> InputLine? {
        while true {
            switch take() {
            case .line(let line): return line
            case .end: return nil
            case .offers, .typing: break
            }
            guard wake.waitForInput(STDIN_FILENO) else { return nil }
            switch InputFile.chunk(STDIN_FILENO, 256) {
            case .success(let bytes) where !bytes.isEmpty: state.withLock { $0.typed += bytes }
            // The terminal is gone.
            case .success: return nil
            case .failure(let number): if number != EAGAIN { return nil }
            }
        }
    }

    /// Takes what was typed, up to the end of a line.
    private func take() -> PromptLine.Outcome {
        state.withLock { state in
            var taken = 0
            var outcome = PromptLine.Outcome.typing
            while taken < state.typed.count, outcome == .typing {
                let byte = state.typed[taken]
                taken += 1
                // The whole line stays on the terminal.
                if byte == 0x0A || byte == 0x0D { Self.draw(state) }
                outcome = state.line.take(byte)
                if case .offers(let words) = outcome {
                    if state.printing == 0 { Self.write(PromptLine.erase + words.joined(separator: "  ") + "\n") }
                    outcome = .typing
                }
            }
            state.typed.removeFirst(taken)
            switch outcome {
            // At once: a ^C from now on is for the operation.
            case .line, .end: Self.leave(&state)
            case .typing, .offers: if taken > 0 { Self.draw(state) }
            }
            return outcome
        }
    }

    private static func draw(_ state: State) {
        guard state.isActive, state.printing == 0, !state.isOver else { return }
        write(state.line.drawn(columns: Console.width(of: STDERR_FILENO) ?? 80))
    }

    private static func write(_ text: String) {
        _ = Console.write(Array(text.utf8), to: STDERR_FILENO)
    }

    /// ^C: drops the line that is being typed, or cancels the operation under way. What was typed for later goes with it,
    /// as the terminal drops what was not read.
    ///
    /// - Returns: `false` at an empty prompt, and for a second ^C in one operation: the session is meant.
    private func interrupt() -> Bool {
        let (isTaken, cancel) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard !state.isOver else { return (false, nil) }
            if state.isActive {
                guard !state.line.isEmpty else { return (false, nil) }
                // The whole line stays on the terminal, as after its end.
                _ = state.line.take(0x05)
                Self.draw(state)
                if state.printing == 0 { Self.write("^C\n") }
                state.line.drop()
                state.typed = []
                Self.draw(state)
                return (true, nil)
            }
            guard !state.isInterrupted else { return (false, nil) }
            state.isInterrupted = true
            state.typed = []
            return (true, state.cancel)
        }
        // Not with the lock held: what is cancelled may print.
        cancel?()
        return isTaken
    }

    // MARK: The terminal

    private static func takeKeys() -> Bool {
        TerminalState.shared.change { settings in
            settings.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
            // VQUIT: ^\ would end the program without disconnecting.
            settings.c_cc.1 = 0
        }
    }

    private static func restore() { TerminalState.shared.restore() }

    private func watch() {
        let reactions: [(Int32, @Sendable () -> Void)] = [
            (SIGWINCH, { [weak self] in self?.state.withLock { Self.draw($0) } }),
            (SIGTSTP, { [weak self] in self?.pause() }),
            (SIGCONT, { [weak self] in self?.resume() }),
        ]
        let sources = reactions.map { number, reaction in
            let source = DispatchSource.makeSignalSource(signal: number, queue: signals)
            source.setEventHandler(handler: reaction)
            source.resume()
            return source
        }
        state.withLock { $0.sources = sources }
    }

    /// ^Z: the shell has the terminal until it resumes this program in the foreground.
    private func pause() {
        guard !state.withLock(\.isOver) else { return }
        hide()
        Self.restore()
        // To the thread, not to the process: it has stopped when this returns.
        Terminal.heedingTheShell { raise(SIGTSTP) }
        resume()
        show()
    }

    private func resume() {
        guard !state.withLock(\.isOver) else { return }
        // After `bg` the kernel stops this program again until it is in the foreground.
        Terminal.heedingTheShell { _ = Self.takeKeys() }
        state.withLock { Self.draw($0) }
    }
}
