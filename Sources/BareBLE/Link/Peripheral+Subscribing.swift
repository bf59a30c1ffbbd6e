internal import BLECore
internal import BLELinux

/// Where the values of one subscription go.
struct Listener {
    /// A sequence, or a call that gathers them.
    enum Destination {
        case stream(StreamBuffer<ReceivedValue>)
        case gathering
    }

    let handle: AttributeHandle
    let destination: Destination
    /// Whether others may listen; `nil` for one who does not mind, and whom nobody minds.
    let sharing: SubscriptionSharing?
    /// The call that waits for the subscription to begin; none once it has.
    var starter: Starter?

    /// A waiting call, and the end of its patience. The write to the peer has none of its own: several calls share it.
    struct Starter {
        typealias Continuation = CheckedContinuation<Result<Void, SubscribeFailure>, Never>

        let continuation: Continuation
        let timer: TimerID
    }
}

/// Why a subscription did not come about.
enum SubscribeFailure: Error {
    case operation(OperationFailure)
    /// Somebody has the characteristic alone, or this one wanted to and is not.
    case taken
    /// Another one has taken its place already.
    case replaced
}

extension Peripheral {
    /// How long telling a peer to stop may take when nobody waits for it.
    private static let farewellTimeout: Duration = .seconds(5)

