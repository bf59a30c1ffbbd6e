/// Why a peer refused a request.
///
/// An open set: any byte is a value. 0x80 to 0x9F belong to the peer's own application, 0xE0 to 0xFF are common to all
/// profiles, and the rest is the specification's.
///
/// Spec: Core Vol 3 Part F, 3.4.1.1; Core Specification Supplement Part B.
public struct ATTErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The byte on the wire.
    public let rawValue: UInt8

    /// The error with this byte.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Whether the meaning is known to the peer's application only (0x80 to 0x9F).
    public var isApplicationError: Bool { (0x80...0x9F).contains(rawValue) }

    /// Whether the code belongs to the range that all profiles share (0xE0 to 0xFF).
    public var isCommonProfileError: Bool { rawValue >= 0xE0 }

    /// Whether a link with more security might change the answer.
    public var asksForSecurity: Bool { requiredSecurity != nil }

    /// What the link lacks, when that is why the peer refused.
    public var requiredSecurity: SecurityLevel? {
        switch self {
        case .insufficientEncryption: .encryption
        case .insufficientEncryptionKeySize: .longerKey
        case .insufficientAuthentication: .authentication
        case .insufficientAuthorization: .authorization
        default: nil
        }
    }

    /// The specification's name such as "Invalid Handle", or one made of the range and the byte.
    public var name: String { named?.name ?? "\(range) Error 0x\(Hex.encode([rawValue]))" }

    /// A plain sentence for people.
    public var sentence: String {
        if let named { return named.sentence }
        if isApplicationError { return "The device refused it with a code of its own; its documentation says why." }
        if isCommonProfileError { return "The device refused it with a profile code that has no meaning yet." }
        return "The device refused it with a code that the specification does not define."
    }

    /// The name and the byte, such as "Invalid Handle (0x01)".
    public var description: String {
        named == nil ? name : "\(name) (0x\(Hex.encode([rawValue])))"
    }

    private var range: String {
        if isApplicationError { return "Application" }
        return isCommonProfileError ? "Common Profile" : "Reserved"
    }

    private var named: (name: String, sentence: String)? {
        switch self {
        case .invalidHandle:
            ("Invalid Handle", "The device has no attribute with this handle.")
        case .readNotPermitted:
            ("Read Not Permitted", "The device does not allow this value to be read.")
        case .writeNotPermitted:
            ("Write Not Permitted", "The device does not allow this value to be written.")
        case .invalidPDU:
            ("Invalid PDU", "The device did not understand the request.")
        case .insufficientAuthentication:
            ("Insufficient Authentication", "The device wants to be paired with first.")
        case .requestNotSupported:
            ("Request Not Supported", "The device does not know this kind of request.")
        case .invalidOffset:
            ("Invalid Offset", "The offset lies behind the end of the value.")
        case .insufficientAuthorization:
            ("Insufficient Authorization", "The device, or its user, has not allowed this access.")
        case .prepareQueueFull:
            ("Prepare Queue Full", "The device cannot hold more pieces of a long write.")
        case .attributeNotFound:
            ("Attribute Not Found", "The device has nothing of this kind in the range asked for.")
        case .attributeNotLong:
            ("Attribute Not Long", "The value is short: it can only be read as a whole.")
        case .insufficientEncryptionKeySize:
            ("Encryption Key Size Too Short", "The device wants a longer encryption key.")
        case .invalidAttributeValueLength:
            ("Invalid Attribute Value Length", "The value has a length that the device does not accept there.")
        case .unlikelyError:
            ("Unlikely Error", "Something went wrong inside the device.")
        case .insufficientEncryption:
            ("Insufficient Encryption", "The device wants the link to be encrypted first.")
        case .unsupportedGroupType:
            ("Unsupported Group Type", "The device does not group attributes by this type.")
        case .insufficientResources:
            ("Insufficient Resources", "The device has too little memory left for this.")
        case .databaseOutOfSync:
            ("Database Out Of Sync", "The device's services changed; they must be discovered again.")
        case .valueNotAllowed:
            ("Value Not Allowed", "The device does not accept this value.")
        case .writeRequestRejected:
            ("Write Request Rejected", "The device refused the write for a reason of its profile.")
        case .improperlyConfigured:
            (
                "Client Characteristic Configuration Descriptor Improperly Configured",
                "Notifications or indications must be switched on first."
            )
        case .procedureAlreadyInProgress:
            ("Procedure Already in Progress", "The device is still busy with an earlier request of this kind.")
        case .outOfRange:
            ("Out of Range", "The value lies outside of the range that the device accepts.")
        default: nil
        }
    }
}

