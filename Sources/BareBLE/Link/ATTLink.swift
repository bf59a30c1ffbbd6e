internal import BLECore
internal import BLELinux
internal import Glibc

// Owns the socket of one link and its `GATTClient`, and connects both with tasks and time. Where this program serves
// the peer, it passes requests, commands and confirmations to the link's `LinkServer`, and writes what that sends.
//
// Duties
// - Reads the socket whenever the loop reports it as readable, and never waits for the application.
// - Performs the client's actions in the order in which the client returns them.
// - Resumes every caller that waits for an operation exactly once. A cancelled or late caller is released at once; the
//   client handles what follows from that on the link.
// - Before a request is written, reads all that the peer has sent until then: a value among it cannot be a response to
//   the request.
// - Where the security of the link matters (`onReading`), has the peripheral look at it before packets are read, for
//   whatever reason they are.
//
// Invariants
// - An operation is in `operations`, and its caller waits in `callers`, exactly while the client runs it.
// - `socket` is nil after `close` and `takeSocket`. Nothing reads or writes from then on.
// - `isEndReported` is set once the socket has reported its end: nothing reads it again while the controller is asked
//   for the reason.
// - A look may end the link, and read packets itself (`readAhead`). While it reads, no other look begins, and each
//   packet is reported to it before it is passed on, also one that is read for a request.
// - What concerns other owners goes to the peripheral as an event, in the order of the packets, before the next action
//   is performed.
// - Only the peripheral uses it, on its event loop. Signals of the loop come back through the peripheral.

/// The ATT bearer of one link.
final class ATTLink {
    typealias OperationResult = Result<GATTOutcome, OperationFailure>
    typealias Caller = Waiters<OperationResult>.Continuation
    /// Starts an operation in the client.
    typealias Start = (inout GATTClient, OperationID, BootInstant?, BootInstant) -> [GATTClient.Action]
    typealias Report = (Event) -> Void

    /// An event that the peripheral must receive at once.
    enum Event {
        /// The peer has sent a value.
        case value(AttributeHandle, [UInt8], isIndication: Bool)
        /// A packet of an operation whose response is collected has been written.
        case written(OperationID)
        /// Packets have been read.
        case read
        /// The socket has reported the end of the link.
        case ended(errno: Int32)
        /// The link can no longer be used.
        case unusable(DisconnectReason)
    }

    /// A signal of the event loop.
    enum Signal {
        case readable, writable, timePassed
    }

    /// An operation that the client runs.
    private struct Operation {
        let id: OperationID
        /// Whether a call of the application started the operation, and not the library itself.
        let isOfCall: Bool
        /// Whether the values that respond to it are collected.
        let isCollected: Bool
    }

    /// The maximum number of turns of reading before deadlines are checked.
    private static let turnsBeforeTheTime = 16

    private let name: String
    private let loop: EventLoop
    private let trace: (@Sendable (TracedPDU) -> Void)?
    private let traceLinks: (@Sendable (TracedLink) -> TracedLink.Observer)?
    /// Receives all events of the link, from its beginning on.
    private var linkTrace: TracedLink.Observer?
    private var client: GATTClient
    private var socket: LinkSocket?
    /// The server side; `nil` where this program serves no attributes.
    private(set) var server: LinkServer?
    private var inbound = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
    /// In the order in which they were started. Only a few: a linear search costs less than hashing.
    private var operations: [Operation] = []
    /// The tasks that wait for the operations, by their numbers.
    private let callers: Waiters<OperationResult>
    private var timer = DeadlineTimer()
    /// Passes the loop's signals back to the peripheral.
    private var signal: (@Sendable (Signal) -> Void)?
    /// Called before packets are read; `nil` where nothing has to be known before.
    private var look: (() -> Void)?
    /// Called with the time of arrival of each packet before it is passed on; `nil` unless `readAhead` runs.
    private var ahead: ((ArrivalTime?) -> Void)?
    private var isEndReported = false
    private var isClosed = false
    /// Whether the peer has sent anything on this link.
    private(set) var hasReceived = false
    /// Whether the socket has been read to its end for the packet that is to be written next.
    private var isReadUp = false
    /// The number of packets that the kernel had dropped when the socket was closed.
    private var formerDrops: UInt32 = 0
    /// The number of dropped packets that the server knows of.
    private var reportedDrops: UInt32 = 0