    /// Subscribes to a characteristic's notifications or indications, and returns its values as a sequence.
    ///
    /// The sequence is registered first, so it contains a value that arrives together with the peer's response.
    /// Several subscriptions to one characteristic share one configuration in the peer: it is written for the first
    /// one and cleared after the last. If discovery has not determined that descriptor, it is discovered for this
    /// characteristic.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a characteristic that cannot send, `.refusedByPeer`,
    ///   `.insufficientSecurity`, `.ambiguous`, `.attributeNotFound`, `.timedOut`, `.disconnected`, `.cancelled`.
    public func subscribe(
        to characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> ValueSequence {
        let operation = "subscribe to \(characteristic)"
        return try await recovering(within: options.timeout ?? Self.valueTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            let found = try await resolve(characteristic, until: deadline, during: operation)
            if !knowledge.contradicts(found), let sequence = takeHeld(found.valueHandle) { return sequence }
            let buffer = StreamBuffer<ReceivedValue>(
                of: name, capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy,
                countingDropsIn: droppedValues)
            lastNumber &+= 1
            let id = Subscriptions.ID(lastNumber)
            let handle = try await listen(
                to: characteristic, as: id, into: .stream(buffer), preferring: options.preferred,
                sharing: options.sharing, until: deadline, during: operation)
            return ValueSequence(
                subscription: Subscription(ids: [id.number], handle: handle, buffer: buffer, peripheral: self))
        }
    }

    /// Makes `id` a listener; answers the handle of the value.
    func listen(
        to characteristic: CharacteristicReference, as id: Subscriptions.ID, into destination: Listener.Destination,
        preferring kind: SubscriptionKind, sharing: SubscriptionSharing?, until deadline: BootInstant,
        during operation: String
    ) async throws(BLEError) -> AttributeHandle {
        let found = try await resolve(characteristic, until: deadline, during: operation)
        guard found.properties.canSubscribe else {
            throw BLEError(
                .notSupported, subject: name, during: operation,
                because: "the characteristic neither notifies nor indicates",
                hint: "Its properties are: \(found.properties).")
        }
        if let descriptor = knowledge.database?.cccd(of: found) {
            do {
                try await listen(
                    to: found, by: descriptor, as: id, into: destination, preferring: kind, sharing: sharing,
                    until: deadline, during: operation)
                return found.valueHandle
            } catch  where error.code == .notSupported && descriptor.isInferred {
                // The descriptor was concluded and is not there: look where it is.
            }
        }
        let actual = try await findDescriptors(of: found, until: deadline, during: operation)
            .first { $0.uuid == .clientCharacteristicConfiguration }
        try await listen(
            to: found, by: actual, as: id, into: destination, preferring: kind, sharing: sharing, until: deadline,
            during: operation)
        return found.valueHandle
    }

    private func listen(
        to characteristic: GATTCharacteristic, by descriptor: GATTDescriptor?, as id: Subscriptions.ID,
        into destination: Listener.Destination, preferring kind: SubscriptionKind, sharing: SubscriptionSharing?,
        until deadline: BootInstant, during operation: String
    ) async throws(BLEError) {
        // It may have changed while its descriptors were looked for.
        if knowledge.contradicts(characteristic) { throw changed(during: operation) }
        let result = await begin(
            id, to: characteristic, by: descriptor,
            preferring: kind == .notifications ? .notification : .indication, into: destination, sharing: sharing,
            until: deadline)
        switch result {
        case .success: return
        case .failure(.operation(.linkLost)): throw endError(during: operation)
        case .failure(let failure): throw BLEError(failure, subject: name, during: operation)
        }
    }

    /// Makes `id` a subscriber, and waits for the peer's consent.
    func begin(
        _ id: Subscriptions.ID, to characteristic: GATTCharacteristic, by descriptor: GATTDescriptor?,
        preferring kind: Subscriptions.Kind, into destination: Listener.Destination,
        sharing: SubscriptionSharing? = nil, until deadline: BootInstant
    ) async -> Result<Void, SubscribeFailure> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: Listener.Starter.Continuation) in
                if Task.isCancelled || scheduler.isClearing {
                    return continuation.resume(returning: .failure(.operation(.cancelled)))
                }
                let others = others(at: characteristic.valueHandle)
                if mustNotShare(sharing, with: others) { return continuation.resume(returning: .failure(.taken)) }
                let timer = loop.schedule(at: deadline) { [weak self] in
                    self?.assumeIsolated { $0.giveUp(id, .operation(.timedOut)) }
                }
                listeners[id] = Listener(
                    handle: characteristic.valueHandle, destination: destination, sharing: sharing,
                    starter: Listener.Starter(continuation: continuation, timer: timer))
                perform(subscribers.subscribe(id, to: characteristic, cccd: descriptor, preferring: kind))
                // Behind it, so that the peer need not stop in between.
                if sharing == .replacing { others.forEach(replace) }
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.giveUp(id, .operation(.cancelled)) }
        }
    }

    func giveUp(_ id: Subscriptions.ID, _ failure: SubscribeFailure) {
        guard listeners[id]?.starter != nil else { return }
        tellStarter(of: id, .failure(failure))
        listeners[id] = nil
        perform(subscribers.unsubscribe(id))
    }

    /// Releases the call that waits for a subscription to begin, if one still does.
    private func tellStarter(of id: Subscriptions.ID, _ result: Result<Void, SubscribeFailure>) {
        guard let starter = listeners[id]?.starter else { return }
        listeners[id]?.starter = nil
        loop.cancel(starter.timer)
        starter.continuation.resume(returning: result)
    }

    /// Performs the machine's actions; answers the write to the peer that they gave rise to.
    @discardableResult
    func perform(_ actions: [Subscriptions.Action]) -> Task<Result<Void, OperationFailure>, Never>? {
        var write: Task<Result<Void, OperationFailure>, Never>?
        for action in actions {
            switch action {
            case .write(let handle, let value, let valueHandle):
                write = configure(handle, value, for: valueHandle)
            case .began(let id, _):
                tellStarter(of: id, .success(()))
            case .failed(let id, let failure):
                tellStarter(of: id, .failure(.operation(failure)))
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
        perform(subscribers.configured(valueHandle, result))
    }

    // MARK: Values

    /// Hands a value to everybody who listens, and counts it when that is nobody.
    func deliver(_ value: [UInt8], from handle: AttributeHandle, isIndication: Bool) {
        let received = ReceivedValue(
            bytes: value, handle: handle, isIndication: isIndication, time: loop.now(), droppedBefore: 0)
        for id in subscribers.recipients(of: handle) {
            guard let listener = listeners[id] else { continue }
            switch listener.destination {
            case .stream(let buffer):
                if !buffer.yield(received, bytes: value.count) { unsubscribeLater([id.number]) }
            case .gathering: gather(received, for: id)
            }
        }
        for id in taps {
            guard case .stream(let buffer)? = listeners[id]?.destination else { continue }
            if !buffer.yield(received, bytes: value.count) { unsubscribeLater([id.number]) }
        }
        let isOwn = handle == knowledge.serviceChangedHandle
        if !isOwn, taps.isEmpty, !subscribers.isWanted(handle) { unwantedValues += 1 }
        // Behind it: obeying may end the subscription that the value is for.
        if isOwn {
            serviceChanged(value)
        } else if isIndication, !subscribers.isWanted(handle) {
            mayBeServiceChanged(value, from: handle)
        }
    }

    /// Ends one sequence, or what a call gathers, and the call that waits for it to begin.
    func endListener(_ id: Subscriptions.ID, _ failure: SubscribeFailure, with error: BLEError) {
        guard let listener = listeners[id] else { return }
        switch listener.destination {
        case .stream(let buffer): buffer.finish(error)
        case .gathering: interruptGathering(id, with: error)
        }
        tellStarter(of: id, .failure(failure))
        listeners[id] = nil
    }

    /// Ends all subscriptions; answers the sequences that must be told so.
    func endSubscriptions() -> [StreamBuffer<ReceivedValue>] {
        let ids = subscribers.linkLost() + taps
        for id in ids { tellStarter(of: id, .failure(.operation(.linkLost))) }
        let streams = ids.compactMap { id -> StreamBuffer<ReceivedValue>? in
            if case .stream(let buffer)? = listeners[id]?.destination { buffer } else { nil }
        }
        listeners = [:]
        taps = []
        return streams
    }

    /// Ends subscriptions; returns when the peer knows, if it has to.
    func unsubscribe(_ numbers: [UInt64]) async throws(BLEError) {
        let writes = numbers.compactMap { stopListening(Subscriptions.ID($0)) }
        var failures: [OperationFailure] = []
        for write in writes {
            if case .failure(let failure) = await write.value, failure != .linkLost { failures.append(failure) }
        }
        if let failure = failures.first { throw BLEError(failure, subject: name, during: "unsubscribe") }
    }

    /// Takes a listener away; answers the write to the peer, if there is one.
    @discardableResult
    func stopListening(_ id: Subscriptions.ID) -> Task<Result<Void, OperationFailure>, Never>? {
        guard listeners.removeValue(forKey: id) != nil else { return nil }
        taps.removeAll { $0 == id }
        return perform(subscribers.unsubscribe(id))
    }

    /// Unsubscribes without anybody waiting for it.
    nonisolated func unsubscribeLater(_ numbers: [UInt64]) {
        Task(executorPreference: loop) { try? await self.unsubscribe(numbers) }
    }
}
