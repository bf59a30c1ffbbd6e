import BareBLETestKit

extension VirtualPeripheral {
    /// Answers nothing from now on, and has somebody make a call; returns when its request has come.
    func leaveUnanswered<Value: Sendable>(
        _ call: @Sendable @escaping () async throws -> Value
    ) async -> Task<Value, any Error> {
        stopAnswering()
        let before = receivedCount
        let task = Task { try await call() }
        while receivedCount == before { await Task.yield() }
        return task
    }
}
