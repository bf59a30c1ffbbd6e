public import BLECore

/// The values of one subscription, decoded as the type of a key.
///
/// A value whose bytes do not fit the type is thrown as `BLEError.Code.malformedValue`, with the bytes in
/// `partialValue`. A `for` loop ends there, as with every error, and the subscription ends with it; with an iterator,
/// another `next()` continues after it. The option `.skip` leaves such values out, counted and logged:
///
/// ```swift
/// let beats = try await device.subscribe(to: .heartRateMeasurement, SubscribeOptions(malformedValues: .skip))
/// for try await beat in beats { print(beat.beatsPerMinute) }
/// print(beats.malformedInTotal, "were left out")
/// ```
///
/// In everything else it behaves like its `received`: it is registered before the peer is asked to send, has one
/// buffer for one task, and ends with the link or with `unsubscribe()`.
public struct TypedValueSequence<Element: GATTReadable & Sendable>: AsyncSequence, Sendable {
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    /// The same values as received: bytes, time, and the number of values dropped before each.
    public let received: ValueSequence
    let decoder: ValueDecoder<Element>

    /// The handle of the characteristic's value.
    public var handle: AttributeHandle { received.handle }

    /// The number of values dropped since the subscription began.
    public var droppedInTotal: Int { received.droppedInTotal }

    /// The number of values left out because they do not fit the type; 0 without the option `.skip`.
    public var malformedInTotal: Int { decoder.malformedInTotal }

    /// Ends the subscription, as `ValueSequence.unsubscribe()` does.
    ///
    /// - Throws: `BLEError` if the write to the peer failed; the sequence has ended all the same.
    public func unsubscribe() async throws(BLEError) {
        try await received.unsubscribe()
    }

    /// Returns an iterator over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(received: received.makeAsyncIterator(), decoder: decoder)
    }

    /// An iterator over the values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var received: ValueSequence.AsyncIterator
        private var decoding: ValueDecoding<Element>

        init(received: ValueSequence.AsyncIterator, decoder: ValueDecoder<Element>) {
            self.received = received
            decoding = ValueDecoding(decoder)
        }

        /// The value that `next()` returned or refused last, as received; `nil` before the first.
        public var last: ReceivedValue? { decoding.last }

        /// The number of values dropped right before the last one; values left out do not count.
        public var droppedBefore: Int { last?.droppedBefore ?? 0 }

        /// The number of values left out right before the last one because they do not fit the type.
        public var malformedBefore: Int { decoding.malformedBefore }

        /// Returns the next value; `nil` after `unsubscribe()` or the cancellation of the task.
        ///
        /// - Throws: `BLEError` as `ValueSequence` does, and `.malformedValue` for a single value that does not fit
        ///   the type, unless such values are left out.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> Element? {
            decoding.begin()
            while let value = try await received.next(isolation: actor) {
                if let element = try decoding.value(of: value) { return element }
            }
            return nil
        }
    }
}
