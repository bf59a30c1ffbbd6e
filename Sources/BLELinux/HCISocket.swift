// A socket to a controller beside the kernel's own host: commands go in, events come out.
//
// The kernel uses the controller at the same time, and other programs may. Their command completions arrive here too,
// and ours on their sockets: the reader matches the opcode and its own outstanding commands. Commands and advertising
// reports use separate sockets, so that a flood of reports cannot push a response out of the kernel's queue: it drops
// what does not fit, and on this kind of socket reports that only on request.
// Invariants
// - Never blocks. A process that waits inside a read of the kernel's Bluetooth sockets holds a lock that stops the
//   adapter.
// - One packet a call, its first byte the packet type.
// - After `.gone` the adapter was unplugged or reset by the driver; its number may return for another adapter.
//   Power-down and power-up alone leave the socket bound and working.

package import BLECore
internal import CBluetooth
internal import Glibc

/// The result of reading a controller's socket.
package enum HCIInput: Equatable, Sendable {
    /// One packet of `count` bytes at the start of the buffer, its type first. Its full length was `length`; the rest
    /// is lost.
    case packet(count: Int, length: Int)
    /// Nothing now; wait for the descriptor to become readable.
    case wouldBlock
    /// The adapter is gone and the socket is no longer usable.
    case gone(errno: Int32)
}

