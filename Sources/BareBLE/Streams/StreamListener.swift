internal import BLELinux

/// One consumer of events: its buffer, and what removes it from the listeners when it is released.
struct StreamListener<Event: Sendable>: Sendable {
    let buffer: StreamBuffer<Event>
    let token: LifetimeToken
}

/// The listeners of one sequence of events.
///
/// The first one is added with the sequence, so that no event between reading a property and iterating over it is lost.
/// The first iterator takes it over; each later iterator adds a listener at its own creation. Without an iterator it
/// goes with the sequence, and until then its buffer is bounded as that of any other.
final class SequenceListeners<Event: Sendable>: Sendable {
    private let first: Lock<StreamListener<Event>?>
    private let add: @Sendable () -> StreamListener<Event>

    /// - Parameter add: Adds a listener.
    init(_ add: @escaping @Sendable () -> StreamListener<Event>) {
        self.add = add
        first = Lock(add())
    }

    /// Returns the listener of a new iterator.
    func next() -> StreamListener<Event> {
        let waiting = first.withLock { first in first.take() }
        return waiting ?? add()
    }
}
