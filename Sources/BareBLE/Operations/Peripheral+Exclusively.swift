public import BLECore
internal import BLELinux

extension Peripheral {
    /// Runs `body` with exclusive access to the peer, for several operations that belong together.
    ///
    /// ```swift
    /// let response = try await device.exclusively { device in
    ///     try await device.write([0x01], to: control)
    ///     return try await device.read(status)
    /// }
    /// ```
    ///
    /// It begins when the calls that were made before have ended. Calls of `body`, and of tasks that it starts,
    /// proceed; calls of others wait, or fail, as `others` specifies, and proceed in their order afterwards. `body` may
    /// call `exclusively` again, which keeps its own other tasks out as well. Exclusive access ends when `body` has
    /// returned or thrown, even if tasks that it started continue.
    ///
    /// Subscriptions of all tasks keep receiving values. Ending a subscription, and the library's own requests (such
    /// as rediscovering changed services), do not wait either; nor do calls to the controller, such as `rssi()` and
    /// `requestPHY(_:receive:timeout:)`.
    ///
    /// - Parameters:
    ///   - others: The treatment of others' calls meanwhile.
    ///   - timeout: The longest wait for the turn; `nil` for no limit. `body` has no limit.
    ///   - body: The operations; it receives this peripheral.
    /// - Returns: The result of `body`.
    /// - Throws: `BLEError` with `.timedOut` or `.cancelled` before the turn has come, `.busy` if another task's
    ///   exclusive access lets no call wait, `.queueFull`, `.disconnecting`, `.disconnected`; `body` has not run then.
    ///   And the error of `body`.
    public nonisolated func exclusively<Value>(
        others: ExclusiveEntry = .wait, timeout: Duration? = nil,
        _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        let outer = CallScopes.current
        let scope = CallScopes.next()
        try await beginExclusiveAccess(scope, others, from: outer, within: timeout)
        do {
            let value = try await CallScopes.$current.withValue(outer + [scope]) { try await body(self) }
            await release(scope)
            return value
        } catch {
            await release(scope)
            throw error
        }
    }

    /// Gives the caller exclusive access; the former form of `exclusively(others:timeout:_:)`.
    @available(*, deprecated, renamed: "exclusively(others:timeout:_:)")
    public nonisolated func exclusively<Value>(
        _ entry: ExclusiveEntry, timeout: Duration? = nil, _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        try await exclusively(others: entry, timeout: timeout, body)
    }

    private func beginExclusiveAccess(
        _ scope: OperationGate.Scope, _ others: ExclusiveEntry, from outer: [OperationGate.Scope],
        within timeout: Duration?
    ) async throws(BLEError) {
        let context = context("get exclusive access to the link", within: timeout)
        try await enter(as: .exclusive(scope, others: others), from: outer, in: context)
        // The task may have been cancelled, or the link lost, after the admission.
        let failure: BLEError? =
            if Task.isCancelled {
                BLEError(.cancelled, subject: name, during: context.operation, because: "the task was cancelled")
            } else {
                end == nil ? nil : endError(during: context.operation)
            }
        guard let failure else { return scheduler.exclusiveAccessBegins(from: outer) }
        release(scope)
        throw failure
    }

    private func release(_ scope: OperationGate.Scope) {
        scheduler.close(scope)
    }
}
