package import BLECore
internal import CBluetooth
internal import Glibc

// A socket that accepts what others begin: the ATT channel of every link that comes up on an adapter, or a Unix
// SEQPACKET socket that stands in for it; or credit-based channels to one PSM.
//
// Kernel facts
// - Any number of programs may listen on the ATT channel. Each link goes to the one that has listened last, and it is
//   the link of either role: also one that this program initiates by command.
// - No capability is needed, and an adapter that is off can be listened on.
// - The level of security of a listener is not enforced on the ATT channel, so it is left at the lowest.
// - An accepted socket keeps 222 unread packets; later ones are dropped, so it must be read at once.
// - A PSM has one listener on an adapter. Below 0x0080 it takes CAP_NET_BIND_SERVICE. For PSM 0 the kernel chooses a
//   free one from 0x0080 to 0x00FF.
// - The level of security of a listener for channels is enforced, other than that of the ATT channel.
// - With BT_DEFER_SETUP a channel can be refused before the peer has it. It is not used: the kernel does not stop the
//   timer of such a channel when the program agrees to it, and closes the channel 40 s after the peer has asked for it.

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

/// A channel that a `ListeningSocket` has accepted.
package struct AcceptedChannel: ~Copyable, Sendable {
    private let socket: LinkSocket
    /// The controller's number for the link.
    package let handle: ConnectionHandle

    init(socket: consuming LinkSocket, handle: ConnectionHandle) {
        self.socket = socket
        self.handle = handle
    }

    /// Returns the socket, which is the caller's from now on.
    package consuming func take() -> LinkSocket { socket }
}

/// The address at which a socket listens.
package enum ListeningAddress: Hashable, Sendable {
    /// The ATT channel of the adapter with this address.
    case attributeChannel(BluetoothAddress)
    /// A Unix socket.
    case unix(String)

    /// Returns the address of a descriptor.
    ///
    /// - Throws: `SystemCallError`, with `EPROTOTYPE` for a socket that accepts no links.
    package init(of descriptor: Int32) throws(SystemCallError) {
        func option(_ name: Int32) throws(SystemCallError) -> Int32 {
            var value: Int32 = 0
            try SystemCallError.check("getsockopt", unsafe ble_get_option(descriptor, SOL_SOCKET, name, &value, 4))
            return value
        }
        guard try option(SO_TYPE) == Int32(SOCK_SEQPACKET.rawValue) else {
            throw SystemCallError(call: "getsockopt", errno: EPROTOTYPE)
        }
        switch try option(SO_DOMAIN) {
        case AF_UNIX:
            guard try option(SO_ACCEPTCONN) == 1 else { throw SystemCallError(call: "getsockopt", errno: EPROTOTYPE) }
            var name = sockaddr_un()
            let size = UInt32(MemoryLayout<sockaddr_un>.size)
            try SystemCallError.check("getsockname", unsafe ble_own_address(descriptor, &name, size))
            let path = unsafe withUnsafeBytes(of: &name.sun_path) { unsafe Array($0.prefix { $0 != 0 }) }
            self = .unix(String(decoding: path, as: UTF8.self))
        case AF_BLUETOOTH:
            var name = sockaddr_l2()
            let size = UInt32(MemoryLayout<sockaddr_l2>.size)
            // The kernel does not report of these that they listen (SO_ACCEPTCONN is 0), but those of links have a
            // peer.
            guard unsafe ble_peer_address(descriptor, &name, size) == -ENOTCONN else {
                throw SystemCallError(call: "getpeername", errno: EPROTOTYPE)
            }
            try SystemCallError.check("getsockname", unsafe ble_own_address(descriptor, &name, size))
            guard UInt16(littleEndian: name.l2_cid) == LinkSocket.attributeChannel else {
                throw SystemCallError(call: "getsockname", errno: EPROTOTYPE)
            }
            self = .attributeChannel(LinkSocket.address(name))
        default: throw SystemCallError(call: "getsockopt", errno: EPROTOTYPE)
        }
    }
}

