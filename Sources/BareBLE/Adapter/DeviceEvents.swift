internal import BLELinux

// The kernel's own announcements: an adapter has come or gone, or was switched on or off.
//
// Invariants
// - They report that something has changed, never what: the owner of an adapter looks at it after each.
// - The socket is open while something follows an adapter, as an advertising set does. Without CAP_NET_RAW there is
//   none, and the adapter is polled. It is also polled while the socket cannot be opened for another reason, such as
//   want of a descriptor: that is tried again at each look.

/// A source of events about the adapters of this machine.
final class DeviceEvents {
    private var socket: HCISocket?
    private var buffer = [UInt8](repeating: 0, count: 64)
    /// Whether the kernel refuses the socket for good, so that it is not asked again.
    private var isRefused = false

    /// Whether changes are announced.
    var isOpen: Bool { socket != nil }

    /// Begins to call `changed` after each announcement, and once at first; returns whether it could.
    func begin(_ system: AdapterSystem, on loop: EventLoop, changed: @escaping EventLoop.Handler) -> Bool {
        if isOpen { return true }
        if isRefused { return false }
        let descriptor: Int32
        do throws(SystemCallError) {
            let opened = try system.openDeviceEvents()
            descriptor = opened.descriptor
            socket = consume opened
        } catch {
            isRefused = Self.isLasting(error)
            return false
        }
        let failure = loop.onReadable(descriptor) { [weak self, weak loop] in
            guard let self, let loop else { return }
            if !drain() { end(on: loop) }
            changed()
        }
        if failure != nil {
            socket = nil
            return false
        }
        // Nothing announces what has changed since the owner's last look.
        _ = loop.schedule(at: loop.now(), changed)
        return true
    }

    /// Whether another attempt would fail for the same reason.
    private static func isLasting(_ failure: SystemCallError) -> Bool {
        switch failure.meaning {
        case .noBluetooth, .notPermitted: true
        case .adapterGone, .adapterDown, .blocked, .inUse, .noAddress, .unconfigured, .noResponse, .outOfResources,
            .other:
            false
        }
    }

    func end(on loop: EventLoop) {
        guard let descriptor = socket?.descriptor else { return }
        loop.unregister(descriptor)
        socket = nil
    }

    /// Reads all announcements; returns whether there may be more.
    private func drain() -> Bool {
        while true {
            switch socket?.receive(into: &buffer) {
            case .packet: continue
            case .wouldBlock: return true
            case .gone, nil: return false
            }
        }
    }
}
