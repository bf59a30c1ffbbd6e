internal import BLECore

// How a write is signed with the key of a bond: its counter is reserved on the disk first, many at a time, so that none is
// used twice, whenever the process ends.

extension Adapter {
    /// Makes sure that a write to a bonded peer can be signed.
    ///
    /// - Throws: `BLEError` with `.notBonded`; `.notSupported` if the pairing has given this side no key, or all counters
    ///   are used; `.bondNotStored` if the counters could not be reserved.
    func prepareSignature(
        for peer: PeerID, during operation: String, _ code: @escaping BondSigners.Code
    ) async throws(BLEError) {
        let identity = identity(of: peer) ?? peer
        while true {
            guard let record = bonds.record(of: identity) else {
                throw BLEError(
                    .notBonded, subject: "\(peer)", during: operation, because: "there is no bond with it",
                    hint: "Pair with it first: the pairing makes the key.")
            }
            let bond = BondID(record)
            if bonds.canSign(bond) { return }
            guard record.signing != nil else {
                throw BLEError(
                    .notSupported, subject: "\(peer)", during: operation,
                    because: "its pairing has made no key for signed writes: it did not ask for one",
                    hint: "Write on an encrypted link instead.")
            }
            guard try await bonds.reserveSignatures(of: bond, during: operation, code) else {
                throw BLEError(
                    .notSupported, subject: "\(peer)", during: operation,
                    because: "all counters of its key for signed writes have been used",
                    hint: "Forget the bond and pair again: the pairing makes another key.")
            }
        }
    }

    /// Signs a write with the key of a bond, if that is prepared.
    func sign(_ value: [UInt8], for handle: AttributeHandle, to peer: PeerID) -> BondSigners.Outcome {
        guard let bond = bond(with: peer) else { return .notPrepared }
        return bonds.sign(value, for: handle, with: bond)
    }
}
