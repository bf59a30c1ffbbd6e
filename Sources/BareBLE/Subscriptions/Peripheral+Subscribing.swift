public import BLECore
internal import BLELinux

// The calls that begin and end subscriptions; `SubscriptionHub` keeps the subscriptions.

extension Peripheral {
    /// A characteristic that this program is subscribed to.
    public struct ActiveSubscription: Hashable, Sendable {
        /// The handle of its value.
        public let handle: AttributeHandle
        /// The characteristic; `nil` when it is no longer known.
        public let characteristic: GATTCharacteristic?
        /// The kind of PDU in which the peer sends its values.
        public let kind: SubscribeOptions.Kind
        /// The number of listeners: sequences, and calls that wait for a response.
        public let listenerCount: Int
    }
}

/// The former name of `Peripheral.ActiveSubscription`.
@available(*, deprecated, renamed: "Peripheral.ActiveSubscription")
public typealias ActiveSubscription = Peripheral.ActiveSubscription

extension Peripheral {
    /// The longest time for disabling a configuration, which no task waits for.
    static let disablingTimeout: Duration = .seconds(5)

    /// Requests the peer to send the characteristic's values, and returns them as a sequence.
    ///
    /// The sequence is registered first, so a value that comes together with the peer's response is in it. Several
    /// subscriptions to one characteristic share one configuration in the peer: it is written for the first one and
    /// cleared after the last. If the discovery has not determined its descriptor, the descriptors of this
    /// characteristic are discovered.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a characteristic that cannot send, `.refusedByPeer`,
    ///   `.insufficientSecurity`, `.ambiguous`, `.attributeNotFound`, `.servicesChanged` if the peer announces
    ///   meanwhile that the characteristic may have changed, `.timedOut`, `.disconnected`, `.cancelled`.
    public func subscribe(
        to characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> ValueSequence {
        let context = context("subscribe to \(characteristic)", within: options.timeout ?? Self.valueTimeout)
        return try await recovering(context) { () async throws(BLEError) in
            let found = try await resolve(characteristic, in: context)
            if !peerDatabase.state.contradicts(found),
                let held = subscriptionHub.takeHeldIfListening(found.valueHandle, sharing: options.sharing)
            {
                return sequence(of: held, at: found.valueHandle)
            }
            let buffer = subscriptionHub.makeBuffer(options)
            let id = subscriptionHub.nextID()
            let handle = try await listen(
                to: characteristic, as: id, into: .stream(buffer), preferring: options.preferred,
                sharing: options.sharing, in: context)
            return ValueSequence(ids: [id.number], handles: [handle], buffer: buffer, peripheral: self)
        }
    }

    /// Adds `id` as a listener; returns the handle of the value.
    func listen(
        to characteristic: CharacteristicReference, as id: Subscriptions.ID, into destination: Listener.Destination,
        preferring kind: SubscribeOptions.Kind, sharing: SubscribeOptions.Sharing?, in context: CallContext
    ) async throws(BLEError) -> AttributeHandle {
        let found = try await resolve(characteristic, in: context)
        let changes = peerDatabase.state.changeCount
        guard found.properties.canSubscribe else {
            throw BLEError(
                .notSupported, subject: name, during: context.operation,
                because: "it neither notifies nor indicates (properties: \(found.properties))")
        }
        if let descriptor = peerDatabase.state.database?.cccd(of: found) {
            do {
                try await listen(
                    to: found, by: descriptor, as: id, into: destination, preferring: kind, sharing: sharing,
                    in: context)
                return found.valueHandle
            } catch  where error.code == .notSupported && descriptor.isInferred {
                // The inferred descriptor does not exist: discover it, unless a change was announced meanwhile.
                guard peerDatabase.state.confirms(found, since: changes) else {
                    throw changed(during: context.operation)
                }
            }
        }
        let actual = try await findDescriptors(of: found, in: context)
            .first { $0.uuid == .clientCharacteristicConfiguration }
        try await listen(
            to: found, by: actual, as: id, into: destination, preferring: kind, sharing: sharing, in: context)
        return found.valueHandle
    }

    private func listen(
        to characteristic: GATTCharacteristic, by descriptor: GATTDescriptor?, as id: Subscriptions.ID,
        into destination: Listener.Destination, preferring kind: SubscribeOptions.Kind,
        sharing: SubscribeOptions.Sharing?,
        in context: CallContext
    ) async throws(BLEError) {
        // Another call, which the peer contradicted, may have discovered everything again.
        if peerDatabase.state.contradicts(characteristic) { throw changed(during: context.operation) }
        let result = await begin(
            id, to: characteristic, by: descriptor,
            preferring: kind == .notifications ? .notification : .indication, into: destination, sharing: sharing,
            in: context)
        switch result {
        case .success: return
        case .failure(.operation(.linkLost)): throw endError(during: context.operation)
        case .failure(let failure): throw BLEError(failure, subject: name, during: context.operation)
        }
    }

    /// Adds `id` as a subscriber, and waits for the peer's response.
    func begin(
        _ id: Subscriptions.ID, to characteristic: GATTCharacteristic, by descriptor: GATTDescriptor?,
        preferring kind: Subscriptions.Kind, into destination: Listener.Destination,
        sharing: SubscribeOptions.Sharing? = nil, in context: CallContext
    ) async -> Result<Void, SubscribeFailure> {
        let interruption = WaitInterruption.handled { [self] pending, failure in
            assumeIsolated { peripheral in
                _ = peripheral.write(peripheral.subscriptionHub.giveUp(id, pending, failure.failure))
            }
        }
        return await subscriptionHub.waitForSubscription(until: context.deadline, interruption: interruption) {
            pending in
            if scheduler.isClearing { return .failure(.operation(.cancelled)) }
            if end != nil { return .failure(.operation(.linkLost)) }
            write(
                subscriptionHub.subscribe(
                    id, to: characteristic, by: descriptor, preferring: kind, into: destination, sharing: sharing,
                    pending))
            return nil
        }
    }

    // MARK: Configurations in the peer

    /// Writes configuration descriptors, each in a task of its own.
    @discardableResult
    func write(
        _ writes: [SubscriptionHub.CCCDWrite]
    ) -> [Task<Result<Void, OperationFailure>, Never>] {
        let changes = peerDatabase.state.changeCount
        return writes.map { write in
            // Other jobs run before the task does, and may read that the services have changed.
            let number = link.nextID()
            return Task(executorPreference: loop) {
                let result = await self.configure(write, as: number)
                if case .failure(let failure) = result, failure.reportsOutOfSync,
                    await self.isUnhandled(write, since: changes)
                {
                    await self.resynchronizeLater()
                }
                await self.configured(write, result)
                return result
            }
        }
    }

    /// Whether nothing else follows from the refusal of a write that began when there were `changes`: no call handles
    /// it, because the last subscriber of the value leaves, or has stopped waiting, and no change has been announced
    /// since, which leads to a rediscovery of its own.
    private func isUnhandled(_ write: SubscriptionHub.CCCDWrite, since changes: UInt64) -> Bool {
        guard changes == peerDatabase.state.changeCount else { return false }
        return write.isDisabling || !subscriptionHub.isWanted(write.valueHandle)
    }

    private func configured(_ done: SubscriptionHub.CCCDWrite, _ result: Result<Void, OperationFailure>) {
        write(subscriptionHub.configured(done.valueHandle, result))
    }

    /// Ends subscriptions; returns when the peer has been informed, if it must be.
    func unsubscribe(_ numbers: [UInt64]) async throws(BLEError) {
        let writes = numbers.flatMap { write(subscriptionHub.stopListening(Subscriptions.ID($0))) }
        let failure = await failures(of: writes).first { $0 != .linkLost }
        if let failure { throw BLEError(failure, subject: name, during: "unsubscribe") }
    }

    /// Ends subscriptions, which receive the values that come before the peer's response; returns after that.
    ///
    /// - Throws: `BLEError` as `unsubscribe(_:)` does, and `.disconnected` if the link ended before the response.
    func unsubscribeAfterResponse(_ numbers: [UInt64]) async throws(BLEError) {
        if end != nil { throw endError(during: "unsubscribe") }
        let writes = numbers.flatMap { write(subscriptionHub.stopListeningAfterResponse(Subscriptions.ID($0))) }
        let failures = await failures(of: writes)
        if failures.contains(.linkLost) { throw endError(during: "unsubscribe") }
        if let failure = failures.first { throw BLEError(failure, subject: name, during: "unsubscribe") }
    }

    private func failures(of writes: [Task<Result<Void, OperationFailure>, Never>]) async -> [OperationFailure] {
        var failures: [OperationFailure] = []
        for write in writes {
            if case .failure(let failure) = await write.value { failures.append(failure) }
        }
        return failures
    }

    /// Ends subscriptions without a task that waits for the result.
    nonisolated func unsubscribeLater(_ numbers: [UInt64]) {
        Task(executorPreference: loop) { try? await self.unsubscribe(numbers) }
    }

    // MARK: Values

    /// Passes on a value from the peer.
    func deliver(_ value: [UInt8], from handle: AttributeHandle, isIndication: Bool) {
        let isOwn = handle == peerDatabase.state.serviceChangedHandle
        let ended = subscriptionHub.received(
            ReceivedValue(
                bytes: value, handle: handle, isIndication: isIndication, time: loop.now(), droppedBefore: 0),
            isOwn: isOwn)
        for id in ended { unsubscribeLater([id.number]) }
        if subscriptionHub.isCollecting { armCollectorTimer() }
        // This comes last: handling the announcement may end the subscription that the value is for.
        if isOwn {
            serviceChanged(value)
        } else if isIndication, !subscriptionHub.isWanted(handle) || subscriptionHub.isOwn(handle) {
            // While everything is discovered again, the library's own subscription is to an unknown characteristic.
            mayBeServiceChanged(value, from: handle)
        }
    }

    /// Returns the values held for a subscription as a sequence.
    func sequence(of held: SubscriptionHub.HeldValues, at handle: AttributeHandle) -> ValueSequence {
        ValueSequence(ids: [held.id.number], handles: [handle], buffer: held.buffer, peripheral: self)
    }
}

// MARK: - Active subscriptions

extension Peripheral {
    /// The characteristics that this program is subscribed to, in the order of their handles.
    ///
    /// The library's own subscription to Service Changed is not among them.
    public var subscriptions: [ActiveSubscription] {
        subscriptionHub.active.compactMap { value in
            let count = value.subscribers.count { $0 != SubscriptionHub.ownSubscriber }
            guard count > 0 else { return nil }
            return ActiveSubscription(
                handle: value.valueHandle,
                characteristic: peerDatabase.state.database?.characteristic(valueHandle: value.valueHandle),
                kind: value.kind == .notification ? .notifications : .indications, listenerCount: count)
        }
    }
}
