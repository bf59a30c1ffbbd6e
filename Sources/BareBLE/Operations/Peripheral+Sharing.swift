public import BLECore

/// A characteristic with subscriptions of this program.
public struct ActiveSubscription: Hashable, Sendable {
    /// The handle of its value.
    public let handle: AttributeHandle
    /// The characteristic; `nil` if it is no longer known.
    public let characteristic: GATTCharacteristic?
    /// The kind of PDU in which the peer sends its values.
    public let kind: SubscriptionKind
    /// The number of listeners: sequences, and calls that wait for a response.
    public let listenerCount: Int
}

extension Peripheral {
    /// The characteristics with subscriptions of this program, ordered by handle.
    ///
    /// The library's own subscription to Service Changed is not included.
    public var subscriptions: [ActiveSubscription] {
        subscribers.active.compactMap { value in
            let count = value.subscribers.count { $0 != Self.ownSubscriber }
            guard count > 0 else { return nil }
            return ActiveSubscription(
                handle: value.valueHandle,
                characteristic: knowledge.database?.characteristic(valueHandle: value.valueHandle),
                kind: value.kind == .notification ? .notifications : .indications, listenerCount: count)
        }
    }

    // MARK: Who may share

    /// Those who listen to a value and mind who else does.
    func others(at handle: AttributeHandle) -> [Subscriptions.ID] {
        listeners.filter { $0.value.handle == handle && $0.value.sharing != nil }.keys
            .sorted { $0.number < $1.number }
    }

    func mustNotShare(_ sharing: SubscriptionSharing?, with others: [Subscriptions.ID]) -> Bool {
        switch sharing {
        case nil, .replacing?: false
        case .exclusive?: !others.isEmpty
        case .shared?: others.contains { listeners[$0]?.sharing == .exclusive }
        }
    }

    /// Ends one in whose place another one has come.
    func replace(_ id: Subscriptions.ID) {
        let error = BLEError(SubscribeFailure.replaced, subject: name, during: "go on with a subscription")
        endListener(id, .replaced, with: error)
        perform(subscribers.unsubscribe(id))
    }
}
