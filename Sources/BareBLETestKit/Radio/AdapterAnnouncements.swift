internal import BLELinux

/// The sockets on which the kernel announces changes of adapters to programs, as it does with CAP_NET_RAW.
///
/// Only the radio uses it, on its event loop.
final class AdapterAnnouncements {
    /// A change of an adapter, as the kernel numbers it.
    enum Change: UInt8 {
        case added = 1
        case removed = 2
        case switchedOn = 3
        case switchedOff = 4
    }

    /// True if changes are announced.
    private(set) var isOn = false
    private var sockets: [UInt64: PeerLink] = [:]

    /// Has changes announced to the sockets that are opened from now on.
    func begin() {
        isOn = true
        sockets = [:]
    }

    func add(_ number: UInt64, _ socket: PeerLink) {
        sockets[number] = socket
    }

    func remove(_ number: UInt64) {
        sockets[number] = nil
    }

    func announce(_ change: Change, of adapter: UInt16) {
        let packet: [UInt8] = [0x04, 0xFD, 0x06, 0x01, 0x00, change.rawValue, 0x00] + adapter.littleEndianBytes
        for (_, socket) in sockets.sorted(by: { $0.key < $1.key }) { socket.send(packet) }
    }
}
