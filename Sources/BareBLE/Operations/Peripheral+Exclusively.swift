public import BLECore
internal import BLELinux

extension Peripheral {
    /// Runs `body` while nobody else's calls reach the peer: for several operations that belong together.
    ///
    /// ```swift
    /// let answer = try await device.exclusively { device in
    ///     try await device.write([0x01], to: control)
    ///     return try await device.read(status)
    /// }
    /// ```
    ///
    /// It begins when the calls that were made before are over. Calls of `body`, and of tasks that it starts, go ahead; calls
    /// of others wait at the entry, or fail, as `entry` says, and go on in their order afterwards. `body` may call
    /// `exclusively` again, which keeps its own other tasks out as well. The link is free again when `body` has returned or
    /// thrown, whatever becomes of the tasks that it left behind.
    ///
    /// Values of subscriptions keep coming, to everybody; ending a subscription, and what the library does by itself (looking
    /// at changed services), does not wait either; nor does what is asked of the controller, such as `rssi()` and `requestPHY(_:receive:timeout:)`.
    ///
    /// - Parameters:
    ///   - entry: what becomes of others' calls meanwhile.
    ///   - timeout: how long to wait for the turn; `nil` for as long as it takes. `body` has no limit.
    ///   - body: what to do; it gets this peripheral.
    /// - Returns: What `body` returns.
    /// - Throws: `BLEError` with `.timedOut` or `.cancelled` before the turn has come, `.busy` where another one lets nobody
    ///   wait, `.queueFull`, `.disconnecting`, `.disconnected`; `body` has not run then. And what `body` throws.
    public nonisolated func exclusively<Value>(
        _ entry: ExclusiveEntry = .waiting, timeout: Duration? = nil,
        _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        let outer = CallScopes.current
        let scope = CallScopes.next()
        try await lease(scope, entry, from: outer, within: timeout)
        do {
            let value = try await CallScopes.$current.withValue(outer + [scope]) { try await body(self) }
            await release(scope)
            return value
        } catch {
            await release(scope)
            throw error
        }
    }

    private func lease(
        _ scope: OperationGate.Scope, _ others: ExclusiveEntry, from outer: [OperationGate.Scope],
        within timeout: Duration?
    ) async throws(BLEError) {
        let operation = "have the link alone"
        let deadline = timeout.map { loop.now() + $0 }
        try await enter(as: .exclusive(scope, others: others), from: outer, until: deadline, during: operation)
        // It may have been cancelled, or the link lost, after the admission.
        let failure: BLEError? =
            if Task.isCancelled {
                BLEError(.cancelled, subject: name, during: operation, because: "the task was cancelled")
            } else {
                end == nil ? nil : endError(during: operation)
            }
        guard let failure else { return scheduler.exclusiveAccessBegins(from: outer) }
        release(scope)
        throw failure
    }

    private func release(_ scope: OperationGate.Scope) {
        scheduler.close(scope)
    }
}
