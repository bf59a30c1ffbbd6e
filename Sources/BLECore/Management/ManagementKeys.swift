// The keys of bonds as the management interface takes and reports them, and the commands that load them.
//
// The kernel replaces its whole list with each of these commands. It skips a Long Term Key that it does not like and
// still reports success, and refuses the whole list for one such Identity Resolving Key, so what is loaded has to be
// checked before.

/// A Long Term Key of a bond.
///
///     peer 7 | kind 1 | central 1 | size 1 | EDIV 2 | Rand 8 | key 16
///
/// Spec: `struct mgmt_ltk_info` of the Linux kernel; Core Vol 3 Part H, 2.4.1.
package struct ManagementLongTermKey: Hashable, Sendable {
    /// The way in which the key was made.
    package struct Kind: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// LE legacy pairing, Just Works.
        package static let legacy = Kind(rawValue: 0)
        /// LE legacy pairing with a passkey.
        package static let legacyAuthenticated = Kind(rawValue: 1)
        /// LE Secure Connections, Just Works.
        package static let secureConnections = Kind(rawValue: 2)
        /// LE Secure Connections with protection against a man in the middle.
        package static let secureConnectionsAuthenticated = Kind(rawValue: 3)
        /// LE Secure Connections with the debug key of the specification: anybody can read the link.
        package static let debug = Kind(rawValue: 4)
    }

    /// The identity that the key belongs to.
    package var peer: ManagementPeer
    package var kind: Kind
    /// A Boolean value that indicates whether it is for links whose Central is this side.
    /// Secure Connections has one key for both.
    package var isCentral: Bool
    /// The number of bytes of the key that count, 7 to 16; the others are zero.
    package var size: UInt8
    /// Names the key to the peer; zero for Secure Connections.
    package var ediv: UInt16
    /// Names the key to the peer; zero for Secure Connections.
    package var rand: UInt64
    package var key: Secret128

    package init(
        peer: ManagementPeer, kind: Kind, isCentral: Bool, size: UInt8, ediv: UInt16, rand: UInt64, key: Secret128
    ) {
        self.peer = peer
        self.kind = kind
        self.isCentral = isCentral
        self.size = size
        self.ediv = ediv
        self.rand = rand
        self.key = key
    }
}

/// The Identity Resolving Key of a bond, by which the private addresses of a peer are known.
///
///     peer 7 | key 16
///
/// Spec: `struct mgmt_irk_info` of the Linux kernel.
package struct ManagementIdentityResolvingKey: Hashable, Sendable {
    /// The identity that the key belongs to.
    package var peer: ManagementPeer
    package var key: Secret128

    package init(peer: ManagementPeer, key: Secret128) {
        self.peer = peer
        self.key = key
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    mutating func longTermKey() -> ManagementLongTermKey? {
        guard let peer = managementPeer(), let kind = u8(), let central = u8(), let size = u8(), let ediv = u16(),
            let rand = u64(), let key = secret()
        else { return nil }
        return ManagementLongTermKey(
            peer: peer, kind: .init(rawValue: kind), isCentral: central != 0, size: size, ediv: ediv, rand: rand,
            key: key)
    }
}

extension ByteWriter {
    mutating func longTermKey(_ key: ManagementLongTermKey) {
        managementPeer(key.peer)
        u8(key.kind.rawValue)
        u8(key.isCentral ? 1 : 0)
        u8(key.size)
        u16(key.ediv)
        u64(key.rand)
        secret(key.key)
    }
}

// MARK: - Commands

/// Replaces the kernel's list of Long Term Keys.
///
///     0x0013 | count 2 | keys, 36 each
///
/// The control channel takes packets of 1,028 bytes by default, which hold 28 keys.
///
/// Spec: MGMT_OP_LOAD_LONG_TERM_KEYS; Bluetooth Management API, Load Long Term Keys Command.
package struct ManagementLoadLongTermKeys: ManagementCommand {
    package static let code = ManagementCommandCode.loadLongTermKeys
    /// The largest number of keys in one packet.
    package static let limit = (0xFFFF - 2) / 36

    package let keys: [ManagementLongTermKey]

    /// Creates the command; keys beyond `limit` are left out.
    package init(_ keys: [ManagementLongTermKey]) {
        self.keys = keys.count <= Self.limit ? keys : Array(keys.prefix(Self.limit))
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2 + 36 * keys.count)
        writer.u16(UInt16(truncatingIfNeeded: keys.count))
        for key in keys { writer.longTermKey(key) }
        return writer.bytes
    }

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> ManagementNoParameters {
        try ManagementNoParameters("mgmt_cp_load_long_term_keys", returned)
    }
}

/// Replaces the kernel's list of Identity Resolving Keys. Until one was loaded since the adapter appeared, which may be
/// empty, the kernel does not ask peers for theirs.
///
///     0x0030 | count 2 | keys, 23 each
///
/// Spec: MGMT_OP_LOAD_IRKS; Bluetooth Management API, Load Identity Resolving Keys Command.
package struct ManagementLoadIdentityResolvingKeys: ManagementCommand {
    package static let code = ManagementCommandCode.loadIdentityResolvingKeys
    /// The largest number of keys in one packet.
    package static let limit = (0xFFFF - 2) / 23

    package let keys: [ManagementIdentityResolvingKey]

    /// Creates the command; keys beyond `limit` are left out.
    package init(_ keys: [ManagementIdentityResolvingKey]) {
        self.keys = keys.count <= Self.limit ? keys : Array(keys.prefix(Self.limit))
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2 + 23 * keys.count)
        writer.u16(UInt16(truncatingIfNeeded: keys.count))
        for key in keys {
            writer.managementPeer(key.peer)
            writer.secret(key.key)
        }
        return writer.bytes
    }

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> ManagementNoParameters {
        try ManagementNoParameters("mgmt_cp_load_irks", returned)
    }
}

/// Replaces the kernel's list of keys that are never accepted.
///
///     0x0046 | count 2 | {kind 1 (1 Long Term Key, 2 Identity Resolving Key), key 16} each
///
/// Spec: MGMT_OP_SET_BLOCKED_KEYS; Bluetooth Management API, Set Blocked Keys Command.
package struct ManagementSetBlockedKeys: ManagementCommand {
    /// A key that is known to be public.
    package enum BlockedKey: Hashable, Sendable {
        case longTermKey(Secret128)
        case identityResolvingKey(Secret128)
    }

    package static let code = ManagementCommandCode.setBlockedKeys
    /// The largest number of keys in one packet.
    package static let limit = (0xFFFF - 2) / 17

    package let keys: [BlockedKey]

    /// Creates the command; keys beyond `limit` are left out.
    package init(_ keys: [BlockedKey]) {
        self.keys = keys.count <= Self.limit ? keys : Array(keys.prefix(Self.limit))
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2 + 17 * keys.count)
        writer.u16(UInt16(truncatingIfNeeded: keys.count))
        for key in keys {
            switch key {
            case .longTermKey(let key):
                writer.u8(1)
                writer.secret(key)
            case .identityResolvingKey(let key):
                writer.u8(2)
                writer.secret(key)
            }
        }
        return writer.bytes
    }

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> ManagementNoParameters {
        try ManagementNoParameters("mgmt_cp_set_blocked_keys", returned)
    }
}
