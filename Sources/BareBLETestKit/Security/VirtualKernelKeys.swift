internal import BLECore

// The keys that the kernel has of the peers of one adapter. They outlive sockets and power.
//
// Duties: takes the lists that a program loads, as the kernel does, which skips some entries and refuses others; finds
// the key for a peer, and the peer of a private address; takes what pairings make, and removes what is unpaired.
//
// Invariants
// - A list that is refused changes nothing.
// - There is one identity key for a peer, and one Long Term Key for each role.

/// The keys of an adapter of a virtual machine.
struct VirtualKernelKeys {
    typealias OutOfBand = (confirmation: Secret128, random: Secret128)

    private(set) var longTerm: [ManagementLongTermKey] = []
    private var identities: [ManagementIdentityResolvingKey] = []
    /// True once identities were loaded: the kernel asks peers for theirs.
    private(set) var asksForIdentities = false
    private var blocked: Set<Secret128> = []
    private var outOfBand: [ManagementPeer: OutOfBand] = [:]

    // MARK: Lookup

    /// Returns the identity of a private address that a loaded key resolves; with equal keys, the first one's.
    func identity(of peer: PeerID) -> ManagementPeer? {
        identities.first { PrivateAddress.isResolved(peer, by: $0.key) }?.peer
    }

    /// Returns the key by which this side encrypts a link to a peer.
    func key(of peer: ManagementPeer) -> ManagementLongTermKey? {
        longTerm.first { $0.peer == peer && ($0.isCentral || $0.kind.isSecureConnections) }
    }

    /// Whether there is a Long Term Key of a peer, for either role.
    func hasKey(of peer: ManagementPeer) -> Bool { longTerm.contains { $0.peer == peer } }

    /// The values that a program has from a peer; `nil` for none.
    func outOfBand(of peer: ManagementPeer) -> OutOfBand? { outOfBand[peer] }

    /// Whether a name is one under which the kernel keeps keys: a public address, or a static one.
    static func isIdentity(_ peer: ManagementPeer) -> Bool {
        guard let id = peer.id else { return false }
        return id.type == .public || id.kind == .static
    }

    // MARK: Changes

    /// Inserts the identity key of a peer, in place of an earlier one.
    mutating func insert(_ key: ManagementIdentityResolvingKey) {
        identities.removeAll { $0.peer == key.peer }
        identities.append(key)
    }

    /// Inserts the Long Term Keys of a pairing, in place of earlier ones.
    mutating func insert(_ keys: [ManagementLongTermKey]) {
        longTerm.removeAll { key in keys.contains { $0.peer == key.peer && $0.isCentral == key.isCentral } }
        longTerm += keys
    }

    /// Removes the identity key of a peer.
    mutating func removeIdentity(of peer: ManagementPeer) { identities.removeAll { $0.peer == peer } }

    /// Removes all keys of a peer.
    mutating func remove(_ peer: ManagementPeer) {
        longTerm.removeAll { $0.peer == peer }
        removeIdentity(of: peer)
    }

    /// Keeps what a program has from a peer; `nil` removes it.
    mutating func set(_ outOfBand: OutOfBand?, of peer: ManagementPeer) { self.outOfBand[peer] = outOfBand }

    // MARK: Lists

    /// Replaces a list by the one in the parameters of a command; returns `false` if the kernel refuses that.
    mutating func load(_ code: ManagementCommandCode, _ parameters: [UInt8]) -> Bool {
        let length = code == .loadLongTermKeys ? 36 : code == .setBlockedKeys ? 17 : 23
        var reader = ByteReader(parameters.span)
        guard let count = reader.u16(), reader.remaining == Int(count) * length else { return false }
        switch code {
        case .loadLongTermKeys:
            longTerm = []
            for _ in 0..<count {
                guard let key = Self.longTermKey(&reader), !blocked.contains(key.key) else { continue }
                longTerm.append(key)
            }
        case .loadIdentityResolvingKeys:
            var keys: [ManagementIdentityResolvingKey] = []
            for _ in 0..<count {
                guard let peer = reader.managementPeer(), let key = reader.secret(), Self.isIdentity(peer) else {
                    return false
                }
                keys.append(ManagementIdentityResolvingKey(peer: peer, key: key))
            }
            identities = keys.filter { [blocked] in !blocked.contains($0.key) }
            asksForIdentities = true
        default:
            blocked = []
            for _ in 0..<count {
                guard reader.skip(1), let key = reader.secret() else { continue }
                blocked.insert(key)
            }
        }
        return true
    }

    /// Reads an entry; `nil` for one that the kernel skips.
    private static func longTermKey(_ reader: inout ByteReader) -> ManagementLongTermKey? {
        let peer = reader.managementPeer()
        let kind = reader.u8()
        let central = reader.u8()
        let size = reader.u8()
        let ediv = reader.u16()
        let rand = reader.u64()
        let key = reader.secret()
        guard let peer, let kind, let central, let size, let ediv, let rand, let key, isIdentity(peer), kind < 4,
            central < 2, size <= 16
        else { return nil }
        return ManagementLongTermKey(
            peer: peer, kind: .init(rawValue: kind), isCentral: central == 1, size: size, ediv: ediv, rand: rand,
            key: key)
    }
}

extension ManagementLongTermKey.Kind {
    var isSecureConnections: Bool { rawValue >= Self.secureConnections.rawValue }
    var isAuthenticated: Bool { self == .legacyAuthenticated || self == .secureConnectionsAuthenticated }
}

extension Secret128 {
    /// The first 16 bytes, filled up with zeros.
    init(padding bytes: [UInt8]) {
        let whole = Array((bytes + [UInt8](repeating: 0, count: 16)).prefix(16))
        self = Secret128(whole.span) ?? .zero
    }
}
