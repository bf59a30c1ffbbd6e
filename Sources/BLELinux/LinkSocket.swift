// One end of a link that preserves packet boundaries: the kernel's L2CAP socket on the ATT channel, or any SEQPACKET
// descriptor that stands in for it (a socketpair in tests, a Unix socket to a scripted peer).
//
// Duties: never block, never lose the reason of the link's end, never take an empty packet for that end or that end for
// an empty packet, and report what the kernel had to drop.
//
// Invariants
// - The descriptor is owned: `deinit` closes it exactly once. Unregister it from the event loop first.
// - The kernel returns the reason of the end once, to whichever of SO_ERROR, read and write comes first, and before
//   the packets that arrived earlier. So the reason is kept here, and `receive` reports it after the last packet.
// - `receive` reports `.ended` at the end and from then on. After `.ended` nothing is sent.
// - The kernel looks for a packet first, then for the end. If both arrive between the two, a read returns 0 bytes
//   although a packet is queued. So 0 bytes from a socket whose link has ended mean the end, never an empty packet: one
//   that arrives right before the end is not reported.

package import BLECore
internal import CBluetooth
internal import Glibc

/// The result of reading a link socket.
package enum LinkInput: Equatable, Sendable {
    /// One packet of `count` bytes at the start of the buffer. Its full length on the link was `length`; the rest is
    /// lost. An empty packet has a count of zero; one right before the end is not reported.
    case packet(count: Int, length: Int)
    /// Nothing now; wait for the descriptor to become readable.
    case wouldBlock
    /// The link has ended. The error number is the reason, see `LinkEnd`; 0 if the other end just closed.
    case ended(errno: Int32)
}

/// The result of sending one packet.
package enum SendOutcome: Equatable, Sendable {
    /// The kernel has taken the whole packet.
    case sent
    /// The kernel's buffer is full; nothing was taken. Wait for the descriptor to become writable.
    case wouldBlock
    /// Nothing was taken, and waiting does not help. If the link has ended, `receive` reports that too.
    case failed(errno: Int32)
}

