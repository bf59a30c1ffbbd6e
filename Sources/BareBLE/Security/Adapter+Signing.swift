internal import BLECore
internal import Logging

// How a write is signed with the key of a bond: its counter is reserved on the disk first, many at a time, so that none
// is used twice, whenever the process ends. And how the signature of a central is verified, whose counter
// `AcceptedSignatures` accepts. Only the holder of the key makes the disk write.

extension Adapter {
    /// Makes sure that a write to a bonded peer can be signed.
    ///
    /// - Throws: `BLEError` with `.notBonded`; `.adapterMismatch`; `.notSupported` if the pairing has given this side
    ///   no key, or all counters are used; `.bondNotStored` if the counters could not be reserved.
    func prepareSignature(
        for peer: PeerID, during operation: String, _ code: @escaping BondSigners.Code
    ) async throws(BLEError) {
        let identity = identity(of: peer) ?? peer
        while true {
            guard let record = bonds.record(of: identity) else {
                throw missingBondError(
                    "\(peer)", during: operation, remedy: "Pair with it first: the pairing makes the key.")
            }
            guard record.isFor(adapter: bonds.hardware) else {
                throw BLEError(unusableBondWith: identity, .otherAdapter, during: operation)
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

    /// Returns whether a signed write of a central is to be executed: the key of its bond has signed it, and its
    /// counter is higher than those before it.
    func accept(
        _ command: ATTSignedWriteCommand, on link: LinkIdentity, _ code: BondSigners.Code?
    ) async -> Bool {
        let reason: String
        do throws(BLEError) {
            switch command.verified(with: bond(of: link).flatMap { bonds.record(of: $0.identity) }, code) {
            case .success(let (key, counter)):
                let fault = try await bonds.acceptSignature(counter, by: key, during: "accept a signed write")
                guard let fault else { return true }
                reason = fault.words
            case .failure(let fault): reason = fault.words
            }
        } catch {
            reason = "\(error)"
        }
        security.refusedSignature()
        logger.debug(
            "a signed write was dropped",
            metadata: ["adapter": "\(name)", "central": "\(link.peer)", "reason": "\(reason)"])
        return false
    }

    /// Stores the exact counters of the signed writes that were accepted, also for a task that is cancelled.
    func storeAcceptedCounters() async {
        await Task(executorPreference: loop) { await self.storeExactCounters() }.value
    }

    private func storeExactCounters() async { await bonds.storeExactCounters() }

    /// Signs a write with the key of a bond, if that is prepared.
    func sign(_ value: [UInt8], for handle: AttributeHandle, to peer: PeerID) -> BondSigners.Outcome {
        guard let bond = bond(with: peer) else { return .notPrepared }
        return bonds.sign(value, for: handle, with: bond)
    }
}

/// Why the signature of a write is not that of a bond.
private enum SignatureFault: Error {
    case noKey, noFunction, otherKey

    var words: String {
        switch self {
        case .noKey: "there is no key of the central for signatures: it has distributed none"
        case .noFunction: "no function verifies it: `Configuration.writeSignature` is not set"
        case .otherKey: "the key of its bond has not signed it"
        }
    }
}

extension BondedDevices.CounterFault {
    fileprivate var words: String {
        switch self {
        case .used: "its counter was used before"
        case .skipsTooOften: "the central skips counters too often, which makes the disk write"
        case .noBond: "its bond was forgotten"
        }
    }
}

extension ATTSignedWriteCommand {
    /// Verifies the signature with the key of a bond; returns the key, and the counter that the packet has used.
    fileprivate func verified(
        with record: BondRecord?, _ code: BondSigners.Code?
    ) -> Result<(Secret128, UInt32), SignatureFault> {
        guard let key = record?.peerSigning?.key else { return .failure(.noKey) }
        guard let code else { return .failure(.noFunction) }
        var reader = ByteReader(signature.span)
        guard let counter = reader.u32() else { return .failure(.otherKey) }
        let right = code(WriteSignatureMessage(key: key, packet: bytes.dropLast(WriteSigner.codeLength)))
        let given = reader.rest()
        guard right.count == WriteSigner.codeLength, given.count == right.count else { return .failure(.otherKey) }
        // As long for each wrong code.
        guard zip(right, given).reduce(0, { $0 | ($1.0 ^ $1.1) }) == 0 else { return .failure(.otherKey) }
        return .success((key, counter))
    }
}
