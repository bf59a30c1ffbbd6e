internal import BLECore
internal import BLELinux

/// The security of a link.
public struct LinkSecurity: Hashable, Sendable {
    /// The security of a link that is not encrypted.
    public static let none = LinkSecurity(level: 1, keySize: 0, bond: nil)

    /// The level: 1 not encrypted, 2 encrypted, 3 encrypted with a key that excludes a man in the middle, 4 the same by
    /// LE Secure Connections.
    ///
    /// It is what the kernel was asked for and has reached; `isAuthenticated` is what the key is worth.
    ///
    /// Spec: LE security mode 1, Core Vol 3 Part C, 10.2.1.
    public let level: Int
    /// The length of the key in bytes, 7 to 16; 0 if the link is not encrypted.
    public let keySize: Int
    /// The bond whose key encrypts the link; `nil` if the link is not encrypted, and for a peer that keeps no bond.
    public let bond: Bond?

    /// A Boolean value that indicates whether the link is encrypted.
    public var isEncrypted: Bool { keySize > 0 }

    /// A Boolean value that indicates whether the pairing that made the key excluded a man in the middle, by LE Secure
    /// Connections. It comes from the bond: the kernel reports a level that was asked for in any case.
    public var isAuthenticated: Bool { isEncrypted && bond?.isAuthenticated ?? false }

    init(level: Int, keySize: Int, bond: Bond?) {
        self.level = level
        self.keySize = keySize
        self.bond = bond
    }

    /// Whether the link has what is required. The level counts for nothing: it may be what was asked for.
    func satisfies(_ required: PairingOptions.RequiredSecurity) -> Bool {
        switch required {
        case .encrypted: isEncrypted
        case .legacyPasskey: isEncrypted && (bond.map { $0.isAuthenticated || $0.isLegacyPasskey } ?? false)
        case .authenticated: isAuthenticated
        }
    }

    /// What a socket reports while its link is up. Its fields are noise on a link that is not encrypted: kernel 6.1
    /// then has a size.
    init(_ security: SocketSecurity, bond: Bond?) {
        guard security.level >= .medium, security.keySize >= 7 else {
            self = .none
            return
        }
        self.init(level: Int(security.level.rawValue), keySize: Int(security.keySize), bond: bond)
    }
}

/// A bond as a link uses it. Each pairing makes another one, also with the same peer.
struct BondID: Hashable, Sendable {
    let identity: PeerID
    /// The version of the list that the bond came with.
    let generation: UInt64
    /// The time of the pairing, in seconds since 1970. Where bonds are only in memory, each run numbers its own.
    let bondedAt: UInt64

    init(_ record: BondRecord) {
        identity = record.identity
        generation = record.generation
        bondedAt = record.bondedAt
    }
}
