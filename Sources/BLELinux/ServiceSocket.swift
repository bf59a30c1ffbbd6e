internal import CBluetooth
internal import Glibc

/// The socket on which a service manager listens to its services: one datagram for each message, with lines of
/// `NAME=value` and descriptors.
///
/// Sending does not wait: a manager that accepts no more messages is an error, not a daemon that hangs. Only the
/// barrier waits, for room too.
package struct ServiceSocket: Hashable, Sendable {
    /// The maximum number of descriptors in a message.
    package static let descriptorLimit = 16

    private let name: [UInt8]

    /// Creates a reference to the socket in the form of `NOTIFY_SOCKET`: a path, or `@` and an abstract name; `nil`
    /// for anything else.
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
        try send(text, descriptors: descriptors, waiting: 0)
    }

    private func send(_ text: String, descriptors: [Int32], waiting milliseconds: Int32) throws(SystemCallError) {
        let bytes = Array(text.utf8)
        let result = unsafe ble_send_to(
            name, name.count, bytes, bytes.count, descriptors, Int32(truncatingIfNeeded: descriptors.count),
            milliseconds)
        try SystemCallError.check("sendmsg", Int32(clamping: result))
    }

    /// Waits until the manager has processed all earlier messages: it closes a descriptor that it is sent.
    ///
    /// Blocks for at most `timeout`, even while there is no room for one more message; keep it off the event loop.
    ///
    /// - Throws: `SystemCallError`, with ETIMEDOUT if it has not.
    package func barrier(timeout: Duration) throws(SystemCallError) {
        let end = ble_boot_nanoseconds() + Int64(max(0, min(timeout / .nanoseconds(1), 1e15)))
        let late = SystemCallError(call: "BARRIER", errno: ETIMEDOUT)
        var ends: [Int32] = [-1, -1]
        try SystemCallError.check("pipe", unsafe ble_pipe(&ends))
        let reader = OwnedDescriptor(ends[0])
        do throws(SystemCallError) {
            let writer = OwnedDescriptor(ends[1])
            try send("BARRIER=1", descriptors: [writer.number], waiting: max(1, Self.milliseconds(to: end)))
        } catch {
            throw error.errno == EAGAIN ? late : error
        }
        let result = try SystemCallError.check("poll", ble_wait_for_hang_up(reader.number, Self.milliseconds(to: end)))
        guard result > 0 else { throw late }
    }

    private static func milliseconds(to end: Int64) -> Int32 {
        Int32(clamping: max(0, end - ble_boot_nanoseconds()) / 1_000_000)
    }

    // MARK: The manager's side

    /// Listens on the socket; the descriptor belongs to the caller.
    package func listen() throws(SystemCallError) -> Int32 {
        try SystemCallError.check("bind", unsafe ble_bind_datagrams(name, name.count))
    }

    /// Returns one message that has arrived at `descriptor`; `nil` if there is none. Its descriptors belong to the
    /// caller.
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
