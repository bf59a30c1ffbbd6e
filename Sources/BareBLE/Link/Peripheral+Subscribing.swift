internal import BLECore
internal import BLELinux

/// How the peer sends the values of a subscription.
public enum SubscriptionKind: Hashable, Sendable {
    /// Without waiting for a confirmation: fast, several in one connection interval.
    case notifications
    /// One at a time, each confirmed by this host as soon as it was read.
    case indications
}

/// How a subscription is made.
public struct SubscribeOptions: Hashable, Sendable {
    /// What is preferred where the characteristic has both.
    public var preferred: SubscriptionKind
    /// How many values may wait for the consumer.
    public var capacity: Int
    /// How many bytes of values may wait for the consumer.
    public var byteLimit: Int
    /// What happens to a value that finds no room.
    public var policy: OverflowPolicy
    /// How long telling the peer may take.
    public var timeout: Duration?

    /// The defaults, or other values for some of them.
    public init(
        preferred: SubscriptionKind = .notifications, capacity: Int = 256, byteLimit: Int = 64 * 1024,
        policy: OverflowPolicy = .dropOldest, timeout: Duration? = nil
    ) {
        self.preferred = preferred
        self.capacity = capacity
        self.byteLimit = byteLimit
        self.policy = policy
        self.timeout = timeout
    }
}

/// Where the values of one subscription go.
struct Listener {
    let handle: AttributeHandle
    let buffer: StreamBuffer<ReceivedValue>
    /// The call that waits for the subscription to begin; none once it has.
    var starter: Starter?

    /// A waiting call, and the end of its patience. The write to the peer has none of its own: several calls share it.
    struct Starter {
        typealias Continuation = CheckedContinuation<Result<Void, OperationFailure>, Never>

        let continuation: Continuation
        let timer: TimerID
    }
}

extension Peripheral {
    /// How long telling a peer to stop may take when nobody waits for it.
    private static let farewellTimeout: Duration = .seconds(5)

