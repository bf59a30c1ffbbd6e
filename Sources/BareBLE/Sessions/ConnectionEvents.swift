internal import BLELinux

/// The events of a session's links, in order: first the present state, then each change.
///
/// Each iterator has a buffer of its own, so several tasks may listen. At most 64 events wait for one; beyond that the
/// oldest are dropped, and `.missed` counts them. The sequence ends after `.ended`. It is a reference to the session,
/// and keeps it alive.
public struct ConnectionEvents: AsyncSequence, Sendable {
    /// The element type: an event.
    public typealias Element = ConnectionEvent
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    let session: Session
    let broadcaster: StateBroadcaster

    /// Returns an iterator, which listens from now on.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(place: Place(session, broadcaster))
    }

    /// An iterator over the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let place: Place
        private var walk: StreamWalk<ConnectionEvent>
        private var isMissedTold = false

        fileprivate init(place: Place) {
            self.place = place
            walk = StreamWalk(place.buffer)
        }

        /// Returns the next event; `nil` after `.ended` or the cancellation of the task.
        ///
        /// - Throws: `BLEError` with `.busy` while another task waits for the next event of this iterator.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> ConnectionEvent? {
            guard let entry = try await walk.peek() else { return nil }
            if entry.droppedBefore > 0, !isMissedTold {
                isMissedTold = true
                return .missed(entry.droppedBefore)
            }
            isMissedTold = false
            walk.pass()
            return entry.element
        }
    }

    /// The registration of a listener, which ends with the last reference to it.
    fileprivate final class Place: Sendable {
        let buffer: StreamBuffer<ConnectionEvent>
        private let number: UInt64
        private let broadcaster: StateBroadcaster
        /// The iterator keeps the session alive.
        private let session: Session

        init(_ session: Session, _ broadcaster: StateBroadcaster) {
            self.session = session
            self.broadcaster = broadcaster
            (buffer, number) = broadcaster.addListener(to: session.name)
        }

        deinit { broadcaster.removeListener(number) }
    }
}
