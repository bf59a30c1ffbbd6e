// The meanings of the kernel's error numbers, which depend on the context.
//
// The kernel translates the controller's status into an error number and loses much: most statuses become ENOSYS. And
// it uses the same numbers for causes on this machine. So the same number is read in three ways: while connecting
// (`ConnectFailure`), at the end of a link (`LinkEnd`), and from a call on this machine (`LocalFailure`). The exact
// status, where the program may see it, is in the controller's own events.

package import BLECore
internal import Glibc

/// The statuses that the kernel turns into an error number.
package enum ErrnoMeaning {
    /// Returns the controller's statuses for which `errno` may stand, the likeliest first; empty if there are none.
    ///
    /// ENOSYS stands for all statuses without a number of their own; those that occur on links are listed.
    package static func statuses(_ errno: Int32) -> [HCIStatus] {
        switch errno {
        case EBADRQC: [.unknownCommand]
        case ENOTCONN: [.unknownConnection]
        case EIO: [.hardwareFailure]
        case EHOSTDOWN: [.pageTimeout, .advertisingTimeout]
        case EACCES: [.authenticationFailure, .pairingNotAllowed]
        case EBADE: [.keyMissing]
        case ENOMEM: [.memoryCapacityExceeded]
        case ETIMEDOUT: [.connectionTimeout, .connectionAcceptTimeout]
        case EMLINK: [.connectionLimitExceeded, .synchronousConnectionLimitExceeded]
        case EALREADY: [.connectionAlreadyExists]
        case EBUSY: [.commandDisallowed]
        case ECONNREFUSED:
            [
                .connectionRejectedLimitedResources, .connectionRejectedSecurity, .connectionRejectedAddress,
                .scoOffsetRejected,
            ]
        case EOPNOTSUPP: [.unsupportedFeature, .unsupportedLinkParameter, .qosNotSupported, .unitKeyNotSupported]
        case EINVAL: [.invalidParameters]
        case ECONNRESET: [.remoteUserTerminated, .remoteLowResources, .remotePowerOff]
        case ECONNABORTED: [.localHostTerminated]
        case ELOOP: [.repeatedAttempts]
        case EPROTONOSUPPORT: [.unsupportedRemoteFeature]
        case EPROTO:
            [
                .unknownLMPPDU, .invalidLinkParameters, .linkProcedureCollision, .lmpPDUNotAllowed,
                .encryptionModeNotAcceptable,
            ]
        case ENOSYS:
            [
                .connectionFailedToBeEstablished, .linkResponseTimeout, .micFailure, .unacceptableConnectionParameters,
                .instantPassed, .unspecified, .cancelledByHost,
            ]
        default: []
        }
    }
}

/// The reason that a link ended, as far as its socket reports it.
package enum LinkEnd: Hashable, Sendable {
    /// The other end closed a socket that stands in for a link.
    case closed
    /// The peer was not heard for the supervision timeout.
    case outOfReach
    /// The peer disconnected.
    case endedByPeer
    /// This host disconnected: this program or another one did, or the adapter was reset, switched off or unplugged.
    case endedByHost
    /// Pairing or encryption failed, or the peer refused it.
    case authenticationFailed
    /// The peer no longer has the key of the bond.
    case keyMissing
    /// A radio-level failure that the kernel does not name, such as a link that never became established.
    case radioFailure
    /// The link was gone without a reported reason.
    case unknownLink
    /// Any other status of the controller, or an error number that stands for none.
    case other(errno: Int32)

    /// Creates a reason from the error number that `LinkSocket.receive` ended with.
    package init(errno: Int32) {
        self =
            switch errno {
            case 0, EPIPE: .closed
            case ETIMEDOUT: .outOfReach
            case ECONNRESET: .endedByPeer
            case ECONNABORTED: .endedByHost
            case EACCES: .authenticationFailed
            case EBADE: .keyMissing
            case ENOSYS: .radioFailure
            case ENOTCONN: .unknownLink
            default: .other(errno: errno)
            }
    }

    /// The error number it was created from; 0 for a stand-in that closed.
    package var errno: Int32 {
        switch self {
        case .closed: 0
        case .outOfReach: ETIMEDOUT
        case .endedByPeer: ECONNRESET
        case .endedByHost: ECONNABORTED
        case .authenticationFailed: EACCES
        case .keyMissing: EBADE
        case .radioFailure: ENOSYS
        case .unknownLink: ENOTCONN
        case .other(let errno): errno
        }
    }

    /// The controller's reasons for which it may stand, the likeliest first.
    package var statuses: [HCIStatus] { ErrnoMeaning.statuses(errno) }

    /// A sentence for users.
    package var sentence: String {
        switch self {
        case .closed: "The other end closed the connection."
        case .outOfReach: "The device was not heard any more: it is out of range, switched off or disturbed."
        case .endedByPeer: "The device ended the connection."
        case .endedByHost: "This computer ended the connection, or its adapter was switched off, reset or unplugged."
        case .authenticationFailed: "The device and this computer could not agree on pairing or encryption."
        case .keyMissing: "The device has lost its key for the bond; remove the bond and pair again."
        case .radioFailure: "The connection failed at the radio; the device is likely far away or disturbed."
        case .unknownLink: "The connection was gone, and the kernel reported no reason."
        case .other(let errno): "The connection ended with the kernel's error \(errno)."
        }
    }
}