    init(socket: consuming LinkSocket, name: String, mtu: UInt16, loop: EventLoop, configuration: Configuration) {
        self.name = name
        self.loop = loop
        callers = Waiters(on: loop)
        trace = configuration.trace
        traceLinks = configuration.traceLinks
        var limits = ATTQueue.Limits()
        limits.isStrict = configuration.isStrict
        limits.mtu = mtu
        limits.responseTime = configuration.responseTime
        client = GATTClient(limits: limits)
        self.socket = consume socket
    }

    /// The MTU that both sides agreed on.
    var mtu: UInt16 { client.mtu }
    /// The socket's descriptor; `nil` after its end.
    var descriptor: Int32? { socket?.descriptor }
    /// The largest packet that this side accepts.
    var largestMTU: UInt16 { client.largestMTU }
    /// The number of unfinished operations.
    var operationCount: Int { operations.count }
    /// Whether the socket has reported its end.
    var isEnding: Bool { isEndReported }
    /// Whether the link is up, and has not begun to end.
    var isUsable: Bool { socket != nil && !isEnding }

    /// The statistics of the link.
    var statistics: ATTStatistics {
        var statistics = client.statistics
        statistics.droppedByKernel = Int(socket?.droppedPackets ?? formerDrops)
        return statistics
    }
}

// MARK: - Operations

extension ATTLink {
    /// Returns the number of the next operation. A write that other jobs may precede takes it when its handle is looked
    /// up: `servicesChanged` ends it too, although it starts later.
    func nextID() -> OperationID { client.nextID() }

    /// Makes a task wait for the end of an operation. `begin` starts it, or returns the result if it must not be
    /// started.
    func wait(for id: OperationID, _ caller: Caller, _ begin: () -> OperationResult?) {
        callers.add(caller, as: id.rawValue) { _ in begin() }
    }

    /// Starts an operation; the task that waits for it is resumed at its end.
    func start(
        _ id: OperationID, until deadline: BootInstant?, isOfCall: Bool, isCollected: Bool, _ report: Report,
        _ start: Start
    ) {
        operations.append(Operation(id: id, isOfCall: isOfCall, isCollected: isCollected))
        perform(start(&client, id, deadline, loop.now()), report)
    }

    func cancel(_ id: OperationID, _ report: Report) {
        perform(client.cancel(id, at: loop.now()), report)
    }

    /// Cancels the operations of calls.
    func cancelCalls(_ report: Report) {
        // The last one first, so that none of them gets its turn when another one is cancelled.
        for operation in operations.reversed() where operation.isOfCall { cancel(operation.id, report) }
    }

