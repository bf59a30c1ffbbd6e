public import BLECore

/// The values of one subscription, made what a key says that they are.
///
/// A value whose bytes do not fit the type is thrown as `BLEError.Code.malformedValue`, with the bytes in `partialValue`. A `for` loop
/// ends there, as it does with every error, and with it the subscription; with an iterator a next `next()` goes on after it. To
/// leave such values out, counted and logged, say so:
///
/// ```swift
/// let beats = try await device.subscribe(to: .heartRateMeasurement, SubscribeOptions(malformedValues: .skip))
/// for try await beat in beats { print(beat.beatsPerMinute) }
/// print(beats.malformedInTotal, "were left out")
/// ```
///
/// In everything else it is its `received`: armed before the peer is told to send, one buffer, for one task, ended by the
/// end of the link or by `unsubscribe()`.
public struct TypedValueSequence<Element: GATTReadable & Sendable>: AsyncSequence, Sendable {
    /// What the sequence can end with.
    public typealias Failure = BLEError

    /// The same values as they were received: bytes, time, and how many were dropped in front of each.
    public let received: ValueSequence
    let decoder: ValueDecoder<Element>

    /// The handle of the characteristic's value.
    public var handle: AttributeHandle { received.handle }

    /// How many values have been dropped since the subscription began.
    public var droppedInTotal: Int { received.droppedInTotal }

    /// How many values have been left out because they do not fit the type; 0 where the options do not say `.skip`.
    public var malformedInTotal: Int { decoder.malformedInTotal }

    /// Ends the subscription, as `ValueSequence.unsubscribe()` does.
    ///
    /// - Throws: `BLEError` when the peer could not be told; the sequence has ended all the same.
    public func unsubscribe() async throws(BLEError) {
        try await received.unsubscribe()
    }

    /// Walks over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(received: received.makeAsyncIterator(), decoder: decoder)
    }

    /// Walks over the values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var received: ValueSequence.AsyncIterator
        private let decoder: ValueDecoder<Element>
        /// The value that `next()` gave or refused last, as it was received; `nil` before the first.
        public private(set) var last: ReceivedValue?

        init(received: ValueSequence.AsyncIterator, decoder: ValueDecoder<Element>) {
            self.received = received
            self.decoder = decoder
        }

        /// How many values were dropped right before the last one; what was left out does not count.
        public var droppedBefore: Int { last?.droppedBefore ?? 0 }

        /// How many values were left out right before the last one because they do not fit the type.
        public private(set) var malformedBefore = 0

        /// The next value; `nil` after `unsubscribe()` or when the task is cancelled.
        ///
        /// - Throws: `BLEError` as `ValueSequence` does, and with `.malformedValue` for one value that does not fit the type, unless
        ///   such values are left out.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> Element? {
            malformedBefore = 0
            var dropped = 0
            while let value = try await received.next(isolation: actor) {
                let received = value.with(droppedBefore: value.droppedBefore + dropped)
                last = received
                if let element = try decoder.value(of: received) { return element }
                malformedBefore += 1
                dropped = received.droppedBefore
            }
            return nil
        }
    }
}
