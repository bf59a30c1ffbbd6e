internal import BLECore

/// The values of one characteristic over all links of a session, with marks where there was no subscription.
///
/// It has one buffer, bounded by the options, whose losses are counted: use it from one task, and subscribe again for
/// a second consumer. It is a reference to the session, and keeps it alive. The values are disabled in the peer when
/// the last copy is released.
public struct SessionValueSequence<Value: Sendable>: AsyncSequence, Sendable {
    /// An element of the sequence.
    public enum Element: Sendable {
        /// The subscription began: at the start, and after each interruption.
        case began
        /// The peer has sent a value.
        case value(Value)
        /// The link was lost, or the peer has changed its services. Values may be missing after this.
        case interrupted(BLEError)
    }

    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    let listener: StandingListener
    private let decoder: ValueDecoder<Value>

    init(_ listener: StandingListener, decoder: ValueDecoder<Value>) {
        self.listener = listener
        self.decoder = decoder
    }

    /// The number of values and marks dropped since the sequence began, including those after which nothing followed.
    public var droppedInTotal: Int { listener.buffer.droppedInTotal }

    /// The number of values left out because they do not fit the type; 0 without the option `.skip`.
    public var malformedInTotal: Int { decoder.malformedInTotal }

    /// Ends the subscription, on this link and later ones, and disables the values in the peer unless another
    /// subscription needs them.
    ///
    /// It returns after the peer's response, or when there will be none; the sequence ends after the waiting values.
    public func unsubscribe() async {
        await listener.session.endSubscription(listener.number)
    }

    /// Returns an iterator over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(listener, decoder)
    }

    /// An iterator over the values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let listener: StandingListener
        private var walk: StreamWalk<StandingSubscription.Entry>
        private var decoding: ValueDecoding<Value>
        private var epoch: UInt64?

        init(_ listener: StandingListener, _ decoder: ValueDecoder<Value>) {
            self.listener = listener
            walk = StreamWalk(listener.buffer)
            decoding = ValueDecoding(decoder)
        }

        /// Returns the next value or mark; `nil` after the session has ended or the task was cancelled.
        ///
        /// - Throws: The `BLEError` with which the session gave up, or with which the peer refused the subscription;
        ///   `.valuesLost`, by the overflow policy; `.malformedValue` for a single value that does not fit the type,
        ///   unless such values are left out; `.busy` while another task waits.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> Element? {
            decoding.begin()
            while let entry = try await walk.peek() {
                // The mark itself may be among the dropped entries.
                if let epoch, epoch != entry.element.epoch {
                    self.epoch = nil
                    return .interrupted(lostMark)
                }
                walk.pass()
                switch entry.element {
                case .began(let epoch):
                    self.epoch = epoch
                    decoding.lost(entry.droppedBefore)
                    return .began
                case .interrupted(let error, _):
                    epoch = nil
                    decoding.lost(entry.droppedBefore)
                    return .interrupted(error)
                case .value(let value, let epoch):
                    self.epoch = epoch
                    let received = value.with(droppedBefore: entry.droppedBefore)
                    if let value = try decoding.value(of: received) { return .value(value) }
                }
            }
            return nil
        }

        /// The value that `next()` returned or refused last, as received; `nil` before the first.
        public var last: ReceivedValue? { decoding.last }

        /// The number of values left out right before the last value or mark because they do not fit the type.
        public var malformedBefore: Int { decoding.malformedBefore }

        /// The number of values and marks dropped right before the last value.
        public var droppedBefore: Int { last?.droppedBefore ?? 0 }

        private var lostMark: BLEError {
            BLEError(
                .disconnected, subject: listener.session.name, during: "continue a subscription",
                because: "the link was lost and made again while values were not taken")
        }
    }
}

/// The former name of `SessionValueSequence`.
@available(*, deprecated, renamed: "SessionValueSequence")
public typealias SessionValues = SessionValueSequence
