public import BLECore

extension Central {
    /// Returns the bonds of the adapter, in the order in which they were made.
    ///
    /// - Throws: `BLEError` with `.noAdapter`, `.notPermitted`, `.busy` if another process has the bonds, `.system`.
    public func bonds() async throws(BLEError) -> [Bond] { try await adapter.bonds() }

    /// Removes the bond with a peer: from the disk, then from the kernel; and ends its link, also one without a bond.
    /// The stored cache of the bond is removed too, and so is a bond with the peer in a file that was moved aside as
    /// damaged or newer: links to the peer are not encrypted then.
    ///
    /// The peer keeps its own record of the bond, and may refuse to pair again until it is removed there too. Without
    /// CAP_NET_ADMIN the kernel keeps the key until a program loads its keys again, which the log reports.
    ///
    /// - Throws: `BLEError` with `.noAdapter`, `.adapterDown`, `.timedOut`, `.cancelled`, and the codes of `BondStore`.
    ///   `.bondNotStored` if the disk refused: the bond still exists. `.unusableState` if the stored bonds were
    ///   damaged: what is left of them was set aside, and the next call removes the bond, also from there.
    public func forgetBond(with peer: PeerID) async throws(BLEError) {
        _ = try await removeBond(with: peer)
    }

    /// As `forgetBond`.
    ///
    /// - Returns: Why the kernel may keep the key, if it may.
    package func removeBond(with peer: PeerID) async throws(BLEError) -> BLEError? {
        // Without the bond nothing shows whose a private address was.
        let identity = try await adapter.bondedIdentity(of: peer, during: Adapter.forgetting)
        defer { bondedClients.remove(identity) }
        let refusal = try await adapter.forgetBond(with: identity)
        // A write that is under way must find the bond gone.
        bondedClients.remove(identity)
        await removeCaches(ofBondsWith: identity)
        return refusal
    }

    /// Returns the identity of the bonded device that uses a private address; `nil` for every other address.
    public func identity(of peer: PeerID) async -> PeerID? { await adapter.identity(of: peer) }
}
