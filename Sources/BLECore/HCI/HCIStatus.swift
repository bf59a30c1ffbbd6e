/// The status of a command, a link or a disconnection: one byte, where 0 is success.
///
/// Codes that the specification adds later are preserved; `description` then shows the number.
///
/// Spec: Error Codes, Core Vol 1 Part F, 1.3.
public struct HCIStatus: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a status from its code.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// A Boolean value that indicates whether this is `success`.
    public var isSuccess: Bool { self == .success }

    /// The specification's name and the number, such as `Connection Timeout (0x08)`.
    public var description: String {
        "\(name) (0x\(Hex.encode([rawValue])))"
    }
}

extension HCIStatus {
    /// Success.
    public static let success = HCIStatus(rawValue: 0x00)
    /// Unknown HCI Command.
    public static let unknownCommand = HCIStatus(rawValue: 0x01)
    /// Unknown Connection Identifier.
    public static let unknownConnection = HCIStatus(rawValue: 0x02)
    /// Hardware Failure.
    public static let hardwareFailure = HCIStatus(rawValue: 0x03)
    /// Page Timeout.
    public static let pageTimeout = HCIStatus(rawValue: 0x04)
    /// Authentication Failure.
    public static let authenticationFailure = HCIStatus(rawValue: 0x05)
    /// PIN or Key Missing.
    public static let keyMissing = HCIStatus(rawValue: 0x06)
    /// Memory Capacity Exceeded.
    public static let memoryCapacityExceeded = HCIStatus(rawValue: 0x07)
    /// Connection Timeout.
    public static let connectionTimeout = HCIStatus(rawValue: 0x08)
    /// Connection Limit Exceeded.
    public static let connectionLimitExceeded = HCIStatus(rawValue: 0x09)
    /// Synchronous Connection Limit To A Device Exceeded.
    public static let synchronousConnectionLimitExceeded = HCIStatus(rawValue: 0x0A)
    /// ACL Connection Already Exists.
    public static let connectionAlreadyExists = HCIStatus(rawValue: 0x0B)
    /// Command Disallowed.
    public static let commandDisallowed = HCIStatus(rawValue: 0x0C)
    /// Connection Rejected due to Limited Resources.
    public static let connectionRejectedLimitedResources = HCIStatus(rawValue: 0x0D)
    /// Connection Rejected due To Security Reasons.
    public static let connectionRejectedSecurity = HCIStatus(rawValue: 0x0E)
    /// Connection Rejected due to Unacceptable BD_ADDR.
    public static let connectionRejectedAddress = HCIStatus(rawValue: 0x0F)
    /// Connection Accept Timeout Exceeded.
    public static let connectionAcceptTimeout = HCIStatus(rawValue: 0x10)
    /// Unsupported Feature or Parameter Value.
    public static let unsupportedFeature = HCIStatus(rawValue: 0x11)
    /// Invalid HCI Command Parameters.
    public static let invalidParameters = HCIStatus(rawValue: 0x12)
    /// Remote User Terminated Connection.
    public static let remoteUserTerminated = HCIStatus(rawValue: 0x13)
    /// Remote Device Terminated Connection due to Low Resources.
    public static let remoteLowResources = HCIStatus(rawValue: 0x14)
    /// Remote Device Terminated Connection due to Power Off.
    public static let remotePowerOff = HCIStatus(rawValue: 0x15)
    /// Connection Terminated by Local Host.
    public static let localHostTerminated = HCIStatus(rawValue: 0x16)
    /// Repeated Attempts.
    public static let repeatedAttempts = HCIStatus(rawValue: 0x17)
    /// Pairing Not Allowed.
    public static let pairingNotAllowed = HCIStatus(rawValue: 0x18)
    /// Unknown LMP PDU.
    public static let unknownLMPPDU = HCIStatus(rawValue: 0x19)
    /// Unsupported Remote Feature.
    public static let unsupportedRemoteFeature = HCIStatus(rawValue: 0x1A)
    /// SCO Offset Rejected.
    public static let scoOffsetRejected = HCIStatus(rawValue: 0x1B)
    /// SCO Interval Rejected.
    public static let scoIntervalRejected = HCIStatus(rawValue: 0x1C)
    /// SCO Air Mode Rejected.
    public static let scoAirModeRejected = HCIStatus(rawValue: 0x1D)
    /// Invalid LMP/LL Parameters.
    public static let invalidLinkParameters = HCIStatus(rawValue: 0x1E)
    /// Unspecified Error.
    public static let unspecified = HCIStatus(rawValue: 0x1F)
    /// Unsupported LMP/LL Parameter Value.
    public static let unsupportedLinkParameter = HCIStatus(rawValue: 0x20)
    /// Role Change Not Allowed.
    public static let roleChangeNotAllowed = HCIStatus(rawValue: 0x21)
    /// LMP/LL Response Timeout.
    public static let linkResponseTimeout = HCIStatus(rawValue: 0x22)
    /// LMP Error Transaction Collision / LL Procedure Collision.
    public static let linkProcedureCollision = HCIStatus(rawValue: 0x23)
    /// LMP PDU Not Allowed.
    public static let lmpPDUNotAllowed = HCIStatus(rawValue: 0x24)
    /// Encryption Mode Not Acceptable.
    public static let encryptionModeNotAcceptable = HCIStatus(rawValue: 0x25)
    /// Link Key cannot be Changed.
    public static let linkKeyCannotBeChanged = HCIStatus(rawValue: 0x26)
    /// Requested QoS Not Supported.
    public static let qosNotSupported = HCIStatus(rawValue: 0x27)
    /// Instant Passed.
    public static let instantPassed = HCIStatus(rawValue: 0x28)
    /// Pairing with Unit Key Not Supported.
    public static let unitKeyNotSupported = HCIStatus(rawValue: 0x29)
    /// Different Transaction Collision.
    public static let differentTransactionCollision = HCIStatus(rawValue: 0x2A)
    /// QoS Unacceptable Parameter.
    public static let qosUnacceptableParameter = HCIStatus(rawValue: 0x2C)
    /// QoS Rejected.
    public static let qosRejected = HCIStatus(rawValue: 0x2D)
    /// Channel Classification Not Supported.
    public static let channelClassificationNotSupported = HCIStatus(rawValue: 0x2E)
    /// Insufficient Security.
    public static let insufficientSecurity = HCIStatus(rawValue: 0x2F)
    /// Parameter Out Of Mandatory Range.
    public static let parameterOutOfMandatoryRange = HCIStatus(rawValue: 0x30)
    /// Role Switch Pending.
    public static let roleSwitchPending = HCIStatus(rawValue: 0x32)
    /// Reserved Slot Violation.
    public static let reservedSlotViolation = HCIStatus(rawValue: 0x34)
    /// Role Switch Failed.
    public static let roleSwitchFailed = HCIStatus(rawValue: 0x35)
    /// Extended Inquiry Response Too Large.
    public static let inquiryResponseTooLarge = HCIStatus(rawValue: 0x36)
    /// Secure Simple Pairing Not Supported By Host.
    public static let simplePairingNotSupported = HCIStatus(rawValue: 0x37)
    /// Host Busy - Pairing.
    public static let hostBusyPairing = HCIStatus(rawValue: 0x38)
    /// Connection Rejected due to No Suitable Channel Found.
    public static let noSuitableChannel = HCIStatus(rawValue: 0x39)
    /// Controller Busy.
    public static let controllerBusy = HCIStatus(rawValue: 0x3A)
    /// Unacceptable Connection Parameters.
    public static let unacceptableConnectionParameters = HCIStatus(rawValue: 0x3B)
    /// Advertising Timeout.
    public static let advertisingTimeout = HCIStatus(rawValue: 0x3C)
    /// Connection Terminated due to MIC Failure.
    public static let micFailure = HCIStatus(rawValue: 0x3D)
    /// Connection Failed to be Established.
    public static let connectionFailedToBeEstablished = HCIStatus(rawValue: 0x3E)
    /// MAC Connection Failed.
    public static let macConnectionFailed = HCIStatus(rawValue: 0x3F)
    /// Coarse Clock Adjustment Rejected but Will Try to Adjust Using Clock Dragging.
    public static let coarseClockAdjustmentRejected = HCIStatus(rawValue: 0x40)
    /// Type0 Submap Not Defined.
    public static let type0SubmapNotDefined = HCIStatus(rawValue: 0x41)
    /// Unknown Advertising Identifier.
    public static let unknownAdvertisingIdentifier = HCIStatus(rawValue: 0x42)
    /// Limit Reached.
    public static let limitReached = HCIStatus(rawValue: 0x43)
    /// Operation Cancelled by Host.
    public static let cancelledByHost = HCIStatus(rawValue: 0x44)
    /// Packet Too Long.
    public static let packetTooLong = HCIStatus(rawValue: 0x45)
}

extension HCIStatus {
    /// A Boolean value that indicates whether two procedures of the link layer began at the same moment that exclude
    /// each other. Spec: Core Vol 6 Part B, 5.3.
    package var reportsCollision: Bool { self == .linkProcedureCollision || self == .differentTransactionCollision }

    /// A Boolean value that indicates whether the controller has as many links as it can hold. Controllers differ in
    /// the code that they use.
    package var reportsTooManyLinks: Bool {
        self == .connectionLimitExceeded || self == .connectionRejectedLimitedResources
            || self == .memoryCapacityExceeded
    }
}
