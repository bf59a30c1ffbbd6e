internal import BLECore
internal import BLELinux
internal import Glibc

// Owns the socket of one link and the `GATTClient` above it, and connects both with tasks and time.
//
// Duties
// - Reads the socket whenever the loop says so, and never waits for the application.
// - Performs the client's actions in the order in which the client gives them.
// - Resumes every caller that waits for an operation exactly once. A cancelled or late caller is released at once; what that means for
//   the link is the client's concern.
// - Before a request is written, reads all that the peer has sent until then: a value there is no response to the request.
//
// Invariants
// - A caller is in `callers` exactly while the client runs its operation.
// - `socket` is nil after `close` and `takeSocket`. Nobody reads or writes then.
// - `isEndReported` is set once the socket has reported its end: nothing reads it again while the controller is asked for the reason.
// - What concerns other owners goes to the peripheral as an event, in the order of the packets, before the next action is performed.
// - Only the peripheral uses it, on its event loop. Signals of the loop come back through the peripheral.

/// The ATT bearer of one link.
final class ATTLink {
    typealias Caller = CheckedContinuation<Result<GATTOutcome, OperationFailure>, Never>
    /// Starts an operation in the client.
    typealias Start = (inout GATTClient, OperationID, BootInstant?, BootInstant) -> [GATTClient.Action]
    typealias Report = (Event) -> Void

    /// What the peripheral must know at once.
    enum Event {
        /// The peer has sent a value.
        case value(AttributeHandle, [UInt8], isIndication: Bool)
        /// A packet of an operation whose response is collected has been written.
        case written(OperationID)
        /// Packets have been read.
        case read
        /// The socket has reported the end of the link.
        case ended(errno: Int32)
        /// The link cannot be used any more.
        case unusable(DisconnectReason)
    }

    /// What the event loop has to report.
    enum Signal {
        case readable, writable, timePassed
    }

    /// The task that waits for the end of one operation.
    private struct WaitingCaller {
        let id: OperationID
        let continuation: Caller
        /// Whether a call of the application led to it, and not the library of its own accord.
        let isOfCall: Bool
        /// Whether values are collected that respond to it.
        let isCollected: Bool
    }

    /// How many packets one wake-up may take before the loop looks at its other descriptors.
    private static let packetsPerTurn = 64
    /// How many turns are taken at most before a deadline is judged.
    private static let turnsBeforeTheTime = 16

    private let name: String
    private let loop: EventLoop
    private let trace: (@Sendable (TracedPDU) -> Void)?
    private let traceLinks: (@Sendable (TracedLink) -> TracedLink.Observer)?
    /// Gets what happens on the link, from its beginning on.
    private var linkTrace: TracedLink.Observer?
    private var client: GATTClient
    private var socket: LinkSocket?
    private var inbound = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
    /// A few at most: finding one here costs less than hashing.
    private var callers: [WaitingCaller] = []
    private var timer = DeadlineTimer()
    /// Brings what the loop reports back to the peripheral.
    private var signal: (@Sendable (Signal) -> Void)?
    private var isEndReported = false
    private var isClosed = false
    /// Whether the socket has been read to its end for the packet that is to be written next.
    private var isReadUp = false
    /// How many packets the kernel had dropped when the socket went.
    private var formerDrops: UInt32 = 0

    init(socket: consuming LinkSocket, name: String, mtu: UInt16, loop: EventLoop, configuration: Configuration) {
        self.name = name
        self.loop = loop
        trace = configuration.trace
        traceLinks = configuration.traceLinks
        var limits = ATTQueue.Limits()
        limits.isStrict = configuration.isStrict
        limits.mtu = mtu
        limits.responseTime = configuration.responseTime
        client = GATTClient(limits: limits)
        self.socket = consume socket
    }

    /// The largest ATT packet that both sides agreed on.
    var mtu: UInt16 { client.mtu }
    /// The largest packet that this side takes.
    var largestMTU: UInt16 { client.largestMTU }
    /// How many operations are unfinished.
    var operationCount: Int { callers.count }
    /// Whether the socket has reported its end.
    var isEnding: Bool { isEndReported }
    /// Whether the link is up, and has not begun to end.
    var isUsable: Bool { socket != nil && !isEnding }

    /// What happened on the link so far.
    var statistics: ATTStatistics {
        var statistics = client.statistics
        statistics.droppedByKernel = Int(socket?.droppedPackets ?? formerDrops)
        return statistics
    }
}

// MARK: - Operations

extension ATTLink {
    /// A number for the next operation.
    func nextID() -> OperationID { client.nextID() }