    /// Cancels the writes to `handles` that must no longer be sent, also those that have only a number yet.
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
                    if let index = operations.firstIndex(where: { $0.id == id }) { operations.remove(at: index) }
                    callers.resume(id.rawValue, result)
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
        shareMTU()
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
            // The reader finds the reason of the end, after what the peer sent before. A kernel that was only short of
            // memory gets the packet again a little later.
            client.blocked()
            readable(report)
            sendAgainLater()
            return []
        }
    }

    /// The operation whose packet is to be written, if its response is collected.
    private var operationCollected: OperationID? {
        guard operations.contains(where: \.isCollected), let id = client.operationInHand else { return nil }
        return operations.contains { $0.id == id && $0.isCollected } ? id : nil
    }

    /// Reads what the socket holds before a request is written. The peer has sent all of that without knowledge of the
    /// request: a value among it is no response to it, and a second response to the previous request is not its
    /// response either. Pending confirmations and responses to the peer are written at once.
    ///
    /// - Returns: The client's next actions, with the packet that was to be written if it still is; `nil` if the socket
    ///   held nothing.
    private func readUp(_ report: Report) -> [GATTClient.Action]? {
        var hasRead = false
        if look != nil, ahead == nil {
            // Once a packet can be read, so can what the controller has reported before it. Without a packet nothing is
            // looked at: then this is the one system call, as reading is for other links.
            guard !isEnding, let hasInput = socket?.hasInput else { return [] }
            guard hasInput else { return nil }
            client.hold()
            hasRead = true
            guard lookAhead() else { return [] }
        }
        // The kernel buffers no more than this; a peer that sends faster than it is read is not waited for.
        for _ in 0..<EventLoop.packetsPerTurn * Self.turnsBeforeTheTime {
            guard !isEnding, let input = socket?.receive(into: &inbound, isAwaited: false) else { return [] }
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

    /// Makes sure that `writable` follows.
    private func awaitWritable() {
        guard let descriptor = socket?.descriptor, !isEnding, let signal else { return }
        // It is already watched for input, so it can be watched for output too.
        loop.onWritable(descriptor) { signal(.writable) }
    }

    private func sendAgainLater() {
        guard !isClosed, !isEnding, let signal else { return }
        _ = loop.schedule(at: loop.now() + .milliseconds(20)) { signal(.writable) }
    }
}

// MARK: - The socket

extension ATTLink {
    /// Begins to read. The loop calls `signal`.
    func startReading(id: PeerID?, _ signal: @escaping @Sendable (Signal) -> Void) -> SystemCallError? {
        guard let descriptor = socket?.descriptor else { return nil }
        self.signal = signal
        // Twice the usual buffer, for values that arrive faster than this thread reads them. Less works too.
        try? socket?.raiseReceiveBuffer()
        linkTrace = traceLinks?(TracedLink(peer: name, id: id, isInbound: server != nil, time: loop.now()))
        return loop.onReadable(descriptor) { signal(.readable) }
    }

    /// Has a closure called before packets are read, from now on.
    func onReading(_ look: @escaping () -> Void) { self.look = look }

    /// Has the peripheral look at the security before packets are read; returns whether they still can be.
    private func lookAhead() -> Bool {
        if isUsable, ahead == nil { look?() }
        return isUsable
    }

    func readable(_ report: Report) {
        guard lookAhead() else { return }
        readPackets(report)
        report(.read)
    }

    /// Reads packets of a link that the controller has lost. What it had reported before is known, and its next events
    /// must wait: this one is still being handled.
    func readLast(_ report: Report) {
        look = nil
        readable(report)
    }

    func writable(_ report: Report) {
        guard let descriptor = socket?.descriptor else { return }
        loop.onWritable(descriptor, nil)
        // Responses go before requests.
        server?.writable()
        perform(client.writable(at: loop.now()), report)
    }

    /// Reads the packets of one turn; returns whether there may be more.
    @discardableResult
    private func readPackets(pastResponses: Bool = false, _ report: Report) -> Bool {
        for _ in 0..<EventLoop.packetsPerTurn {
            guard !isEnding, let input = socket?.receive(into: &inbound) else { return false }
            switch input {
            case .packet(let count, _):
                let opcode = take(count, report)
                // Values and commands come in bursts, but a response is seldom followed by anything, a request only
                // once it has been responded to, and the loop would call again. What follows all the same is read
                // before the next request is written.
                if !pastResponses, opcode.isResponse || opcode.isRequest { return false }
            case .wouldBlock:
                return false
            case .ended(let errno):
                ended(errno, report)
                return false
            }
        }
        return true
    }

    /// Reads until there is nothing left; a peer that sends faster than it is read is not waited for.
    private func readTurns(_ report: Report) {
        // The kernel buffers no more than this.
        for _ in 0..<Self.turnsBeforeTheTime where !readPackets(pastResponses: true, report) { break }
    }

    /// Passes a packet that was read to the client; returns its opcode.
    @discardableResult
    private func take(_ count: Int, _ report: Report) -> ATTOpcode {
        let pdu = Array(inbound.prefix(count))
        ahead?(socket?.lastArrival)
        hasReceived = true
        let now = loop.now()
        trace(pdu, isOutgoing: false, at: now)
        let opcode = ATTOpcode(rawValue: pdu.first ?? 0)
        server?.heard(at: now)
        if let server, let drops = socket?.droppedPackets, drops != reportedDrops {
            reportedDrops = drops
            server.droppedPackets()
            if isClosed { return opcode }
        }
        if let server, opcode.isForServer, !pdu.isEmpty {
            server.received(pdu)
        } else {
            perform(client.received(pdu, at: now), report)
        }
        return opcode
    }

    private func ended(_ errno: Int32, _ report: Report) {
        isEndReported = true
        report(.ended(errno: errno))
    }

    /// Stops watching the socket.
    func stopWatching() {
        if let descriptor = socket?.descriptor { loop.unregister(descriptor) }
    }

    private func trace(_ pdu: [UInt8], isOutgoing: Bool, at now: BootInstant) {
        guard trace != nil || linkTrace != nil else { return }
        let traced = TracedPDU(isOutgoing: isOutgoing, bytes: pdu, peer: name, time: now)
        trace?(traced)
        linkTrace?(.pdu(traced))
    }
}

// MARK: - The server side

extension ATTLink {
    /// The result of writing a packet of the server.
    enum ServerWrite {
        case sent
        /// `LinkServer.writable()` follows.
        case blocked
        /// The packet can never be written.
        case refused
    }

    /// Has the peer served from now on.
    func serve(_ server: LinkServer) {
        self.server = server
        shareMTU()
    }

    /// Reads all that has arrived.
    func readAll(_ report: Report) {
        guard lookAhead() else { return }
        readTurns(report)
        report(.read)
    }

    /// Reads all that has arrived, as a part of a look at the security.
    ///
    /// - Parameter ahead: Called with the time of arrival of each packet before that is passed on.
    func readAhead(_ report: Report, _ ahead: @escaping (ArrivalTime?) -> Void) {
        let outer = self.ahead
        self.ahead = ahead
        readTurns(report)
        self.ahead = outer
        report(.read)
    }

    /// Has the kernel report when packets arrive.
    func reportArrivals() throws(SystemCallError) { try socket?.reportArrivals() }

    func write(_ pdu: [UInt8]) -> ServerWrite {
        // Nothing is sent after the end, which the server has yet to be notified of.
        guard !isEnding, let outcome = socket?.send(pdu) else { return .blocked }
        switch outcome {
        case .sent:
            trace(pdu, isOutgoing: true, at: loop.now())
            return .sent
        case .wouldBlock:
            awaitWritable()
            return .blocked
        case .failed(let errno) where errno == EMSGSIZE || errno == EINVAL:
            return .refused
        case .failed:
            // The reader finds the reason of the end. A kernel that was only short of memory gets the packet again.
            sendAgainLater()
            return .blocked
        }
    }

    /// Takes over the MTU that the peer has requested from the server, which has responded.
    func peerExchanged(_ mtu: UInt16) {
        client.peerExchanged(mtu)
        shareMTU()
    }

    /// Gives the server the MTU of the link. While this side's own exchange is pending, the peer may already use the
    /// one that the server has agreed on.
    private func shareMTU() {
        if let server, !client.isExchangingMTU { server.mtuExchanged(client.mtu) }
    }
}

extension ATTOpcode {
    /// Whether the server side of a link processes it. An undefined opcode without the command flag is a request, even
    /// or odd.
    fileprivate var isForServer: Bool {
        switch kind {
        case .request, .command, .confirmation: true
        case .response: specificationName == nil
        case .notification, .indication: false
        }
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
        // What has arrived in time counts, however late this process reads it.
        if let deadline = client.nextDeadline, deadline <= loop.now(), lookAhead() { readTurns(report) }
        perform(client.timePassed(loop.now()), report)
    }
}

// MARK: - The end, and handing over

extension ATTLink {
    /// Reports the end in the trace; nothing follows it.
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
        server?.linkLost()
    }

    /// The state of the operations that the link's next owner needs.
    func remains() -> GATTClient.Remains { client.remains() }

    /// Returns the socket, which stays open, and gives up its ownership.
    func takeSocket() -> LinkSocket? {
        stopWatching()
        guard let socket = socket.take() else { return nil }
        formerDrops = socket.droppedPackets
        return socket
    }

    /// Takes over the state that the link's last owner left; `resume` continues with it.
    func adopt(_ remains: GATTClient.Remains) {
        hasReceived = true
        client = GATTClient(limits: client.limits, remains: remains, at: loop.now())
    }

    func resume(_ report: Report) {
        perform(client.resume(at: loop.now()), report)
    }

    /// Called when the peripheral is released.
    func abandon() {
        timer.cancel(on: loop)
        stopWatching()
        if !isClosed { traceEnd(.requested) }
    }
}
