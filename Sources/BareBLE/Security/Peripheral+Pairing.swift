internal import BLECore

extension Peripheral {
    /// Pairs with the peer and keeps the bond: afterwards the link is encrypted, and so is each later one before its
    /// first byte.
    ///
    /// A bonded peer is not paired again, unless the options require it; its bond is returned. One pairing of an
    /// adapter runs at a time. A cancelled call ends the pairing and leaves no bond. If it fails after keys were made,
    /// or is cancelled while the peer is silent, the link ends too.
    ///
    /// - Returns: The bond, which is on the disk by then.
    /// - Throws: `BLEError` with `.pairingFailed`, `.pairingRefused` (the peer, or the agent), `.wrongPasskey`,
    ///   `.adapterShared` (refused while another program manages the adapter), `.pairingUnavailable` (the kernel cannot
    ///   pair with the adapter), `.keyTooShort`, `.notBonded` (encrypted, without a bond), `.bondNotStored`,
    ///   `.unusableState` (the file of bonds was damaged meanwhile), `.bondRejected`, `.adapterMismatch`, `.timedOut`,
    ///   `.disconnected`, `.notPermitted` without CAP_NET_ADMIN, `.notSupported` without `Configuration.security` or a
    ///   radio, `.busy`, `.adapterDown`, `.cancelled`.
    ///
    /// Spec: Core Vol 3 Part H, 2.3.
    @discardableResult
    public func pair(_ options: PairingOptions = PairingOptions()) async throws(BLEError) -> Bond {
        let controls = try radio(during: "pair")
        guard let descriptor = link.descriptor else { throw endError(during: "pair") }
        let former = controls.bond()
        defer {
            secured()
            if let bond = controls.bond(), bond != former { bondMade(bond, replacing: former) }
            serverSecurityMayHaveChanged()
        }
        return try await controls.pair(descriptor, options)
    }

    /// Drops what is known of the peer from before its bond was made.
    private func bondMade(_ bond: BondID, replacing former: BondID?) {
        guard end == nil else { return }
        dropCache(filledBefore: bond)
        guard former != nil else { return }
        // A server keeps the configurations of a bond, not of a device.
        kept.contradicted()
        kept.secured(after: subscriptionHub.active)
    }

    /// Drops the cache of an earlier link, which the key of `bond` did not encrypt.
    func dropCache(filledBefore bond: BondID) {
        let announcer = peerDatabase.state.isFromCache ? peerDatabase.state.serviceChangedHandle : nil
        peerDatabase.bondMade(bond)
        // Announcements may come from another handle, and would be missed there.
        guard let announcer else { return }
        endSubscriptions(in: announcer...announcer)
        enableServiceChangedAgain()
    }
}
