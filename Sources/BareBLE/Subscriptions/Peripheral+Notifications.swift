internal import BLECore
internal import BLELinux

extension Peripheral {
    /// Subscribes to several characteristics, and returns their values as one sequence.
    ///
    /// The sequence is registered before the peer is asked to send. If one subscription is refused, those before it
    /// are ended before the error is thrown; a peer that falls silent just then delays it until ATT's own timeout, at
    /// most 30 s.
    ///
    /// - Parameters:
    ///   - characteristics: The characteristics. One that is named twice has each of its values once.
    ///   - options: Options for each of them; capacity and policy are those of the one buffer, the timeout is for all
    ///     together.
    /// - Throws: `BLEError` as `subscribe(to:_:)` does; `.invalidArgument` for no characteristics.
    public func subscribe(
        to characteristics: [CharacteristicReference], _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> ValueSequence {
        let context = context(
            "subscribe to \(characteristics.count) characteristics", within: options.timeout ?? Self.valueTimeout)
        guard !characteristics.isEmpty else {
            throw BLEError(
                .invalidArgument, subject: name, during: context.operation, because: "no characteristic is named",
                hint: "Use `notifications()` for everything that the peer sends.")
        }
        let buffer = subscriptionHub.makeBuffer(options)
        return try await calling(context) { () async throws(BLEError) in
            var ids: [Subscriptions.ID] = []
            var handles: [AttributeHandle] = []
            do throws(BLEError) {
                for characteristic in characteristics {
                    let id = subscriptionHub.nextID()
                    let context = context.named("subscribe to \(characteristic)")
                    let before = handles
                    let handle: AttributeHandle = try await retrying(context) { () async throws(BLEError) in
                        // One that is named twice has each value once.
                        let found = try await resolve(characteristic, in: context)
                        if before.contains(found.valueHandle) { return found.valueHandle }
                        return try await listen(
                            to: characteristic, as: id, into: .stream(buffer), preferring: options.preferred,
                            sharing: options.sharing, in: context)
                    }
                    handles.append(handle)
                    ids.append(id)
                }
            } catch {
                let writes = ids.flatMap { write(subscriptionHub.withdraw($0)) }
                // The values are disabled in a reachable peer before the caller can end the link.
                if error.code != .cancelled, error.code != .timedOut {
                    for write in writes { _ = await write.value }
                }
                throw error
            }
            return sequence(ids, handles, buffer)
        }
    }

    /// The former name of `subscribe(to:_:)` for several characteristics.
    @available(*, deprecated, renamed: "subscribe(to:_:)")
    public func notifications(
        of characteristics: [CharacteristicReference], _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> ValueSequence {
        try await subscribe(to: characteristics, options)
    }

    /// Returns all values that the peer sends from now on, with or without a subscription, such as those that were
    /// enabled on an earlier link.
    ///
    /// Nothing is sent to the peer. The call waits for nothing, so it can be made before any subscription.
    public func notifications(
        capacity: Int = 256, byteLimit: Int = 64 * 1024, policy: OverflowPolicy = .dropOldest
    ) -> ValueSequence {
        let buffer = subscriptionHub.makeBuffer(
            SubscribeOptions(capacity: capacity, byteLimit: byteLimit, policy: policy))
        if let end {
            buffer.finish(end.isIntended ? nil : endError(during: "listen"))
            return sequence([], [], buffer)
        }
        return sequence([subscriptionHub.addTap(buffer)], [], buffer)
    }

    private func sequence(
        _ ids: [Subscriptions.ID], _ handles: [AttributeHandle], _ buffer: StreamBuffer<ReceivedValue>
    ) -> ValueSequence {
        ValueSequence(ids: ids.map(\.number), handles: handles, buffer: buffer, peripheral: self)
    }
}
