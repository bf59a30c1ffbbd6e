internal import Glibc

/// The reason that a call on this machine, which involves no peer, failed.
package enum LocalFailure: Hashable, Sendable {
    /// The kernel offers this process no Bluetooth.
    case noBluetooth
    /// The process lacks a capability.
    case notPermitted(Privileges.Capability)
    /// No adapter has this index or address any more.
    case adapterGone
    /// The adapter is off.
    case adapterDown
    /// The radio is blocked by a hardware or software switch.
    case blocked
    /// Another program has exclusive access to the adapter.
    case inUse
    /// The controller has no address, and none was assigned to it.
    case noAddress
    /// The controller is not configured, mostly because it has no address of its own: the kernel does not switch it on.
    case unconfigured
    /// The controller did not respond to the kernel.
    case noResponse
    /// The process or the machine has run out of descriptors or memory.
    case outOfResources
    /// Any other error number.
    case other(errno: Int32)

    /// A sentence for users, with what helps.
    package var sentence: String {
        switch self {
        case .noBluetooth: "The kernel offers no Bluetooth here: it lacks the module, or this is a container's network."
        case .notPermitted(let capability): "This needs the capability \(capability.name), or root."
        case .adapterGone: "There is no such adapter: it was unplugged, or it came back with another number."
        case .adapterDown: "The adapter is off; `btmgmt power on` as root switches it on."
        case .blocked: "The radio is blocked; `rfkill unblock bluetooth`, or the machine's own switch, frees it."
        case .inUse: "Another program has exclusive access to the adapter."
        case .noAddress: "The controller has no address of its own and needs a static one first."
        case .unconfigured: "The controller is not configured, mostly because it has no address of its own."
        case .noResponse: "The controller does not respond; unplugging it, or reloading its driver, may help."
        case .outOfResources: "The process or the machine has run out of descriptors or memory."
        case .other(let errno): "The kernel returned error \(errno)."
        }
    }
}

extension SystemCallError: CustomStringConvertible {
    /// The reason for which the error number of this call stands.
    package var meaning: LocalFailure {
        switch errno {
        case EAFNOSUPPORT, EPROTONOSUPPORT: .noBluetooth
        case EPERM, EACCES: .notPermitted(neededCapability)
        case ENODEV, EPIPE, ENXIO: .adapterGone
        case ENETDOWN, EHOSTUNREACH: .adapterDown
        case ERFKILL: .blocked
        case EBUSY, EUSERS: .inUse
        case EADDRNOTAVAIL: .noAddress
        case EOPNOTSUPP where call == "HCIDEVUP": .unconfigured
        case ETIMEDOUT: .noResponse
        case EMFILE, ENFILE, ENOMEM, ENOBUFS, ENOSPC: .outOfResources
        default: .other(errno: errno)
        }
    }

    /// The call and the error number's name, for a log.
    package var description: String {
        let text = unsafe strerror(errno).map { unsafe String(cString: $0) } ?? "error"
        return "\(call): \(text) (\(errno))"
    }

    private var neededCapability: Privileges.Capability {
        switch call {
        case "send", "bind monitor": .netRaw
        default: .netAdmin
        }
    }
}
