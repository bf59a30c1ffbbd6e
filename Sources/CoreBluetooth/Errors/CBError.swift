// The names are those of Apple's systems.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// The domain of `CBError` values.
public let CBErrorDomain: String = "CBErrorDomain"

/// An error of the host or of the link, as Apple's CoreBluetooth numbers them.
///
/// `localizedDescription` states what failed, why, and what to do next.
public struct CBError: Error, @unchecked Sendable {
    /// The kind of the error. Any number is a value: a number that this version has no name for is kept as it is.
    public enum Code: Hashable, Sendable {
        /// An unknown error occurred.
        case unknown
        /// A parameter is invalid.
        case invalidParameters
        /// The attribute's handle is no longer valid: the peer has changed its services.
        case invalidHandle
        /// The device is not connected.
        case notConnected
        /// The system is out of space.
        case outOfSpace
        /// The operation was cancelled.
        case operationCancelled
        /// The device did not respond, or was not heard any more.
        case connectionTimeout
        /// The device ended the link.
        case peripheralDisconnected
        /// The UUID is not permitted.
        case uuidNotAllowed
        /// The local peripheral advertises already.
        case alreadyAdvertising
        /// The link could not be established.
        case connectionFailed
        /// The adapter has as many links as it can keep.
        case connectionLimitReached
        /// The device is unknown.
        case unknownDevice
        /// The operation is not supported.
        case operationNotSupported
        /// The device has removed the keys of its bond.
        case peerRemovedPairingInformation
        /// The link could not be encrypted in time.
        case encryptionTimedOut
        /// The adapter has as many bonds as it can keep.
        case tooManyLEPairedDevices
        /// The limit of notifications in the background was exceeded; it does not occur on Linux.
        case leGattExceededBackgroundNotificationLimit
        /// The limit of notifications in the background is near; it does not occur on Linux.
        case leGattNearBackgroundNotificationLimit
        /// A Channel Sounding session could not be configured; it does not occur on Linux.
        case channelSoundingConfigurationFailed
        /// A Channel Sounding procedure failed; it does not occur on Linux.
        case channelSoundingProcedureFailed
        /// A number without a name in this version.
        case _other(Int)

        /// The former spelling of `unknownDevice`.
        @available(*, deprecated, renamed: "unknownDevice")
        public static var unkownDevice: Code { .unknownDevice }
    }

    /// The kind of the error.
    public let code: Code
    /// Further information, such as the text for `NSLocalizedDescriptionKey`.
    public let userInfo: [String: Any]

    /// Creates an error.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        self.code = code
        self.userInfo = userInfo
    }
}

extension CBError.Code: RawRepresentable {
    /// Creates a code from its number; never `nil`.
    public init?(rawValue: Int) {
        switch rawValue {
        case 0: self = .unknown
        case 1: self = .invalidParameters
        case 2: self = .invalidHandle
        case 3: self = .notConnected
        case 4: self = .outOfSpace
        case 5: self = .operationCancelled
        case 6: self = .connectionTimeout
        case 7: self = .peripheralDisconnected
        case 8: self = .uuidNotAllowed
        case 9: self = .alreadyAdvertising
        case 10: self = .connectionFailed
        case 11: self = .connectionLimitReached
        case 12: self = .unknownDevice
        case 13: self = .operationNotSupported
        case 14: self = .peerRemovedPairingInformation
        case 15: self = .encryptionTimedOut
        case 16: self = .tooManyLEPairedDevices
        case 17: self = .leGattExceededBackgroundNotificationLimit
        case 18: self = .leGattNearBackgroundNotificationLimit
        case 19: self = .channelSoundingConfigurationFailed
        case 20: self = .channelSoundingProcedureFailed
        default: self = ._other(rawValue)
        }
    }

