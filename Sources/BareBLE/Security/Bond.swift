public import BLECore

/// A bond with a peer, as this side has stored it. The keys are not part of it.
public struct Bond: Hashable, Sendable {
    /// The peer's identity: the address that stays, whatever private addresses the peer uses on the air.
    public let peer: PeerID
    /// The name that the program gave the bond.
    public let name: String?
    /// The address of the adapter that has the bond; other adapters cannot use it.
    public let adapter: BluetoothAddress
    /// The way in which the pairing was confirmed.
    public let method: PairingMethod
    /// A Boolean value that indicates whether the pairing excluded a man in the middle: by LE Secure Connections, and
    /// not Just Works.
    public let isAuthenticated: Bool
    /// A Boolean value that indicates whether the key is one of LE legacy pairing with a passkey, which somebody who
    /// listened to the pairing can find out.
    public let isLegacyPasskey: Bool
    /// The length of the key in bytes, 7 to 16.
    public let keySize: Int
    /// A Boolean value that indicates whether the peer's private addresses are known to be its own.
    public let resolvesPrivateAddresses: Bool
    /// The time of the pairing, in seconds since 1970.
    public let bondedAt: UInt64
    /// A time at which the key encrypted a link, in seconds since 1970; it is at most an hour older than the last one.
    public let lastEncryptedAt: UInt64?
    /// The time since which the peer rejects the key, in seconds since 1970; `nil` if it does not.
    public let rejectedSince: UInt64?

    /// Describes a record.
    ///
    /// - Parameter sharedKeys: The keys of private addresses that more than one bond has.
    package init(_ record: BondRecord, adapter: BluetoothAddress, sharedKeys: Set<Secret128> = []) {
        let key = record.centralKey
        peer = record.identity
        name = record.name
        self.adapter = adapter
        method = record.method
        isAuthenticated = record.isAuthenticated
        isLegacyPasskey = key?.kind == .legacyAuthenticated
        keySize = key.map { Int($0.size) } ?? 0
        resolvesPrivateAddresses = record.resolvingKey.map { !sharedKeys.contains($0.key) } ?? false
        bondedAt = record.bondedAt
        lastEncryptedAt = record.lastEncryptedAt
        rejectedSince = if case .rejected(let since) = record.state { since } else { nil }
    }
}
