public import BLECore

/// What the application is asked for when a peer wants a more secure link: `Configuration.raiseSecurity`.
public struct SecurityRequest: Hashable, Sendable {
    /// The peer's address; `nil` when the link is no Bluetooth link.
    public let peer: PeerID?
    /// What messages call the peer.
    public let name: String
    /// What the peer says is missing.
    public let level: SecurityLevel
    /// The attribute that the peer protects.
    public let attribute: AttributeHandle
    /// What was refused: "read 2a19".
    public let operation: String
}
