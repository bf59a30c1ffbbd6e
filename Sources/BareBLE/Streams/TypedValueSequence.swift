public import BLECore

/// The values of one subscription, made what a key says that they are.
///
/// A value whose bytes do not fit the type is thrown as `BLEError.Code.malformedValue`, with the bytes in `partialValue`; the
/// subscription stays, and a next `next()` goes on behind it. A `for` loop ends there, as it does with every error; to go
/// on, walk with an iterator:
///
/// ```swift
/// var beats = try await device.subscribe(to: .heartRateMeasurement).makeAsyncIterator()
/// while true {
///     do throws(BLEError) {
///         guard let beat = try await beats.next() else { break }
///         print(beat.beatsPerMinute)
///     } catch where error.code == .malformedValue {
///         print("left out:", error.partialValue ?? [])
///     }
/// }
/// ```
///
/// In everything else it is its `received`: armed before the peer is told to send, one buffer, for one task, ended by the
/// end of the link or by `unsubscribe()`.
public struct TypedValueSequence<Element: GATTReadable & Sendable>: AsyncSequence, Sendable {
    /// What the sequence can end with.
    public typealias Failure = BLEError

    /// The same values as they were received: bytes, time, and how many were dropped in front of each.
    public let received: ValueSequence
    let peer: String

    /// The handle of the characteristic's value.
    public var handle: AttributeHandle { received.handle }

    /// How many values have been dropped since the subscription began.
    public var droppedInTotal: Int { received.droppedInTotal }

    /// Ends the subscription, as `ValueSequence.unsubscribe()` does.
    ///
    /// - Throws: `BLEError` when the peer could not be told; the sequence has ended all the same.
    public func unsubscribe() async throws(BLEError) {
        try await received.unsubscribe()
    }

    /// Walks over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(received: received.makeAsyncIterator(), peer: peer)
    }

    /// Walks over the values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var received: ValueSequence.AsyncIterator
        private let peer: String
        /// The value that `next()` gave or refused last, as it was received; `nil` before the first.
        public private(set) var last: ReceivedValue?

        init(received: ValueSequence.AsyncIterator, peer: String) {
            self.received = received
            self.peer = peer
        }

        /// How many values were dropped right before the last one.
        public var droppedBefore: Int { last?.droppedBefore ?? 0 }

        /// The next value; `nil` after `unsubscribe()` or when the task is cancelled.
        ///
        /// - Throws: `BLEError` as `ValueSequence` does, and with `.malformedValue` for one value that does not fit the type.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> Element? {
            guard let value = try await received.next(isolation: actor) else { return nil }
            last = value
            do {
                return try Element(value: value.bytes)
            } catch {
                let reference = CharacteristicReference.handle(value.handle)
                throw BLEError(
                    malformed: value.bytes, error, subject: peer, during: "understand a value of \(reference)")
            }
        }
    }
}
