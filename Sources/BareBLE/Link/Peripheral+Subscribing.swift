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
    /// How many values may wait for the consumer; 64 KiB of them at most in any case.
    public var capacity: Int
    /// What happens to a value that finds no room.
    public var policy: OverflowPolicy
    /// How long telling the peer may take.
    public var timeout: Duration?

    /// The defaults, or other values for some of them.
    public init(
        preferred: SubscriptionKind = .notifications, capacity: Int = 256, policy: OverflowPolicy = .dropOldest,
        timeout: Duration? = nil
    ) {
        self.preferred = preferred
        self.capacity = capacity
        self.policy = policy
        self.timeout = timeout
    }
}

/// Where the values of one subscription go.
struct Listener {
    let handle: AttributeHandle
    let buffer: StreamBuffer<ReceivedValue>
    /// The call that waits for the subscription to begin; none once it has.
    var starter: CheckedContinuation<Result<Void, OperationFailure>, Never>?
}

extension Peripheral {
    private static let waitingBytes = 64 * 1024
    /// How long telling a peer to stop may take when nobody waits for it.
    private static let farewellTimeout: Duration = .seconds(5)

    /// Tells the peer to send the characteristic's values, and returns them as a sequence.
    ///
    /// The sequence is armed first, so a value that comes together with the peer's consent is in it. Several subscriptions
    /// to one characteristic share one configuration in the peer: it is written for the first one and cleared behind
    /// the last.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a characteristic that cannot send, `.refusedByPeer`,
    ///   `.insufficientSecurity`, `.ambiguous`, `.attributeNotFound`, `.timedOut`, `.disconnected`, `.cancelled`.
    public func subscribe(
        to characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> ValueSequence {
        let operation = "subscribe to \(characteristic)"
        let found = try await resolve(characteristic, during: operation)
        guard found.properties.canSubscribe else {
            throw BLEError(
                .notSupported, subject: name, during: operation,
                because: "the characteristic neither notifies nor indicates",
                hint: "Its properties are: \(found.properties).")
        }
        let descriptor = knownDatabase?.cccd(of: found)
        if let descriptor {
            do {
                return try await subscribe(to: found, by: descriptor, options, during: operation)
            } catch  where error.code == .notSupported && descriptor.isInferred {
                // The descriptor was concluded and is not there: look where it is.
            }
        }
        let actual = try await discover(.full).cccd(of: found)
        return try await subscribe(to: found, by: actual, options, during: operation)
    }

    private func subscribe(
        to characteristic: GATTCharacteristic, by descriptor: GATTDescriptor?, _ options: SubscribeOptions,
        during operation: String
    ) async throws(BLEError) -> ValueSequence {
        lastNumber &+= 1
        let id = Subscriptions.ID(lastNumber)
        let buffer = StreamBuffer<ReceivedValue>(
            capacity: options.capacity, byteLimit: Self.waitingBytes, policy: options.policy)
        configurationTimeout = options.timeout ?? Self.valueTimeout
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { starter in
                listeners[id] = Listener(handle: characteristic.valueHandle, buffer: buffer, starter: starter)
                perform(
                    subscriptions.subscribe(
                        id, to: characteristic, cccd: descriptor,
                        preferring: options.preferred == .notifications ? .notification : .indication))
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.giveUp(id) }
        }
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

    private func giveUp(_ id: Subscriptions.ID) {
        guard let starter = listeners[id]?.starter else { return }
        listeners[id] = nil
        perform(subscriptions.unsubscribe(id))
        starter.resume(returning: .failure(.cancelled))
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
                let starter = listeners[id]?.starter
                listeners[id]?.starter = nil
                starter?.resume(returning: .success(()))
            case .failed(let id, let failure):
                listeners.removeValue(forKey: id)?.starter?.resume(returning: .failure(failure))
            }
        }
        return write
    }

    private func configure(
        _ handle: AttributeHandle, _ value: [UInt8], for valueHandle: AttributeHandle
    ) -> Task<Result<Void, OperationFailure>, Never> {
        let timeout = configurationTimeout
        return Task(executorPreference: loop) {
            let result = await self.runOperation(timeout: timeout) { client, id, deadline, now in
                let procedure = WriteRequest(handle: handle, value: value, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
            }.map { _ in () }
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
    }

    /// Ends every sequence; with an error unless this program ended the link.
    func endSubscriptions(_ failure: BLEError?) {
        for id in subscriptions.linkLost() {
            guard let listener = listeners.removeValue(forKey: id) else { continue }
            listener.buffer.finish(failure)
            listener.starter?.resume(returning: .failure(.linkLost))
        }
        listeners = [:]
    }

    /// Ends a subscription; returns when the peer knows, if it has to.
    func unsubscribe(_ number: UInt64) async throws(BLEError) {
        let id = Subscriptions.ID(number)
        guard listeners.removeValue(forKey: id) != nil else { return }
        configurationTimeout = Self.farewellTimeout
        guard let write = perform(subscriptions.unsubscribe(id)) else { return }
        guard case .failure(let failure) = await write.value, failure != .linkLost else { return }
        throw BLEError(failure, subject: name, during: "unsubscribe")
    }

    /// Unsubscribes without anybody waiting for it.
    nonisolated func unsubscribeLater(_ number: UInt64) {
        Task(executorPreference: loop) { try? await self.unsubscribe(number) }
    }
}
