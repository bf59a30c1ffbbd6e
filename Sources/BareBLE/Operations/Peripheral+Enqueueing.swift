// Calls whose place in the order is taken before they are made.
//
// Duties
// - `enqueue` takes a place at once, on any thread. The gate receives it before any other request on the loop, so the
//   order in which the runtime schedules the tasks does not change the order of the calls.
// - The gate assigns each place a turn with a scope of its own, and the calls that are made in that turn come from this
//   scope.
//
// Invariants
// - A turn is awaited once, by its own task, and its scope is closed once.

internal import BLECore
internal import BLELinux

extension Peripheral {
    /// A call that waits for its turn, or is pending; see `Peripheral.enqueue(timeout:_:)`.
    public struct QueuedCall<Value: Sendable>: Sendable {
        let task: Task<Result<Value, any Error>, Never>

        /// The result of the call. Cancelling a task that waits for it does not cancel the call.
        ///
        /// - Throws: The error of the call, and `BLEError` as `Peripheral.enqueue(timeout:_:)` describes.
        public var value: Value {
            get async throws { try await task.value.get() }
        }

        /// Cancels the call: it ends with `.cancelled`, and requests that had not been sent are never sent.
        public func cancel() {
            task.cancel()
        }
    }
}

/// The former name of `Peripheral.QueuedCall`.
@available(*, deprecated, renamed: "Peripheral.QueuedCall")
public typealias QueuedCall<Value: Sendable> = Peripheral.QueuedCall<Value>

/// The places that the gate has not received yet, in the order in which they were taken.
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

    /// Takes a place; returns whether one was left.
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
    /// Adds calls to the queue without waiting for them.
    ///
    /// ```swift
    /// let first = device.enqueue { try await $0.write([1], to: control) }
    /// let second = device.enqueue { try await $0.write([2], to: control) }
    /// await device.disconnect(.afterPendingOperations)
    /// try await first.value
    /// ```
    ///
    /// The position in the queue is taken before this returns: such calls reach the peer in their order in the program,
    /// which is not so for tasks and `async let`. They run one after the other, each when the one before has ended,
    /// with whatever result. Other calls, `exclusively`, `cancelAll()` and `disconnect(.afterPendingOperations)` that
    /// come later treat them as calls that were made before; a later call waits until `body` has made its first call,
    /// and then runs concurrently.
    ///
    /// `body` runs even if no task waits for its value. At most 64 may be unfinished.
    ///
    /// - Parameters:
    ///   - timeout: The longest wait for the turn; `nil` for no limit. The calls in `body` have their own limits, from
    ///     their beginning on.
    ///   - body: The calls; it receives this peripheral.
    /// - Returns: A value that provides the result of `body`, or its error. If `body` has not run, that is
    ///   `.queueFull`, `.timedOut`, `.cancelled`, `.disconnecting`, `.busy` or `.disconnected`.
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
        let context = context("queue a call", within: timeout)
        do throws(BLEError) {
            try await wait(as: ticket, in: context) { scheduler.awaitTurn(scope) }
        } catch {
            scheduler.abandonTurn(scope, as: ticket)
            throw error
        }
    }

    private func endTurn(_ scope: CallScheduler.Scope) {
        scheduler.close(scope)
    }
}
