internal import BLECore

// The management sockets of a virtual machine, and what is to be done next, in one order: packets for the sockets, and
// actions on links and adapters.
//
// Invariants
// - An event about peers or keys goes only to the sockets that were opened with CAP_NET_ADMIN;
//   one of an adapter to all.
// - A socket that was closed is sent nothing.

/// What the kernel's management interface sends and does.
struct VirtualManagementOutbox {
    typealias Action = VirtualManagement.Action

    /// Whether each open socket may know of peers and keys.
    private var sockets: [UInt64: Bool] = [:]
    private var actions: [Action] = []

    // MARK: Sockets

    mutating func opened(_ socket: UInt64, isTrusted: Bool) { sockets[socket] = isTrusted }

    mutating func closed(_ socket: UInt64) { sockets[socket] = nil }

    /// Whether a socket may know of peers and keys; `nil` if it is not open.
    func isTrusted(_ socket: UInt64) -> Bool? { sockets[socket] }

    // MARK: Actions

    mutating func append(_ action: Action) { actions.append(action) }

    /// Returns what was collected.
    mutating func flush() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Packets

    /// Sends an event about peers or keys to all sockets that may know it.
    mutating func notify(_ event: VirtualManagementEvent, _ adapter: UInt16, except: [UInt64] = []) {
        let packet = event.packet(adapter: adapter)
        for (number, isTrusted) in sockets.sorted(by: { $0.key < $1.key }) where isTrusted && !except.contains(number) {
            actions.append(.send(packet, to: number))
        }
    }

    /// Sends an event of an adapter to everybody.
    mutating func announce(_ event: VirtualManagementEvent, _ adapter: UInt16, except: UInt64? = nil) {
        let packet = event.packet(adapter: adapter)
        for number in sockets.keys.sorted() where number != except { actions.append(.send(packet, to: number)) }
    }

    mutating func complete(
        _ code: ManagementCommandCode, _ status: ManagementStatus, _ returned: [UInt8], _ adapter: UInt16?,
        _ socket: UInt64
    ) {
        send(.commandComplete(code, status, returned), adapter, socket)
    }

    mutating func complete(
        _ code: ManagementCommandCode, _ status: ManagementStatus, _ peer: ManagementPeer, _ adapter: UInt16,
        _ socket: UInt64
    ) {
        var writer = ByteWriter()
        writer.managementPeer(peer)
        complete(code, status, writer.bytes, adapter, socket)
    }

    mutating func status(
        _ code: ManagementCommandCode, _ status: ManagementStatus, _ adapter: UInt16?, _ socket: UInt64
    ) {
        send(.commandStatus(code, status), adapter, socket)
    }

    private mutating func send(_ event: VirtualManagementEvent, _ adapter: UInt16?, _ socket: UInt64) {
        guard sockets[socket] != nil else { return }
        actions.append(.send(event.packet(adapter: adapter), to: socket))
    }
}
