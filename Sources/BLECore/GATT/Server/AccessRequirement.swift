/// The security of a client's link, as its server sees it.
///
/// The owner of the link passes it on before each packet that was received at it.
package struct ClientSecurity: Hashable, Sendable {
    /// The size of the key that encrypts the link, in bytes; 0 without encryption.
    package var keySize: UInt8
    /// A Boolean value that indicates whether the pairing was protected against a man in the middle.
    package var isAuthenticated: Bool
    /// A Boolean value that indicates whether the key comes from LE Secure Connections.
    package var isSecureConnections: Bool
    /// A Boolean value that indicates whether the server keeps a key for the client, whether or not it encrypts the
    /// link.
    package var isBonded: Bool

    /// Creates the security of a link that is encrypted with a key of `keySize` bytes.
    package init(
        keySize: UInt8 = 16, isAuthenticated: Bool = false, isSecureConnections: Bool = false, isBonded: Bool = false
    ) {
        self.keySize = keySize
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.isBonded = isBonded
    }

    /// A link that is not encrypted, to a client without a bond.
    package static let none = ClientSecurity(keySize: 0)

    /// A Boolean value that indicates whether the link is encrypted.
    package var isEncrypted: Bool { keySize > 0 }

    /// A Boolean value that indicates whether the client has proven that it is the one that has bonded.
    package var isProven: Bool { isEncrypted && isBonded }
}

/// The security that a link must have before a client may read, write or subscribe to an attribute.
///
/// Spec: LE security mode 1, Core Vol 3 Part C, 10.2.1 and 10.3.1.
public struct AccessRequirement: Hashable, Sendable {
    /// The levels of LE security mode 1.
    public enum Level: UInt8, Hashable, Comparable, Sendable, CaseIterable {
        /// No security.
        case open = 1
        /// Encryption with any key.
        case encrypted
        /// Encryption with a key that is protected against a man in the middle.
        case authenticated
        /// The same, with a key of 16 bytes from LE Secure Connections.
        case secureConnections

        /// Returns a Boolean value that indicates whether the left level demands less.
        public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }

    /// The level of the link.
    public var level: Level
    /// The minimum size of the key, in bytes; 0 for any.
    public var keySize: UInt8
    /// A Boolean value that indicates whether the client must have bonded.
    public var isBonded: Bool
    /// A Boolean value that indicates whether the application is asked each time.
    public var isAuthorized: Bool

    /// Creates a requirement. A key size or a bond implies encryption.
    public init(_ level: Level, keySize: UInt8 = 0, isBonded: Bool = false, isAuthorized: Bool = false) {
        self.level = level
        self.keySize = keySize
        self.isBonded = isBonded
        self.isAuthorized = isAuthorized
    }

    /// Nothing is required.
    public static let open = AccessRequirement(.open)
    /// Encryption with any key.
    public static let encrypted = AccessRequirement(.encrypted)
    /// Encryption with a key that is protected against a man in the middle.
    public static let authenticated = AccessRequirement(.authenticated)
    /// Encryption with a key of 16 bytes from LE Secure Connections that is protected against a man in the middle.
    public static let secureConnections = AccessRequirement(.secureConnections)

    /// A Boolean value that indicates whether an unencrypted link never suffices.
    package var isEncrypted: Bool { level > .open || keySize > 0 || isBonded }

    /// Returns the error for an access over such a link, or `nil` if the link suffices.
    /// Authorization is not part of it.
    ///
    /// Spec: Core Vol 3 Part C, 10.3.1, table 10.2.
    package func refusal(over link: ClientSecurity) -> ATTErrorCode? {
        guard isEncrypted else { return nil }
        guard link.isEncrypted else {
            return link.isBonded ? .insufficientEncryption : .insufficientAuthentication
        }
        if link.keySize < max(keySize, level == .secureConnections ? 16 : 0) { return .insufficientEncryptionKeySize }
        if level >= .authenticated, !link.isAuthenticated { return .insufficientAuthentication }
        if level == .secureConnections, !link.isSecureConnections { return .insufficientAuthentication }
        if isBonded, !link.isBonded { return .insufficientAuthentication }
        return nil
    }
}

/// The requirements of each way of access to an attribute, if its properties permit it at all.
public struct AttributeAccess: Hashable, Sendable {
    /// The requirement for every way to read the value.
    public var read: AccessRequirement
    /// The requirement for every way to write the value.
    public var write: AccessRequirement
    /// The requirement for enabling notifications and indications, and for sending them.
    ///
    /// The application authorizes the subscription, and not each value. It is not asked again when the subscription of
    /// a bonded client is in force again on a later link.
    public var subscribe: AccessRequirement

    /// Creates requirements; what is left out is open.
    public init(
        read: AccessRequirement = .open, write: AccessRequirement = .open, subscribe: AccessRequirement = .open
    ) {
        self.read = read
        self.write = write
        self.subscribe = subscribe
    }

    /// The same requirement for all.
    public init(_ requirement: AccessRequirement) {
        self.init(read: requirement, write: requirement, subscribe: requirement)
    }
}
