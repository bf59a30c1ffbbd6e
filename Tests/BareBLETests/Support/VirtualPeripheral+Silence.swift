import BareBLETestKit

extension VirtualPeripheral {
    /// Does not respond from now on, and starts a call; returns when its request has come.
    func leaveWithoutResponse<Value: Sendable>(
        _ call: @Sendable @escaping () async throws -> Value
    ) async -> Task<Value, any Error> {
        stopResponding()
        let before = receivedCount
        let task = testTask { try await call() }
        while receivedCount == before, !Task.isCancelled { await Task.yield() }
        return task
    }
}
