internal import BLECore
internal import BLELinux

// The raw sockets of one adapter: commands, their responses and the ends of links on one; reports, and the beginnings
// and updates of links, which are LE events, on the other.
//
// Duties: send commands in their turn (`HCICommandQueue`), know the caller of each, read and parse events, count
// what is wrong with them, and trace every packet, without keys.
//
// Invariants
// - There are two sockets, so that a flood of reports cannot push a response out of the kernel's queue.
// - The socket for commands also gets those of other programs and of the kernel. They may hold keys.
// - `sockets` is `nil` before the first use and while the adapter is gone.
// - A wake-up reads 64 packets at most; then the loop looks at its other descriptors.
// - The channel never acts on its owner: it returns events, in order, or calls the closure that reads were given.

/// Sends commands to a controller and reads its events.
final class HCIChannel {
    /// What a command was sent for.
    enum Purpose {
        case scan
        case connect
        case advertise
        case update(LinkUpdate.Key)
        /// The encryption of a link, by its number.
        case encryption(UInt64)
        /// A task waits for the response.
        case task(UInt64)
        /// The events that the controller sends.
        case eventMask(HCICommandPacket)
        case none
    }

    /// Something that the adapter must act on.
    enum Event {
        case finished(Purpose, Result<HCICommandComplete, HCICommandFailure>)
        /// Another program, or the kernel, sends a command; `nil` for one that nothing here depends on.
        case foreignCommand(HCICommandPacket?)
        /// Another program's command, or the kernel's, has its response; no status where that holds none.
        case foreign(HCIOpcode, HCIStatus?)
        /// An event that is no response.
        case received(HCIEvent)
        /// Data of a link passes, in either direction; only while `passData` asks for it.
        case data(LinkData)
        /// The kernel reports that the adapter is switched off or gone.
        case lost(Adapter.Presence)
    }

    private var sockets: AdapterSockets?
    private var queue = HCICommandQueue()
    private var purposes: [HCICommandQueue.Ticket: Purpose] = [:]
    private var inbound = [UInt8](repeating: 0, count: HCISocket.bufferSize)
    private var counts = AdapterStatistics()
    private let trace: (@Sendable (TracedHCIPacket) -> Void)?
    private let now: () -> BootInstant
    /// The adapter's name, for the trace.
    private var name = ""
    /// Whether the data of links passes too.
    private var passesData = false
    /// When the event that is being passed on arrived; `nil` if the kernel has not reported that.
    var arrival: ArrivalTime? { sockets?.commands.lastArrival }
    /// Whether this process may send commands.
    private(set) var mayCommand = false

    init(trace: (@Sendable (TracedHCIPacket) -> Void)?, now: @escaping @Sendable () -> BootInstant) {
        self.trace = trace
        self.now = now
    }

    var isOpen: Bool { sockets != nil }
    var nextDeadline: BootInstant? { queue.nextDeadline }
    /// Commands that are out or wait for their turn.
    var unfinishedCommands: Int { purposes.count }

    /// The descriptors, to be watched while the channel is open.
    var descriptors: (commands: Int32, reports: Int32)? {
        guard let commands = sockets?.commands.descriptor, let reports = sockets?.reports.descriptor else { return nil }
        return (commands, reports)
    }

    // MARK: Opening

    func open(_ sockets: consuming AdapterSockets, name: String, mayCommand: Bool) {
        self.sockets = consume sockets
        passesData = false
        self.name = name
        self.mayCommand = mayCommand
    }

    /// Closes the sockets, which must not be watched any more.
    func close() {
        counts.droppedByKernel += kernelDrops
        sockets = nil
    }

    // MARK: Sending

    func send(_ command: HCICommandPacket, for purpose: Purpose) -> (ticket: HCICommandQueue.Ticket, events: [Event]) {
        let (ticket, actions) = queue.enqueue(command, at: now())
        purposes[ticket] = purpose
        return (ticket, perform(actions))
    }

    /// Nothing waits for the response any more; a command that was not sent yet never will be.
    func cancel(_ ticket: HCICommandQueue.Ticket) -> [Event] {
        guard purposes.removeValue(forKey: ticket) != nil else { return [] }
        return perform(queue.cancel(ticket, at: now()))
    }

    /// Cancels the command with this opcode that was not sent yet.
    func withdraw(_ opcode: HCIOpcode) -> [Event] { perform(queue.withdraw(opcode, at: now())) }

    func timePassed() -> [Event] { perform(queue.timePassed(now())) }

    /// The adapter went down, away or was reset: every command fails.
    func adapterLost() -> [Event] { perform(queue.adapterLost()) }

    private func perform(_ actions: [HCICommandQueue.Action]) -> [Event] {
        var events: [Event] = []
        for action in actions {
            switch action {
            case .send(let packet): events += write(packet)
            case .foreign(let opcode, let status): events.append(.foreign(opcode, status))
            case .noResponse(let opcode):
                counts.commandTimeouts += 1
                events.append(.finished(.none, .failure(HCICommandFailure(opcode: opcode, reason: .timeout))))
            case .finish(let ticket, let result):
                if case .failure(let failure) = result, failure.reason == .timeout { counts.commandTimeouts += 1 }
                if let purpose = purposes.removeValue(forKey: ticket) { events.append(.finished(purpose, result)) }
            }
        }
        return events
    }

