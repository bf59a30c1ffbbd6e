public import BLECore
internal import BLELinux
internal import Logging

extension Peripheral {
    /// Gives the link up without ending it, so that this program or another one goes on with it.
    ///
    /// The radio link stays up and the peer notices nothing. For this peripheral it is over: calls under way fail once with
    /// `.disconnected`, subscriptions end behind the values that wait in them, channels close, and `disconnected()` returns
    /// `.detached`. What was asked of the peer and not answered stays known: whoever adopts the link waits for that answer, and
    /// empties the peer's queue of prepared writes where an unfinished write has left something in it.
    ///
    /// - Throws: `BLEError` with `.disconnected` when the link is over, or about to end.
    public func detach() async throws(BLEError) -> DetachedLink {
        let operation = "hand the link over"
        if end != nil { throw endError(during: operation) }
        guard !isEnding, !isEndRequested, let descriptor = socket?.descriptor else {
            throw BLEError(
                .disconnected, subject: name, during: operation, because: "the link is ending", hint: "Connect again.")
        }
        let state = linkState()
        loop.letGo(descriptor)
        guard let socket = socket.take() else { throw endError(during: operation) }
        formerDrops = socket.droppedPackets
        let link = DetachedLink(state: state, socket: socket)
        close(.detached)
        await finishStoring()
        return link
    }

    private func linkState() -> LinkState {
        var state = LinkState(peer: id, name: name)
        state.client = client.remains()
        state.cache = knowledge.cache
        for value in subscribers.active {
            let isOwn = value.subscribers.contains(Self.ownSubscriber)
            state.subscriptions.append(
                LinkState.Subscription(
                    valueHandle: value.valueHandle, configuration: value.configuration, kind: value.kind,
                    uuid: knowledge.database?.characteristic(valueHandle: value.valueHandle)?.uuid,
                    isWanted: value.subscribers.count > (isOwn ? 1 : 0), isOwn: isOwn))
        }
        return state
    }

    /// Goes on with a link that another owner has left. Nothing is asked of the peer.
    func resume(_ state: LinkState, holding options: SubscribeOptions) throws(BLEError) {
        client = GATTClient(limits: client.limits, remains: state.client, at: loop.now())
        knowledge = DatabaseKnowledge(cache: state.cache, validation: .skipped)
        for value in state.subscriptions {
            var ids: [Subscriptions.ID] = []
            if value.isOwn {
                observation = .on
                ids.append(Self.ownSubscriber)
            }
            if value.isWanted { ids.append(hold(value, options)) }
            subscribers.resume(
                Subscriptions.Active(
                    valueHandle: value.valueHandle, configuration: value.configuration, kind: value.kind,
                    subscribers: ids))
        }
        do throws(BLEError) {
            try startReading()
        } catch {
            close(.other(nil, errorNumber: error.errorNumber))
            throw error
        }
        perform(client.resume(at: loop.now()))
        knowledgeGrew()
        logger.debug(
            "link adopted",
            metadata: ["peer": "\(name)", "mtu": "\(client.mtu)", "subscriptions": "\(held.count)"])
    }

    /// Listens to a value whose consumer is yet to come.
    private func hold(_ value: LinkState.Subscription, _ options: SubscribeOptions) -> Subscriptions.ID {
        lastNumber &+= 1
        let id = Subscriptions.ID(lastNumber)
        let buffer = StreamBuffer<ReceivedValue>(
            of: name, capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy,
            countingDropsIn: droppedValues)
        listeners[id] = Listener(handle: value.valueHandle, destination: .stream(buffer), sharing: .shared)
        held[value.valueHandle] = HeldValues(id: id, uuid: value.uuid, buffer: buffer)
        return id
    }
}

// MARK: - Subscriptions that wait for their consumer

/// A subscription that goes on, and what came in it.
struct HeldValues {
    let id: Subscriptions.ID
    let uuid: BluetoothUUID?
    let buffer: StreamBuffer<ReceivedValue>
}

/// A subscription that the last owner of the link had, whose values wait for somebody to take them on.
public struct RestoredSubscription: Sendable {
    /// The handle of the characteristic's value.
    public let handle: AttributeHandle
    /// What the characteristic is; `nil` when that is not known.
    public let uuid: BluetoothUUID?

    let peripheral: Peripheral

    /// Takes the subscription on. The values that came since the hand-over come first, in order; what found no room is counted in
    /// them as in any subscription.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` when somebody has taken it on, or stopped it, before.
    public func adopt() async throws(BLEError) -> ValueSequence {
        try await peripheral.adoptHeld(handle)
    }

    /// Takes the subscription on, with each value made a `Value`.
    ///
    /// - Parameters:
    ///   - type: What each value is made.
    ///   - malformedValues: What happens to a value that does not fit the type.
    /// - Throws: `BLEError` as `adopt()` does.
    public func adopt<Value: GATTReadable & Sendable>(
        as type: Value.Type, malformedValues: MalformedValuePolicy = .fail
    ) async throws(BLEError) -> TypedValueSequence<Value> {
        await peripheral.typed(try await adopt(), malformedValues)
    }

    /// Ends the subscription, and tells the peer to stop. What waits is discarded.
    ///
    /// - Throws: `BLEError` as `adopt()` does, and when the peer could not be told.
    public func stop() async throws(BLEError) {
        try await adopt().unsubscribe()
    }
}

extension Peripheral {
    /// The subscriptions that the last owner of this link left and nobody has taken on yet, by handle.
    ///
    /// Their values are kept, up to what `Central.adopt(_:holding:)` was told. Subscribing to such a characteristic takes it on
    /// as well.
    public var restoredSubscriptions: [RestoredSubscription] {
        held.sorted { $0.key < $1.key }.map { handle, values in
            RestoredSubscription(handle: handle, uuid: values.uuid, peripheral: self)
        }
    }

    func adoptHeld(_ handle: AttributeHandle) throws(BLEError) -> ValueSequence {
        if let values = held.removeValue(forKey: handle) { return sequence(of: values, at: handle) }
        throw BLEError(
            .invalidArgument, subject: name, during: "take a subscription on",
            because: "somebody has taken it on, or stopped it, before", hint: "Subscribe again.")
    }

    /// The held values of a handle for its next subscriber, unless the subscription has ended.
    func takeHeld(_ handle: AttributeHandle) -> ValueSequence? {
        guard let values = held[handle], listeners[values.id] != nil else { return nil }
        held[handle] = nil
        return sequence(of: values, at: handle)
    }

    private func sequence(of values: HeldValues, at handle: AttributeHandle) -> ValueSequence {
        ValueSequence(
            subscription: Subscription(
                ids: [values.id.number], handle: handle, buffer: values.buffer, peripheral: self))
    }
}