    /// Starts an operation; `caller` is resumed at its end.
    func start(
        _ id: OperationID, until deadline: BootInstant, isOfCall: Bool, isCollected: Bool, _ caller: Caller,
        _ report: Report, _ start: Start
    ) {
        callers.append(
            WaitingCaller(id: id, continuation: caller, isOfCall: isOfCall, isCollected: isCollected))
        perform(start(&client, id, deadline, loop.now()), report)
    }

    func cancel(_ id: OperationID, _ report: Report) {
        perform(client.cancel(id, at: loop.now()), report)
    }

    /// Cancels the operations of calls.
    func cancelCalls(_ report: Report) {
        // From the last one on, so that none of them gets its turn when another one goes.
        for caller in callers.reversed() where caller.isOfCall { cancel(caller.id, report) }
    }

    /// Gives up the writes to `handles` that may not be sent any more.
    func servicesChanged(in handles: ClosedRange<AttributeHandle>, _ report: Report) {
        perform(client.servicesChanged(in: handles, at: loop.now()), report)
    }
}

// MARK: - The client's actions

extension ATTLink {
    private func perform(_ actions: [GATTClient.Action], _ report: Report) {
        var actions = actions
        while !actions.isEmpty {
            var next: [GATTClient.Action] = []
            for action in actions {
                switch action {
                case .finish(let id, let result):
                    guard let index = callers.firstIndex(where: { $0.id == id }) else { continue }
                    callers.remove(at: index).continuation.resume(returning: result)
                case .deliver(let handle, let value, let kind):
                    report(.value(handle, value, isIndication: kind == .indication))
                case .send(let pdu):
                    next += send(pdu, report)
                case .close(let reason):
                    report(.unusable(DisconnectReason(reason)))
                }
            }
            actions = next
        }
        armTimer()
    }

    private func send(_ pdu: [UInt8], _ report: Report) -> [GATTClient.Action] {
        let collected = operationCollected
        let isRequest = ATTOpcode(rawValue: pdu.first ?? 0).isRequest
        if isRequest || collected != nil, !isReadUp, let actions = readUp(report) { return actions }
        isReadUp = false
        guard socket != nil, let outcome = socket?.send(pdu) else { return [] }
        let now = loop.now()
        switch outcome {
        case .sent:
            if let collected { report(.written(collected)) }
            trace(pdu, isOutgoing: true, at: now)
            return client.sent(at: now)
        case .wouldBlock:
            client.blocked()
            awaitWritable()
            return []
        case .failed(let errno) where errno == EMSGSIZE || errno == EINVAL:
            return client.refused(errno, at: now)
        case .failed:
            // The reason of the end is the reader's to find, after what the peer sent before. A kernel that was
            // only short of memory gets the packet again a little later.
            client.blocked()
            readable(report)
            sendAgainLater()
            return []
        }
    }

    /// The operation whose packet is to be written, if its response is collected.
    private var operationCollected: OperationID? {
        guard callers.contains(where: \.isCollected), let id = client.operationInHand else { return nil }
        return callers.contains { $0.id == id && $0.isCollected } ? id : nil
    }

    /// Reads what lies in the socket before a request is written, because all of that was sent without knowing of it: a value there is no
    /// response to it, and a second response to the request before is not this one's. What the peer is owed goes out at once.
    ///
    /// - Returns: What the client has to say then, with the packet that was to be written if it still is; `nil` when nothing lay there.
    private func readUp(_ report: Report) -> [GATTClient.Action]? {
        var hasRead = false
        // The kernel keeps no more than this; whoever sends faster than it is read is not waited for.
        for _ in 0..<Self.packetsPerTurn * Self.turnsBeforeTheTime {
            guard let input = socket?.receive(into: &inbound, isAwaited: false) else { return [] }
            if case .wouldBlock = input { break }
            if !hasRead { client.hold() }
            hasRead = true
            switch input {
            case .packet(let count, _): take(count, report)
            case .ended(let errno): ended(errno, report)
            case .wouldBlock: break
            }
            if isEnding || isClosed { return [] }
        }
        guard hasRead else { return nil }
        report(.read)
        let actions = client.release(at: loop.now())
        isReadUp = if case .send? = actions.last { true } else { false }
        return actions
    }

    private func awaitWritable() {
        guard let descriptor = socket?.descriptor, !isEnding, let signal else { return }
        // It is watched for input already, so it can be watched for room too.
        loop.onWritable(descriptor) { signal(.writable) }
    }

    private func sendAgainLater() {
        guard !isClosed, !isEnding, let signal else { return }
        _ = loop.schedule(at: loop.now() + .milliseconds(20)) { signal(.writable) }
    }
}