/// A socket that accepts links, or channels.
package struct ListeningSocket: ~Copyable, Sendable {
    /// The number of links that may wait to be accepted.
    package static let backlog: Int32 = 16
    /// The kernel's room for packets that were sent and are not on the air yet: 18 values. More would only make values
    /// late.
    private static let sendBuffer: Int32 = 8_192

    /// The descriptor, for the event loop only.
    package let descriptor: Int32
    /// The path of a Unix socket, once it is bound.
    private var path: String?
    /// What was at that path then. It is not used again for another file while this socket is open.
    private var file: FileIdentity?
    /// The PSM of a listener for channels; 0 of one for links.
    package private(set) var psm: UInt16 = 0
    /// The next link of a simulated radio, whose packets at the descriptor each announce one.
    private var nextLink: (@Sendable () -> AnnouncedLink?)?
    /// The controller's number for the link of the next channel of a simulated radio, whose sockets have no link.
    private var nextHandle: (@Sendable () -> ConnectionHandle?)?
    private var isGivenAway = false

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// A link that a simulated radio hands on.
    package struct AnnouncedLink: Sendable {
        /// One end of the link, which is the caller's from now on.
        package let descriptor: Int32
        /// The address by which the kernel would know the peer.
        package let peer: PeerID
        /// The controller's number for the link.
        package let handle: ConnectionHandle
        /// Returns the reason of the link's end.
        package let reportedReason: @Sendable () -> Int32?

        package init(
            descriptor: Int32, peer: PeerID, handle: ConnectionHandle,
            reportedReason: @escaping @Sendable () -> Int32?
        ) {
            self.descriptor = descriptor
            self.peer = peer
            self.handle = handle
            self.reportedReason = reportedReason
        }
    }

    /// Stands in for the kernel's listening socket.
    ///
    /// - Parameters:
    ///   - descriptor: One end of a socketpair, which this socket owns. A packet arrives there for each link.
    ///   - nextLink: Returns the links in their order; `nil` if the one that was announced has ended.
    package init(simulatedBy descriptor: Int32, _ nextLink: @escaping @Sendable () -> AnnouncedLink?) {
        self.init(descriptor)
        self.nextLink = nextLink
    }

    deinit {
        guard !isGivenAway else { return }
        // Another program may have replaced it.
        if let path, FileIdentity(at: path) == file { unsafe _ = unlink(path) }
        OwnedDescriptor.closeSocket(descriptor)
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

    /// Listens for credit-based channels to the adapter with the address `own`.
    ///
    /// - Parameters:
    ///   - psm: 0x0001 to 0x00FF; 0 has the kernel choose one.
    ///   - receiveMTU: The longest packet that a peer may send.
    ///   - security: The level that the link must have.
    /// - Throws: `SystemCallError`, with `EADDRINUSE` for a PSM that has a listener, `EACCES` below 0x0080 without
    ///   CAP_NET_BIND_SERVICE, and `EINVAL` for one that does not exist, or if none is free.
    package static func channels(
        psm: UInt16, of own: BluetoothAddress, receiveMTU: UInt16, security: SocketSecurity.Level
    ) throws(SystemCallError) -> ListeningSocket {
        var socket = ListeningSocket(
            try SystemCallError.check(
                "socket", ble_socket(AF_BLUETOOTH, Int32(SOCK_SEQPACKET.rawValue), BTPROTO_L2CAP)))
        let size = UInt32(MemoryLayout<sockaddr_l2>.size)
        var address = LinkSocket.socketAddress(own, .public, channel: 0, psm: psm)
        try SystemCallError.check("bind", unsafe ble_bind(socket.descriptor, &address, size))
        var mtu = receiveMTU
        try SystemCallError.check(
            "BT_RCVMTU", unsafe ble_set_option(socket.descriptor, SOL_BLUETOOTH, BT_RCVMTU, &mtu, 2))
        try LinkSocket.setSecurity(security, of: socket.descriptor)
        try SystemCallError.check("listen", ble_listen(socket.descriptor, backlog))
        try SystemCallError.check("getsockname", unsafe ble_own_address(socket.descriptor, &address, size))
        socket.psm = UInt16(littleEndian: address.l2_psm)
        return socket
    }

    /// Stands in for a listener for channels, to which `LinkSocket.connectedStandIn` connects: a PSM has one for each
    /// name.
    ///
    /// - Parameters:
    ///   - psm: 0x0001 to 0x00FF; 0 to choose one.
    ///   - name: The name, which processes share.
    ///   - nextHandle: Returns the links of the channels, in the order in which they were connected; `nil` for a
    ///     channel without a link, which is closed.
    /// - Throws: `SystemCallError` as `channels(psm:of:receiveMTU:security:)` does.
    package static func standIn(
        psm: UInt16, named name: String, _ nextHandle: @escaping @Sendable () -> ConnectionHandle?
    ) throws(SystemCallError) -> ListeningSocket {
        for candidate in psm == 0 ? 0x0080...0x00FF : psm...psm {
            var socket = ListeningSocket(
                try SystemCallError.check("socket", ble_socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)))
            let place = StandInPlace(psm: candidate, name: name)
            var address = place.address
            let result = unsafe ble_bind(socket.descriptor, &address, place.size)
            if psm == 0, result == -EADDRINUSE { continue }
            try SystemCallError.check("bind", result)
            try SystemCallError.check("listen", ble_listen(socket.descriptor, backlog))
            socket.psm = candidate
            socket.nextHandle = nextHandle
            return socket
        }
        throw SystemCallError(call: "bind", errno: EINVAL)
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
        socket.file = FileIdentity(at: path)
        try SystemCallError.check("listen", ble_listen(socket.descriptor, backlog))
        return socket
    }

    /// Adopts a socket that another program listened on. What has arrived since waits in it.
    ///
    /// - Throws: `SystemCallError`, with `EPROTOTYPE` if it does not listen at this address; it is closed then.
    package init(adopting descriptor: Int32, at address: ListeningAddress) throws(SystemCallError) {
        self.init(descriptor)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        guard try ListeningAddress(of: descriptor) == address else {
            throw SystemCallError(call: "getsockname", errno: EPROTOTYPE)
        }
        let flags = fcntl(descriptor, F_GETFL)
        if flags >= 0 { _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
        if case .unix(let path) = address {
            self.path = path
            file = FileIdentity(at: path)
        }
    }

    /// Releases the descriptor, which still listens.
    package consuming func release() -> Int32 {
        isGivenAway = true
        return descriptor
    }

    /// Whether a path is a socket that nobody listens on.
    private static func isLeftOver(_ path: String) -> Bool {
        // A connect to any other file is refused as well.
        guard !SystemFiles.isOther(thanSocket: path) else { return false }
        do throws(SystemCallError) {
            _ = try LinkSocket.connectedUnix(path: path)
            return false
        } catch {
            return error.errno == ECONNREFUSED
        }
    }

    /// Accepts the next channel; `nil` if none waits. To be called until then each time that the descriptor is
    /// readable.
    ///
    /// - Throws: `SystemCallError`, with `EMFILE` where this process has no descriptor left: the channel waits on.
    package borrowing func acceptChannel() throws(SystemCallError) -> AcceptedChannel? {
        while true {
            let result = ble_accept(descriptor)
            if result == -ECONNABORTED { continue }
            if result == -EAGAIN { return nil }
            try SystemCallError.check("accept4", result)
            let socket = LinkSocket(adopting: result)
            let known: ConnectionHandle?
            if let nextHandle { known = nextHandle() } else { known = try? socket.hciHandle() }
            // One without a link has ended meanwhile.
            guard let handle = known else { continue }
            return AcceptedChannel(socket: socket, handle: handle)
        }
    }

    /// Accepts the next link; `nil` if none waits. To be called until then each time that the descriptor is readable.
    ///
    /// - Throws: `SystemCallError`, with `EMFILE` where this process has no descriptor left: the link waits on.
    package borrowing func accept() throws(SystemCallError) -> AcceptedLink? {
        if let nextLink { return acceptAnnounced(nextLink) }
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

    private borrowing func acceptAnnounced(_ nextLink: @Sendable () -> AnnouncedLink?) -> AcceptedLink? {
        var announcements = LinkSocket(adopting: descriptor)
        var link: AnnouncedLink?
        while link == nil, announcements.receivePacket() != nil { link = nextLink() }
        _ = announcements.release()
        guard let link else { return nil }
        let socket = LinkSocket(adopting: link.descriptor, reportedReason: link.reportedReason)
        return AcceptedLink(socket: socket, peer: link.peer, handle: link.handle)
    }
}

/// What distinguishes a file from a later one with the same path.
private struct FileIdentity: Equatable, Sendable {
    private let device: UInt64
    private let number: UInt64

    /// Looks at a path; `nil` if nothing is there.
    init?(at path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        device = UInt64(status.st_dev)
        number = UInt64(status.st_ino)
    }
}

extension LinkSocket {
    /// Connects to a listener of `ListeningSocket.standIn`, and returns the descriptor, which the caller owns.
    ///
    /// - Throws: `SystemCallError`, with `ECONNREFUSED` if there is no listener, and `EAGAIN` if too many wait there.
    package static func connectedStandIn(psm: UInt16, named name: String) throws(SystemCallError) -> Int32 {
        let socket = LinkSocket(
            adopting: try SystemCallError.check("socket", ble_socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)))
        let place = StandInPlace(psm: psm, name: name)
        var address = place.address
        try SystemCallError.check("connect", unsafe ble_connect(socket.descriptor, &address, place.size))
        return socket.release()
    }
}

/// The address of a stand-in for a listener for channels.
private struct StandInPlace {
    let address: sockaddr_un
    let size: UInt32

    init(psm: UInt16, name: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // A name that begins with a zero byte needs no file.
        let bytes = Array("\(name)-\(psm)".utf8.prefix(100))
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { path in
            for (index, byte) in bytes.enumerated() { unsafe path[index + 1] = byte }
        }
        self.address = address
        size = UInt32(MemoryLayout<sa_family_t>.size + 1 + bytes.count)
    }
}
