public import BLECore
internal import BLELinux
internal import Logging

extension Peripheral {
    /// Detaches the link without ending it, so that this program or another one can resume it.
    ///
    /// The radio link stays up and the peer notices nothing. This peripheral ends: pending calls fail once with
    /// `.disconnected`, subscriptions end after the values that wait in them, channels close, and `disconnected()`
    /// returns `.detached`. A request without a response is recorded: the next owner waits for that response, and
    /// cancels the peer's prepared writes if an unfinished write has left some.
    ///
    /// - Throws: `BLEError` with `.disconnected` if the link has ended, or is about to end.
    public func detach() async throws(BLEError) -> DetachedLink {
        let detached = try detachNow()
        await finishStoring()
        return detached
    }

    /// As `detach`, without the wait for the discovered database to be stored.
    func detachNow() throws(BLEError) -> DetachedLink {
        let operation = "hand the link over"
        if end != nil { throw endError(during: operation) }
        guard link.isUsable, !ending.isRequested else {
            throw BLEError(
                .disconnected, subject: name, during: operation, because: "the link is ending", hint: "Connect again.")
        }
        let state = linkState()
        guard let socket = link.takeSocket() else { throw endError(during: operation) }
        let detached = DetachedLink(state: state, socket: socket)
        close(.detached)
        return detached
    }

    private func linkState() -> LinkState {
        var state = LinkState(peer: id, name: name)
        state.client = link.remains()
        state.cache = peerDatabase.state.cache
        for value in subscriptionHub.active {
            let isOwn = value.subscribers.contains(SubscriptionHub.ownSubscriber)
            state.subscriptions.append(
                LinkState.Subscription(
                    valueHandle: value.valueHandle, configuration: value.configuration, kind: value.kind,
                    uuid: peerDatabase.state.database?.characteristic(valueHandle: value.valueHandle)?.uuid,
                    isWanted: value.subscribers.count > (isOwn ? 1 : 0), isOwn: isOwn))
        }
        return state
    }

    /// Takes over what the last owner of a link knew of the peer.
    func resumeClientSide(_ state: LinkState, holding options: SubscribeOptions = SubscribeOptions()) {
        link.adopt(state.client)
        peerDatabase.resume(state.cache, isServiceChangedEnabled: state.subscriptions.contains { $0.isOwn })
        for value in state.subscriptions { subscriptionHub.resume(value, holding: options) }
    }

    /// Resumes a link that another owner has detached. Nothing is requested from the peer.
    ///
    /// A failure ends the link, also at the controller. It fails for a bonded peer whose link the kernel does not
    /// report as encrypted: how a command of another program has encrypted it is nowhere to be read.
    func resume(_ state: LinkState, holding options: SubscribeOptions) async throws(BLEError) {
        resumeClientSide(state, holding: options)
        watchEncryption()
        do throws(BLEError) {
            // Nothing proves who has sent what waits in the socket.
            if let error = takingError(.asBonded, during: "adopt a link") { throw error }
            try startReading()
        } catch {
            let controls = controls
            close(.other(nil, errorNumber: error.errorNumber))
            // Closing the socket alone leaves the link up for seconds, and the next connect would attach to it.
            await controls?.disconnect()
            throw error
        }
        link.resume(happened)
        peerDatabase.databaseDidChange()
        logger.debug(
            "link adopted",
            metadata: [
                "peer": "\(name)", "mtu": "\(link.mtu)", "subscriptions": "\(subscriptionHub.heldValues.count)",
            ])
    }
}

// MARK: - Subscriptions that wait for their consumer

extension Peripheral {
    /// A subscription of the link's last owner, whose values wait to be adopted.
    public struct RestoredSubscription: Sendable {
        /// The handle of the characteristic's value.
        public let handle: AttributeHandle
        /// The UUID of the characteristic; `nil` if it is unknown.
        public let uuid: BluetoothUUID?

        let peripheral: Peripheral

        /// Adopts the subscription. The values since the hand-over come first, in order; dropped ones are counted as in
        /// any subscription.
        ///
        /// - Throws: `BLEError` with `.invalidArgument` if it was adopted or stopped before.
        public func adopt() async throws(BLEError) -> ValueSequence {
            try await peripheral.adoptHeld(handle)
        }

        /// Adopts the subscription, with each value decoded as a `Value`.
        ///
        /// - Parameters:
        ///   - type: The type of the values.
        ///   - malformedValues: How to treat a value that does not fit the type.
        /// - Throws: `BLEError` as `adopt()` does.
        public func adopt<Value: GATTReadable & Sendable>(
            as type: Value.Type, malformedValues: SubscribeOptions.MalformedValuePolicy = .fail
        ) async throws(BLEError) -> TypedValueSequence<Value> {
            await peripheral.typed(try await adopt(), malformedValues)
        }

        /// Ends the subscription, and asks the peer to stop. Waiting values are discarded.
        ///
        /// - Throws: `BLEError` as `adopt()` does, and if the write to the peer failed.
        public func stop() async throws(BLEError) {
            try await adopt().unsubscribe()
        }
    }
}

/// The former name of `Peripheral.RestoredSubscription`.
@available(*, deprecated, renamed: "Peripheral.RestoredSubscription")
public typealias RestoredSubscription = Peripheral.RestoredSubscription

extension Peripheral {
    /// The subscriptions of this link's last owner that have not been adopted yet, ordered by handle.
    ///
    /// Their values are kept, up to the limits given to `Central.adopt(_:holding:)`. Subscribing to such a
    /// characteristic alone adopts it as well; with several in one sequence it does not.
    public var restoredSubscriptions: [RestoredSubscription] {
        subscriptionHub.heldValues.map { handle, uuid in
            RestoredSubscription(handle: handle, uuid: uuid, peripheral: self)
        }
    }

    func adoptHeld(_ handle: AttributeHandle) throws(BLEError) -> ValueSequence {
        if let held = subscriptionHub.takeHeld(handle) { return sequence(of: held, at: handle) }
        throw BLEError(
            .invalidArgument, subject: name, during: "adopt a subscription",
            because: "it was adopted or stopped before", hint: "Subscribe again.")
    }
}
