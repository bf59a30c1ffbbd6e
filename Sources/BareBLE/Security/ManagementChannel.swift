internal import BLECore
internal import BLELinux

// The management interface of the kernel, for one adapter.
//
// Duties: send commands in their turn (`ManagementCommandQueue`), know the caller of each, read and parse events,
// and count what is wrong with them.
//
// Invariants
// - `socket` is `nil` before the first use, after `close` and after its loss; what was sent has failed by then.
// - Keys pass through here in both directions: nothing is traced or logged,
//   and no event has a description of its bytes.
// - Events of other adapters are dropped. Index Added is reported for any of them, because an adapter that comes back
//   may have another index. Until its owner has found it (`use`), nothing is sent:
//   the index may be another adapter's by then.
// - A wake-up reads 64 packets at most; then the loop looks at its other descriptors.
// - The channel never acts on its owner: it returns events, in order, or calls the closure that reads were given.

/// Sends commands to the kernel's management interface and reads its events.
final class ManagementChannel {
    /// What a command was sent for.
    enum Purpose: Hashable {
        /// The setup of the adapter, and its lists of keys.
        case setup
        /// A pairing; each of its commands has a number.
        case pairing(UInt64)
        /// An advertising instance; one command of this purpose is out at a time.
        case instance
        /// The address that the kernel pairs with.
        case address
        /// A task waits for the response.
        case task(UInt64)
        case none
    }

    /// Something that the owner must act on.
    enum Event {
        case finished(
            Purpose, ManagementCommandCode, Result<ManagementCommandComplete, ManagementCommandFailure>)
        /// An event of the adapter that is no response.
        case received(ManagementEvent.Content)
        /// An adapter with this index has appeared: this one again, or another.
        case added(index: UInt16)
        /// The adapter was removed; its commands have failed.
        case removed
        /// The socket is of no more use: stop watching it, and close the channel.
        case lost(errno: Int32)
    }

    /// What should not happen.
    struct Counts: Hashable {
        /// Packets that are no events, and events that do not fit their layout; ignored.
        var malformed = 0
        /// Events that are not known; reported all the same.
        var unknown = 0
        /// Commands to which the kernel did not respond in time.
        var timeouts = 0
        /// Responses to no command that was out.
        var strays = ManagementCommandQueue.Strays()
        /// Packets that the kernel dropped because they were not read in time.
        var droppedByKernel = 0
    }

    private var socket: ManagementSocket?
    private var queue: ManagementCommandQueue
    private var purposes: [ManagementCommandQueue.Ticket: (purpose: Purpose, code: ManagementCommandCode)] = [:]
    private var counted = Counts()
    private let now: () -> BootInstant
    /// The index of the adapter; `nil` while it is away.
    private(set) var adapter: UInt16?

    /// Creates a channel that is closed.
    init(now: @escaping @Sendable () -> BootInstant) {
        self.now = now
        queue = ManagementCommandQueue(largestPacket: ManagementSocket.shortPacket)
    }

    var isOpen: Bool { socket != nil }
    var nextDeadline: BootInstant? { queue.nextDeadline }
    /// Commands that are out or wait for their turn.
    var unfinishedCommands: Int { purposes.count }
    /// The descriptor, to be watched while the channel is open.
    var descriptor: Int32? { socket?.descriptor }
    /// The most bytes of a packet; it decides how many keys the kernel can be given.
    var largestPacket: Int { socket?.largestPacket ?? ManagementSocket.shortPacket }

    /// What should not happen, so far.
    var counts: Counts {
        var counts = counted
        counts.strays.late += queue.strays.late
        counts.strays.foreign += queue.strays.foreign
        counts.droppedByKernel += socket?.droppedPackets ?? 0
        return counts
    }

    // MARK: Opening

    /// Opens the channel, which is closed, for the adapter with this index.
    func open(_ socket: consuming ManagementSocket, adapter: UInt16) {
        retireQueue(for: socket.largestPacket)
        self.adapter = adapter
        self.socket = consume socket
    }

    /// Closes the socket, which must not be watched any more: every command fails.
    func close() -> [Event] {
        counted.droppedByKernel += socket?.droppedPackets ?? 0
        socket = nil
        return perform(queue.socketLost())
    }

    /// The adapter is there again, perhaps with another index: commands to the former one fail.
    func use(adapter index: UInt16) -> [Event] {
        let events = adapter.map { perform(queue.adapterLost($0)) } ?? []
        adapter = index
        return events
    }

