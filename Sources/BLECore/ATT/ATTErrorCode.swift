/// The reason for which a peer rejected a request.
///
/// The set is open: any byte is valid. 0x80 to 0x9F are defined by the peer's application, 0xE0 to 0xFF are common
/// profile and service error codes, and the rest are defined or reserved by the specification.
///
/// Spec: Core Vol 3 Part F, 3.4.1.1; Core Specification Supplement Part B.
public struct ATTErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates an error code from its raw value.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// A Boolean value that indicates whether the code is defined by the peer's application (0x80 to 0x9F).
    public var isApplicationError: Bool { (0x80...0x9F).contains(rawValue) }

    /// A Boolean value that indicates whether this is a common profile and service error code (0xE0 to 0xFF).
    public var isCommonProfileError: Bool { rawValue >= 0xE0 }

    /// A Boolean value that indicates whether a more secure link might permit the access.
    public var asksForSecurity: Bool { requiredSecurity != nil }

    /// The security that the link lacks, if that is the reason for the error.
    public var requiredSecurity: SecurityLevel? {
        switch self {
        case .insufficientEncryption: .encryption
        case .insufficientEncryptionKeySize: .longerKey
        case .insufficientAuthentication: .authentication
        case .insufficientAuthorization: .authorization
        default: nil
        }
    }

    /// The specification's name, such as "Invalid Handle", or one composed of the range and the raw value.
    public var name: String { named?.name ?? "\(range) Error 0x\(Hex.encode([rawValue]))" }

    /// An explanation for users.
    public var sentence: String {
        if let named { return named.sentence }
        if isApplicationError { return "The device returned an error code of its own; see its documentation." }
        if isCommonProfileError { return "The device returned a profile error code that is not assigned yet." }
        return "The device refused it with a code that the specification does not define."
    }

    /// The name and the raw value, such as "Invalid Handle (0x01)".
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
            ("Read Not Permitted", "The value is not readable.")
        case .writeNotPermitted:
            ("Write Not Permitted", "The value is not writable.")
        case .invalidPDU:
            ("Invalid PDU", "The device did not understand the request.")
        case .insufficientAuthentication:
            ("Insufficient Authentication", "The device requires pairing first.")
        case .requestNotSupported:
            ("Request Not Supported", "The device does not support this kind of request.")
        case .invalidOffset:
            ("Invalid Offset", "The offset is past the end of the value.")
        case .insufficientAuthorization:
            ("Insufficient Authorization", "The device, or its user, has not allowed this access.")
        case .prepareQueueFull:
            ("Prepare Queue Full", "The device cannot queue more parts of a long write.")
        case .attributeNotFound:
            ("Attribute Not Found", "The device has no such attribute in the requested range.")
        case .attributeNotLong:
            ("Attribute Not Long", "The value is too short to be read in parts.")
        case .insufficientEncryptionKeySize:
            ("Encryption Key Size Too Short", "The device requires a longer encryption key.")
        case .invalidAttributeValueLength:
            ("Invalid Attribute Value Length", "The device does not accept a value of this length.")
        case .unlikelyError:
            ("Unlikely Error", "The device had an internal error.")
        case .insufficientEncryption:
            ("Insufficient Encryption", "The device requires the link to be encrypted first.")
        case .unsupportedGroupType:
            ("Unsupported Group Type", "The device does not group attributes by this type.")
        case .insufficientResources:
            ("Insufficient Resources", "The device lacks the resources for this.")
        case .databaseOutOfSync:
            ("Database Out Of Sync", "The device's services changed; they must be discovered again.")
        case .valueNotAllowed:
            ("Value Not Allowed", "The device does not accept this value.")
        case .writeRequestRejected:
            ("Write Request Rejected", "The device rejected the write for a reason that its profile defines.")
        case .improperlyConfigured:
            (
                "Client Characteristic Configuration Descriptor Improperly Configured",
                "Notifications or indications must be enabled first."
            )
        case .procedureAlreadyInProgress:
            ("Procedure Already in Progress", "The device is still busy with an earlier request of this kind.")
        case .outOfRange:
            ("Out of Range", "The value is outside the range that the device accepts.")
        default: nil
        }
    }
}

