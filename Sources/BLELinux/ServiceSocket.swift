internal import CBluetooth
internal import Glibc

/// The socket on which a service manager listens to its services: one datagram a message, lines of `NAME=value`, and
/// descriptors beside them.
///
/// Sending never waits: a manager that does not take messages any more is an error, not a daemon that hangs.
package struct ServiceSocket: Hashable, Sendable {
    /// How many descriptors one message may carry.
    package static let descriptorLimit = 16

    private let name: [UInt8]

    /// Names the socket as `NOTIFY_SOCKET` does: a path, or `@` and an abstract name; `nil` for anything else.
    package init?(_ text: String) {
        var bytes = Array(text.utf8)
        guard bytes.count > 1, !bytes.contains(0) else { return nil }
        switch bytes.first {
        case 0x2F: break
        case 0x40: bytes[0] = 0
        default: return nil
        }
        name = bytes
    }

    /// Sends one message.
    package func send(_ text: String, descriptors: [Int32] = []) throws(SystemCallError) {
        let bytes = Array(text.utf8)
        let result = unsafe ble_send_to(
            name, name.count, bytes, bytes.count, descriptors, Int32(truncatingIfNeeded: descriptors.count))
        try SystemCallError.check("sendmsg", Int32(clamping: result))
    }

    /// Waits until the manager has seen all that was sent before: it lets go of a descriptor that it is sent.
    ///
    /// Blocks for at most `timeout`; to be kept off the event loop.
    ///
    /// - Throws: `SystemCallError`, with ETIMEDOUT when it has not.
    package func barrier(timeout: Duration) throws(SystemCallError) {
        var ends: [Int32] = [-1, -1]
        try SystemCallError.check("pipe", unsafe ble_pipe(&ends))
        let reader = OwnedDescriptor(ends[0])
        do {
            let writer = OwnedDescriptor(ends[1])
            try send("BARRIER=1", descriptors: [writer.number])
        }
        let milliseconds = Int32(
            clamping: timeout / .milliseconds(1) > 1e9 ? 1_000_000_000 : Int64(timeout / .milliseconds(1)))
        let result = try SystemCallError.check("poll", ble_wait_for_hang_up(reader.number, milliseconds))
        guard result > 0 else { throw SystemCallError(call: "BARRIER", errno: ETIMEDOUT) }
    }

    // MARK: The manager's side

    /// Listens there; the descriptor belongs to the caller.
    package func listen() throws(SystemCallError) -> Int32 {
        try SystemCallError.check("bind", unsafe ble_bind_datagrams(name, name.count))
    }

    /// One message that has arrived at `descriptor`; `nil` when there is none. Its descriptors belong to the caller.
    package static func receive(at descriptor: Int32) -> (text: String, descriptors: [Int32])? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var descriptors = [Int32](repeating: -1, count: descriptorLimit)
        var count = Int32(descriptorLimit)
        let length = unsafe ble_receive_with_descriptors(descriptor, &buffer, buffer.count, &descriptors, &count)
        guard length >= 0 else { return nil }
        return (
            String(decoding: buffer.prefix(length), as: UTF8.self), Array(descriptors.prefix(max(0, Int(count))))
        )
    }
}
