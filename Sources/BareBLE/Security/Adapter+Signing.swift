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
            guard let store = bondStore, let record = security.record(of: identity) else {
                throw BLEError(
                    .notBonded, subject: "\(peer)", during: operation, because: "there is no bond with it",
                    hint: "Pair with it first: the pairing makes the key.")
            }
            let bond = BondID(record)
            if security.signers.canSign(bond) { return }
            guard record.signing != nil else {
                throw BLEError(
                    .notSupported, subject: "\(peer)", during: operation,
                    because: "its pairing has made no key for signed writes: it did not ask for one",
                    hint: "Write on an encrypted link instead.")
            }
            let reserved = try await onDisk(during: operation) {
                () throws(BLEError) -> (signing: BondRecord.Signing, count: UInt32)? in
                // Fewer may be left.
                for count in [BondSigners.block, 1] {
                    if let signing = try store.reserveSignatures(count, for: identity) { return (signing, count) }
                }
                return nil
            }
            guard let reserved else {
                throw BLEError(
                    .notSupported, subject: "\(peer)", during: operation,
                    because: "all counters of its key for signed writes have been used",
                    hint: "Forget the bond and pair again: the pairing makes another key.")
            }
            security.signers.add(reserved.signing, count: reserved.count, of: bond, code)
        }
    }

    /// Signs a write with the key of a bond, if that is prepared.
    func sign(_ value: [UInt8], for handle: AttributeHandle, to peer: PeerID) -> BondSigners.Outcome {
        guard let bond = bond(with: peer) else { return .notPrepared }
        return security.signers.sign(value, for: handle, with: bond)
    }
}
