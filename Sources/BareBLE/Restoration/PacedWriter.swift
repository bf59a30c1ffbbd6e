internal import BLECore
internal import BLELinux
internal import Logging

// Writes one file over and over, at most once in an interval.
//
// Duties
// - Writes the newest contents: the first change at once, later ones after the interval.
// - Keeps the event loop free: another thread writes.
// - Tolerates disk failures: logs them, exposes them in `status`, and retries after a pause.
//
// Invariants
// - Only the event loop's thread uses it.
// - `work` is the only writer, and holds this object until its write has ended.
// - While there are `pending` contents, there is `work` or a timer. Each of them leads to the next write.

/// Writes the newest contents of a file, and not more often than once in an interval.
// Unchecked: only the loop's thread touches its state.
final class PacedWriter<Contents: Sendable>: @unchecked Sendable {
    typealias Write = @Sendable (Contents) -> Result<Void, BLEError>

    private enum Phase {
        case open
        /// What is pending is written once more.
        case closing
        case closed
    }

    private let loop: EventLoop
    private let logger: Logger
    private let interval: Duration
    private let write: Write
    private let letGo: @Sendable () -> Void
    private var phase = Phase.open
    private var pending: Contents?
    private var work: Task<Void, Never>?
    /// The tasks that wait for its end.
    private let waiters: Waiters<Void>
    private var timer: TimerID?
    /// Before it nothing is written, unless a task waits for that.
    private var notBefore: BootInstant?
    private var pause: Duration
    private(set) var status = StateStore.Status()

    /// The longest pause before a failed write is retried; they double, from twice the interval on.
    private static var longestPause: Duration { .seconds(600) }

    /// - Parameters:
    ///   - interval: The minimum time between two writes.
    ///   - loop: The event loop of the owner.
    ///   - logger: Where failures are logged.
    ///   - write: Writes contents; it may block.
    ///   - letGo: Called when nothing is written any more.
    init(
        every interval: Duration, on loop: EventLoop, logger: Logger, write: @escaping Write,
        letGo: @escaping @Sendable () -> Void
    ) {
        self.interval = interval
        self.loop = loop
        self.logger = logger
        self.write = write
        self.letGo = letGo
        waiters = Waiters(on: loop)
        pause = interval * 2
    }

    /// The contents have changed to these.
    func changed(to contents: Contents) {
        guard case .open = phase else { return }
        pending = contents
        status.isPending = true
        begin()
    }

    /// Returns when the newest contents are on the disk.
    ///
    /// - Throws: `BLEError` with `.timedOut` at the deadline, which ends only the wait; and the error of the write.
    func flush(in context: CallContext, isolation: isolated (any Actor)? = #isolation) async throws(BLEError) {
        while status.isPending {
            guard !context.isOver(at: loop.now()) else {
                throw BLEError(
                    .timedOut, during: context.operation, because: "the disk has not responded in time",
                    hint: "`dmesg` may show what is wrong with it.")
            }
            let failures = status.failures
            notBefore = nil
            begin()
            // A cancelled task waits too: what it wants written is to be on the disk when it returns.
            _ = await waiters.wait(
                until: context.deadline, interruption: .ignoresCancellation, isolation: isolation
            ) { _ in
                work == nil ? () : nil
            }
            if let failure = status.failure, status.failures != failures { throw failure }
        }
    }

    /// Ends the writing: what is pending is written once more, then the file is let go.
    func close() {
        guard case .open = phase else { return }
        phase = .closing
        notBefore = nil
        proceed()
    }

    private func proceed() {
        begin()
        guard case .closing = phase, work == nil else { return }
        phase = .closed
        letGo()
    }

    private func begin() {
        guard work == nil, let contents = pending else { return }
        if let timer { loop.cancel(timer) }
        timer = nil
        if let notBefore, loop.now() < notBefore {
            timer = loop.schedule(at: notBefore) { [weak self] in
                self?.timer = nil
                self?.begin()
            }
            return
        }
        pending = nil
        // Detached, so that it does not inherit the task-local values of the caller.
        work = Task.detached(executorPreference: loop) {
            let result: Result<Void, BLEError>
            do throws(WorkFailure) {
                result = try await self.loop.offload { self.write(contents) }
            } catch {
                result = .failure(.noRoom(during: "save the state"))
            }
            self.ended(result, of: contents)
        }
    }

    private func ended(_ result: Result<Void, BLEError>, of contents: Contents) {
        work = nil
        switch result {
        case .success:
            status.writes += 1
            status.failure = nil
            pause = interval * 2
            notBefore = loop.now() + interval
        case .failure(let error):
            status.failures += 1
            status.failure = error
            logger.warning("the state could not be written", metadata: ["reason": "\(error)", "again in": "\(pause)"])
            if case .open = phase { pending = pending ?? contents }
            notBefore = loop.now() + pause
            pause = min(pause * 2, Self.longestPause)
        }
        status.isPending = pending != nil
        if case .closing = phase { notBefore = nil }
        waiters.resumeAll()
        proceed()
    }
}