/// The security that a link needs before a peer permits an access that it rejected.
///
/// Spec: Core Vol 3 Part C, 10.3.1; the errors: Core Vol 3 Part F, 3.4.1.1.
public enum SecurityLevel: Hashable, Sendable, CaseIterable {
    /// The link must be encrypted (error 0x0F).
    case encryption
    /// The link is encrypted, but the key is too short (error 0x0C).
    case longerKey
    /// The link's key must come from pairing, possibly with man-in-the-middle protection (error 0x05).
    case authentication
    /// The peer or its user must authorize the access first (error 0x08).
    case authorization
}

extension ATTErrorCode {
    /// 0x01: no attribute has this handle.
    public static let invalidHandle = ATTErrorCode(rawValue: 0x01)
    /// 0x02: the attribute cannot be read.
    public static let readNotPermitted = ATTErrorCode(rawValue: 0x02)
    /// 0x03: the attribute cannot be written.
    public static let writeNotPermitted = ATTErrorCode(rawValue: 0x03)
    /// 0x04: the request was invalid.
    public static let invalidPDU = ATTErrorCode(rawValue: 0x04)
    /// 0x05: the link must be authenticated.
    public static let insufficientAuthentication = ATTErrorCode(rawValue: 0x05)
    /// 0x06: the peer does not support the request.
    public static let requestNotSupported = ATTErrorCode(rawValue: 0x06)
    /// 0x07: the offset is past the end of the value.
    public static let invalidOffset = ATTErrorCode(rawValue: 0x07)
    /// 0x08: the client is not authorized.
    public static let insufficientAuthorization = ATTErrorCode(rawValue: 0x08)
    /// 0x09: too many prepared writes are queued.
    public static let prepareQueueFull = ATTErrorCode(rawValue: 0x09)
    /// 0x0A: the range has no such attribute; the regular end of every discovery.
    public static let attributeNotFound = ATTErrorCode(rawValue: 0x0A)
    /// 0x0B: the value cannot be read in parts.
    public static let attributeNotLong = ATTErrorCode(rawValue: 0x0B)
    /// 0x0C: the encryption key of the link is too short.
    public static let insufficientEncryptionKeySize = ATTErrorCode(rawValue: 0x0C)
    /// 0x0D: the value has the wrong length.
    public static let invalidAttributeValueLength = ATTErrorCode(rawValue: 0x0D)
    /// 0x0E: an unlikely error occurred inside the peer.
    public static let unlikelyError = ATTErrorCode(rawValue: 0x0E)
    /// 0x0F: the link must be encrypted.
    public static let insufficientEncryption = ATTErrorCode(rawValue: 0x0F)
    /// 0x10: the type does not group attributes.
    public static let unsupportedGroupType = ATTErrorCode(rawValue: 0x10)
    /// 0x11: the peer has insufficient resources.
    public static let insufficientResources = ATTErrorCode(rawValue: 0x11)
    /// 0x12: the peer's database has changed since the client last discovered it.
    public static let databaseOutOfSync = ATTErrorCode(rawValue: 0x12)
    /// 0x13: the value is not allowed.
    public static let valueNotAllowed = ATTErrorCode(rawValue: 0x13)
    /// 0xFC: the profile rejects the write.
    public static let writeRequestRejected = ATTErrorCode(rawValue: 0xFC)
    /// 0xFD: a Client Characteristic Configuration descriptor is not configured as the profile requires.
    public static let improperlyConfigured = ATTErrorCode(rawValue: 0xFD)
    /// 0xFE: a profile procedure is already in progress.
    public static let procedureAlreadyInProgress = ATTErrorCode(rawValue: 0xFE)
    /// 0xFF: the value is out of range.
    public static let outOfRange = ATTErrorCode(rawValue: 0xFF)
}
