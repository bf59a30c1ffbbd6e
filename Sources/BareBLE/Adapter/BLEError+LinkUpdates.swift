internal import BLECore
internal import BLELinux

extension Adapter {
    /// The controller did not accept a command for a link.
    func updateError(_ failure: HCICommandFailure, of link: LinkIdentity, during operation: String) -> BLEError {
        let code: BLEError.Code? =
            switch failure.status {
            case .unknownCommand, .unsupportedFeature, .unsupportedRemoteFeature: .notSupported
            case .invalidParameters: .invalidArgument
            case .unknownConnection: .disconnected
            default: nil
            }
        guard let code, let status = failure.status else {
            return BLEError(failure, subject: name, during: operation)
        }
        return BLEError(
            code, subject: code == .disconnected ? "\(link.peer)" : name, during: operation,
            because: "the controller refused \(failure.opcode): \(status.name.lowercased())", hint: status.sentence,
            hciStatus: status)
    }

    /// The peer, or the two controllers between them, did not agree to a change.
    func refusal(_ status: HCIStatus, of link: LinkIdentity, during operation: String) -> BLEError {
        BLEError(
            .refusedByPeer, subject: "\(link.peer)", during: operation, because: status.name.lowercased(),
            hint: status.sentence, hciStatus: status)
    }

    /// The link, or the adapter, went away while a change was out.
    func lostError(of link: LinkIdentity, during operation: String) -> BLEError {
        guard presence == .up else { return downError(during: operation) }
        return BLEError(
            .disconnected, subject: "\(link.peer)", during: operation, because: "the link ended meanwhile")
    }

    /// The caller stopped waiting for a change.
    func gaveUpError(_ wake: Wake, on link: LinkIdentity, during operation: String) -> BLEError {
        guard case .timedOut = wake else { return cancelledError(during: operation) }
        return BLEError(
            .timedOut, subject: "\(link.peer)", during: operation,
            because: "the two controllers did not agree in time",
            hint: "It takes some of the link's intervals: allow more time.")
    }
}
