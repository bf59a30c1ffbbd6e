public import BLECore
internal import BLELinux

/// The values of several characteristics in one sequence, in the order in which they crossed the link.
///
/// `ReceivedValue.handle` says which characteristic each is of. There is one buffer: use it from one task. What is dropped is
/// counted for all of them together. The sequence ends as `ValueSequence` does; where one of its subscriptions ends, because
/// the peer has changed its services or another subscription has replaced it, all of it does.
public struct NotificationSequence: AsyncSequence, Sendable {
    /// What the sequence consists of.
    public typealias Element = ReceivedValue
    /// What it can end with.
    public typealias Failure = BLEError
    /// What walks over it.
    public typealias AsyncIterator = ValueSequence.AsyncIterator

    let subscription: Subscription
    /// The handle of each characteristic's value, in the order in which they were named; empty for all that the peer sends.
    public let handles: [AttributeHandle]

    /// How many values have been dropped since the sequence began.
    public var droppedInTotal: Int { subscription.buffer.droppedInTotal }

    /// Ends the subscriptions, and tells the peer to stop where nobody else listens. Waiting values are discarded.
    ///
    /// - Throws: `BLEError` when the peer could not be told; the sequence has ended all the same.
    public func unsubscribe() async throws(BLEError) {
        try await subscription.end()
    }

    /// Walks over the values.
    public func makeAsyncIterator() -> ValueSequence.AsyncIterator {
        ValueSequence.AsyncIterator(subscription: subscription)
    }
}

extension Peripheral {
    /// Subscribes to several characteristics, and returns their values as one sequence.
    ///
    /// It is armed before the peer is told to send any of them. Where one subscription is refused, those before it are taken back
    /// before the error is thrown; a peer that falls silent just then delays it until ATT's own timeout, 30 s at most.
    ///
    /// - Parameters:
    ///   - characteristics: which ones.
    ///   - options: for each of them; capacity and policy are those of the one buffer, the timeout is for all together.
    /// - Throws: `BLEError` as `subscribe(to:_:)` does.
    public func notifications(
        of characteristics: [CharacteristicReference], _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> NotificationSequence {
        let operation = "subscribe to \(characteristics.count) characteristics"
        let deadline = loop.now() + (options.timeout ?? Self.valueTimeout)
        let buffer = StreamBuffer<ReceivedValue>(
            of: name, capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy,
            countingDropsIn: droppedValues)
        return try await calling(until: deadline, during: operation) { () async throws(BLEError) in
            var ids: [Subscriptions.ID] = []
            var handles: [AttributeHandle] = []
            do throws(BLEError) {
                for characteristic in characteristics {
                    lastNumber &+= 1
                    let id = Subscriptions.ID(lastNumber)
                    let operation = "subscribe to \(characteristic)"
                    handles.append(
                        try await recovering(until: deadline, during: operation) { (deadline) async throws(BLEError) in
                            try await listen(
                                to: characteristic, as: id, into: .stream(buffer), preferring: options.preferred,
                                sharing: options.sharing, until: deadline, during: operation)
                        })
                    ids.append(id)
                }
            } catch {
                let farewells = ids.compactMap { stopListening($0) }
                // A peer that is there is told before the caller can end the link.
                if error.code != .cancelled, error.code != .timedOut {
                    for farewell in farewells { _ = await farewell.value }
                }
                throw error
            }
            return sequence(ids, handles, buffer)
        }
    }

    /// All values that the peer sends from now on, whoever has asked for them: also those that nobody wants, as a peer
    /// sends that was told to on an earlier link.
    ///
    /// The peer is told nothing. Nothing waits for it, so it can be had before anybody subscribes.
    public func notifications(
        capacity: Int = 256, byteLimit: Int = 64 * 1024, policy: OverflowPolicy = .dropOldest
    ) -> NotificationSequence {
        let buffer = StreamBuffer<ReceivedValue>(
            of: name, capacity: capacity, byteLimit: byteLimit, policy: policy, countingDropsIn: droppedValues)
        lastNumber &+= 1
        let id = Subscriptions.ID(lastNumber)
        if let end {
            buffer.finish(end.isIntended ? nil : endError(during: "listen"))
        } else {
            listeners[id] = Listener(handle: 0, destination: .stream(buffer), sharing: nil)
            taps.append(id)
        }
        return sequence([id], [], buffer)
    }

    private func sequence(
        _ ids: [Subscriptions.ID], _ handles: [AttributeHandle], _ buffer: StreamBuffer<ReceivedValue>
    ) -> NotificationSequence {
        NotificationSequence(
            subscription: Subscription(
                ids: ids.map(\.number), handle: handles.first ?? 0, buffer: buffer, peripheral: self),
            handles: handles)
    }
}
