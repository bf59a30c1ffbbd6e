internal import BLELinux

/// The sockets of the management interface of a virtual radio.
///
/// Only the radio uses it, on its event loop.
final class ManagementSockets {
    private var sockets: [UInt64: PeerLink] = [:]
    /// The number of packets that programs have sent.
    private(set) var packetCount = 0

    func add(_ number: UInt64, _ socket: PeerLink) {
        sockets[number] = socket
    }

    func remove(_ number: UInt64) {
        sockets[number] = nil
    }

    func countPacket() {
        packetCount += 1
    }

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