    // MARK: Sending

    /// Sends a command to the adapter; it may have failed already among the events.
    ///
    /// - Parameter timeout: How long the kernel may take; `nil` for the usual time of this command.
    func send(
        _ command: some ManagementCommand, for purpose: Purpose, timeout: Duration? = nil
    ) -> (ticket: ManagementCommandQueue.Ticket, events: [Event]) {
        var packet = command.packet(adapter: adapter)
        defer { packet.wipe() }
        return send(packet, for: purpose, timeout: timeout)
    }

    /// Sends a packet as a machine has made it.
    func send(
        _ packet: ManagementPacket, for purpose: Purpose, timeout: Duration? = nil
    ) -> (ticket: ManagementCommandQueue.Ticket, events: [Event]) {
        let (ticket, actions) =
            adapter == nil
            ? queue.refuse(packet, .adapterLost) : queue.enqueue(packet, timeout: timeout, at: now())
        purposes[ticket] = (purpose, ManagementCommandCode(rawValue: packet.code))
        return (ticket, perform(actions))
    }

    /// Whether a command of this code is out for the adapter, also one that nothing waits for.
    func isOut(_ code: ManagementCommandCode) -> Bool { queue.isOut(code, adapter: adapter) }

    /// Nothing waits for the response any more; a command that was not sent yet never will be.
    func cancel(_ ticket: ManagementCommandQueue.Ticket) {
        guard purposes.removeValue(forKey: ticket) != nil else { return }
        _ = queue.cancel(ticket)
    }

    func timePassed() -> [Event] { perform(queue.timePassed(now())) }

    private func perform(_ actions: [ManagementCommandQueue.Action]) -> [Event] {
        var events: [Event] = []
        for action in actions {
            switch action {
            case .send(let ticket, let packet):
                events += write(ticket, packet)
            case .finish(let ticket, let result):
                if case .failure(let failure) = result, failure.reason == .timeout { counted.timeouts += 1 }
                guard let (purpose, code) = purposes.removeValue(forKey: ticket) else { continue }
                events.append(.finished(purpose, code, result))
            }
        }
        return events
    }

    private func write(_ ticket: ManagementCommandQueue.Ticket, _ packet: SecretBytes) -> [Event] {
        guard let outcome = socket?.send(packet.bytes) else { return perform(queue.socketLost()) }
        switch outcome {
        case .sent: return []
        case .wouldBlock: return perform(queue.notSent(ticket, errno: SystemCallError.tryAgain, at: now()))
        case .failed(let errno): return perform(queue.notSent(ticket, errno: errno, at: now()))
        }
    }

    // MARK: Reading

    /// Reads what waits at the socket.
    func read(_ body: ([Event]) -> Void) {
        for _ in 0..<EventLoop.packetsPerTurn {
            switch socket?.receive() {
            case nil, .wouldBlock?:
                return
            case .malformed?:
                counted.malformed += 1
            case .gone(let errno)?:
                return body([.lost(errno: errno)])
            case .event(let event)?:
                let events = received(event)
                if !events.isEmpty { body(events) }
            }
        }
    }

    private func received(_ event: ManagementEvent) -> [Event] {
        switch event.content {
        case .commandComplete(let complete):
            return perform(queue.received(complete, adapter: event.adapter, at: now()))
        case .commandStatus(let status):
            return perform(queue.received(status, adapter: event.adapter, at: now()))
        case .indexAdded:
            // Where its removal was missed, the adapter is another one now.
            guard let index = event.adapter else { return [] }
            return removed(index) + [.added(index: index)]
        case .indexRemoved:
            return event.adapter.map { removed($0) } ?? []
        case .unknown:
            counted.unknown += 1
        default:
            break
        }
        return adapter != nil && event.adapter == adapter ? [.received(event.content)] : []
    }

    private func removed(_ index: UInt16) -> [Event] {
        guard adapter == index else { return [] }
        adapter = nil
        return [.removed] + perform(queue.adapterLost(index))
    }

    /// Begins with an empty queue, and keeps the counts of the former one.
    private func retireQueue(for largestPacket: Int) {
        counted.strays.late += queue.strays.late
        counted.strays.foreign += queue.strays.foreign
        queue = ManagementCommandQueue(largestPacket: largestPacket)
    }
}
