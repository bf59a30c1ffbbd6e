internal import BLECore
internal import BLELinux

extension Session {
    /// Removes the session from the restoration state.
    func forgetSession() {
        if let id { keeper?.assumeIsolated { $0.forget(id) } }
        keeper = nil
    }

    /// Records a subscription: at its beginning, and on each link, which may add details.
    func keep(_ number: UInt64) {
        guard let keeper, let id, let subscription = standing[number],
            let reference = subscription.reference, let wanted = wanted(reference, subscription.options)
        else { return }
        if let before = kept[number] {
            // Only a database tells which one of several it is.
            guard wanted != before, wanted.index != nil else { return }
            forgetStanding(number)
        }
        kept[number] = wanted
        keeper.assumeIsolated { $0.want(wanted, of: id) }
    }

    /// Removes a subscription from the restoration state, however it ended, unless another one for the same values
    /// remains.
    func forgetStanding(_ number: UInt64) {
        guard let wanted = kept.removeValue(forKey: number), let keeper, let id, !kept.values.contains(wanted) else {
            return
        }
        keeper.assumeIsolated { $0.forget(wanted, of: id) }
    }

    /// Returns the stored form of a subscription. It has no handle, which may belong to another attribute by then.
    private func wanted(_ reference: CharacteristicReference, _ options: SubscribeOptions) -> WantedSubscription? {
        let prefers = options.preferred == .indications
        switch reference {
        case .uuid(let uuid, let service, let index):
            return WantedSubscription(uuid, service: service, index: index, prefersIndications: prefers)
        case .characteristic(let characteristic):
            let all = link?.assumeIsolated { $0.database?.characteristics(characteristic.uuid, in: nil) } ?? []
            let index = all.count > 1 ? all.firstIndex(of: characteristic) : nil
            return WantedSubscription(characteristic.uuid, index: index, prefersIndications: prefers)
        case .handle:
            return nil
        }
    }

    /// Returns the values of a stored subscription.
    func values(of wanted: WantedSubscription, _ holding: SubscribeOptions) -> SessionValues<ReceivedValue> {
        var options = holding
        options.preferred = wanted.prefersIndications ? .indications : .notifications
        return values(of: .uuid(wanted.uuid, service: wanted.service, index: wanted.index), options)
    }
}
