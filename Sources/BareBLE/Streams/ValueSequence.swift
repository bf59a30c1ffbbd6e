public import BLECore

/// A value of a notification or an indication.
public struct ReceivedValue: Hashable, Sendable {
    /// The value, at most 512 bytes.
    public let bytes: [UInt8]
    /// The handle of the characteristic's value.
    public let handle: AttributeHandle
    /// A Boolean value that indicates whether the value came in an indication. It has already been confirmed.
    public let isIndication: Bool
    /// The time at which it was read from the socket, on the boot-time clock.
    public let time: BootInstant
    /// The number of values of this subscription that were dropped right before this one.
    public let droppedBefore: Int

    /// Returns the same value with another number of dropped ones before it.
    func with(droppedBefore: Int) -> ReceivedValue {
        guard droppedBefore != self.droppedBefore else { return self }
        return ReceivedValue(
            bytes: bytes, handle: handle, isIndication: isIndication, time: time, droppedBefore: droppedBefore)
    }
}

/// The values of one subscription, in the order in which they crossed the link.
///
/// The buffer is registered before the peer is asked to send, so the first value cannot be missed. The sequence has
/// one buffer: use it from one task, and subscribe again for a second consumer. It ends with
/// `BLEError.Code.disconnected` when the link does. The peer is asked to stop when the last copy of the last
/// subscription to the characteristic goes away, or at once by `unsubscribe()`.
public struct ValueSequence: AsyncSequence, Sendable {
    /// The element type: a received value.
    public typealias Element = ReceivedValue
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    let subscription: Subscription

    /// The handle of the characteristic's value.
    public var handle: AttributeHandle { subscription.handle }

    /// The number of values dropped since the subscription began.
    public var droppedInTotal: Int { subscription.buffer.droppedInTotal }

    /// Ends the subscription, and asks the peer to stop unless another subscription needs the values. Waiting values
    /// are discarded.
    ///
    /// - Throws: `BLEError` if the write to the peer failed; the sequence has ended all the same.
    public func unsubscribe() async throws(BLEError) {
        try await subscription.end()
    }

    /// Returns an iterator over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(subscription: subscription)
    }

    /// An iterator over the values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let subscription: Subscription
        private var walk: StreamWalk<ReceivedValue>

        init(subscription: Subscription) {
            self.subscription = subscription
            walk = StreamWalk(subscription.buffer)
        }

        /// Returns the next value; `nil` after `unsubscribe()` or the cancellation of the task.
        ///
        /// - Throws: `BLEError` with `.disconnected`; `.valuesLost`, by the overflow policy; `.replaced` after another
        ///   subscription has replaced this one; `.servicesChanged`; `.busy` while another task waits for the next
        ///   value of this one.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> ReceivedValue? {
            guard let entry = try await walk.peek() else { return nil }
            walk.pass()
            return entry.element.with(droppedBefore: entry.element.droppedBefore + entry.droppedBefore)
        }
    }
}

/// Keeps subscriptions alive whose values go to the same buffer; the end of the last reference ends them.
final class Subscription: Sendable {
    let ids: [UInt64]
    /// The handle of the first subscription's value.
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
