internal import BLECore

/// The values of one characteristic over all links of a session, with marks where there was no subscription.
///
/// It has one buffer, bounded as the options say, whose losses are counted: use it from one task, and ask the session again for a
/// second consumer. It is a reference to the session, and keeps it alive. The peer is told to stop when the last copy goes away.
public struct SessionValues<Value: Sendable>: AsyncSequence, Sendable {
    /// What the sequence consists of.
    public enum Element: Sendable {
        /// The peer has been told to send: at the beginning, and behind each interruption.
        case began
        /// The peer has sent a value.
        case value(Value)
        /// The link was lost, or the peer has changed its services. Values may be missing behind this.
        case interrupted(BLEError)
    }

    /// What the sequence can end with.
    public typealias Failure = BLEError

    /// One thing that waits, and over which link it came.
    enum Entry: Sendable {
        case began(UInt64)
        case value(ReceivedValue, UInt64)
        case interrupted(BLEError, UInt64)

        var epoch: UInt64 {
            switch self {
            case .began(let epoch), .value(_, let epoch), .interrupted(_, let epoch): epoch
            }
        }
    }

    typealias Buffer = StreamBuffer<SessionValues<ReceivedValue>.Entry>

    let lease: StandingLease
    let decoder: ValueDecoder<Value>

    /// How many values and marks found no room since the sequence began, those included behind which nothing came any more.
    public var droppedInTotal: Int { lease.buffer.droppedInTotal }

    /// How many values have been left out because they do not fit the type; 0 where the options do not say `.skip`.
    public var malformedInTotal: Int { decoder.malformedInTotal }

    /// Ends the subscription, on this link and for those to come, and tells the peer to stop if nobody else listens.
    ///
    /// It returns when the peer knows, or could not be told; the sequence ends behind the values that wait.
    public func unsubscribe() async {
        await lease.session.endStanding(lease.number)
    }

    /// Walks over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: lease, decoder: decoder)
    }

    /// Walks over the values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let lease: StandingLease
        private let decoder: ValueDecoder<Value>
        private var walk: StreamWalk<SessionValues<ReceivedValue>.Entry>
        private var epoch: UInt64?
        /// What was dropped before marks, and before values that were left out; the next value says it.
        private var droppedBeforeMarks = 0
        /// The value that `next()` gave or refused last, as it was received; `nil` before the first.
        public private(set) var last: ReceivedValue?

        init(lease: StandingLease, decoder: ValueDecoder<Value>) {
            self.lease = lease
            self.decoder = decoder
            walk = StreamWalk(lease.buffer)
        }

        /// The next value or mark; `nil` when the session has ended or the task is cancelled.
        ///
        /// - Throws: `BLEError` with what the session gave up with, or what the peer refused the subscription with; by the overflow
        ///   policy `.valuesLost`; `.malformedValue` for one value that does not fit the type, unless such values are left out; `.busy` while another task waits.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> Element? {
            malformedBefore = 0
            while let entry = try await walk.peek() {
                // The mark itself may be among what found no room.
                if let epoch, epoch != entry.element.epoch {
                    self.epoch = nil
                    return .interrupted(lostMark)
                }
                walk.pass()
                switch entry.element {
                case .began(let epoch):
                    self.epoch = epoch
                    droppedBeforeMarks += entry.droppedBefore
                    return .began
                case .interrupted(let error, _):
                    epoch = nil
                    droppedBeforeMarks += entry.droppedBefore
                    return .interrupted(error)
                case .value(let value, let epoch):
                    self.epoch = epoch
                    let received = value.with(droppedBefore: entry.droppedBefore + droppedBeforeMarks)
                    droppedBeforeMarks = 0
                    last = received
                    if let value = try decoder.value(of: received) { return .value(value) }
                    malformedBefore += 1
                    droppedBeforeMarks = received.droppedBefore
                }
            }
            return nil
        }

        /// How many values were left out right before the last value or mark because they do not fit the type.
        public private(set) var malformedBefore = 0

        /// How many values and marks were dropped right before the last value.
        public var droppedBefore: Int { last?.droppedBefore ?? 0 }

        private var lostMark: BLEError {
            BLEError(
                .disconnected, subject: lease.session.name, during: "go on with a subscription",
                because: "the link was lost and made anew while values were not taken")
        }
    }
}