/// A connected, or connecting, socket that carries one ATT PDU in each packet.
package struct LinkSocket: ~Copyable, Sendable {
    /// The size of a buffer for `receive`, in bytes: more than the 672 that the kernel accepts on the ATT channel.
    package static let bufferSize = 1024

    /// The number of reads in a row that may fail for lack of kernel memory before the link counts as lost: the loop
    /// retries at once.
    static let shortageLimit = 3

    /// The descriptor, for the event loop only.
    package let descriptor: Int32
    /// The number of packets that the kernel has dropped because they were not read in time. It is updated with the
    /// next packet that arrives after a loss.
    package private(set) var droppedPackets: UInt32 = 0
    /// A Boolean value that indicates whether `finishConnect` has yet to report the outcome of the connect.
    package private(set) var isConnecting: Bool

    /// The reason of the link's end from a simulated radio, because the other end of a socketpair cannot report one.
    package let reportedReason: (@Sendable () -> Int32?)?
    /// The handle of a simulated link, once the socket is connected: its other end cannot report that either.
    package let reportedHandle: UInt16?

    /// When the packet that was read last arrived; `nil` unless `reportArrivals` asks for it.
    package private(set) var lastArrival: ArrivalTime?

    private let isBluetooth: Bool
    private var reportsArrivals = false
    private var endReason: Int32?
    private var wokenForNothing = false
    private var shortages = 0
    private var isGivenAway = false

    /// Adopts a connected SEQPACKET descriptor, and makes it non-blocking.
    ///
    /// - Parameters:
    ///   - isConnecting: Whether the link of a stand-in is to come up yet.
    ///   - reportedHandle: The handle of a simulated link, once it is up.
    ///   - reportedReason: Returns the reason of the end of a simulated link.
    package init(
        adopting descriptor: Int32, isConnecting: Bool = false, reportedHandle: UInt16? = nil,
        reportedReason: (@Sendable () -> Int32?)? = nil
    ) {
        self.descriptor = descriptor
        self.isConnecting = isConnecting
        self.reportedHandle = reportedHandle
        self.reportedReason = reportedReason
        let flags = fcntl(descriptor, F_GETFL)
        if flags >= 0 { _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var domain: Int32 = 0
        let known = unsafe ble_get_option(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, 4) >= 0
        isBluetooth = known && domain == AF_BLUETOOTH
        guard isBluetooth else { return }
        var on: Int32 = 1
        _ = unsafe ble_set_option(descriptor, SOL_SOCKET, SO_RXQ_OVFL, &on, 4)
    }

    deinit {
        if !isGivenAway { OwnedDescriptor.closeSocket(descriptor) }
    }

    /// Releases the descriptor, which stays open.
    package consuming func release() -> Int32 {
        isGivenAway = true
        return descriptor
    }

    // MARK: Connecting

    /// Starts to connect the bound socket. `isConnecting` is `true` afterwards if `finishConnect` has to report the
    /// outcome.
    mutating func beginConnect(to target: inout sockaddr_l2) throws(SystemCallError) {
        let result = unsafe ble_connect(descriptor, &target, UInt32(MemoryLayout<sockaddr_l2>.size))
        if result == -EINPROGRESS {
            isConnecting = true
        } else {
            try SystemCallError.check("connect", result)
        }
    }

    /// Returns the outcome of a connect, once the descriptor has become writable.
    package mutating func finishConnect() -> ConnectProgress {
        guard isConnecting else { return .connected }
        let state = ble_poll(descriptor)
        guard state & (BLE_WRITABLE | BLE_HANG_UP) != 0 else {
            // A channel whose peer has not granted any credits yet is open, and cannot be written to.
            guard (try? hciHandle()) != nil else { return .pending }
            isConnecting = false
            return .connected
        }
        var reason: Int32 = 0
        let result = unsafe ble_get_option(descriptor, SOL_SOCKET, SO_ERROR, &reason, 4)
        if result < 0 { reason = -result }
        // A socket that was shut down polls as writable and has no reason.
        if reason == 0 {
            let peer = ble_peer_name(descriptor)
            if peer < 0 {
                reason = -peer
            } else if state & BLE_HANG_UP != 0 {
                reason = reportedReason?() ?? ECONNABORTED
            }
        }
        isConnecting = false
        return reason == 0 ? .connected : .failed(errno: reason)
    }

    // MARK: Packets

    /// Reads the next packet into `buffer`, which keeps its size.
    ///
    /// - Parameter isAwaited: Whether the loop has reported input. If it has not, finding none means nothing.
    package mutating func receive(into buffer: inout [UInt8], isAwaited: Bool = true) -> LinkInput {
        while true {
            let length = receiveOnce(&buffer)
            switch length {
            case 1...:
                wokenForNothing = false
                shortages = 0
                return .packet(count: min(length, buffer.count), length: length)
            case 0:
                if endReason == nil, !isHungUp {
                    wokenForNothing = false
                    return .packet(count: 0, length: 0)
                }
                if ble_peek(descriptor) <= 0 { return .ended(errno: endReason ?? reportedReason?() ?? 0) }
            case -Int(EAGAIN):
                if let endReason { return .ended(errno: endReason) }
                guard isAwaited else { return .wouldBlock }
                // Twice in a row without a packet: the loop sees something here that reading does not clear.
                if wokenForNothing, ble_poll(descriptor) & BLE_HANG_UP != 0 {
                    endReason = ENOTCONN
                    return .ended(errno: ENOTCONN)
                }
                wokenForNothing = true
                return .wouldBlock
            default:
                // The reason comes first; what arrived before it can still be read.
                if let endReason { return .ended(errno: endReason) }
                let error = SystemCallError(call: "recvmsg", errno: Int32(truncatingIfNeeded: -length))
                // The packet is still there. That number is also a reason of the link's end.
                if error.isShortage, shortages < Self.shortageLimit, !isHungUp {
                    shortages += 1
                    return .wouldBlock
                }
                endReason = error.errno
            }
        }
    }

    /// Sends one packet; all of it or nothing.
    package mutating func send(_ packet: [UInt8]) -> SendOutcome {
        let result = unsafe packet.withUnsafeBytes { unsafe ble_send(descriptor, $0.baseAddress, $0.count) }
        guard result < 0 else { return .sent }
        let error = Int32(truncatingIfNeeded: -result)
        if error == EAGAIN { return .wouldBlock }
        if Self.isReasonOfEnd(error), endReason == nil { endReason = error }
        return .failed(errno: error)
    }

    /// Shuts down both directions at once. The kernel keeps its link for two more seconds; see `HCISocket` for an
    /// immediate end.
    package mutating func shutdown() {
        _ = ble_shutdown(descriptor)
    }

    // MARK: Options

    /// Requests room for about `bytes` of unread packets from the kernel, bookkeeping included; it grants at most its
    /// limit.
    package mutating func raiseReceiveBuffer(to bytes: Int32 = 425_984) throws(SystemCallError) {
        var size = bytes
        try SystemCallError.check(
            "SO_RCVBUF", unsafe ble_set_option(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4))
    }

    /// Has the kernel report when each packet arrived; also of those that wait, except at a stand-in's socket, which
    /// needs it before.
    ///
    /// Only for links of an adapter: the other end of a Unix socket could pass descriptors then.
    package mutating func reportArrivals() throws(SystemCallError) {
        try Self.reportArrivals(of: descriptor)
        reportsArrivals = true
    }

    /// The same for a descriptor that a socket is to adopt.
    package static func reportArrivals(of descriptor: Int32) throws(SystemCallError) {
        var on: Int32 = 1
        try SystemCallError.check(
            "SO_TIMESTAMPNS", unsafe ble_set_option(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, 4))
    }

    /// The controller's number for the connected link, as commands and events on an `HCISocket` use it.
    package func hciHandle() throws(SystemCallError) -> UInt16 {
        var info = l2cap_conninfo()
        let size = UInt32(MemoryLayout<l2cap_conninfo>.size)
        try SystemCallError.check(
            "L2CAP_CONNINFO", unsafe ble_get_option(descriptor, SOL_L2CAP, L2CAP_CONNINFO, &info, size))
        return info.hci_handle
    }

    /// Returns the longest packet that the other end of a channel accepts; `nil` if the kernel knows no limit.
    package func sendMTU() -> UInt16? {
        var mtu: UInt16 = 0
        let result = unsafe ble_get_option(descriptor, SOL_BLUETOOTH, BT_SNDMTU, &mtu, 2)
        return result < 0 ? nil : mtu
    }

    /// A Boolean value that indicates whether the kernel would take a packet now: it has memory for one, and the peer
    /// of a channel has granted credits.
    package var hasRoom: Bool { ble_poll(descriptor) & BLE_WRITABLE != 0 }

    /// A Boolean value that indicates whether `receive` may return a packet, or the end, now. It takes nothing.
    package var hasInput: Bool {
        if endReason != nil { return true }
        let state = ble_poll(descriptor)
        // Without memory the kernel reports nothing.
        return state < 0 || state & (BLE_READABLE | BLE_HANG_UP) != 0
    }

    /// A Boolean value that indicates whether the link has ended, as far as the kernel knows;
    /// what arrived before may still be read.
    package var isHungUp: Bool { ble_poll(descriptor) & BLE_HANG_UP != 0 }

    /// Returns a Boolean value that indicates whether the link has ended, and no packet arrived before.
    package mutating func hasEndedUnused() -> Bool {
        guard isHungUp else { return false }
        var length = ble_peek(descriptor)
        if length == -Int(EAGAIN) { return false }
        if length < 0 {
            // The reason comes first; what arrived before it can still be read.
            if endReason == nil { endReason = Int32(truncatingIfNeeded: -length) }
            length = ble_peek(descriptor)
        }
        return length <= 0
    }

    // MARK: Inside

    private mutating func receiveOnce(_ buffer: inout [UInt8]) -> Int {
        let descriptor = descriptor
        guard isBluetooth || reportsArrivals else {
            return unsafe buffer.withUnsafeMutableBytes {
                unsafe ble_receive(descriptor, $0.baseAddress, $0.count, nil)
            }
        }
        var about = ble_received(drops: droppedPackets, arrival: 0)
        let length = unsafe buffer.withUnsafeMutableBytes {
            unsafe ble_receive(descriptor, $0.baseAddress, $0.count, &about)
        }
        droppedPackets = about.drops
        lastArrival = ArrivalTime(nanoseconds: about.arrival)
        return length
    }

    private static func isReasonOfEnd(_ errno: Int32) -> Bool {
        switch errno {
        // The packet was refused, or the kernel is short of memory: the link is as it was.
        case EMSGSIZE, EINVAL, ENOMEM, ENOBUFS, EFAULT: false
        // Also while the kernel pairs on a living link.
        case ENOTCONN: false
        // The other end has closed; what it sent before can still be read.
        case EPIPE: false
        default: true
        }
    }
}

extension LinkSocket {
    /// Returns the next packet as an array of its own, truncated to `bufferSize`; `nil` if there is none now or any
    /// more.
    ///
    /// For tests and tools; a link reads with `receive(into:)`, which reports why there is none.
    package mutating func receivePacket() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
        guard case .packet(let count, _) = receive(into: &buffer) else { return nil }
        return Array(buffer.prefix(count))
    }

    /// Returns the descriptors of two connected sockets, each the other's peer; the caller owns them.
    package static func pair() throws(SystemCallError) -> (Int32, Int32) {
        var descriptors: [Int32] = [-1, -1]
        try SystemCallError.check("socketpair", unsafe ble_socketpair(&descriptors))
        return (descriptors[0], descriptors[1])
    }
}
