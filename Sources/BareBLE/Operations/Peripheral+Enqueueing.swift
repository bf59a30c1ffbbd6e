// Calls whose place in the order is taken before they are made.
//
// Duties
// - `enqueue` takes a place at once, on whatever thread. The gate is told of it before it is asked anything else on the loop, so what the
//   runtime makes of the tasks does not change the order.
// - The gate gives each place a turn with a scope of its own, and the calls that are made in that turn come from this scope.
//
// Invariants
// - A turn that was placed is waited for once, by its own task, and its scope is closed once.

internal import BLECore
internal import BLELinux

/// A call that waits for its turn, or is under way; see `Peripheral.enqueue(timeout:_:)`.
public struct QueuedCall<Value: Sendable>: Sendable {
    let task: Task<Result<Value, any Error>, Never>

    /// What the call ended with. A task that is cancelled while it waits for this does not cancel the call.
    ///
    /// - Throws: What the call throws, and `BLEError` as `Peripheral.enqueue(timeout:_:)` says.
    public var value: Value {
        get async throws { try await task.value.get() }
    }

    /// Gives the call up: it ends with `.cancelled`, and what had not been sent never is.
    public func cancel() {
        task.cancel()
    }
}

/// The places that the gate has not been told of, in the order in which they were taken.
final class QueuePlaces: Sendable {
    struct Place: Sendable {
        let scope: OperationGate.Scope
        let outer: [OperationGate.Scope]
    }

    private struct State {
        var places: [Place] = []
        var unfinished = 0
    }

    private let state = Lock(State())

    /// Takes a place, if there is one left.
    func take(_ place: Place) -> Bool {
        state.withLock { state in
            guard state.unfinished < OperationGate.limit else { return false }
            state.unfinished += 1
            state.places.append(place)
            return true
        }
    }

    func takeAll() -> [Place] {
        state.withLock { state in
            let places = state.places
            if !places.isEmpty { state.places = [] }
            return places
        }
    }

    func finished() {
        state.withLock { $0.unfinished -= 1 }
    }
}

extension Peripheral {
    /// Puts calls into the queue without waiting for them.
    ///
    /// ```swift
    /// let first = device.enqueue { try await $0.write([1], to: control) }
    /// let second = device.enqueue { try await $0.write([2], to: control) }
    /// await device.disconnect(.afterQueue)
    /// try await first.value
    /// ```
    ///
    /// The place in the queue is taken before this returns: the order in which such calls stand in the program is the order in which they reach the
    /// peer, which is not so for tasks and `async let`. They go one after the other, each when the one before is over, whatever that has ended
    /// with. Other calls, `exclusively`, `cancelAll()` and `disconnect(.afterQueue)` that come later treat them as calls that were
    /// made before; a call that comes later waits until `body` has made its first call, and then goes beside it.
    ///
    /// `body` runs whether or not somebody waits for its value. At most 64 may be unfinished.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the turn; `nil` for as long as it takes. The calls in `body` have their own limits, from their beginning on.
    ///   - body: what to do; it gets this peripheral.
    /// - Returns: What gives the value of `body`, or its error. Before `body` has run that is `.queueFull`, `.timedOut`, `.cancelled`,
    ///   `.disconnecting`, `.busy` or `.disconnected`.
    @discardableResult
    public nonisolated func enqueue<Value: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (Peripheral) async throws -> Value
    ) -> QueuedCall<Value> {
        let place = QueuePlaces.Place(scope: CallScopes.next(), outer: CallScopes.current)
        let isPlaced = places.take(place)
        let task = Task(executorPreference: loop) { () async -> Result<Value, any Error> in
            guard isPlaced else {
                return .failure(
                    BLEError(.queueFull(limit: OperationGate.limit), subject: self.name, during: "queue a call"))
            }
            return await self.run(place, within: timeout, body)
        }
        return QueuedCall(task: task)
    }

    private nonisolated func run<Value: Sendable>(
        _ place: QueuePlaces.Place, within timeout: Duration?,
        _ body: @escaping @Sendable (Peripheral) async throws -> Value
    ) async -> Result<Value, any Error> {
        defer { places.finished() }
        do throws(BLEError) {
            try await waitForTurn(place.scope, within: timeout)
        } catch {
            return .failure(error)
        }
        let result = await CallScopes.$current.withValue(place.outer + [place.scope]) {
            () async -> Result<Value, any Error> in
            do {
                return .success(try await body(self))
            } catch {
                return .failure(error)
            }
        }
        await endTurn(place.scope)
        return result
    }

    private func waitForTurn(_ scope: CallScheduler.Scope, within timeout: Duration?) async throws(BLEError) {
        guard let ticket = scheduler.ticket(ofTurn: scope) else { return }
        let deadline = timeout.map { loop.now() + $0 }
        do throws(BLEError) {
            try await wait(as: ticket, until: deadline, during: "queue a call") { waiter in
                scheduler.waitForTurn(scope, as: ticket, waiter)
            }
        } catch {
            scheduler.abandonTurn(scope, as: ticket)
            throw error
        }
    }

    private func endTurn(_ scope: CallScheduler.Scope) {
        scheduler.close(scope)
    }
}
