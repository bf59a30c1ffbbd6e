import BLELinux
import Dispatch
import Glibc

/// ^C and SIGTERM, turned into cancellation: whatever runs gets the chance to switch the scan off and to disconnect.
enum Interrupt {
    private struct State {
        var cancel: (@Sendable () -> Void)?
        var status: ExitStatus?
    }

    private static let state = Lock(State())

    /// What the output has decided that the program ends with, whatever else comes of it.
    static var status: ExitStatus? { state.withLock { $0.status } }

    /// Ends the program with `status`, because its results cannot be written any more.
    ///
    /// What runs is cancelled, as ^C does it, so that no scan and no link stays behind; where nothing runs, that is at once.
    static func end(_ status: ExitStatus) {
        let cancel = state.withLock { state in
            state.status = state.status ?? status
            return state.cancel
        }
        guard let cancel else {
            Console.progress.end()
            exit(status.rawValue)
        }
        cancel()
    }

    /// Runs `body` in a task that the first ^C or SIGTERM cancels; the second one ends the program.
    ///
    /// A signal that comes before both are watched ends the program as it ends any other; `body` begins only behind
    /// that, so there is no moment in which one is lost.
    static func cancelling<Value: Sendable>(
        _ body: @Sendable @escaping () async throws -> Value
    ) async throws -> Value {
        let sources = [SIGINT, SIGTERM].map { DispatchSource.makeSignalSource(signal: $0, queue: .global()) }
        defer { for source in sources { source.cancel() } }
        let watched = DispatchGroup()
        for _ in sources { watched.enter() }
        let task = Task {
            await withCheckedContinuation { start in watched.notify(queue: .global()) { start.resume() } }
            return try await body()
        }
        state.withLock { $0.cancel = { task.cancel() } }
        defer { state.withLock { $0.cancel = nil } }
        for source in sources {
            source.setRegistrationHandler { watched.leave() }
            source.setEventHandler {
                // Whatever is written may wait for a terminal that takes nothing: the second signal waits for nobody.
                if task.isCancelled { exit(ExitStatus.interrupted.rawValue) }
                task.cancel()
            }
            source.resume()
        }
        return try await task.value
    }
}
