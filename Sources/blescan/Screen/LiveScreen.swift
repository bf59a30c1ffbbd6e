// Draws a `ScanScreen`, and passes it keys, sizes and time.
//
// - Events change the value at once, under a lock that is never held during a write: a slow terminal does not stop the
//   radio.
// - Drawing, keys, signals and the clock's ticks are on one queue. A key takes effect at once; everything else at the
//   next tick.
// - ^C and SIGTERM cancel the task by `Interrupt`; `q`, SIGHUP and the end of the terminal cancel the body from here.
//   Either way the body ends first, then the terminal is restored, then the result or the error is passed on.

import BLECore
import BLELinux
import Dispatch
import Glibc

/// A live table on the terminal.
final class LiveScreen: Sendable {
    private struct State {
        var screen: ScanScreen
        var keys = ScreenKeyReader()
        var painter = ScreenPainter()
        var isChanged = true
        var isOver = false
        var lastSecond: Int64 = .min
    }

    private static let tick: DispatchTimeInterval = .milliseconds(100)

    private let state: Lock<State>
    private let queue = DispatchQueue(label: "screen")
    private let clock: @Sendable () -> BootInstant
    private let quit: @Sendable () -> Void

    private init(
        _ screen: ScanScreen, clock: @escaping @Sendable () -> BootInstant, quit: @escaping @Sendable () -> Void
    ) {
        state = Lock(State(screen: screen))
        self.clock = clock
        self.quit = quit
    }

    /// Shows the table while `body` runs, and restores the terminal; returns the last state of the table.
    ///
    /// When the user quits, the body is cancelled and can clean up. `clock` is the clock of the scan results.
    static func during(
        _ screen: ScanScreen, clock: @escaping @Sendable () -> BootInstant = { Terminal.now() },
        _ body: @Sendable @escaping (LiveScreen) async throws -> Void
    ) async throws -> ScanScreen {
        let (wishes, wish) = AsyncStream.makeStream(of: Void.self)
        let live = LiveScreen(screen, clock: clock) { wish.yield() }
        guard Terminal.enter() else {
            throw Failure(message: "the terminal cannot be used for a screen", hint: "Add --plain.", status: .linkLost)
        }
        let task = Task { try await body(live) }
        let waiter = Task { for await _ in wishes { task.cancel() } }
        let sources = live.watch()
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        for source in sources { source.cancel() }
        wish.finish()
        waiter.cancel()
        // A drawing in progress ends with this too.
        live.state.withLock { $0.isOver = true }
        await withCheckedContinuation { ended in
            live.queue.async {
                Terminal.leave()
                ended.resume()
            }
        }
        try result.get()
        return live.state.withLock { $0.screen }
    }

    /// Changes the table with the next tick.
    func change(_ change: (inout ScanScreen) -> Void) {
        state.withLock { state in
            change(&state.screen)
            state.isChanged = true
        }
    }

    // MARK: On the queue

    private func watch() -> [any DispatchSourceProtocol] {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: Self.tick)
        timer.setEventHandler { [self] in draw() }
        let keys = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: queue)
        keys.setEventHandler { [self] in readKeys() }
        var sources: [any DispatchSourceProtocol] = [timer, keys]
        let reactions: [(Int32, @Sendable () -> Void)] = [
            (SIGWINCH, { [self] in redraw() }),
            (SIGTSTP, { [self] in pause() }),
            (SIGCONT, { [self] in resume() }),
            (SIGHUP, quit),
        ]
        for (number, reaction) in reactions {
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler(handler: reaction)
            sources.append(source)
        }
        redraw()
        for source in sources { source.resume() }
        return sources
    }

    /// Draws the changes.
    private func draw() {
        let now = clock()
        let bytes = state.withLock { state -> [UInt8] in
            // Values in seconds change with them.
            let second = now.nanoseconds / 1_000_000_000
            guard !state.isOver, state.isChanged || second != state.lastSecond else { return [] }
            state.isChanged = false
            state.lastSecond = second
            state.screen.timePassed(at: now)
            return state.painter.bytes(for: state.screen.frame(at: now))
        }
        guard !bytes.isEmpty else { return }
        if !Terminal.write(bytes, while: { [self] in !(state.withLock { $0.isOver }) }) { quit() }
    }

    /// Draws everything, at the present size of the terminal.
    private func redraw() {
        let size = Terminal.size
        state.withLock { state in
            state.screen.resize(columns: size.columns, rows: size.rows)
            state.painter.forget()
            state.isChanged = true
        }
        draw()
    }

    private func readKeys() {
        guard let bytes = Terminal.read() else { return quit() }
        press { $0.read(bytes) }
        guard state.withLock({ $0.keys.isWaiting }) else { return }
        queue.asyncAfter(deadline: .now() + (ScreenKeyReader.escapeTimeout / .seconds(1))) { [self] in
            press { $0.timePassed() }
        }
    }

    private func press(_ read: (inout ScreenKeyReader) -> [ScreenKey]) {
        let now = clock()
        let wishes = state.withLock { state in
            let keys = read(&state.keys)
            if !keys.isEmpty { state.isChanged = true }
            return keys.map { state.screen.press($0, at: now) }
        }
        if wishes.contains(.quit) { return quit() }
        if wishes.contains(.redraw) { redraw() } else { draw() }
    }

    /// ^Z: the shell has the terminal until it resumes this program in the foreground.
    private func pause() {
        guard !(state.withLock { $0.isOver }) else { return }
        Terminal.leave()
        // To the thread, not to the process: it has stopped when this returns.
        Terminal.heedingTheShell { raise(SIGTSTP) }
        resume()
    }

    private func resume() {
        guard !(state.withLock { $0.isOver }) else { return }
        // After `bg` there is nothing to draw on: the kernel stops this program again until it is in the foreground.
        var isMine = false
        Terminal.heedingTheShell { isMine = Terminal.enter() }
        guard isMine else { return quit() }
        redraw()
    }
}
