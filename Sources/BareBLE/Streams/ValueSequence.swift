public import BLECore

/// A value that the peer sent of its own accord.
public struct ReceivedValue: Hashable, Sendable {
    /// The value, at most 512 bytes.
    public let bytes: [UInt8]
    /// The handle of the characteristic's value.
    public let handle: AttributeHandle
    /// Whether it came as an indication. It has been confirmed already.
    public let isIndication: Bool
    /// When it was read from the socket, on the boot-time clock.
    public let time: BootInstant
    /// How many values of this subscription were dropped right before this one.
    public let droppedBefore: Int

    /// The same value, with another number of dropped ones before it.
    func with(droppedBefore: Int) -> ReceivedValue {
        guard droppedBefore != self.droppedBefore else { return self }
        return ReceivedValue(
            bytes: bytes, handle: handle, isIndication: isIndication, time: time, droppedBefore: droppedBefore)
    }
}

/// The values of one subscription, in the order in which they crossed the link.
///
/// The sequence is armed before the peer is told to send, so the first value cannot be missed. It has one buffer: use
/// it from one task, and subscribe again for a second consumer. It ends with `BLEError.Code.disconnected` when the link
/// does. The peer is told to stop when the last copy of the last subscription to the characteristic goes away, or at
/// once by `unsubscribe()`.
public struct ValueSequence: AsyncSequence, Sendable {
    /// What the sequence consists of.
    public typealias Element = ReceivedValue
    /// What it can end with.
    public typealias Failure = BLEError

    let subscription: Subscription

    /// The handle of the characteristic's value.
    public var handle: AttributeHandle { subscription.handle }

    /// How many values have been dropped since the subscription began.
    public var droppedInTotal: Int { subscription.buffer.droppedInTotal }

    /// Ends the subscription, and tells the peer to stop if nobody else listens. Waiting values are discarded.
    ///
    /// - Throws: `BLEError` when the peer could not be told; the sequence has ended all the same.
    public func unsubscribe() async throws(BLEError) {
        try await subscription.end()
    }

    /// Walks over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(subscription: subscription)
    }

    /// Walks over the values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let subscription: Subscription
        private var walk: StreamWalk<ReceivedValue>

        init(subscription: Subscription) {
            self.subscription = subscription
            walk = StreamWalk(subscription.buffer)
        }

        /// The next value; `nil` after `unsubscribe()` or when the task is cancelled.
        ///
        /// - Throws: `BLEError` with `.disconnected`; by the overflow policy `.valuesLost`; `.replaced` when another
        ///   subscription took its place; `.servicesChanged`; `.busy` while another task waits for the next value of this one.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> ReceivedValue? {
            guard let entry = try await walk.peek() else { return nil }
            walk.pass()
            return entry.element.with(droppedBefore: entry.element.droppedBefore + entry.droppedBefore)
        }
    }
}

/// Keeps subscriptions alive whose values go to the same buffer: its last owner going away ends them.
final class Subscription: Sendable {
    let ids: [UInt64]
    /// The handle of the first one's value.
    let handle: AttributeHandle
    let buffer: StreamBuffer<ReceivedValue>
    private let peripheral: Peripheral

    init(ids: [UInt64], handle: AttributeHandle, buffer: StreamBuffer<ReceivedValue>, peripheral: Peripheral) {
        self.ids = ids
        self.handle = handle
        self.buffer = buffer
        self.peripheral = peripheral
    }

    func end() async throws(BLEError) {
        buffer.finish()
        try await peripheral.unsubscribe(ids)
    }

    deinit {
        buffer.finish()
        peripheral.unsubscribeLater(ids)
    }
}
