/// The way in which a pairing found out that the right devices were paired. The raw values are stable.
///
/// Spec: Core Vol 3 Part H, 2.3.5.1, Selecting Key Generation Method.
public enum PairingMethod: String, Hashable, Sendable, CaseIterable {
    /// Nobody compared or typed anything: the link is encrypted, and anybody could have been the peer.
    case justWorks = "just-works"
    /// This side showed a passkey, and it was typed on the peer.
    case passkeyShown = "passkey-shown"
    /// The peer showed a passkey, or has a fixed one, and it was typed on this side.
    case passkeyTyped = "passkey-typed"
    /// Both sides showed a number, and on both it was confirmed that it is the same.
    case numericComparison = "numeric-comparison"
    /// Data came another way, such as NFC or a printed code.
    case outOfBand = "out-of-band"
}

/// The stored data of one bond: the peer's identity, the keys of the pairing, and what is known of them.
///
/// No description shows a key.
package struct BondRecord: Hashable, Sendable {
    /// The security level of a link, as BT_SECURITY encodes it.
    ///
    /// Spec: `struct bt_security` of the Linux kernel; Core Vol 3 Part C, 10.2.1.
    package enum Level: UInt8, Hashable, Sendable, Comparable {
        /// Encrypted.
        case encrypted = 2
        /// Encrypted, with protection against a man in the middle.
        case authenticated = 3
        /// The same by LE Secure Connections.
        case secureConnections = 4

        package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }

    /// The Identity Resolving Key of the peer, by which its private addresses are known.
    package enum IdentityKey: Hashable, Sendable {
        /// The peer sent none.
        case none
        /// It is used unless another bond has the same one.
        case key(Secret128)
        /// The peer sent one that would match strangers; it was not kept.
        case unusable(IdentityKeyFault)
    }

    /// The reason that an Identity Resolving Key is not used.
    package enum IdentityKeyFault: Hashable, Sendable, CaseIterable {
        /// All bits are zero.
        case zero
        /// Another bond has the same key. Files of earlier versions have this in the place of the key.
        case shared
        /// The key has been published.
        case published
    }

    package enum State: Hashable, Sendable {
        case good
        /// The peer did not accept the key, for the first time at this time, in seconds since 1970.
        case rejected(since: UInt64)
    }

    /// The key by which one side signs writes.
    package struct Signing: Hashable, Sendable {
        package var key: Secret128
        /// The counter of the next signature of this side, or the lowest one that is accepted of the peer; `nil` when
        /// all have been used.
        package var counter: UInt32?

        package init(key: Secret128, counter: UInt32?) {
            self.key = key
            self.counter = counter
        }
    }

    /// The maximum length of a name, in bytes of UTF-8.
    package static let nameLimit = 128
    /// The maximum length of the bus identifier of an adapter, in bytes.
    package static let adapterPinLimit = 64

    /// The address that stays: public or static random.
    package let identity: PeerID
    /// The name that the program has given, for people.
    package let name: String?
    /// One or two keys as the kernel reported them: legacy pairing makes one for each role.
    package let keys: [ManagementLongTermKey]
    package var identityKey: IdentityKey
    /// The level that the pairing reached. Later links request it, and a new pairing must not fall below it.
    package let level: Level
    package let method: PairingMethod
    /// The input and output of the peer, if they are known.
    package let peerCapability: IOCapability?
    /// The time of the pairing, in seconds since 1970.
    package let bondedAt: UInt64
    /// The last known time at which the key encrypted a link, in seconds since 1970.
    package var lastEncryptedAt: UInt64?
    package var state: State
    /// The key by which this side signs; `nil` if the peer asked for none.
    package var signing: Signing?
    /// The key by which the peer signs; `nil` if it has distributed none.
    package var peerSigning: Signing?
    /// The version of the whole list that the bond came with.
    package var generation: UInt64
    /// The bus identifier of the only adapter that may use the keys; `nil` for any with the right address.
    package var adapterPin: String?

    /// Creates a record. Longer names are truncated at a character boundary.
    package init(
        identity: PeerID, name: String? = nil, keys: [ManagementLongTermKey], identityKey: IdentityKey = .none,
        level: Level, method: PairingMethod, peerCapability: IOCapability? = nil, bondedAt: UInt64,
        lastEncryptedAt: UInt64? = nil, state: State = .good, signing: Signing? = nil, peerSigning: Signing? = nil,
        generation: UInt64 = 0, adapterPin: String? = nil
    ) {
        self.identity = identity
        self.name = name.map { Self.text($0, fitting: Self.nameLimit) }
        self.keys = keys
        self.identityKey = identityKey
        self.level = level
        self.method = method
        self.peerCapability = peerCapability
        self.bondedAt = bondedAt
        self.lastEncryptedAt = lastEncryptedAt
        self.state = state
        self.signing = signing
        self.peerSigning = peerSigning
        self.generation = generation
        self.adapterPin = adapterPin.map { Self.text($0, fitting: Self.adapterPinLimit) }
    }

    /// The key of links whose Central is this side; `nil` if there is none.
    package var centralKey: ManagementLongTermKey? {
        keys.first { $0.isCentral || $0.kind.isSecureConnections }
    }

    /// A Boolean value that indicates whether the pairing excluded a man in the middle by today's standard: LE Secure
    /// Connections, and not Just Works.
    package var isAuthenticated: Bool { centralKey?.kind == .secureConnectionsAuthenticated }

    /// The key for the list of the kernel, or for resolving addresses; `nil` if there is none that can be used.
    package var resolvingKey: ManagementIdentityResolvingKey? {
        guard case .key(let key) = identityKey else { return nil }
        return ManagementIdentityResolvingKey(peer: ManagementPeer(identity), key: key)
    }

    /// Returns a Boolean value that indicates whether the keys may be used on the adapter with this bus identifier;
    /// `nil` if it is not known.
    package func isFor(adapter: String?) -> Bool {
        guard let adapterPin else { return true }
        return adapter.map { Self.text($0, fitting: Self.adapterPinLimit) } == adapterPin
    }

    static func text(_ text: String, fitting limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var result = ""
        for character in text {
            guard result.utf8.count + String(character).utf8.count <= limit else { break }
            result.append(character)
        }
        return result
    }
}

extension BondRecord: CustomStringConvertible {
    /// The identity, the method, and the strength of the key.
    package var description: String {
        let rejected = if case .rejected = state { true } else { false }
        let size = centralKey.map { "\($0.size) bytes" } ?? "no key"
        return "bond with \(identity), \(method.rawValue), level \(level.rawValue), \(size)"
            + (rejected ? ", rejected by the peer" : "")
    }
}

extension ManagementLongTermKey.Kind {
    /// A Boolean value that indicates whether the key was made by LE Secure Connections, which has one for both roles.
    package var isSecureConnections: Bool { rawValue >= Self.secureConnections.rawValue }

    /// The highest level that the kernel reaches with such a key; `nil` for kinds that it does not load. If more is
    /// requested, it pairs again.
    package var level: BondRecord.Level? {
        switch self {
        case .legacy, .secureConnections: .encrypted
        case .legacyAuthenticated: .authenticated
        case .secureConnectionsAuthenticated: .secureConnections
        default: nil
        }
    }
}
