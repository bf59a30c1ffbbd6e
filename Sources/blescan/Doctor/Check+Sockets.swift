import BLELinux
import Glibc

// Checks 1 to 3: whether this process gets Bluetooth from the kernel, and if not, what prevents it.
extension Check {
    static func sockets(_ facts: SystemFacts) -> [Finding] {
        let radio = facts.radio
        let families = [
            ("HCI", radio.controllerSocket), ("management", radio.managementSocket), ("L2CAP", radio.linkSocket),
        ]
        let closed = families.filter { $0.1 != 0 }
        guard let first = closed.first else {
            return [.ok("sockets", "kernel \(facts.kernelRelease) opens HCI, management and L2CAP sockets")]
        }
        let areAllClosed = closed.count == families.count
        let sockets =
            areAllClosed ? "Bluetooth sockets unavailable" : "no \(NearNames.list(closed.map(\.0))) sockets"
        let id = areAllClosed && !facts.hasBluetooth ? "no-bluetooth" : "no-sockets"
        return [
            .fail(
                id, "kernel \(facts.kernelRelease): \(sockets); \(reason(first.1, facts))",
                remedy: socketRemedy(first.1, facts),
                status: first.1 == EPERM || first.1 == EACCES ? .notPermitted : .noAdapter)
        ]
    }

    private static func reason(_ number: Int32, _ facts: SystemFacts) -> String {
        switch number {
        case EAFNOSUPPORT where !facts.hasBluetooth: "its module is not loaded, or missing [errno \(number)]"
        case EAFNOSUPPORT: "it has Bluetooth, but not for this process [errno \(number)]"
        case EPROTONOSUPPORT: "a part of its Bluetooth is not loaded [errno \(number)]"
        case EPERM, EACCES: "a filter of system calls forbids them [errno \(number)]"
        default: "the kernel refuses them [errno \(number)]"
        }
    }

    private static func socketRemedy(_ number: Int32, _ facts: SystemFacts) -> String {
        // The next check finds what prevents it.
        let isHidden = number == EAFNOSUPPORT && facts.hasBluetooth || number == EPERM || number == EACCES
        if isHidden, let remedy = surroundings(facts).first?.remedy { return remedy }
        if facts.container != nil { return "on the host: sudo modprobe bluetooth" }
        return
            "sudo modprobe bluetooth   (where that fails, the kernel was built without: install the distribution's own)"
    }

    static func surroundings(_ facts: SystemFacts) -> [Finding] {
        let place = facts.container.map { "in a \($0) container" } ?? "in no container"
        let isHidden = facts.radio.controllerSocket != 0 && facts.hasBluetooth
        if isHidden, facts.container != nil || facts.hasOwnNetwork == true {
            return [
                .fail(
                    "container", "\(place), and in a network of its own: Bluetooth exists only in the host's network",
                    remedy: facts.container == nil
                        ? "run it in the host's network: sudo nsenter --net=/proc/1/ns/net blescan ..."
                        : "docker run --network host --cap-add NET_RAW --cap-add NET_ADMIN ...   (podman alike)")
            ]
        }
        if isHidden {
            let filter = facts.hasFilter ? "a filter of system calls is set on this process" : "no visible reason"
            return [
                .fail(
                    "filter", "\(place); \(filter)",
                    remedy: "under systemd: RestrictAddressFamilies=AF_BLUETOOTH AF_UNIX; "
                        + "in a container: --security-opt seccomp=unconfined")
            ]
        }
        guard facts.privileges.isInInitialUserNamespace else {
            return [
                .fail(
                    "user-namespace", "\(place), with users of its own: the kernel does not count their capabilities",
                    remedy: "run it outside, or in a container of the real root (not a rootless one)",
                    status: .notPermitted)
            ]
        }
        let sharesNetwork = facts.container != nil && facts.radio.controllerSocket == 0
        return [.ok("surroundings", sharesNetwork ? "\(place), on the host's network" : place)]
    }

    static func capabilities(_ facts: SystemFacts) -> [Finding] {
        let privileges = facts.privileges
        // The part of the manual page's advice that fits in a line.
        let setting =
            "run it with sudo, or let every local user scan, record and switch adapters, once: "
            + "sudo setcap cap_net_raw,cap_net_admin+ep \"$(command -v blescan)\"   (one group alone: man blescan)"
        if !privileges.has(.netRaw) {
            let both = privileges.has(.netAdmin) ? "CAP_NET_RAW" : "CAP_NET_RAW, CAP_NET_ADMIN"
            return [
                .fail(
                    "no-capability",
                    "this process lacks \(both): no scan, no connection with parameters of one's own"
                        + (privileges.has(.netAdmin) ? "" : ", no switching on"),
                    remedy: setting, status: .notPermitted)
            ]
        }
        guard privileges.has(.netAdmin) else {
            return [
                .warn(
                    "no-net-admin", "this process lacks CAP_NET_ADMIN: it cannot switch adapters on", remedy: setting)
            ]
        }
        return [.ok("capabilities", "this process has CAP_NET_RAW and CAP_NET_ADMIN")]
    }
}