/// A raw channel to the controller of one adapter.
package struct HCISocket: ~Copyable, Sendable {
    /// The size of a buffer for `receive`, in bytes: any event, and data up to the largest that controllers use.
    package static let bufferSize = 1100

    /// The kernel's interface of a socket.
    package enum Channel: UInt16, Hashable, Sendable {
        /// Beside the kernel's host, with a filter.
        case raw = 0
        /// Instead of the kernel's host; the adapter must be down.
        case user = 1
        /// A copy of the traffic of all adapters.
        case monitor = 2
        /// The management interface.
        case control = 3
    }

    /// The error with which a simulated controller refuses commands, because the other end of a socketpair cannot.
    private var refusal: (@Sendable () -> Int32?)?

    /// When the packet that was read last arrived; `nil` unless `reportArrivals` asks for it.
    package private(set) var lastArrival: ArrivalTime?

    private let owned: OwnedDescriptor
    private var reportsArrivals = false
    private var goneReason: Int32?
    private var wokenForNothing = false
    private var shortages = 0

    /// The descriptor, for the event loop only.
    package var descriptor: Int32 { owned.number }

    /// Opens the raw channel to the adapter with this index, which may be down.
    ///
    /// Nothing arrives before `setFilter`.
    package init(adapter index: UInt16) throws(SystemCallError) {
        try self.init(channel: .raw, adapter: index)
    }

    /// Opens a channel; `nil` for those that belong to no adapter.
    package init(channel: Channel, adapter index: UInt16?) throws(SystemCallError) {
        let descriptor = try OwnedDescriptor.hciSocket()
        var address = Self.socketAddress(channel, index)
        let size = UInt32(MemoryLayout<sockaddr_hci>.size)
        // The monitor asks for another capability than the others.
        let call = channel == .monitor ? "bind monitor" : "bind"
        try SystemCallError.check(call, unsafe ble_bind(descriptor.number, &address, size))
        owned = descriptor
    }

    /// Opens the kernel's own events (HCI_EV_STACK_INTERNAL) about adapters that come, go, and are switched on and off.
    ///
    /// - Throws: `SystemCallError`; with EPERM without CAP_NET_RAW.
    package static func deviceEvents() throws(SystemCallError) -> HCISocket {
        let socket = try HCISocket(channel: .raw, adapter: nil)
        let wanted = HCIFilter(events: [0xFD])
        try socket.setFilter(wanted)
        // Of a process that may not see them, the kernel removes them from the filter without an error.
        guard try socket.filter() == wanted else { throw SystemCallError(call: "HCI_FILTER", errno: EPERM) }
        return socket
    }

    /// Adopts a descriptor that stands in for a controller.
    package init(adopting descriptor: Int32) {
        let flags = fcntl(descriptor, F_GETFL)
        if flags >= 0 { _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        owned = OwnedDescriptor(descriptor)
    }

    deinit {
        // A stand-in's other end sees it at once; see `OwnedDescriptor.closeSocket`.
        // The kernel's own sockets refuse it.
        _ = ble_shutdown(descriptor)
    }

    /// Refuses each command that is sent from now on with the error number that `refusal` returns, if it returns one.
    package mutating func refuseCommands(_ refusal: @escaping @Sendable () -> Int32?) { self.refusal = refusal }

    /// Sets the filter from now on.
    package func setFilter(_ filter: HCIFilter) throws(SystemCallError) {
        var kernel = filter.kernelFilter
        let size = UInt32(MemoryLayout<hci_filter>.size)
        try SystemCallError.check("HCI_FILTER", unsafe ble_set_option(descriptor, SOL_HCI, HCI_FILTER, &kernel, size))
    }

    /// Has the kernel report when each packet arrived.
    package mutating func reportArrivals() throws(SystemCallError) {
        var on: Int32 = 1
        try SystemCallError.check("HCI_TIME_STAMP", unsafe ble_set_option(descriptor, SOL_HCI, HCI_TIME_STAMP, &on, 4))
        reportsArrivals = true
    }

    /// The same at a stand-in's socket, before its other end sends anything.
    package mutating func reportArrivalsOfStandIn() throws(SystemCallError) {
        try LinkSocket.reportArrivals(of: descriptor)
        reportsArrivals = true
    }

    /// Returns the effective filter: the kernel silently removes what the process may not see.
    package func filter() throws(SystemCallError) -> HCIFilter {
        var kernel = hci_filter()
        let size = UInt32(MemoryLayout<hci_filter>.size)
        try SystemCallError.check("HCI_FILTER", unsafe ble_get_option(descriptor, SOL_HCI, HCI_FILTER, &kernel, size))
        return HCIFilter(kernel)
    }

    /// Reads the next packet into `buffer`, which keeps its size.
    package mutating func receive(into buffer: inout [UInt8]) -> HCIInput {
        if let goneReason { return .gone(errno: goneReason) }
        let number = descriptor
        var about = ble_received()
        let length = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe reportsArrivals
                ? ble_receive(number, bytes.baseAddress, bytes.count, &about)
                : ble_receive(number, bytes.baseAddress, bytes.count, nil)
        }
        if length > 0 {
            lastArrival = ArrivalTime(nanoseconds: about.arrival)
            wokenForNothing = false
            shortages = 0
            return .packet(count: min(length, buffer.count), length: length)
        }
        if length == -Int(EAGAIN) {
            // Twice in a row without a packet: the loop may see an error here that reading does not clear.
            guard wokenForNothing, ble_poll(number) & BLE_HANG_UP != 0 else {
                wokenForNothing = true
                return .wouldBlock
            }
        }
        let error = SystemCallError(call: "recvmsg", errno: Int32(truncatingIfNeeded: -length))
        if error.isShortage, shortages < LinkSocket.shortageLimit {
            shortages += 1
            return .wouldBlock
        }
        // Nothing can be read if a controller's stand-in has closed.
        let reason = length == 0 || length == -Int(EAGAIN) ? EPIPE : error.errno
        goneReason = reason
        return .gone(errno: reason)
    }

    /// The number of packets that the kernel has dropped because they were not read in time.
    package var droppedPackets: Int { Int(max(0, ble_dropped(descriptor))) }

    /// Sends one packet, its type first; all of it or nothing.
    ///
    /// Most commands need CAP_NET_RAW (`EPERM`), and all of them need an adapter that is up (`ENETDOWN`).
    package func send(_ packet: [UInt8]) -> SendOutcome {
        if let errno = refusal?() { return .failed(errno: errno) }
        let result = unsafe packet.withUnsafeBytes { unsafe ble_send(descriptor, $0.baseAddress, $0.count) }
        guard result < 0 else { return .sent }
        return result == -Int(EAGAIN) ? .wouldBlock : .failed(errno: Int32(truncatingIfNeeded: -result))
    }

    /// Requests room for about `bytes` of unread packets from the kernel, bookkeeping included; it grants at most its
    /// limit.
    package func raiseReceiveBuffer(to bytes: Int32 = 425_984) throws(SystemCallError) {
        var size = bytes
        try SystemCallError.check(
            "SO_RCVBUF", unsafe ble_set_option(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4))
    }

    /// Returns the open sockets of all programs, as the kernel's monitor reports them to a new listener; `nil` without
    /// CAP_NET_RAW.
    package static func openSockets() -> [MonitorControlOpen]? {
        guard var monitor = try? HCISocket(channel: .monitor, adapter: nil) else { return nil }
        var buffer = [UInt8](repeating: 0, count: bufferSize)
        var found: [MonitorControlOpen] = []
        // What exists is reported at once; events of adapters may never end.
        for _ in 0..<monitorLimit {
            guard case .packet(let count, _) = monitor.receive(into: &buffer) else { break }
            guard case .controlOpen(let socket)? = try? MonitorPacket(buffer.span.extracting(first: count)) else {
                continue
            }
            found.append(socket)
        }
        return found
    }

    /// More packets than the kernel keeps for a socket.
    private static let monitorLimit = 4_096

    static func socketAddress(_ channel: Channel, _ index: UInt16?) -> sockaddr_hci {
        var address = sockaddr_hci()
        address.hci_family = sa_family_t(AF_BLUETOOTH)
        address.hci_dev = index ?? 0xFFFF
        address.hci_channel = channel.rawValue
        return address
    }
}
