// What the kernel reports of the keys of one pairing, and what they are worth.
//
// Invariants
// - Keys that are not for storage are known to exist, and are not kept.
// - Of each role one key is kept, the last that was reported, as the kernel does.

/// The keys that a pairing has made so far.
package struct PairingKeys: Hashable, Sendable {
    /// The peer's identity, or its address on the air while it has distributed none.
    package private(set) var identity: PeerID
    package private(set) var longTermKeys: [ManagementLongTermKey] = []
    private var identityResolvingKey: ManagementIdentityResolvingKey?
    private var signatureKey: ManagementNewSignatureKey?
    private var peerSignatureKey: ManagementNewSignatureKey?
    private var hasFleetingKey = false

    /// No keys yet.
    package init(of peer: PeerID) {
        identity = peer
    }

    /// A Boolean value that indicates whether the kernel has made keys of any worth.
    package var isEmpty: Bool { !hasFleetingKey && longTermKeys.isEmpty }

    /// A Boolean value that indicates whether there is a key for links whose Central is this side.
    package var hasCentralKey: Bool { longTermKeys.contains { $0.isCentral || $0.kind.isSecureConnections } }

    /// A Boolean value that indicates whether there is a key for links whose Central is the peer.
    package var hasPeripheralKey: Bool { longTermKeys.contains { !$0.isCentral || $0.kind.isSecureConnections } }

    /// A Boolean value that indicates whether no further key can come: LE Secure Connections has one for both roles,
    /// legacy pairing one for each.
    package var isComplete: Bool {
        longTermKeys.count == 2 || longTermKeys.contains { $0.kind.isSecureConnections }
    }

    /// The peer has distributed its identity in another way.
    package mutating func identified(as identity: PeerID) { self.identity = identity }

    package mutating func add(_ new: ManagementNewIdentityResolvingKey) {
        guard let identity = new.key.peer.id else { return }
        self.identity = identity
        if new.isForStorage { identityResolvingKey = new.key }
    }

    package mutating func add(_ new: ManagementNewLongTermKey) {
        guard new.isForStorage else { return hasFleetingKey = true }
        longTermKeys.removeAll { $0.isCentral == new.key.isCentral }
        longTermKeys.append(new.key)
    }

    package mutating func add(_ new: ManagementNewSignatureKey) {
        // With a key of zeros everybody could sign.
        guard new.isForStorage, new.key != .zero else { return }
        if new.isRemote { peerSignatureKey = new } else { signatureKey = new }
    }

    /// Decides what the keys of an encrypted link are worth.
    ///
    /// - Throws: `PairingExchange.Failure` with `.noIdentity`, `.noKey`, `.keyTooWeak` or `.keyTooShort`.
    package func outcome(
        _ method: PairingMethod, level demanded: BondRecord.Level, minimumKeySize: UInt8
    ) throws(PairingExchange.Failure) -> PairingExchange.Outcome {
        guard identity.isIdentity else { throw .noIdentity }
        guard hasCentralKey else { throw .noKey }
        let levels = longTermKeys.map { $0.kind.level }
        guard let level = levels.compactMap({ $0 }).min(), !levels.contains(nil) else { throw .keyTooWeak(nil) }
        guard level >= demanded else { throw .keyTooWeak(level) }
        let keySize = longTermKeys.map { $0.size }.min() ?? 0
        guard keySize >= minimumKeySize else { throw .keyTooShort(keySize) }
        return PairingExchange.Outcome(
            identity: identity, longTermKeys: longTermKeys, identityResolvingKey: identityResolvingKey,
            signatureKey: signatureKey, peerSignatureKey: peerSignatureKey, method: method, level: level,
            keySize: keySize)
    }
}

extension PeerID {
    /// Whether the address never changes.
    fileprivate var isIdentity: Bool { kind == .public || kind == .static }
}
