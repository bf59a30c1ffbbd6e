internal import BLECore
internal import BLELinux
internal import Glibc

extension L2CAPChannel {
    func sendError(_ code: BLEError.Code, _ reason: String, hint: String? = nil) -> BLEError {
        BLEError(code, subject: name, during: "send", because: reason, hint: hint)
    }

    func tooLongError(_ count: Int) -> BLEError {
        sendError(
            .tooLong, "the packet has \(count) bytes, and the peer accepts at most \(sendMTU)",
            hint: "Split it as the device's documentation states.")
    }

    func noRoomError() -> BLEError {
        sendError(
            .timedOut, "the peer granted no credits in time",
            hint: "The channel is still open, and the packet was not sent; try again, or allow more time.")
    }

    func cancelledError() -> BLEError {
        sendError(.cancelled, "the task was cancelled")
    }

    /// Returns the failure of a call on a closed channel, or on one that closed during the call.
    func endError(during operation: String) -> BLEError {
        switch end {
        case .closed?, nil:
            BLEError(.disconnected, subject: name, during: operation, because: "this program has closed the channel")
        case .closedByPeer?:
            BLEError(
                .disconnected, subject: name, during: operation, because: "the peer has closed the channel",
                hint: "The link may still be up; open the channel again.")
        case .link(let reason)?:
            BLEError(
                .disconnected, subject: name, during: operation, because: "\(reason)", hint: reason.hint,
                hciStatus: reason.hciStatus, errorNumber: reason.errorNumber, origin: reason.origin)
        }
    }
}

extension BLEError {
    /// Describes why the kernel could not open a channel beside a link that is up.
    ///
    /// - Parameter isEncrypted: Whether the link is known to be encrypted.
    init(openingChannel errno: Int32, psm: UInt16, peer: PeerID, adapter: String, isEncrypted: Bool = false) {
        let (code, reason, hint): (Code, String, String?) =
            switch errno {
            case ECONNREFUSED:
                (.refusedByPeer, "the peer refused it", Self.channelRefusalHint)
            case EACCES where isEncrypted:
                (
                    .insufficientSecurity,
                    "the peer requires a better key than that of this link, such as one that excludes a man in the "
                        + "middle", Self.betterKeyHint
                )
            case EACCES, EBADE:
                (
                    .insufficientSecurity, "the peer requires a more secure link than this one",
                    "Pair with it first, with `Peripheral.pair` or `blescan pair`, and connect again."
                )
            case ECONNRESET, ECONNABORTED, ETIMEDOUT, ENOTCONN, EPIPE:
                (.disconnected, "the link ended meanwhile", "Connect again.")
            case EHOSTUNREACH, ENETDOWN, ENODEV:
                (.adapterDown, "\(adapter) is switched off or gone", "Switch it on as root: `hciconfig \(adapter) up`.")
            case EOPNOTSUPP, EPROTONOSUPPORT, EAFNOSUPPORT, ENOPROTOOPT:
                (.notSupported, "the kernel offers no such channels", "It needs LE credit based flow control.")
            case EINVAL:
                (.invalidArgument, "the kernel did not accept the PSM or the MTU", nil)
            case EMFILE, ENFILE, ENOMEM, ENOBUFS:
                (.system, "the process or the machine has run out of descriptors or memory", nil)
            default:
                (.connectFailed, "the kernel could not open the channel", nil)
            }
        self.init(
            code, subject: "\(peer)", during: BLEError.opening(psm), because: reason, hint: hint, errorNumber: errno)
        // The refusal of a channel may name encryption in its place, but the kernel does not report which.
        if code == .insufficientSecurity { self = requiring(.authentication) }
    }

    /// Describes that a channel was not open in time. A refusal for lack of security may be the reason: the kernel
    /// reports none as an error, and the signs of it may be missing.
    ///
    /// - Parameters:
    ///   - isEncrypted: Whether the link is known to be encrypted.
    ///   - isPairingConfigured: Whether this program may pair, so that it would know of such a refusal mostly.
    init(openingChannelTimedOut psm: UInt16, peer: PeerID, isEncrypted: Bool, isPairingConfigured: Bool) {
        let hint =
            if isEncrypted {
                "It may require a better key than that of the link. \(Self.betterKeyHint)"
            } else if isPairingConfigured {
                "It may require an encrypted link: pair first."
            } else {
                "It may require an encrypted link: set `Configuration.security`, and pair first, or set "
                    + "`SecurityConfiguration.onDemand`."
            }
        self.init(
            .timedOut, subject: "\(peer)", during: BLEError.opening(psm), because: "the channel did not open in time",
            hint: hint + " Otherwise allow more time.")
    }

    /// What makes a better key.
    static let betterKeyHint =
        "Pair with an agent that compares a number or enters a passkey: `Peripheral.pair` with `replacing: .always`, "
        + "or `blescan forget`, then `blescan pair --require authenticated`."

    /// Describes the refusal of a channel by a peer that has accepted it, and closed it before it was used.
    init(channelClosedByPeer errno: Int32, psm: UInt16, peer: PeerID) {
        self.init(
            .refusedByPeer, subject: "\(peer)", during: BLEError.opening(psm),
            because: "the peer closed it as soon as it was open", hint: Self.channelRefusalHint, errorNumber: errno)
    }

    private static let channelRefusalHint =
        "The peer does not offer that PSM, lacks resources, or requires a paired link: "
        + "check the PSM in the device's documentation, and pair with it."

    /// Describes why the kernel does not accept channels to a PSM; 0 if it was to choose one.
    init(_ error: SystemCallError, listeningTo psm: UInt16, adapter: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.errno {
            case EADDRINUSE:
                (
                    .busy, "a program listens for channels to that PSM already",
                    "Name none, so that the kernel chooses a free one, or end the other listener."
                )
            case EINVAL where psm == 0: (.busy, "every PSM has a listener", "End other listeners.")
            case EINVAL: (.invalidArgument, "the kernel did not accept the PSM or the MTU", nil)
            case EACCES, EPERM:
                (
                    .notPermitted, "this process may not use a PSM that the Bluetooth SIG assigns",
                    "Name none, so that the kernel chooses one from 0x0080, or grant CAP_NET_BIND_SERVICE."
                )
            case EOPNOTSUPP, EPROTONOSUPPORT, EAFNOSUPPORT, ENOPROTOOPT:
                (.notSupported, "the kernel offers no such channels", "It needs LE credit based flow control.")
            case EMFILE, ENFILE, ENOMEM, ENOBUFS:
                (.system, "the process or the machine has run out of descriptors or memory", nil)
            default: (.system, "\(error.call) failed", error.adapterRemedy)
            }
        self.init(
            code, subject: adapter, during: operation, because: reason, hint: hint, errorNumber: error.errno)
    }

    /// Returns the name of the operation that opens a channel.
    static func opening(_ psm: UInt16) -> String { "open a channel to PSM " + name(of: psm) }

    /// Returns the name of the operation that listens for channels.
    static func listening(to psm: UInt16?) -> String {
        guard let psm else { return "listen for channels" }
        return "listen for channels to PSM " + name(of: psm)
    }

    private static func name(of psm: UInt16) -> String {
        "0x" + Hex.encode([UInt8(truncatingIfNeeded: psm >> 8), UInt8(truncatingIfNeeded: psm)])
    }
}
