internal import BLELinux

/// Reports events to all current listeners, each of which has a bounded buffer of its own.
final class EventBroadcaster<Event: Sendable>: Sendable {
    private struct State {
        var listeners: [UInt64: StreamBuffer<Event>] = [:]
        var lastNumber: UInt64 = 0
        var isFinished = false
        /// The last event, if new listeners begin with it.
        var last: Event?
    }

    private let state: Lock<State>
    private let capacity: Int

    /// - Parameters:
    ///   - capacity: The number of events that wait for one listener; beyond it the oldest is dropped.
    ///   - first: The first event, of events that are states: each listener begins with the last one, and also the ones
    ///     that come after the end receive it. `nil` for events that are not.
    init(capacity: Int, beginningWith first: Event? = nil) {
        self.capacity = capacity
        state = Lock(State(last: first))
    }

    func report(_ event: Event) {
        state.withLock { state in
            if state.last != nil { state.last = event }
            for listener in state.listeners.inOrder { listener.yield(event) }
        }
    }

    /// Ends the sequences of all listeners after the events that wait.
    func finish() {
        state.withLock { state in
            for listener in state.listeners.inOrder { listener.finish() }
            state.listeners = [:]
            state.isFinished = true
        }
    }

    /// Returns a sequence of the events from now on; of an iterator after the first one, from its creation on.
    ///
    /// - Parameters:
    ///   - losses: How dropped events are reported.
    ///   - first: The first event of each iterator; `nil` for none.
    ///   - owner: What the sequence keeps alive; `nil` for nothing.
    func events(
        losses: LossReport<Event>, beginningWith first: Event? = nil, keeping owner: (any Actor)? = nil
    ) -> BLESequence<Event> {
        BLESequence(losses: losses) { [self] in
            let (buffer, number) = addListener()
            if let first { buffer.yield(first) }
            let token = LifetimeToken { withExtendedLifetime(owner) { self.removeListener(number) } }
            return StreamListener(buffer: buffer, token: token)
        }
    }

    private func addListener() -> (buffer: StreamBuffer<Event>, number: UInt64) {
        let buffer = StreamBuffer<Event>(of: nil, capacity: capacity, policy: .dropOldest)
        return state.withLock { state in
            state.lastNumber &+= 1
            if let last = state.last { buffer.yield(last) }
            if state.isFinished { buffer.finish() } else { state.listeners[state.lastNumber] = buffer }
            return (buffer, state.lastNumber)
        }
    }

    private func removeListener(_ number: UInt64) {
        state.withLock { $0.listeners[number] = nil }
    }
}
