// The control channel: a socket to the kernel's management interface, which belongs to no adapter.
//
// Traps, all of them observed on kernels 6.1 and 6.12
// - A packet to the kernel may have 1,028 bytes, which hold 28 Long Term Keys; a longer one is refused with `EINVAL`,
//   as a malformed one is. `BT_SNDMTU` lifts the limit to 65,535 bytes, which hold 1,820. Older kernels do not have it.
// - What the process may do is decided when the socket is opened: it keeps CAP_NET_ADMIN when the process gives that
//   up. Without it, information about adapters may be read, other commands return Permission Denied, and events about
//   peers and keys do not arrive.
// - The kernel drops what does not fit into the receive buffer, without notice. It is enlarged, and `droppedPackets`
//   counts.
// - Responses come only to the socket that sent the command. New Settings goes to all others.
// - Closing the socket changes nothing at the adapter: keys, settings and a pairing that runs stay.

package import BLECore
internal import CBluetooth
internal import Glibc

/// The result of reading the management interface.
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
/// Never blocks.
package struct ManagementSocket: ~Copyable, Sendable {
    /// The most bytes in one packet to a kernel that accepts long ones.
    package static let longPacket = 0xFFFF
    /// The most bytes in one packet to any other.
    package static let shortPacket = 1_028

    /// The most bytes that the kernel accepts in one packet.
    package let largestPacket: Int

    private var socket: HCISocket
    private var buffer: [UInt8]

    /// The descriptor, to be waited for.
    package var descriptor: Int32 { socket.descriptor }

    /// Opens the channel, which belongs to no adapter.
    package init() throws(SystemCallError) {
        let opened = try HCISocket(channel: .control, adapter: nil)
        var mtu = UInt16(Self.longPacket)
        // Only after binding does the kernel know that it is no socket for HCI packets, whose size is fixed.
        let result = unsafe ble_set_option(opened.descriptor, SOL_BLUETOOTH, BT_SNDMTU, &mtu, 2)
        // Without the room events may be lost in a burst, which is counted.
        try? opened.raiseReceiveBuffer()
        self.init(opened, largestPacket: result < 0 ? Self.shortPacket : Self.longPacket)
    }

    /// Takes over a descriptor that stands in for the kernel's interface.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor.
    ///   - largestPacket: The most bytes that it is to accept in one packet.
    package init(adopting descriptor: Int32, largestPacket: Int = longPacket) {
        self.init(HCISocket(adopting: descriptor), largestPacket: largestPacket)
    }

    private init(_ socket: consuming HCISocket, largestPacket: Int) {
        self.socket = socket
        self.largestPacket = largestPacket
        // Any event: a header, and the most that its length field can express.
        buffer = [UInt8](repeating: 0, count: 6 + 0xFFFF)
    }

    /// The number of packets that the kernel has dropped because they were not read in time.
    package var droppedPackets: Int { socket.droppedPackets }

    /// Sends a command to the adapter with this index, or to the interface itself for `nil`.
    package func send(_ command: some ManagementCommand, adapter: UInt16?) -> SendOutcome {
        send(command.packet(adapter: adapter).bytes)
    }

    /// Sends one packet; all of it or nothing.
    ///
    /// One that is longer than `largestPacket` fails with `EMSGSIZE`.
    package func send(_ packet: [UInt8]) -> SendOutcome {
        packet.count <= largestPacket ? socket.send(packet) : .failed(errno: EMSGSIZE)
    }

    /// Takes the next packet.
    package mutating func receive() -> ManagementInput {
        switch socket.receive(into: &buffer) {
        case .packet(let count, _):
            // No key stays here until the next packet.
            defer { for index in 0..<count { buffer[index] = 0 } }
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
