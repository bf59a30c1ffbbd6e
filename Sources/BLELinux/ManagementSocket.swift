package import BLECore
internal import Glibc

/// What the management interface had to offer.
package enum ManagementInput: Hashable, Sendable {
    /// A response, or news.
    case event(ManagementEvent)
    /// A packet that could not be read; it is gone.
    case malformed(MalformedPacket)
    /// Nothing now; wait for the descriptor to become readable.
    case wouldBlock
    /// The socket is of no more use.
    case gone(errno: Int32)
}

/// The control channel: commands to the kernel's management interface, and its events.
///
/// Never blocks. What the process may do there is decided when the socket is opened: it keeps CAP_NET_ADMIN when the
/// process gives that up. Without it, reading is allowed, and events about peers and keys do not arrive.
package struct ManagementSocket: ~Copyable, Sendable {
    private var socket: HCISocket
    private var buffer: [UInt8]

    /// The descriptor, to be waited for.
    package var descriptor: Int32 { socket.descriptor }

    /// Opens the channel, which belongs to no adapter.
    package init() throws(SystemCallError) {
        self.init(try HCISocket(channel: .control, adapter: nil))
    }

    /// Takes over a descriptor that stands in for the kernel's interface.
    package init(adopting descriptor: Int32) {
        self.init(HCISocket(adopting: descriptor))
    }

    private init(_ socket: consuming HCISocket) {
        self.socket = socket
        buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)
    }

    /// Sends a command to the adapter with this index, or to the interface itself for `nil`.
    package func send(_ command: some ManagementCommand, adapter: UInt16?) -> SendOutcome {
        socket.send(command.packet(adapter: adapter).bytes)
    }

    /// Takes the next packet.
    package mutating func receive() -> ManagementInput {
        switch socket.receive(into: &buffer) {
        case .packet(let count, _):
            // One that was longer than the buffer does not match its length field.
            do throws(MalformedPacket) {
                return .event(try ManagementEvent(buffer.span.extracting(first: count)))
            } catch {
                return .malformed(error)
            }
        case .wouldBlock: return .wouldBlock
        case .gone(let errno): return .gone(errno: errno)
        }
    }
}
