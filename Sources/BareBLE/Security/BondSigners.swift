internal import BLECore

/// Signs writes with the keys of bonds, by counters that were reserved on the disk before.
///
/// A peer accepts each counter once, and only a higher one than the last. So a bond's counters are used in ascending
/// order, and those that are left of a reservation when a later one is used, or when the process ends, never are.
struct BondSigners {
    typealias Code = @Sendable (WriteSignatureMessage) -> [UInt8]

    enum Outcome {
        case signed(ATTSignedWriteCommand)
        /// No counter is left.
        case notPrepared
        /// The function has given no code of 8 bytes.
        case noCode
    }

    /// The number of counters that are reserved at once: each reservation is a write to the disk.
    static let block: UInt32 = 64

    /// By the identities of the peers. Another pairing makes another key.
    private var signers: [PeerID: (bond: BondID, signer: WriteSigner)] = [:]

    /// Whether a counter is left for the next write.
    func canSign(_ bond: BondID) -> Bool {
        guard let known = signers[bond.identity], known.bond == bond else { return false }
        return known.signer.reservedCount != 0
    }

    /// Counters from that of `signing` on have been reserved on the disk.
    mutating func add(_ signing: BondRecord.Signing, count: UInt32, of bond: BondID, _ code: @escaping Code) {
        guard let counter = signing.counter else { return }
        // Another task's reservation may have been made earlier, and be reported later.
        if let known = signers[bond.identity], known.bond == bond, known.signer.counter.map({ $0 > counter }) ?? true {
            return
        }
        let key = signing.key
        var signer = WriteSigner(counter: counter) { code(WriteSignatureMessage(key: key, packet: $0)) }
        _ = signer.reserve(count)
        signers[bond.identity] = (bond, signer)
    }

    /// Signs a write.
    mutating func sign(_ value: [UInt8], for handle: AttributeHandle, with bond: BondID) -> Outcome {
        guard canSign(bond), var signer = signers[bond.identity]?.signer else { return .notPrepared }
        defer { signers[bond.identity] = (bond, signer) }
        return signer.sign(value, for: handle).map { .signed($0) } ?? .noCode
    }
}
