public import BLECore

extension Configuration {
    /// A request to raise the security of a link, passed to `Configuration.raiseSecurity`.
    public struct SecurityRequest: Hashable, Sendable {
        /// The peer's address; `nil` if the link is not a Bluetooth link.
        public let peer: PeerID?
        /// The peer's name in messages.
        public let name: String
        /// The security that the peer requires.
        public let level: SecurityLevel
        /// The attribute that the peer protects.
        public let attribute: AttributeHandle
        /// The refused operation, such as "read 2a19".
        public let operation: String
    }
}

/// The former name of `Configuration.SecurityRequest`.
@available(*, deprecated, renamed: "Configuration.SecurityRequest")
public typealias SecurityRequest = Configuration.SecurityRequest
