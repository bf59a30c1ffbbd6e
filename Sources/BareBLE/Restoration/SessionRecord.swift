internal import BLECore
internal import BLELinux

/// What the store keeps of one session for the next start.
///
/// It ends with `forgetSession` or `stop`; a session that is not kept has one all the same, which does nothing.
struct SessionRecord {
    private let peer: PeerID?
    private var keeper: StateKeeper?
    /// What is kept of the subscriptions, by their numbers: also of those that have ended without being unsubscribed.
    private var kept: [UInt64: RestorationState.Subscription] = [:]

    init(of peer: PeerID?, in keeper: StateKeeper?) {
        self.peer = peer
        self.keeper = keeper
    }

    /// The session is over for good.
    mutating func forgetSession() {
        if let peer { keeper?.assumeIsolated { $0.forget(peer) } }
        keeper = nil
    }

    /// What becomes of the session from now on is not kept; what is kept already stays so.
    mutating func stop() {
        keeper = nil
    }

    /// The next start makes no link without the bond of the peer.
    func requireBond() {
        guard let keeper, let peer else { return }
        keeper.assumeIsolated { $0.requireBond(of: peer) }
    }

    /// Keeps a subscription: at its beginning, and on each link, where more may be known of it.
    mutating func keep(_ number: UInt64, _ subscription: StandingSubscription, on link: Peripheral?) {
        guard let keeper, let peer, let reference = subscription.reference,
            let persisted = Self.persisted(reference, subscription.options, on: link)
        else { return }
        if let before = kept[number] {
            // Only a database shows which one of several it is.
            guard persisted != before, persisted.index != nil else { return }
            forget(number)
        }
        kept[number] = persisted
        keeper.assumeIsolated { $0.add(persisted, of: peer) }
    }

    /// Removes a subscription from the restoration state, whatever it ended by, unless there is another one for the
    /// same values.
    mutating func forget(_ number: UInt64) {
        guard let persisted = kept.removeValue(forKey: number), let keeper, let peer, !kept.values.contains(persisted)
        else { return }
        keeper.assumeIsolated { $0.forget(persisted, of: peer) }
    }

    /// A subscription has ended, and stays in the restoration state.
    mutating func release(_ number: UInt64) {
        kept[number] = nil
    }

    /// What is stored of a subscription. A handle is not: it may be something else by then.
    private static func persisted(
        _ reference: CharacteristicReference, _ options: SubscribeOptions, on link: Peripheral?
    ) -> RestorationState.Subscription? {
        let prefers = options.preferred == .indications
        switch reference {
        case .uuid(let uuid, let service, let index):
            return RestorationState.Subscription(uuid, service: service, index: index, prefersIndications: prefers)
        case .characteristic(let characteristic):
            let all = link?.assumeIsolated { $0.database?.characteristics(characteristic.uuid, in: nil) } ?? []
            let index = all.count > 1 ? all.firstIndex(of: characteristic) : nil
            return RestorationState.Subscription(characteristic.uuid, index: index, prefersIndications: prefers)
        case .handle:
            return nil
        }
    }
}
