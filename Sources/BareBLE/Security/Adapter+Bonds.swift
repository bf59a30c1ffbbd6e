internal import BLECore
internal import Logging

// How the adapter reads its bonds, has them take effect, and forgets one.

extension Adapter {
    /// Opens the bonds and reads them, unless that was done.
    func openBonds(in context: CallContext) async throws(BLEError) {
        guard security.isConfigured else { return }
        if !bonds.isOpen {
            guard let address, address != .zero else { throw downError(during: context.operation) }
            try await bonds.open(adapter: address, in: context)
        }
        guard let damage = bonds.takeUnreportedDamage() else { return }
        logger.warning("bonds were damaged", metadata: ["adapter": "\(nameAndAddress)", "reason": "\(damage)"])
        security.report(.bondsDamaged(damage))
    }

    /// Finds the adapter and reads its bonds.
    func readBonds(during operation: String) async throws(BLEError) {
        try find(during: operation)
        try await openBonds(in: .unlimited(operation))
    }

    /// The bonds are other ones from now on.
    ///
    /// - Parameter areKeysLate: Whether their keys have changed, and no task waited for the disk any more. What would
    ///   follow the change has been done before, with the bonds as they were: a bond that a central has made late would
    ///   be missing in the kernel, and the key of one that was forgotten late would be left there.
    func bondsChanged(areKeysLate: Bool) {
        var keys: [PeerID: Secret128] = [:]
        for record in bonds.records { keys[record.identity] = record.resolvingKey?.key }
        if !keys.isEmpty, security.addressHash == nil {
            logger.warning(
                "bonded devices with private addresses are not recognized: `Configuration.addressHash` is not set",
                metadata: ["adapter": "\(name)"])
        }
        setIdentityKeys(keys, security.addressHash)
        let lists = BondRules.keyLists(of: bonds.records, adapter: bonds.hardware)
        for omission in bonds.newOmissions(lists.omissions) {
            let consequence =
                switch omission.part {
                case .bond: "a bond cannot be used: connects to its peer fail"
                case .identityKey: "the kernel does not recognize the private addresses of a bonded peer"
                case .peripheralKey: "the kernel is not given the key of a bond for links that the peer initiates"
                }
            logger.warning(
                "\(consequence)", metadata: ["peer": "\(omission.identity)", "reason": "\(omission.reason)"])
        }
        if areKeysLate { perform(coordinator.loadLateChange()) }
    }

    /// The bonds of this adapter.
    package func bonds() async throws(BLEError) -> [Bond] {
        guard security.isConfigured else { return [] }
        try await readBonds(during: "list the bonds")
        guard let address else { return [] }
        let shared = BondRules.sharedIdentityKeys(of: bonds.records)
        return bonds.records.map { Bond($0, adapter: address, sharedKeys: shared) }
    }

    /// The adapter in messages about bonds, which belong to its address.
    var nameAndAddress: String { address.map { "\(name) (\($0))" } ?? name }

    /// The error for a call that needs a bond and has none. It names the adapter whose bonds were searched.
    func missingBondError(
        _ subject: String, during operation: String,
        remedy: String = "Pair with it first, with `Peripheral.pair` or `blescan pair`."
    ) -> BLEError {
        guard security.isConfigured else {
            return BLEError(
                .notBonded, subject: subject, during: operation, because: "this program keeps no bonds",
                hint: "Set `Configuration.security`, and pair with it first.")
        }
        return BLEError(
            .notBonded, subject: subject, during: operation, because: "\(nameAndAddress) has no bond with it",
            hint: "\(remedy) \(BLEError.whereBondsAre)")
    }

    /// As the error for a call, for a link, whose peer may have a bond that is not used on it.
    func missingBondError(of link: LinkIdentity, _ subject: String, during operation: String) -> BLEError {
        guard bond(with: link.peer) != nil else { return missingBondError(subject, during: operation) }
        return BLEError(
            .notBonded, subject: subject, during: operation, because: "its bond is not used on this link",
            hint: "Connect again.", origin: .peer)
    }

    /// Returns the identity of the bonded device that uses an address, by the bonds on the disk; every other address as
    /// it is.
    func bondedIdentity(of peer: PeerID, during operation: String) async throws(BLEError) -> PeerID {
        guard security.isConfigured else { return peer }
        try await readBonds(during: operation)
        return identity(of: peer) ?? peer
    }

    /// What `forgetBond` is, for messages.
    static let forgetting = "forget the bond"

    /// Removes a bond: from the disk, from the kernel, and the link.
    ///
    /// - Returns: Why the kernel may keep the key, if it may.
    package func forgetBond(with peer: PeerID) async throws(BLEError) -> BLEError? {
        let operation = Self.forgetting
        guard security.isConfigured else { return nil }
        let identity = try await bondedIdentity(of: peer, during: operation)
        security.pairing.forget(identity)
        security.centrals.forget(identity)
        try await bonds.forget(identity, during: operation)
        _ = coordinator.takeRejection(by: identity)
        // The bond is gone, whatever follows.
        var refusal: BLEError?
        do throws(BLEError) {
            try await removeKeys(of: identity, in: .unlimited(operation))
        } catch {
            refusal = error
            let level: Logger.Level = error.code == .notPermitted ? .notice : .warning
            logger.log(
                level: level, "the kernel may keep the key of a forgotten bond until keys are loaded again",
                metadata: ["adapter": "\(name)", "peer": "\(identity)", "reason": "\(error)"])
        }
        // Without a key in the kernel that has not ended the link.
        for handle in links.handles(of: identity) { await disconnect(handle) }
        if Task.isCancelled { throw cancelledError(during: operation) }
        return refusal
    }

    private func removeKeys(of identity: PeerID, in context: CallContext) async throws(BLEError) {
        try await manage(in: context)
        let (wake, number) = await suspend { number in perform(coordinator.unpair(identity, number)) }
        coordinator.stopWaiting(number)
        if case .failed(let error) = wake { throw error }
    }
}
