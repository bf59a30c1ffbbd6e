import BLECore
import BLELinux
import BareBLE

// The sockets of the adapter under test.
//
// Duties: send one command at a time and wait for its response, with a deadline; keep what arrives meanwhile for the
// next check; notice that the adapter is gone; trace every packet for the recording.
//
// Invariants
// - Nothing here looks at the cancellation of the task: the adapter has to be restored all the same. The runner does.
// - A wait always ends: by a packet, at its deadline, or because the adapter is gone.
// - The backlog is bounded; advertising reports are the first to go.

/// A raw channel to one controller, whose events are read one after the other.
actor SelfTestChannel {
    /// How a command ended.
    struct Reply: Hashable, Sendable {
        enum End: Hashable, Sendable {
            case status(UInt8)
            /// No response came in time.
            case silence
            /// The response has no status.
            case malformed
            /// The kernel did not take the command.
            case notSent(errno: Int32)
            /// The adapter is gone.
            case gone
        }

        let end: End
        /// The return parameters after the status.
        var values: [UInt8] = []
        /// The time from the command to the response.
        var time: Duration = .zero
        /// The number of commands that the controller accepts after this one.
        var credits: UInt8?

        var status: UInt8? {
            if case .status(let status) = end { return status }
            return nil
        }

        var isSuccess: Bool { status == 0 }
    }

    /// What was read.
    enum Content: Sendable {
        case event(HCIEvent)
        /// A command of another program or of the kernel.
        case command(HCICommandPacket)
        /// Data of a link from its peer, or to it.
        case data(ConnectionHandle, isIncoming: Bool)
        /// An event that does not have its layout.
        case malformed
    }

    struct Packet: Sendable {
        let time: BootInstant
        let content: Content
    }

    /// The kernel gives up on a command after two seconds.
    static let responseTimeout: Duration = .milliseconds(2500)
    private static let backlogLimit = 4096

    private nonisolated let loop: EventLoop
    private let index: UInt16
    private let name: String
    private let system: AdapterSystem
    private let trace: (@Sendable (TracedHCIPacket) -> Void)?
    private var sockets: AdapterSockets?
    private var buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)
    private var backlog: [Packet] = []
    private let waiters: Waiters<Void>
    private(set) var isGone = false
    private(set) var droppedReports = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init(
        _ index: UInt16, name: String, system: AdapterSystem, loop: EventLoop,
        trace: (@Sendable (TracedHCIPacket) -> Void)?
    ) {
        self.index = index
        self.name = name
        self.system = system
        self.loop = loop
        self.trace = trace
        waiters = Waiters(on: loop)
    }

    /// Opens the sockets; afterwards the adapter may be switched off and on.
    func open() throws(SystemCallError) {
        let opened = try system.open(index)
        let (commands, reports) = (opened.commands.descriptor, opened.reports.descriptor)
        for descriptor in [commands, reports] {
            let isCommands = descriptor == commands
            let failure = loop.onReadable(descriptor) { [weak self] in
                self?.assumeIsolated { $0.read(commands: isCommands) }
            }
            if let failure {
                loop.onReadable(commands, nil)
                throw failure
            }
        }
        sockets = consume opened
    }

    /// Closes the sockets.
    func close() {
        if let commands = sockets?.commands.descriptor { loop.onReadable(commands, nil) }
        if let reports = sockets?.reports.descriptor { loop.onReadable(reports, nil) }
        sockets = nil
    }

    var now: BootInstant { loop.now() }

    // MARK: Sending

    /// Sends a command and waits for its response. Other packets that arrive meanwhile stay in the backlog.
    func ask(_ command: HCICommandPacket, within timeout: Duration = SelfTestChannel.responseTimeout) async -> Reply {
        guard !isGone else { return Reply(end: .gone) }
        let start = loop.now()
        switch sockets?.commands.send(command.bytes) {
        case .sent?: trace(command.bytes, isOutgoing: true)
        case .wouldBlock?: return Reply(end: .notSent(errno: SystemCallError.tryAgain))
        case .failed(let errno)?:
            // The adapter may be off, which is no end of the socket.
            if SystemCallError(call: "send", errno: errno).meaning == .adapterGone { lost() }
            return Reply(end: isGone ? .gone : .notSent(errno: errno))
        case nil: return Reply(end: .gone)
        }
        var position = backlog.count
        while true {
            while position < backlog.count {
                if let reply = Self.reply(to: command.opcode, backlog[position], since: start) {
                    backlog.remove(at: position)
                    return reply
                }
                position += 1
            }
            if isGone { return Reply(end: .gone) }
            // Reports may come without end.
            if loop.now() >= start + timeout { return Reply(end: .silence) }
            let before = backlog.count
            _ = await waiters.wait(until: start + timeout, interruption: .ignoresCancellation) { _ in
                self.backlog.count > before || self.isGone ? () : nil
            }
        }
    }

    private static func reply(to opcode: HCIOpcode, _ packet: Packet, since start: BootInstant) -> Reply? {
        guard case .event(let event) = packet.content else { return nil }
        switch event {
        case .commandComplete(let complete) where complete.opcode == opcode:
            guard let status = complete.returnParameters.first else {
                return Reply(end: .malformed, time: packet.time - start, credits: complete.credits)
            }
            return Reply(
                end: .status(status), values: Array(complete.returnParameters.dropFirst()), time: packet.time - start,
                credits: complete.credits)
        case .commandStatus(let status) where status.opcode == opcode:
            return Reply(
                end: .status(status.status.rawValue), time: packet.time - start, credits: status.credits)
        default: return nil
        }
    }

    // MARK: Reading

    /// Returns the oldest packet that was not used yet, or the next one; `nil` at the deadline,
    /// or if the adapter is gone.
    func next(until deadline: BootInstant) async -> Packet? {
        while backlog.isEmpty, !isGone {
            let end = await waiters.wait(until: deadline, interruption: .ignoresCancellation) { _ in
                !self.backlog.isEmpty || self.isGone ? () : nil
            }
            guard case .resumed = end else { break }
        }
        return backlog.isEmpty ? nil : backlog.removeFirst()
    }

    /// Returns everything that was not used yet.
    func drain() -> [Packet] {
        defer { backlog = [] }
        return backlog
    }

    /// Drops what has not been used.
    func forget() { backlog = [] }

    private func read(commands isCommands: Bool) {
        for _ in 0..<64 {
            let input = isCommands ? sockets?.commands.receive(into: &buffer) : sockets?.reports.receive(into: &buffer)
            switch input {
            case .packet(let count, let length)?: take(count, length)
            case .wouldBlock?, nil:
                waiters.resumeAll(())
                return
            case .gone?: return lost()
            }
        }
        waiters.resumeAll(())
    }

    private func take(_ count: Int, _ length: Int) {
        guard count == length, count > 1 else { return }
        let bytes = Array(buffer.prefix(count))
        let isCommand = bytes[0] == HCIPacketType.command.rawValue
        let content: Content
        if bytes[0] == HCIPacketType.asynchronousData.rawValue {
            guard count > 2 else { return }
            let field = UInt16(bytes[1]) | UInt16(bytes[2]) << 8
            // The packets of a host begin with 00, those of a controller with 10; 01 continues either.
            let isIncoming = field >> 12 & 0b11 == 0b10
            trace(bytes, isOutgoing: !isIncoming)
            content = .data(field & 0x0FFF, isIncoming: isIncoming)
        } else if isCommand {
            trace(bytes, isOutgoing: true)
            guard let command = try? HCICommandPacket(bytes.span.extracting(droppingFirst: 1)) else { return }
            content = .command(command)
        } else if let event = try? HCIEvent(bytes.span.extracting(droppingFirst: 1)) {
            trace(bytes, isOutgoing: false)
            content = .event(event)
        } else {
            trace(bytes, isOutgoing: false)
            content = .malformed
        }
        if backlog.count >= Self.backlogLimit {
            droppedReports += 1
            switch content {
            case .event(.advertisingReports), .data: return
            case .event, .command, .malformed: backlog.removeFirst()
            }
        }
        backlog.append(Packet(time: loop.now(), content: content))
    }

    private func lost() {
        isGone = true
        close()
        waiters.resumeAll(())
    }

    private func trace(_ packet: [UInt8], isOutgoing: Bool) {
        guard let trace, let type = packet.first.flatMap({ HCIPacketType(rawValue: $0) }) else { return }
        var bytes = Array(packet.dropFirst())
        if type == .command { HCICommandPacket.blankKeys(in: &bytes) }
        trace(
            TracedHCIPacket(isOutgoing: isOutgoing, type: type, bytes: bytes, adapter: name, time: loop.now()))
    }
}
