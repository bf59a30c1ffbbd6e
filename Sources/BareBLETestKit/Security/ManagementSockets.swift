internal import BLELinux

/// The sockets of the management interface of a virtual radio.
///
/// Only the radio uses it, on its event loop.
final class ManagementSockets {
    private var sockets: [UInt64: PeerLink] = [:]
    /// The number of packets that programs have sent.
    private(set) var packetCount = 0
    /// The packet that the kernel does not respond to; nil if it responds to all.
    private var ignored: [UInt8]?
    /// Whether no further socket can be opened.
    private(set) var isRefusing = false

    func add(_ number: UInt64, _ socket: PeerLink) {
        sockets[number] = socket
    }

    func remove(_ number: UInt64) {
        sockets[number] = nil
    }

    func countPacket() {
        packetCount += 1
    }

    /// Has sockets opened no more, or again.
    func refuse(_ isRefusing: Bool) { self.isRefusing = isRefusing }

    /// Has the kernel not respond to a packet from now on; `nil` for none.
    func ignore(_ packet: [UInt8]?) { ignored = packet }

    func ignores(_ packet: [UInt8]) -> Bool { packet == ignored }

    func send(_ packet: [UInt8], to number: UInt64) {
        sockets[number]?.send(packet)
    }

    /// Closes all sockets and returns their numbers.
    @discardableResult
    func closeAll() -> [UInt64] {
        defer { sockets = [:] }
        for socket in sockets.values { socket.close() }
        return sockets.keys.sorted()
    }
}
