public import BLECore

/// The pairing behavior of a `VirtualDevice`, and what its user does when a passkey or a number is shown.
///
///     var lock = VirtualDevice(name: "Lock", services: [
///         VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [1], protection: .authenticated)])
///     ])
///     lock.security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
///
/// A device without it cannot pair: it responds to a Pairing Request with Pairing Not Supported.
public struct VirtualSecurity: Hashable, Sendable {
    /// The device's means to show and enter a passkey.
    public enum Capability: Hashable, Sendable, CaseIterable {
        /// It can show a passkey.
        case displayOnly
        /// It can show a number and ask whether it is right.
        case displayYesNo
        /// A passkey can be entered.
        case keyboardOnly
        /// Neither.
        case noInputNoOutput
        /// It can show a passkey, and one can be entered.
        case keyboardDisplay
    }

    /// The device's response to a Pairing Request.
    public enum Response: Hashable, Sendable {
        /// It pairs, and its user enters and confirms what is right.
        case accept
        /// It fails the pairing at once.
        case refuse
        /// It begins to pair, but its user rejects the number or enters another passkey. Where it has no user to ask,
        /// it fails the pairing in the same phase.
        case reject
        /// It does not respond at all.
        case ignore
    }

    /// The device's means to show and enter a passkey.
    public var capability: Capability
    /// A Boolean value that indicates whether the device supports LE Secure Connections; LE legacy pairing otherwise.
    public var hasSecureConnections: Bool
    /// The passkey that the device always shows, 0 to 999,999; `nil` for another one in each pairing.
    public var passkey: UInt32?
    /// The response to a Pairing Request.
    public var response = Response.accept
    /// A Boolean value that indicates whether the device fails pairings without protection against a man in the middle.
    public var requiresAuthentication = false
    /// A Boolean value that indicates whether the device keeps the key for later connections.
    public var keepsBonds = true
    /// A Boolean value that indicates whether the device keeps the client configurations of bonded clients for their
    /// next connection, as the specification demands.
    public var keepsConfigurations = true
    /// The maximum size of keys in bytes, 7 to 16.
    public var keySize = 16
    /// The identity that the device distributes in a pairing; `nil` for none.
    public var identity: VirtualIdentity?
    /// The values for out-of-band pairing that the device has given away, for example by NFC.
    public var outOfBandData: VirtualOutOfBandData?
    /// A Boolean value that indicates whether the device accepts signed writes:
    /// it asks for the signing key in a pairing.
    public var acceptsSignedWrites = false
    /// The key by which the device signs its writes, which it distributes in a pairing: 16 bytes, the least significant
    /// one first. Fewer are filled up with zeros; `nil` for none.
    public var signatureKey: [UInt8]?
    /// The Security Request that the device sends as soon as it is connected; `nil` for none.
    public var request: VirtualSecurityRequest?
    /// The ATT packets that the device sends as soon as it is connected, encrypted or not: a forged notification, for
    /// example.
    public var earlyPackets: [[UInt8]] = []

    /// Creates a description of a device that pairs and bonds with anybody.
    public init(
        capability: Capability = .noInputNoOutput, hasSecureConnections: Bool = true, passkey: UInt32? = nil
    ) {
        self.capability = capability
        self.hasSecureConnections = hasSecureConnections
        self.passkey = passkey
    }
}

/// The identity of a `VirtualDevice` that uses private addresses.
public struct VirtualIdentity: Hashable, Sendable {
    /// The identity address: public, or static random.
    public var address: PeerID
    /// The Identity Resolving Key: 16 bytes, the least significant one first. Fewer are filled up with zeros.
    public var key: [UInt8]

    /// Creates an identity.
    public init(_ address: PeerID, key: [UInt8]) {
        self.address = address
        self.key = key
    }
}

/// The values for out-of-band pairing with LE Secure Connections, 16 bytes each, the least significant one first.
public struct VirtualOutOfBandData: Hashable, Sendable {
    /// The confirmation value.
    public var confirmation: [UInt8]
    /// The random value.
    public var random: [UInt8]

    /// Creates the values.
    public init(confirmation: [UInt8], random: [UInt8]) {
        self.confirmation = confirmation
        self.random = random
    }
}

/// A Security Request, by which a peripheral asks the central to encrypt the link, or to pair.
public struct VirtualSecurityRequest: Hashable, Sendable {
    /// A Boolean value that indicates whether the peripheral asks for a bond.
    public var isBonding: Bool
    /// A Boolean value that indicates whether the peripheral asks for protection against a man in the middle.
    public var isAuthenticated: Bool

    /// Creates a request.
    public init(isBonding: Bool = true, isAuthenticated: Bool = false) {
        self.isBonding = isBonding
        self.isAuthenticated = isAuthenticated
    }
}

/// The reaction of a `VirtualCentral` to a Security Request.
public enum VirtualSecurityReaction: Hashable, Sendable {
    /// It does nothing.
    case ignore
    /// It responds that it does not pair, which has the kernel end the link.
    case refuse
    /// It encrypts the link, as with the key of a bond that both sides have.
    case encrypt(VirtualLinkSecurity)
    /// It begins to pair.
    case pair(VirtualSecurity)
}

/// The security of a link, as the peripheral sees it.
public struct VirtualLinkSecurity: Hashable, Sendable {
    /// The size of the key in bytes; 0 without encryption.
    public var keySize: Int
    /// A Boolean value that indicates whether the key is protected against a man in the middle.
    public var isAuthenticated: Bool

    /// Creates the security of a link that is encrypted with a key of this size.
    public init(keySize: Int = 16, isAuthenticated: Bool = false) {
        self.keySize = keySize
        self.isAuthenticated = isAuthenticated
    }

    /// A Boolean value that indicates whether the link is encrypted.
    public var isEncrypted: Bool { keySize > 0 }

    /// A link that is not encrypted.
    public static let none = VirtualLinkSecurity(keySize: 0)
}

/// The security that a `VirtualCharacteristic` requires for reads and writes, its client configuration included.
public struct VirtualProtection: Hashable, Sendable {
    /// A Boolean value that indicates whether the link must be encrypted.
    public var isEncrypted: Bool
    /// A Boolean value that indicates whether the link's key must be protected against a man in the middle.
    public var isAuthenticated: Bool
    /// The minimum size of the link's key, in bytes.
    public var keySize: Int

    private init(isEncrypted: Bool, isAuthenticated: Bool, keySize: Int) {
        self.isEncrypted = isEncrypted
        self.isAuthenticated = isAuthenticated
        self.keySize = keySize
    }

    /// Nothing is required.
    public static let none = VirtualProtection(isEncrypted: false, isAuthenticated: false, keySize: 0)
    /// The link must be encrypted.
    public static let encrypted = VirtualProtection(isEncrypted: true, isAuthenticated: false, keySize: 7)
    /// The link must be encrypted with a key that is protected against a man in the middle.
    public static let authenticated = VirtualProtection(isEncrypted: true, isAuthenticated: true, keySize: 7)

    /// Returns the same with a longer key.
    public func keySize(_ size: Int) -> VirtualProtection {
        VirtualProtection(isEncrypted: true, isAuthenticated: isAuthenticated, keySize: size)
    }
}