    private func write(_ command: HCICommandPacket) -> [Event] {
        var packet = command.bytes
        // There may be a key in it.
        defer { packet.wipe() }
        guard let outcome = sockets?.commands.send(packet) else { return adapterLost() }
        switch outcome {
        case .sent:
            report(packet.span, isOutgoing: true)
            return []
        case .wouldBlock:
            return perform(queue.notSent(errno: SystemCallError.tryAgain, at: now()))
        case .failed(let errno):
            // Also where the loss was known before: nothing is out that could have a response.
            switch SystemCallError(call: "send", errno: errno).meaning {
            case .adapterDown: return [.lost(.down)] + adapterLost()
            case .adapterGone: return [.lost(.gone)] + adapterLost()
            default: return perform(queue.notSent(errno: errno, at: now()))
            }
        }
    }

    // MARK: Reading

    /// Has the data of links pass too, on the socket for LE events, or no longer. It is counted,
    /// and neither kept nor traced.
    func passData(_ passes: Bool) {
        guard passes != passesData else { return }
        passesData = passes
        // A simulated controller has no filter, and sends what a test wants.
        try? sockets?.reports.setFilter(passes ? .reportsAndData : .reports)
    }

    /// Reads what waits at the socket for commands.
    ///
    /// While `body` runs, `arrival` is that of its event.
    func readCommands(_ body: ([Event]) -> Void) {
        for _ in 0..<EventLoop.packetsPerTurn {
            guard let input = sockets?.commands.receive(into: &inbound), let event = event(input) else { return }
            switch event {
            case .lost: return body([event])
            case .received(.commandComplete(let complete)): body(perform(queue.received(complete, at: now())))
            case .received(.commandStatus(let status)): body(perform(queue.received(status, at: now())))
            case .foreignCommand:
                wipe()
                body([event])
            case .received, .foreign, .finished, .data: body([event])
            }
        }
    }

    /// Overwrites a command that was read: there may be a key in it.
    private func wipe() {
        for index in inbound.indices.prefix(Self.longestCommand) { inbound[index] = 0 }
    }

    /// Packet type, opcode, length, and 255 bytes of parameters.
    private static let longestCommand = 259

    /// Reads what waits at the socket for LE events: reports, and the beginnings and updates of links.
    func readReports(_ body: (Event) -> Void) {
        for _ in 0..<EventLoop.packetsPerTurn {
            guard let input = sockets?.reports.receive(into: &inbound), let event = event(input) else { return }
            body(event)
            if case .lost = event { return }
        }
    }

    /// The event that was read; `nil` when there is nothing to read now.
    private func event(_ input: HCIInput) -> Event? {
        switch input {
        case .wouldBlock:
            return nil
        case .gone:
            return .lost(.gone)
        case .packet(let count, let length):
            // A reference, not a copy: it is gone before the next read.
            let buffer = inbound
            let packet = buffer.span.extracting(first: count)
            if packet.count > 0, packet[0] == HCIPacketType.command.rawValue {
                report(packet, isOutgoing: true)
                return .foreignCommand(Self.foreignCommand(packet))
            }
            if let data = Self.data(packet) { return .data(data) }
            report(packet, isOutgoing: false)
            guard length == count, count > 1, inbound.first == HCIPacketType.event.rawValue,
                let event = try? HCIEvent(packet.extracting(droppingFirst: 1))
            else {
                counts.malformedEvents += 1
                counts.unknownEvents += 1
                return .received(.emptyMeta)
            }
            switch event {
            case .hardwareError: counts.hardwareErrors += 1
            case .unknown, .unknownMeta, .emptyMeta: counts.unknownEvents += 1
            default: break
            }
            return .received(event)
        }
    }

    /// Returns what is known of a packet of data; `nil` for any other packet.
    private static func data(_ packet: Span<UInt8>) -> LinkData? {
        var reader = ByteReader(packet)
        guard reader.u8() == HCIPacketType.asynchronousData.rawValue else { return nil }
        return LinkData(packet.extracting(droppingFirst: 1))
    }

    /// Returns a command that sets an event mask, initiates a connection, or puts advertisements on air or takes them
    /// off. All others may contain a key, of which no copy is made.
    private static func foreignCommand(_ packet: Span<UInt8>) -> HCICommandPacket? {
        var reader = ByteReader(packet)
        guard reader.skip(1), let number = reader.u16() else { return nil }
        switch HCIOpcode(rawValue: number) {
        case .setEventMask, .leSetEventMask, .leCreateConnection, .leExtendedCreateConnection, .leSetAdvertisingEnable,
            .leSetExtendedAdvertisingEnable, .leRemoveAdvertisingSet:
            break
        default: return nil
        }
        return try? HCICommandPacket(packet.extracting(droppingFirst: 1))
    }

    private func report(_ packet: Span<UInt8>, isOutgoing: Bool) {
        guard let trace else { return }
        var reader = ByteReader(packet)
        guard let type = reader.u8().flatMap(HCIPacketType.init(rawValue:)) else { return }
        var bytes = reader.rest()
        if type == .command { HCICommandPacket.blankKeys(in: &bytes) }
        trace(TracedHCIPacket(isOutgoing: isOutgoing, type: type, bytes: bytes, adapter: name, time: now()))
    }

    // MARK: Counting

    /// Adds what was counted here.
    func count(in statistics: inout AdapterStatistics) {
        statistics.commandTimeouts = counts.commandTimeouts
        statistics.hardwareErrors = counts.hardwareErrors
        statistics.malformedEvents = counts.malformedEvents
        statistics.unknownEvents = counts.unknownEvents
        statistics.droppedByKernel = counts.droppedByKernel + kernelDrops
    }

    /// What the kernel has dropped on the sockets that are open.
    private var kernelDrops: Int {
        (sockets?.commands.droppedPackets ?? 0) + (sockets?.reports.droppedPackets ?? 0)
    }
}
