import Dispatch
import Glibc

/// ^C and SIGTERM, turned into cancellation: whatever runs gets the chance to switch the scan off and to disconnect.
enum Interrupt {
    /// Runs `body` in a task that the first ^C or SIGTERM cancels; the second one ends the program.
    static func cancelling<Value: Sendable>(
        _ body: @Sendable @escaping () async throws -> Value
    ) async throws -> Value {
        let task = Task { try await body() }
        let sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                if task.isCancelled { exit(ExitStatus.interrupted.rawValue) }
                task.cancel()
            }
            source.resume()
            return source
        }
        defer { for source in sources { source.cancel() } }
        return try await task.value
    }
}
