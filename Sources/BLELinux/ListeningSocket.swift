package import BLECore
internal import CBluetooth
internal import Glibc

// A socket that accepts the links of others: the ATT channel of every link that comes up on an adapter, or a Unix
// SEQPACKET socket that stands in for it.
//
// Kernel facts
// - Any number of programs may listen on the ATT channel. Each link goes to the one that has listened last, and it is
//   the link of either role: also one that this program initiates by command.
// - No capability is needed, and an adapter that is off can be listened on.
// - The level of security of a listener is not enforced on the ATT channel, so it is left at the lowest.
// - An accepted socket keeps 222 unread packets; later ones are dropped, so it must be read at once.

/// A link that a `ListeningSocket` has accepted.
package struct AcceptedLink: ~Copyable, Sendable {
    private let socket: LinkSocket
    /// The address by which the kernel knows the peer; `nil` for a Unix socket.
    package let peer: PeerID?
    /// The controller's number for the link; `nil` for a Unix socket.
    package let handle: ConnectionHandle?

    package init(socket: consuming LinkSocket, peer: PeerID?, handle: ConnectionHandle?) {
        self.socket = socket
        self.peer = peer
        self.handle = handle
    }

    /// Returns the socket, which is the caller's from now on.
    package consuming func take() -> LinkSocket { socket }
}

/// A socket that accepts links.
package struct ListeningSocket: ~Copyable, Sendable {
    /// The number of links that may wait to be accepted.
    package static let backlog: Int32 = 16
    /// The kernel's room for packets that were sent and are not on the air yet: 18 values. More would only make values
    /// late.
    private static let sendBuffer: Int32 = 8_192

    /// The descriptor, for the event loop only.
    package let descriptor: Int32
    /// The file of a Unix socket, once it is bound.
    private var path: String?

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        if let path { unsafe _ = unlink(path) }
        OwnedDescriptor.close(descriptor)
    }

    /// Listens on the ATT channel of the adapter with the address `own`.
    package static func attributeChannel(of own: BluetoothAddress) throws(SystemCallError) -> ListeningSocket {
        let socket = ListeningSocket(
            try SystemCallError.check(
                "socket", ble_socket(AF_BLUETOOTH, Int32(SOCK_SEQPACKET.rawValue), BTPROTO_L2CAP)))
        var address = LinkSocket.socketAddress(own, .public)
        try SystemCallError.check(
            "bind", unsafe ble_bind(socket.descriptor, &address, UInt32(MemoryLayout<sockaddr_l2>.size)))
        try SystemCallError.check("listen", ble_listen(socket.descriptor, backlog))
        return socket
    }

    /// Listens on a Unix SEQPACKET socket. A socket that an ended program has left at the path is replaced.
    ///
    /// - Throws: `SystemCallError`, with `EADDRINUSE` if another program listens there, or the path is no socket.
    package static func unix(path: String) throws(SystemCallError) -> ListeningSocket {
        var socket = ListeningSocket(
            try SystemCallError.check("socket", ble_socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)))
        var result = unsafe path.withCString { unsafe ble_bind_unix(socket.descriptor, $0) }
        if result == -EADDRINUSE, isLeftOver(path) {
            unsafe _ = unlink(path)
            result = unsafe path.withCString { unsafe ble_bind_unix(socket.descriptor, $0) }
        }
        try SystemCallError.check("bind", result)
        socket.path = path
        try SystemCallError.check("listen", ble_listen(socket.descriptor, backlog))
        return socket
    }

    /// Whether a path is a socket that nobody listens on.
    private static func isLeftOver(_ path: String) -> Bool {
        do throws(SystemCallError) {
            _ = try LinkSocket.connectedUnix(path: path)
            return false
        } catch {
            return error.errno == ECONNREFUSED
        }
    }

    /// Accepts the next link; `nil` if none waits. To be called until then each time that the descriptor is readable.
    ///
    /// - Throws: `SystemCallError`, with `EMFILE` where this process has no descriptor left: the link waits on.
    package borrowing func accept() throws(SystemCallError) -> AcceptedLink? {
        while true {
            let result = ble_accept(descriptor)
            // A peer that has left before is gone from the queue.
            if result == -ECONNABORTED { continue }
            if result == -EAGAIN { return nil }
            try SystemCallError.check("accept4", result)
            let socket = LinkSocket(adopting: result)
            guard path == nil else { return AcceptedLink(socket: socket, peer: nil, handle: nil) }
            guard let handle = try? socket.hciHandle(), case .radio(_, let peer)? = try? socket.endpoint() else {
                // It has ended meanwhile.
                continue
            }
            var size = Self.sendBuffer
            _ = unsafe ble_set_option(result, SOL_SOCKET, SO_SNDBUF, &size, 4)
            return AcceptedLink(socket: socket, peer: peer, handle: handle)
        }
    }
}