// MARK: - The socket

extension ATTLink {
    /// Begins to read. `signal` is called by the loop.
    func startReading(id: PeerID?, _ signal: @escaping @Sendable (Signal) -> Void) -> SystemCallError? {
        guard let descriptor = socket?.descriptor else { return nil }
        self.signal = signal
        // Twice the usual room for what comes faster than this thread gets to it. With less it works too.
        try? socket?.raiseReceiveBuffer()
        linkTrace = traceLinks?(TracedLink(peer: name, id: id, time: loop.now()))
        return loop.onReadable(descriptor) { signal(.readable) }
    }

    func readable(_ report: Report) {
        readPackets(report)
        report(.read)
    }

    func writable(_ report: Report) {
        guard let descriptor = socket?.descriptor else { return }
        loop.onWritable(descriptor, nil)
        perform(client.writable(at: loop.now()), report)
    }

    /// Takes what one turn may take; returns whether there may be more.
    @discardableResult
    private func readPackets(pastResponses: Bool = false, _ report: Report) -> Bool {
        for _ in 0..<Self.packetsPerTurn {
            guard !isEnding, let input = socket?.receive(into: &inbound) else { return false }
            switch input {
            case .packet(let count, _):
                let opcode = take(count, report)
                // Values come in bursts, but after a response there is seldom anything, and the loop would call again. What there is
                // all the same is read before the next request is written.
                if !pastResponses, opcode.isResponse { return false }
            case .wouldBlock:
                return false
            case .ended(let errno):
                ended(errno, report)
                return false
            }
        }
        return true
    }

    /// Passes a packet that was read to the client; returns its opcode.
    @discardableResult
    private func take(_ count: Int, _ report: Report) -> ATTOpcode {
        let pdu = Array(inbound.prefix(count))
        let now = loop.now()
        trace(pdu, isOutgoing: false, at: now)
        perform(client.received(pdu, at: now), report)
        return ATTOpcode(rawValue: pdu.first ?? 0)
    }

    private func ended(_ errno: Int32, _ report: Report) {
        isEndReported = true
        report(.ended(errno: errno))
    }

    /// Has the loop look at the socket no more.
    func stopWatching() {
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
    }

    private func trace(_ pdu: [UInt8], isOutgoing: Bool, at now: BootInstant) {
        guard trace != nil || linkTrace != nil else { return }
        let traced = TracedPDU(isOutgoing: isOutgoing, bytes: pdu, peer: name, time: now)
        trace?(traced)
        linkTrace?(.pdu(traced))
    }
}

// MARK: - Time

extension ATTLink {
    private func armTimer() {
        guard !isClosed else { return timer.cancel(on: loop) }
        guard let signal else { return }
        timer.arm(for: client.nextDeadline, on: loop) { deadline in
            loop.schedule(at: deadline) { signal(.timePassed) }
        }
    }

    func timePassed(_ report: Report) {
        timer.fired()
        if let deadline = client.nextDeadline, deadline <= loop.now() {
            // What has arrived in time counts, however late this process comes to look at it. The kernel keeps no more than this.
            for _ in 0..<Self.turnsBeforeTheTime where !readPackets(pastResponses: true, report) { break }
        }
        perform(client.timePassed(loop.now()), report)
    }
}

// MARK: - The end, and handing over

extension ATTLink {
    /// Reports the end in the trace; nothing follows there.
    func traceEnd(_ reason: DisconnectReason) {
        linkTrace?(.ended(reason, at: loop.now()))
        linkTrace = nil
    }

    /// Closes the socket, and fails every operation once.
    func close(_ code: Int32, _ report: Report) {
        isClosed = true
        stopWatching()
        if let drops = socket?.droppedPackets { formerDrops = drops }
        socket = nil
        perform(client.linkLost(code, at: loop.now()), report)
    }

    /// What the next owner of the link must know of the operations.
    func remains() -> GATTClient.Remains { client.remains() }

    /// Takes the socket out, which stays open.
    func takeSocket() -> LinkSocket? {
        stopWatching()
        guard let socket = socket.take() else { return nil }
        formerDrops = socket.droppedPackets
        return socket
    }

    /// Takes over what the last owner of the link has left; `resume` goes on with it.
    func adopt(_ remains: GATTClient.Remains) {
        client = GATTClient(limits: client.limits, remains: remains, at: loop.now())
    }

    func resume(_ report: Report) {
        perform(client.resume(at: loop.now()), report)
    }

    /// The peripheral goes away.
    func abandon() {
        timer.cancel(on: loop)
        stopWatching()
        if !isClosed { traceEnd(.requested) }
    }
}
