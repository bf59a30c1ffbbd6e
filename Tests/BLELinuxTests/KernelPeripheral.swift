import BLECore
import CBluetooth
import Glibc
import Testing

@testable import BLELinux

/// A peripheral on a second adapter of the same kernel: it advertises by raw commands, accepts links on the ATT channel
/// and responds to every request with Attribute Not Found.
final class KernelPeripheral {
    let peer: PeerID
    private let loop: EventLoop
    private var raw: HCISocket
    private let listener: Int32
    private var accepted: Int32 = -1

    init(adapter: UInt16, loop: EventLoop) throws {
        self.loop = loop
        // Forgets links whose other end was switched off, which the emulator does not report.
        try Controllers.powerDown(adapter)
        raw = try KernelPeripheral.ready(adapter, loop)
        let address = try Controllers.info(adapter).address
        peer = PeerID(address: address, type: .public)
        listener = ble_socket(AF_BLUETOOTH, Int32(SOCK_SEQPACKET.rawValue), BTPROTO_L2CAP)
        var name = LinkSocket.socketAddress(address, .public)
        try SystemCallError.check("bind", unsafe ble_bind(listener, &name, UInt32(MemoryLayout<sockaddr_l2>.size)))
        try SystemCallError.check("listen", listen(listener, 4) < 0 ? -errno : 0)
        loop.onReadable(listener) { [unowned self] in accept() }
        // Connectable, 100 ms, own public address; flags only.
        _ = try Self.command(
            [0x01, 0x06, 0x20, 15, 0xA0, 0, 0xA0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0], on: &raw, loop)
        var data: [UInt8] = [0x01, 0x08, 0x20, 32, 3, 2, 1, 6]
        data += [UInt8](repeating: 0, count: 36 - data.count)
        _ = try Self.command(data, on: &raw, loop)
    }

    deinit {
        if accepted >= 0 { close(accepted) }
        close(listener)
    }

    /// Advertises again; one emulator reports an advertiser only once each time.
    func advertise() throws {
        _ = try Self.command([0x01, 0x0A, 0x20, 1, 0], on: &raw, loop)
        #expect(try Self.command([0x01, 0x0A, 0x20, 1, 1], on: &raw, loop) == [0])
    }

    /// Lets go of the loop and of the link.
    func end() {
        if accepted >= 0 { loop.unregister(accepted) }
        loop.unregister(listener)
    }

    /// Sends notifications until the kernel takes no more or all are sent.
    func notify(_ count: Int) -> Int {
        var sent = 0
        while sent < count, unsafe send(accepted, [0x1B, 3, 0, UInt8(sent & 0xFF)], 4, 0) == 4 { sent += 1 }
        return sent
    }

    private func accept() {
        let descriptor = Glibc.accept(listener, nil, nil)
        guard descriptor >= 0 else { return }
        if accepted >= 0 {
            loop.unregister(accepted)
            close(accepted)
        }
        accepted = descriptor
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        loop.onReadable(descriptor) { [unowned self] in respond(descriptor) }
    }

    private func respond(_ descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 700)
        while true {
            let count = unsafe recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            guard count > 0 else {
                if count == 0 || errno != EAGAIN { loop.unregister(descriptor) }
                return
            }
            _ = unsafe send(descriptor, [0x01, bytes[0], 0, 0, 0x0A], 5, 0)
        }
    }

    // MARK: Adapters

    /// Switches an adapter and its LE side on.
    static func ready(_ adapter: UInt16, _ loop: EventLoop) throws -> HCISocket {
        try Controllers.powerUp(adapter)
        try Controllers.powerUp(adapter)
        var socket = try HCISocket(adapter: adapter)
        try socket.setFilter(.commands)
        #expect(try command([0x01, 0x6D, 0x0C, 2, 1, 0], on: &socket, loop) == [0])
        return socket
    }

    /// Sends a command and returns what it returned.
    static func command(_ packet: [UInt8], on socket: inout HCISocket, _ loop: EventLoop) throws -> [UInt8] {
        #expect(socket.send(packet) == .sent)
        var buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)
        var readable = false
        loop.onReadable(socket.descriptor) { readable = true }
        defer { loop.unregister(socket.descriptor) }
        while loop.wait(until: { readable }) {
            readable = false
            while case .packet(let count, _) = socket.receive(into: &buffer) {
                if buffer[1] == 0x0E, buffer[4...5].elementsEqual(packet[1...2]) { return Array(buffer[6..<count]) }
                if buffer[1] == 0x0F, buffer[5...6].elementsEqual(packet[1...2]) { return [buffer[3]] }
            }
        }
        Issue.record("no response to a command")
        return []
    }
}

extension EventLoop {
    /// Runs until a condition holds; false after half a minute, which a slow machine may need.
    func wait(until done: () -> Bool) -> Bool {
        var late = false
        let timer = schedule(at: now() + .seconds(30)) { late = true }
        run { late || done() }
        cancel(timer)
        return !late
    }
}
