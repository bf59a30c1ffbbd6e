// The names are those of Apple's systems.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// The domain of `CBATTError` values.
public let CBATTErrorDomain: String = "CBATTErrorDomain"

/// An error that a peer reports in response to a request of the attribute protocol, or that a local peripheral responds
/// with.
///
/// `localizedDescription` states what failed, why, and what to do next.
///
/// Spec: Error Codes, Core Vol 3 Part F, 3.4.1.1.
public struct CBATTError: Error, @unchecked Sendable {
    /// The reason that the peer gives. Any number is a value, such as 0x80 to 0x9F, which applications define.
    public enum Code: Hashable, Sendable {
        /// The request succeeded.
        case success
        /// The attribute does not exist.
        case invalidHandle
        /// The attribute cannot be read.
        case readNotPermitted
        /// The attribute cannot be written.
        case writeNotPermitted
        /// The request is malformed.
        case invalidPdu
        /// The link must be authenticated first.
        case insufficientAuthentication
        /// The peer does not support the request.
        case requestNotSupported
        /// The offset is beyond the end of the value.
        case invalidOffset
        /// The access must be authorized first.
        case insufficientAuthorization
        /// Too many prepared writes are queued.
        case prepareQueueFull
        /// No attribute was found in the range.
        case attributeNotFound
        /// The attribute has no further parts.
        case attributeNotLong
        /// The key of the encryption is too short.
        case insufficientEncryptionKeySize
        /// The length of the value is invalid.
        case invalidAttributeValueLength
        /// The request failed for an unlikely reason.
        case unlikelyError
        /// The link must be encrypted first.
        case insufficientEncryption
        /// The type is not a group of attributes.
        case unsupportedGroupType
        /// The peer lacks resources.
        case insufficientResources
        /// A number without a name, such as an error of the peer's application.
        case _other(Int)
    }

    /// The reason that the peer gives.
    public let code: Code
    /// Further information, such as the text for `NSLocalizedDescriptionKey`.
    public let userInfo: [String: Any]

    /// Creates an error.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        self.code = code
        self.userInfo = userInfo
    }
}

extension CBATTError.Code: RawRepresentable {
    /// Creates a code from its number; never `nil`.
    public init?(rawValue: Int) {
        switch rawValue {
        case 0: self = .success
        case 1: self = .invalidHandle
        case 2: self = .readNotPermitted
        case 3: self = .writeNotPermitted
        case 4: self = .invalidPdu
        case 5: self = .insufficientAuthentication
        case 6: self = .requestNotSupported
        case 7: self = .invalidOffset
        case 8: self = .insufficientAuthorization
        case 9: self = .prepareQueueFull
        case 10: self = .attributeNotFound
        case 11: self = .attributeNotLong
        case 12: self = .insufficientEncryptionKeySize
        case 13: self = .invalidAttributeValueLength
        case 14: self = .unlikelyError
        case 15: self = .insufficientEncryption
        case 16: self = .unsupportedGroupType
        case 17: self = .insufficientResources
        default: self = ._other(rawValue)
        }
    }

    /// The number.
    public var rawValue: Int {
        switch self {
        case .success: 0
        case .invalidHandle: 1
        case .readNotPermitted: 2
        case .writeNotPermitted: 3
        case .invalidPdu: 4
        case .insufficientAuthentication: 5
        case .requestNotSupported: 6
        case .invalidOffset: 7
        case .insufficientAuthorization: 8
        case .prepareQueueFull: 9
        case .attributeNotFound: 10
        case .attributeNotLong: 11
        case .insufficientEncryptionKeySize: 12
        case .invalidAttributeValueLength: 13
        case .unlikelyError: 14
        case .insufficientEncryption: 15
        case .unsupportedGroupType: 16
        case .insufficientResources: 17
        case ._other(let number): number
        }
    }

    /// Returns a Boolean value that indicates whether `error` is a `CBATTError` with this code.
    public static func ~= (code: CBATTError.Code, error: any Error) -> Bool {
        (error as? CBATTError)?.code == code
    }
}

extension CBATTError: CustomNSError, LocalizedError, Hashable {
    /// The domain, `CBATTErrorDomain`.
    public static var errorDomain: String { CBATTErrorDomain }
    /// The number of the code.
    public var errorCode: Int { code.rawValue }
    /// Further information, as in `userInfo`.
    public var errorUserInfo: [String: Any] { userInfo }
    /// A description of the error for the user.
    public var errorDescription: String? { localizedDescription }
    /// A description of the error for the user.
    public var localizedDescription: String {
        userInfo[NSLocalizedDescriptionKey] as? String ?? "The operation could not be completed: \(code)."
    }

    /// Returns a Boolean value that indicates whether two errors have the same code.
    public static func == (left: CBATTError, right: CBATTError) -> Bool { left.code == right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

/// Each code again, for `catch CBATTError.readNotPermitted`.
extension CBATTError {
    /// The code for: the request succeeded.
    public static var success: Code { .success }
    /// The code for: the attribute does not exist.
    public static var invalidHandle: Code { .invalidHandle }
    /// The code for: the attribute cannot be read.
    public static var readNotPermitted: Code { .readNotPermitted }
    /// The code for: the attribute cannot be written.
    public static var writeNotPermitted: Code { .writeNotPermitted }
    /// The code for: the request is malformed.
    public static var invalidPdu: Code { .invalidPdu }
    /// The code for: the link must be authenticated first.
    public static var insufficientAuthentication: Code { .insufficientAuthentication }
    /// The code for: the peer does not support the request.
    public static var requestNotSupported: Code { .requestNotSupported }
    /// The code for: the offset is beyond the end of the value.
    public static var invalidOffset: Code { .invalidOffset }
    /// The code for: the access must be authorized first.
    public static var insufficientAuthorization: Code { .insufficientAuthorization }
    /// The code for: too many prepared writes are queued.
    public static var prepareQueueFull: Code { .prepareQueueFull }
    /// The code for: no attribute was found in the range.
    public static var attributeNotFound: Code { .attributeNotFound }
    /// The code for: the attribute has no further parts.
    public static var attributeNotLong: Code { .attributeNotLong }
    /// The code for: the key of the encryption is too short.
    public static var insufficientEncryptionKeySize: Code { .insufficientEncryptionKeySize }
    /// The code for: the length of the value is invalid.
    public static var invalidAttributeValueLength: Code { .invalidAttributeValueLength }
    /// The code for: the request failed for an unlikely reason.
    public static var unlikelyError: Code { .unlikelyError }
    /// The code for: the link must be encrypted first.
    public static var insufficientEncryption: Code { .insufficientEncryption }
    /// The code for: the type is not a group of attributes.
    public static var unsupportedGroupType: Code { .unsupportedGroupType }
    /// The code for: the peer lacks resources.
    public static var insufficientResources: Code { .insufficientResources }
}
