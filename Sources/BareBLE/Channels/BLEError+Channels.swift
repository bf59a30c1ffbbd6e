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
            hint: "Split it as the device's documentation says.")
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
                hciStatus: reason.hciStatus, errorNumber: reason.errorNumber)
        }
    }
}

extension BLEError {
    /// Describes why the kernel could not open a channel beside a link that is up.
    init(openingChannel errno: Int32, psm: UInt16, peer: PeerID, adapter: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch errno {
            case ECONNREFUSED:
                (
                    .refusedByPeer, "the peer refused it",
                    "The peer does not offer that PSM, lacks resources, or requires a paired link, which this version "
                        + "does not make. Check the PSM in the device's documentation."
                )
            case EACCES, EBADE:
                (
                    .insufficientSecurity, "the peer requires a more secure link than this one",
                    "It requires a paired or encrypted link, which this version does not make."
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
    }

    /// Returns the name of the operation that opens a channel.
    static func opening(_ psm: UInt16) -> String {
        "open a channel to PSM 0x" + Hex.encode([UInt8(truncatingIfNeeded: psm >> 8), UInt8(truncatingIfNeeded: psm)])
    }
}
