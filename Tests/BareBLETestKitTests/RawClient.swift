import BLECore
import BLELinux
import Glibc

/// A client that knows nothing but packets: hexadecimal out, hexadecimal in.
struct RawClient: ~Copyable {
    private var socket: LinkSocket

    init(_ descriptor: Int32) {
        socket = LinkSocket(adopting: descriptor)
    }

    mutating func send(_ hex: String) {
        let packet = (try? Hex.decode(hex)) ?? []
        while socket.send(packet) == .wouldBlock {
            var wanted = pollfd(fd: socket.descriptor, events: Int16(POLLOUT), revents: 0)
            _ = unsafe poll(&wanted, 1, 10_000)
        }
    }

    /// The next packet from the peer, waited for; "end" when the link is over.
    mutating func next() -> String {
        var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
        while true {
            switch socket.receive(into: &buffer) {
            case .packet(let count, _): return Hex.encode(buffer.prefix(count))
            case .ended: return "end"
            case .wouldBlock:
                var wanted = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
                _ = unsafe poll(&wanted, 1, 10_000)
            }
        }
    }

    mutating func request(_ hex: String) -> String {
        send(hex)
        return next()
    }
}
