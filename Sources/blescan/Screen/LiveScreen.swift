// Draws the value of a screen, and passes it keys, sizes and time.
//
// - Events change the value at once, under a lock that is never held during a write: a slow terminal does not stop the
//   radio.
// - Drawing, keys, signals and the clock's ticks are on one queue. A key takes effect at once; everything else at the
//   next tick.
// - ^C, SIGTERM and SIGHUP cancel the task by `Interrupt`; `q`, SIGHUP and the end of the terminal cancel the body from
//   here.
//   Either way the body ends first, then the terminal is restored, then the result or the error is passed on.

import BLECore
import BLELinux
import Dispatch
import FoundationEssentials
import Glibc

/// The value of a screen: keys and time go in, frames come out.
protocol LiveContent: Sendable {
    /// A sentence about what to do where there is no screen.
    static var withoutScreen: String { get }
    /// Whether clicks and the wheel are keys.
    var usesMouse: Bool { get }
    /// The terminal has another size.
    mutating func resize(columns: Int, rows: Int)
    /// Handles a key.
    mutating func press(_ key: ScreenKey, at now: BootInstant) -> ScreenAction
    /// Advances the time.
    mutating func timePassed(at now: BootInstant)
    /// Returns the screen at a moment, a line for each row of the terminal.
    mutating func frame(at now: BootInstant) -> [ScreenLine]
}

/// What a key requests beyond the value of the screen.
enum ScreenAction: Hashable, Sendable {
    case none
    /// The user leaves the screen.
    case quit
    /// The terminal has to be drawn again.
    case redraw
    /// The text goes to the clipboard.
    case copy(String)
    /// The user connects to this device of the table.
    case open(AdvertiserID)
    /// Something to do on a link.
    case link(LinkRequest)
    /// The recording goes this far forward, or back.
    case seek(Duration)
}

/// A screen on the terminal.
final class LiveScreen<Content: LiveContent>: Sendable {
    private struct State {
        var screen: Content
        var keys = ScreenKeyReader()
        var painter = ScreenPainter()
        /// Whether the terminal reports the mouse.
        var usesMouse = false
        var isChanged = true
        var isOver = false
        var lastSecond: Int64 = .min
    }

    private static var tick: DispatchTimeInterval { .milliseconds(100) }

    /// What the user wants to be done on a link, in order; it ends when the user quits.
    let requests: AsyncStream<LinkRequest>
    private let request: AsyncStream<LinkRequest>.Continuation

    private let state: Lock<State>
    private let queue = DispatchQueue(label: "screen")
    private let clock: @Sendable () -> BootInstant
    private let seek: @Sendable (Duration) -> Void
    private let quit: @Sendable () -> Void

    private init(
        _ screen: Content, seek: @escaping @Sendable (Duration) -> Void,
        clock: @escaping @Sendable () -> BootInstant, quit: @escaping @Sendable () -> Void
    ) {
        state = Lock(State(screen: screen))
        self.seek = seek
        self.clock = clock
        self.quit = quit
        (requests, request) = AsyncStream.makeStream(of: LinkRequest.self)
    }

    /// Shows the screen while `body` runs, and restores the terminal; returns the last state of the screen.
    ///
    /// When the user quits, the body is cancelled and can clean up. `clock` is the clock of the scan results; `seek`
    /// moves a recording forward, or back.
    static func during(
        _ screen: Content, seek: @escaping @Sendable (Duration) -> Void = { _ in },
        clock: @escaping @Sendable () -> BootInstant = { Terminal.now() },
        _ body: @Sendable @escaping (LiveScreen) async throws -> Void
    ) async throws -> Content {
        let (quits, quit) = AsyncStream.makeStream(of: Void.self)
        let live = LiveScreen(screen, seek: seek, clock: clock) { quit.yield() }
        guard Terminal.enter() else {
            throw Failure(
                message: "the terminal cannot be used for a screen", hint: Content.withoutScreen, status: .linkLost)
        }
        let task = Task { try await body(live) }
        let waiter = Task { for await _ in quits { task.cancel() } }
        let sources = live.watch()
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        for source in sources { source.cancel() }
        quit.finish()
        live.request.finish()
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

    /// Changes the screen with the next tick.
    func change(_ change: (inout Content) -> Void) {
        state.withLock { state in
            change(&state.screen)
            state.isChanged = true
        }
    }

    /// Reports an event of the link to the screen, which `take` passes it to.
    func report(_ event: LinkEvent, _ take: (inout Content, LinkEvent, BootInstant) -> Void) {
        let now = clock()
        change { take(&$0, event, now) }
    }

    /// Returns the requests of the user after a first one.
    func requests(after first: LinkRequest) -> AsyncStream<LinkRequest> {
        request.yield(first)
        return requests
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
            let frame = state.painter.bytes(for: state.screen.frame(at: now))
            let usesMouse = state.screen.usesMouse
            guard usesMouse != state.usesMouse else { return frame }
            state.usesMouse = usesMouse
            return Array(Terminal.mouseSequence(usesMouse).utf8) + frame
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
            // The shell may have ended the reports of the mouse; those that nobody wants still have to be ended.
            if state.screen.usesMouse { state.usesMouse = false }
            state.isChanged = true
        }
        draw()
    }

    private func readKeys() {
        guard let bytes = Terminal.read() else { return quit() }
        press(state.withLock { $0.keys.read(bytes) })
        awaitMore()
    }

    /// Notifies the reader of keys when nothing has followed, as long as that makes a difference to it.
    private func awaitMore() {
        guard let wait = state.withLock({ $0.keys.wait }) else { return }
        queue.asyncAfter(deadline: .now() + (wait.duration / .seconds(1))) { [self] in
            guard let keys = state.withLock({ $0.keys.timePassed(wait) }) else { return }
            press(keys)
            awaitMore()
        }
    }

    private func press(_ keys: [ScreenKey]) {
        let now = clock()
        let actions = state.withLock { state in
            if !keys.isEmpty { state.isChanged = true }
            return keys.map { state.screen.press($0, at: now) }
        }
        if actions.contains(.quit) { return quit() }
        for action in actions {
            switch action {
            case .link(let wanted): request.yield(wanted)
            case .copy(let text): copy(text)
            case .seek(let step): seek(step)
            case .none, .quit, .redraw, .open: break
            }
        }
        if actions.contains(.redraw) { redraw() } else { draw() }
    }

    /// Puts a text on the clipboard of the terminal, by OSC 52: nothing but base64 is in the sequence.
    private func copy(_ text: String) {
        let sequence = "\u{1B}]52;c;" + Data(text.utf8).base64EncodedString() + "\u{7}"
        if !Terminal.write(Array(sequence.utf8), while: { [self] in !(state.withLock { $0.isOver }) }) { quit() }
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
