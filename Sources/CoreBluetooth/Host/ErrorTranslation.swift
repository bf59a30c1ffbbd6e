internal import BareBLE

// The errors of BareBLE as the errors that Apple's systems report. The text states what failed, why,
// and what to do next.

extension BLEError {
    /// The error for an application.
    var translated: any Error {
        if isEncryptionTimeout { return CBError(.encryptionTimedOut, userInfo: userInfo) }
        if let attError { return CBATTError(attCode(Int(attError.rawValue)), userInfo: userInfo) }
        switch code {
        case .insufficientSecurity: return CBATTError(.insufficientAuthentication, userInfo: userInfo)
        case .tooLong: return CBATTError(.invalidAttributeValueLength, userInfo: userInfo)
        default: return CBError(cbCode, userInfo: userInfo)
        }
    }

    /// The error for an application that subscribes: a characteristic that sends no values does not support the
    /// request.
    var translatedForSubscribing: any Error {
        guard attError == nil, code == .notSupported else { return translated }
        return CBATTError(.requestNotSupported, userInfo: userInfo)
    }

    private func attCode(_ number: Int) -> CBATTError.Code { CBATTError.Code(rawValue: number) ?? ._other(number) }

    /// The reason that a connection could not be established.
    var connectionError: CBError {
        if isEncryptionTimeout { return CBError(.encryptionTimedOut, userInfo: userInfo) }
        return CBError(hciStatus.flatMap(CBError.Code.init) ?? cbCode, userInfo: userInfo)
    }

    /// Whether a connection failed for a reason of this machine, such as bonds that cannot be opened,
    /// and not of the device.
    var isOfThisMachine: Bool {
        let codes: [BLEError.Code] = [
            .adapterMismatch, .adapterShared, .busy, .diskFull, .lowEnergyOff, .notPermitted, .pairingUnavailable,
            .system,
            .unusableState,
        ]
        return codes.contains(code)
    }

    private var cbCode: CBError.Code {
        switch code {
        case .timedOut: .connectionTimeout
        case .disconnected, .disconnecting: .notConnected
        case .connectFailed: .connectionFailed
        case .attributeNotFound, .servicesChanged: .invalidHandle
        case .notSupported, .unsupported: .operationNotSupported
        case .invalidArgument: .invalidParameters
        case .cancelled: .operationCancelled
        case .queueFull, .diskFull: .outOfSpace
        case .bondRejected, .notBonded: .peerRemovedPairingInformation
        default: .unknown
        }
    }

    private var userInfo: [String: Any] {
        var text = "Could not \(operation)"
        if let subject { text += " (\(subject))" }
        text += ": \(reason)."
        if let underlyingCodes { text += " \(underlyingCodes)" }
        if let hint { text += " \(hint)" }
        return [NSLocalizedDescriptionKey: text]
    }
}

extension CBError.Code {
    /// The code for a status of the controller that has a code of its own.
    init?(_ status: HCIStatus) {
        switch status {
        case .connectionTimeout: self = .connectionTimeout
        case .remoteUserTerminated, .remoteLowResources, .remotePowerOff: self = .peripheralDisconnected
        case .connectionFailedToBeEstablished: self = .connectionFailed
        case .connectionLimitExceeded: self = .connectionLimitReached
        case .keyMissing, .authenticationFailure: self = .peerRemovedPairingInformation
        case .linkResponseTimeout: self = .encryptionTimedOut
        default: return nil
        }
    }
}

extension DisconnectReason {
    /// The error for an application; `nil` if this program has ended the link.
    var translated: CBError? {
        let code: CBError.Code
        switch self {
        case .requested, .detached: return nil
        case .byPeer: code = .peripheralDisconnected
        case .supervisionTimeout, .attTimeout: code = .connectionTimeout
        case .protocolViolation, .adapterLost: code = .unknown
        case .other(let status, _): code = status.flatMap(CBError.Code.init) ?? .unknown
        }
        return CBError(code, userInfo: [NSLocalizedDescriptionKey: "The link has ended: \(self)."])
    }
}