/// What a link must have before a peer allows an access that it refused.
///
/// Spec: Core Vol 3 Part C, 10.3.1; the errors: Core Vol 3 Part F, 3.4.1.1.
public enum SecurityLevel: Hashable, Sendable, CaseIterable {
    /// The link must be encrypted (error 0x0F).
    case encryption
    /// The link is encrypted, by a key that is too short (error 0x0C).
    case longerKey
    /// The link's key must come from a pairing, or from one with protection against a man in the middle (error 0x05).
    case authentication
    /// The peer, or its user, must permit the access first (error 0x08).
    case authorization
}

extension ATTErrorCode {
    /// 0x01: no attribute has this handle.
    public static let invalidHandle = ATTErrorCode(rawValue: 0x01)
    /// 0x02: the attribute cannot be read.
    public static let readNotPermitted = ATTErrorCode(rawValue: 0x02)
    /// 0x03: the attribute cannot be written.
    public static let writeNotPermitted = ATTErrorCode(rawValue: 0x03)
    /// 0x04: the request itself was invalid.
    public static let invalidPDU = ATTErrorCode(rawValue: 0x04)
    /// 0x05: the link must be authenticated.
    public static let insufficientAuthentication = ATTErrorCode(rawValue: 0x05)
    /// 0x06: the peer does not know the request.
    public static let requestNotSupported = ATTErrorCode(rawValue: 0x06)
    /// 0x07: the offset lies behind the end of the value.
    public static let invalidOffset = ATTErrorCode(rawValue: 0x07)
    /// 0x08: the client is not authorized.
    public static let insufficientAuthorization = ATTErrorCode(rawValue: 0x08)
    /// 0x09: too many prepared writes are queued.
    public static let prepareQueueFull = ATTErrorCode(rawValue: 0x09)
    /// 0x0A: the range holds no attribute of that kind; the regular end of every discovery.
    public static let attributeNotFound = ATTErrorCode(rawValue: 0x0A)
    /// 0x0B: the value cannot be read in pieces.
    public static let attributeNotLong = ATTErrorCode(rawValue: 0x0B)
    /// 0x0C: the encryption key of the link is too short.
    public static let insufficientEncryptionKeySize = ATTErrorCode(rawValue: 0x0C)
    /// 0x0D: the value has the wrong length.
    public static let invalidAttributeValueLength = ATTErrorCode(rawValue: 0x0D)
    /// 0x0E: something unlikely happened inside the peer.
    public static let unlikelyError = ATTErrorCode(rawValue: 0x0E)
    /// 0x0F: the link must be encrypted.
    public static let insufficientEncryption = ATTErrorCode(rawValue: 0x0F)
    /// 0x10: the type does not group attributes.
    public static let unsupportedGroupType = ATTErrorCode(rawValue: 0x10)
    /// 0x11: the peer has too few resources.
    public static let insufficientResources = ATTErrorCode(rawValue: 0x11)
    /// 0x12: the peer's database changed since the client looked at it.
    public static let databaseOutOfSync = ATTErrorCode(rawValue: 0x12)
    /// 0x13: the value is not allowed.
    public static let valueNotAllowed = ATTErrorCode(rawValue: 0x13)
    /// 0xFC: a profile refuses the write.
    public static let writeRequestRejected = ATTErrorCode(rawValue: 0xFC)
    /// 0xFD: a Client Characteristic Configuration descriptor does not fit the request.
    public static let improperlyConfigured = ATTErrorCode(rawValue: 0xFD)
    /// 0xFE: a procedure of the profile is still running.
    public static let procedureAlreadyInProgress = ATTErrorCode(rawValue: 0xFE)
    /// 0xFF: the value lies out of range.
    public static let outOfRange = ATTErrorCode(rawValue: 0xFF)
}
