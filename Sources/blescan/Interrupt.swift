import Dispatch
import Glibc

/// ^C and SIGTERM, turned into cancellation: whatever runs gets the chance to switch the scan off and to disconnect.
enum Interrupt {
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
        for source in sources {
            source.setRegistrationHandler { watched.leave() }
            source.setEventHandler {
                if task.isCancelled { exit(ExitStatus.interrupted.rawValue) }
                task.cancel()
            }
            source.resume()
        }
        return try await task.value
    }
}