    /// Tells the peer to send the characteristic's values, and returns them as a sequence.
    ///
    /// The sequence is armed first, so a value that comes together with the peer's consent is in it. Several subscriptions
    /// to one characteristic share one configuration in the peer: it is written for the first one and cleared behind
    /// the last. Where discovery has left open which descriptor that is, the peer is asked for this characteristic's.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a characteristic that cannot send, `.refusedByPeer`,
    ///   `.insufficientSecurity`, `.ambiguous`, `.attributeNotFound`, `.timedOut`, `.disconnected`, `.cancelled`.
    public func subscribe(
        to characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> ValueSequence {
        let operation = "subscribe to \(characteristic)"
        return try await recovering(within: options.timeout ?? Self.valueTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            try await subscribeOnce(to: characteristic, options, until: deadline, during: operation)
        }
    }

    private func subscribeOnce(
        to characteristic: CharacteristicReference, _ options: SubscribeOptions, until deadline: BootInstant,
        during operation: String
    ) async throws(BLEError) -> ValueSequence {
        let found = try await resolve(characteristic, until: deadline, during: operation)
        guard found.properties.canSubscribe else {
            throw BLEError(
                .notSupported, subject: name, during: operation,
                because: "the characteristic neither notifies nor indicates",
                hint: "Its properties are: \(found.properties).")
        }
        if let descriptor = knowledge.database?.cccd(of: found) {
            do {
                return try await subscribe(to: found, by: descriptor, options, until: deadline, during: operation)
            } catch  where error.code == .notSupported && descriptor.isInferred {
                // The descriptor was concluded and is not there: look where it is.
            }
        }
        let actual = try await findDescriptors(of: found, until: deadline, during: operation)
            .first { $0.uuid == .clientCharacteristicConfiguration }
        return try await subscribe(to: found, by: actual, options, until: deadline, during: operation)
    }

    private func subscribe(
        to characteristic: GATTCharacteristic, by descriptor: GATTDescriptor?, _ options: SubscribeOptions,
        until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> ValueSequence {
        // It may have changed while its descriptors were looked for.
        if knowledge.contradicts(characteristic) { throw changed(during: operation) }
        if let sequence = takeHeld(characteristic.valueHandle) { return sequence }
        lastNumber &+= 1
        let id = Subscriptions.ID(lastNumber)
        let buffer = StreamBuffer<ReceivedValue>(
            capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy)
        let result = await begin(
            id, to: characteristic, by: descriptor,
            preferring: options.preferred == .notifications ? .notification : .indication, into: buffer,
            until: deadline)
        switch result {
        case .success:
            return ValueSequence(
                subscription: Subscription(
                    id: id.number, handle: characteristic.valueHandle, buffer: buffer, peripheral: self))
        case .failure(.linkLost):
            throw endError(during: operation)
        case .failure(let failure):
            throw BLEError(failure, subject: name, during: operation)
        }
    }

    /// Makes `id` a subscriber, and waits for the peer's consent.
    func begin(
        _ id: Subscriptions.ID, to characteristic: GATTCharacteristic, by descriptor: GATTDescriptor?,
        preferring kind: Subscriptions.Kind, into buffer: StreamBuffer<ReceivedValue>, until deadline: BootInstant
    ) async -> Result<Void, OperationFailure> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: Listener.Starter.Continuation) in
                if Task.isCancelled || gate.isClearing { return continuation.resume(returning: .failure(.cancelled)) }
                let timer = loop.schedule(at: deadline) { [weak self] in
                    self?.assumeIsolated { $0.giveUp(id, .timedOut) }
                }
                listeners[id] = Listener(
                    handle: characteristic.valueHandle, buffer: buffer,
                    starter: Listener.Starter(continuation: continuation, timer: timer))
                perform(subscriptions.subscribe(id, to: characteristic, cccd: descriptor, preferring: kind))
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.giveUp(id, .cancelled) }
        }
    }

    func giveUp(_ id: Subscriptions.ID, _ failure: OperationFailure) {
        guard listeners[id]?.starter != nil else { return }
        tellStarter(of: id, .failure(failure))
        listeners[id] = nil
        perform(subscriptions.unsubscribe(id))
    }

    /// Releases the call that waits for a subscription to begin, if one still does.
    private func tellStarter(of id: Subscriptions.ID, _ result: Result<Void, OperationFailure>) {
        guard let starter = listeners[id]?.starter else { return }
        listeners[id]?.starter = nil
        loop.cancel(starter.timer)
        starter.continuation.resume(returning: result)
    }

    /// Performs the machine's actions; answers the write to the peer that they gave rise to.
    @discardableResult
    private func perform(_ actions: [Subscriptions.Action]) -> Task<Result<Void, OperationFailure>, Never>? {
        var write: Task<Result<Void, OperationFailure>, Never>?
        for action in actions {
            switch action {
            case .write(let handle, let value, let valueHandle):
                write = configure(handle, value, for: valueHandle)
            case .began(let id, _):
                tellStarter(of: id, .success(()))
            case .failed(let id, let failure):
                tellStarter(of: id, .failure(failure))
                listeners[id] = nil
            }
        }
        return write
    }

    private func configure(
        _ handle: AttributeHandle, _ value: [UInt8], for valueHandle: AttributeHandle
    ) -> Task<Result<Void, OperationFailure>, Never> {
        let timeout = value == Subscriptions.silence ? Self.farewellTimeout : Self.valueTimeout
        return Task(executorPreference: loop) {
            let result = await self.runOperation(
                until: self.loop.now() + timeout, isOfCall: false
            ) { client, id, deadline, now in
                let procedure = WriteRequest(handle: handle, value: value, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
            }.map { _ in () }
            if value == Subscriptions.silence, case .failure(let failure) = result, failure.saysOutOfSync {
                await self.resynchronizeLater()
            }
            await self.configured(valueHandle, result)
            return result
        }
    }

    private func configured(_ valueHandle: AttributeHandle, _ result: Result<Void, OperationFailure>) {
        perform(subscriptions.configured(valueHandle, result))
    }

    // MARK: Values

    /// Hands a value to everybody who listens. The machine counts those that nobody wants.
    func deliver(_ value: [UInt8], from handle: AttributeHandle, isIndication: Bool) {
        let received = ReceivedValue(
            bytes: value, handle: handle, isIndication: isIndication, time: loop.now(), droppedBefore: 0)
        for id in subscriptions.recipients(of: handle) {
            guard let buffer = listeners[id]?.buffer else { continue }
            if !buffer.yield(received, bytes: value.count) { unsubscribeLater(id.number) }
        }
        // Behind it: obeying may end the subscription that the value is for.
        if handle == knowledge.serviceChangedHandle {
            serviceChanged(value)
        } else if isIndication, !subscriptions.isWanted(handle) {
            mayBeServiceChanged(value, from: handle)
        }
    }

    /// Ends one sequence, and the call that waits for it to begin.
    func endListener(_ id: Subscriptions.ID, _ failure: OperationFailure, with error: BLEError) {
        listeners[id]?.buffer.finish(error)
        tellStarter(of: id, .failure(failure))
        listeners[id] = nil
    }

    /// Ends every sequence; with an error unless this program ended the link.
    func endSubscriptions(_ failure: BLEError?) {
        for id in subscriptions.linkLost() {
            listeners[id]?.buffer.finish(failure)
            tellStarter(of: id, .failure(.linkLost))
        }
        listeners = [:]
    }

    /// Ends a subscription; returns when the peer knows, if it has to.
    func unsubscribe(_ number: UInt64) async throws(BLEError) {
        let id = Subscriptions.ID(number)
        guard listeners.removeValue(forKey: id) != nil else { return }
        guard let write = perform(subscriptions.unsubscribe(id)) else { return }
        guard case .failure(let failure) = await write.value, failure != .linkLost else { return }
        throw BLEError(failure, subject: name, during: "unsubscribe")
    }

    /// Unsubscribes without anybody waiting for it.
    nonisolated func unsubscribeLater(_ number: UInt64) {
        Task(executorPreference: loop) { try? await self.unsubscribe(number) }
    }
}
