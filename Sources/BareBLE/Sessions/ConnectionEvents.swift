internal import BLELinux

/// What happens to a session's links, in order: first how it is now, then each change.
///
/// Each iterator has a buffer of its own, so several tasks may listen. At most 64 events wait for one; when there are more, the
/// oldest go and `.missed` counts them. It ends behind `.ended`. It is a reference to the session, and keeps it alive.
public struct ConnectionEvents: AsyncSequence, Sendable {
    /// What the sequence consists of.
    public typealias Element = ConnectionEvent
    /// What it can end with.
    public typealias Failure = BLEError

    let session: Session

    /// Begins to listen.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(place: Place(session))
    }

    /// Walks over the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let place: Place
        private var walk: StreamWalk<ConnectionEvent>
        private var isMissedTold = false

        fileprivate init(place: Place) {
            self.place = place
            walk = StreamWalk(place.buffer)
        }

        /// The next event; `nil` behind `.ended` or when the task is cancelled.
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

    /// A place among the listeners, until nobody holds it any more.
    fileprivate final class Place: Sendable {
        let buffer: StreamBuffer<ConnectionEvent>
        private let number: UInt64
        private let session: Session

        init(_ session: Session) {
            self.session = session
            (buffer, number) = session.board.addListener(to: session.name)
        }

        deinit { session.board.removeListener(number) }
    }
}
