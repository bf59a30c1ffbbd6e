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

/// The values of one or more subscriptions, in the order in which they crossed the link.
///
/// The buffer is registered before the peer is asked to send, so the first value cannot be missed. The sequence has
/// one buffer: use it from one task, and subscribe again for a second consumer. If it has several characteristics,
/// `ReceivedValue.handle` identifies the characteristic, dropped values are counted for all of them together, and the
/// end of one subscription ends the whole sequence.
///
/// It ends after `unsubscribe()`, when this program disconnects, or with the cancellation of the task. It throws
/// `BLEError` with `.disconnected` when the link is lost; `.valuesLost`, by the overflow policy; `.replaced` after
/// another subscription has replaced this one; `.servicesChanged`; and `.busy` while another task waits for its next
/// value. The peer is asked to stop when the last copy of the last subscription to the characteristic goes away, or at
/// once by `unsubscribe()`.
public struct ValueSequence: AsyncSequence, Sendable {
    /// The element type: a received value.
    public typealias Element = ReceivedValue
    /// The error that the sequence may end with.
    public typealias Failure = BLEError
    /// The iterator over the values.
    public typealias AsyncIterator = BLESequence<ReceivedValue>.AsyncIterator

    /// The handle of each characteristic's value, in the order in which they were given; empty for everything that the
    /// peer sends.
    public let handles: [AttributeHandle]

    private let ids: [UInt64]
    private let buffer: StreamBuffer<ReceivedValue>
    private let peripheral: Peripheral
    /// Ends the subscriptions.
    private let token: LifetimeToken

    init(
        ids: [UInt64], handles: [AttributeHandle], buffer: StreamBuffer<ReceivedValue>, peripheral: Peripheral
    ) {
        self.ids = ids
        self.handles = handles
        self.buffer = buffer
        self.peripheral = peripheral
        token = LifetimeToken {
            buffer.finish()
            peripheral.unsubscribeLater(ids)
        }
    }

    /// The handle of the characteristic's value; of the first one, if there are several. 0 for everything that the peer
    /// sends.
    public var handle: AttributeHandle { handles.first ?? 0 }

    /// The number of values dropped since the sequence began.
    public var droppedInTotal: Int { buffer.droppedInTotal }

    /// Ends the subscriptions, and asks the peer to stop unless other subscriptions need the values. Waiting values are
    /// discarded.
    ///
    /// - Throws: `BLEError` if the write to the peer failed; the sequence has ended all the same.
    public func unsubscribe() async throws(BLEError) {
        buffer.finish()
        try await peripheral.unsubscribe(ids)
    }

    /// Ends the subscriptions as `unsubscribe()` does, but after the peer's response, if it is asked to stop: values
    /// that come before are in the sequence, and waiting ones stay there.
    ///
    /// - Throws: `BLEError` as `unsubscribe()` does, and `.disconnected` if the link ended before the response; the
    ///   sequence has ended all the same.
    package func unsubscribeAfterResponse() async throws(BLEError) {
        defer { buffer.finish() }
        try await peripheral.unsubscribeAfterResponse(ids)
    }

    /// Passes the values to `receiver` from now on, in place of an iterator: those that wait within this call, and
    /// later ones while the peer's packets are read, so that values of several subscriptions come in the order of their
    /// arrival. `nil` is the end of the sequence, with or without an error, once.
    ///
    /// Call it on the event loop, and keep the sequence. The receiver runs on the loop, or where the sequence is ended;
    /// it must neither wait nor make calls of the peripheral.
    package func forward(to receiver: @escaping @Sendable (ReceivedValue?) -> Void) {
        buffer.forward { entry in
            receiver(entry.map { $0.element.with(droppedBefore: $0.element.droppedBefore + $0.droppedBefore) })
        }
    }

    /// Returns an iterator over the values.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            buffer, until: token, losses: .within { $0.with(droppedBefore: $0.droppedBefore + $1) })
    }
}

/// The former name of `ValueSequence` for several characteristics.
@available(*, deprecated, renamed: "ValueSequence")
public typealias NotificationSequence = ValueSequence