/// The reason that a connect failed.
package enum ConnectFailure: Hashable, Sendable {
    /// The time was over: no connectable advertisement of the peer was heard, or the kernel was not listening.
    case timedOut
    /// The adapter supports more than LE, and LE is switched off.
    case lowEnergyOff
    /// There is no powered adapter with the requested address.
    case adapterUnavailable
    /// The adapter was switched off, reset or unplugged meanwhile, or the connect was cancelled.
    case aborted
    /// Another socket, of any program, is connected or connecting to the peer.
    case busy
    /// This socket is connected already.
    case alreadyConnected
    /// The adapter does not support LE.
    case notLowEnergy
    /// The kernel offers this process no Bluetooth.
    case noBluetooth
    /// The call was malformed: the socket was not bound to the ATT channel, or the peer's address type is invalid.
    case invalid
    /// The controller cannot hold more links.
    case tooManyLinks
    /// The link failed before it was usable, or the controller reported a status that the kernel does not distinguish.
    case notEstablished
    /// The process or the machine has run out of descriptors or memory.
    case outOfResources
    /// Any other status of the controller, or an error number that stands for none.
    case other(errno: Int32)

    /// Creates a reason from an error number of `connectingL2CAP` or `finishConnect`.
    ///
    /// - Parameter timeRanOut: Whether the connect's `sendTimeout` had passed. The kernel has one number for that and
    ///   for an adapter whose LE support is off, which it reports at once.
    package init(errno: Int32, timeRanOut: Bool) {
        self =
            switch errno {
            case ECONNREFUSED: timeRanOut ? .timedOut : .lowEnergyOff
            case EINPROGRESS, ETIMEDOUT: .timedOut
            case EHOSTUNREACH, ENODEV, ENETDOWN: .adapterUnavailable
            case ECONNABORTED: .aborted
            case EBUSY, EALREADY: .busy
            case EISCONN: .alreadyConnected
            case EOPNOTSUPP: .notLowEnergy
            case EAFNOSUPPORT, EPROTONOSUPPORT: .noBluetooth
            case EINVAL, EBADFD: .invalid
            case EMLINK: .tooManyLinks
            case ENOSYS: .notEstablished
            case EMFILE, ENFILE, ENOMEM, ENOBUFS: .outOfResources
            default: .other(errno: errno)
            }
    }

    /// A sentence for users, with what helps.
    package var sentence: String {
        switch self {
        case .timedOut: "The device did not respond in time: it is out of range, asleep or connected to another host."
        case .lowEnergyOff: "The adapter's Low Energy side is switched off; `btmgmt le on` as root switches it on."
        case .adapterUnavailable: "The adapter is off or gone; `btmgmt power on` as root switches it on."
        case .aborted: "The connect was cancelled, or the adapter was switched off, reset or unplugged meanwhile."
        case .busy: "The device is already connected or being connected, by this or another program."
        case .alreadyConnected: "This connection is already up."
        case .notLowEnergy: "The adapter does not support Bluetooth Low Energy."
        case .noBluetooth: "The kernel offers no Bluetooth here: it lacks the module, or this is a container's network."
        case .invalid: "The kernel did not accept the addresses of the connect."
        case .tooManyLinks: "The adapter cannot hold any more connections."
        case .notEstablished: "The connection was set up and lost before it could be used; trying again often helps."
        case .outOfResources: "The process or the machine has run out of descriptors or memory."
        case .other(let errno): "The connect failed with the kernel's error \(errno)."
        }
    }
}