    /// The number.
    public var rawValue: Int {
        switch self {
        case .unknown: 0
        case .invalidParameters: 1
        case .invalidHandle: 2
        case .notConnected: 3
        case .outOfSpace: 4
        case .operationCancelled: 5
        case .connectionTimeout: 6
        case .peripheralDisconnected: 7
        case .uuidNotAllowed: 8
        case .alreadyAdvertising: 9
        case .connectionFailed: 10
        case .connectionLimitReached: 11
        case .unknownDevice: 12
        case .operationNotSupported: 13
        case .peerRemovedPairingInformation: 14
        case .encryptionTimedOut: 15
        case .tooManyLEPairedDevices: 16
        case .leGattExceededBackgroundNotificationLimit: 17
        case .leGattNearBackgroundNotificationLimit: 18
        case .channelSoundingConfigurationFailed: 19
        case .channelSoundingProcedureFailed: 20
        case ._other(let number): number
        }
    }

    /// Returns a Boolean value that indicates whether `error` is a `CBError` with this code.
    public static func ~= (code: CBError.Code, error: any Error) -> Bool {
        (error as? CBError)?.code == code
    }
}

extension CBError: CustomNSError, LocalizedError, Hashable {
    /// The domain, `CBErrorDomain`.
    public static var errorDomain: String { CBErrorDomain }
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
    public static func == (left: CBError, right: CBError) -> Bool { left.code == right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

/// Each code again, for `catch CBError.connectionTimeout` and
/// `CBError(.connectionTimeout).code == CBError.connectionTimeout`.
extension CBError {
    /// The code for an unknown error.
    public static var unknown: Code { .unknown }
    /// The code for an invalid parameter.
    public static var invalidParameters: Code { .invalidParameters }
    /// The code for a handle that is no longer valid.
    public static var invalidHandle: Code { .invalidHandle }
    /// The code for a device that is not connected.
    public static var notConnected: Code { .notConnected }
    /// The code for a system that is out of space.
    public static var outOfSpace: Code { .outOfSpace }
    /// The code for an operation that was cancelled.
    public static var operationCancelled: Code { .operationCancelled }
    /// The code for a device that did not respond.
    public static var connectionTimeout: Code { .connectionTimeout }
    /// The code for a device that has ended the link.
    public static var peripheralDisconnected: Code { .peripheralDisconnected }
    /// The code for a UUID that is not permitted.
    public static var uuidNotAllowed: Code { .uuidNotAllowed }
    /// The code for a local peripheral that advertises already.
    public static var alreadyAdvertising: Code { .alreadyAdvertising }
    /// The code for a link that could not be established.
    public static var connectionFailed: Code { .connectionFailed }
    /// The code for an adapter that has no room for another link.
    public static var connectionLimitReached: Code { .connectionLimitReached }
    /// The code for an unknown device.
    public static var unknownDevice: Code { .unknownDevice }
    /// The former spelling of `unknownDevice`.
    @available(*, deprecated, renamed: "unknownDevice")
    public static var unkownDevice: Code { .unknownDevice }
    /// The code for an operation that is not supported.
    public static var operationNotSupported: Code { .operationNotSupported }
    /// The code for a device that has removed the keys of its bond.
    public static var peerRemovedPairingInformation: Code { .peerRemovedPairingInformation }
    /// The code for a link that could not be encrypted in time.
    public static var encryptionTimedOut: Code { .encryptionTimedOut }
    /// The code for an adapter that has no room for another bond.
    public static var tooManyLEPairedDevices: Code { .tooManyLEPairedDevices }
    /// The code for too many notifications in the background.
    public static var leGattExceededBackgroundNotificationLimit: Code { .leGattExceededBackgroundNotificationLimit }
    /// The code for nearly too many notifications in the background.
    public static var leGattNearBackgroundNotificationLimit: Code { .leGattNearBackgroundNotificationLimit }
    /// The code for a Channel Sounding session that could not be configured.
    public static var channelSoundingConfigurationFailed: Code { .channelSoundingConfigurationFailed }
    /// The code for a Channel Sounding procedure that failed.
    public static var channelSoundingProcedureFailed: Code { .channelSoundingProcedureFailed }
}
