internal import BLECore
internal import BLELinux
internal import Glibc
internal import Logging

/// Who waits for the end of one operation.
struct WaitingCaller {
    typealias Continuation = CheckedContinuation<Result<GATTOutcome, OperationFailure>, Never>

    let id: OperationID
    let continuation: Continuation
    /// Whether a call of the application led to it, and not the library of its own accord.
    let isOfCall: Bool
}

extension Peripheral {
    /// How many packets one wake-up may take before the loop looks at its other descriptors.
    private static let packetsPerTurn = 64
    /// How many turns are taken at most before a deadline is judged.
    private static let turnsBeforeTheTime = 16

    /// Begins to read the socket.
    func startReading() throws(BLEError) {
        guard let descriptor = socket?.descriptor else { return }
        // Twice the usual room for what comes faster than this thread gets to it. With less it works too.
        try? socket?.raiseReceiveBuffer()
        linkTrace = traceLinks?(TracedLink(peer: name, id: id, time: loop.now()))
        let failure = loop.onReadable(descriptor) { [weak self] in
            self?.assumeIsolated { $0.readable() }
        }
        controls?.watchLoss { [weak self] in
            self?.assumeIsolated { $0.controllerForgot() }
        }
        if let failure {
            throw BLEError(
                .system, subject: name, during: "watch the link", because: "\(failure.call) failed",
                hint: failure.remedy, errorNumber: failure.errno)
        }
    }

    /// Runs one operation of the client to its end, once; `recovering` is what may repeat it. What it is called is asked
    /// for only when it fails.
    func run(
        until deadline: BootInstant, during operation: @autoclosure () -> String,
        start: (inout GATTClient, OperationID, BootInstant?, BootInstant) -> [GATTClient.Action]
    ) async throws(BLEError) -> GATTOutcome {
        switch await runOperation(until: deadline, start: start) {
        case .success(let outcome):
            return outcome
        case .failure(.linkLost):
            throw endError(during: operation())
        case .failure(let failure):
            throw BLEError(failure, subject: name, during: operation())
        }
    }

    /// Runs one operation: of a call, or of the library's own, which `cancelAll()` does not concern.
    func runOperation(
        until deadline: BootInstant, isOfCall: Bool = true,
        start: (inout GATTClient, OperationID, BootInstant?, BootInstant) -> [GATTClient.Action]
    ) async -> Result<GATTOutcome, OperationFailure> {
        if end != nil { return .failure(.linkLost) }
        let id = client.nextID()
        return await onLoop {
            await withTaskCancellationHandler {
                await withCheckedContinuation { (waiter: WaitingCaller.Continuation) in
                    // A cancellation from here on finds the waiter: its job enters the actor behind this one.
                    if Task.isCancelled || isOfCall && scheduler.isClearing {
                        return waiter.resume(returning: .failure(.cancelled))
                    }
                    waiters.append(WaitingCaller(id: id, continuation: waiter, isOfCall: isOfCall))
                    let now = loop.now()
                    perform(start(&client, id, deadline, now))
                    if peerDatabase.isServiceChangedDue { enableServiceChangedAfterCurrent() }
                }
            } onCancel: {
                Task(executorPreference: loop) { await self.cancel(id) }
            }
        }
    }

    /// Lets the task prefer the loop while it waits. Else its resumption would go by the global pool: two more changes of
    /// threads, in any order, and not before the program's own tasks leave a thread there.
    @inline(__always)
    func onLoop<Value: Sendable>(_ wait: () async -> Value) async -> Value {
        let isThere = unsafe withUnsafeCurrentTask { task in
            unsafe task?.unownedTaskExecutor == loop.asUnownedTaskExecutor()
        }
        return isThere ? await wait() : await withTaskExecutorPreference(loop, operation: wait)
    }

    /// The failure of a call that finds, or found, the link gone.
    func endError(during operation: String) -> BLEError {
        let reason = end ?? .other(nil, errorNumber: nil)
        return BLEError(
            .disconnected, subject: name, during: operation, because: "\(reason)", hint: reason.hint,
            hciStatus: reason.hciStatus, errorNumber: reason.errorNumber)
    }

    private func cancel(_ id: OperationID) {
        perform(client.cancel(id, at: loop.now()))
    }

    // MARK: The client's actions

    func perform(_ actions: [GATTClient.Action]) {
        var actions = actions
        while !actions.isEmpty {
            var next: [GATTClient.Action] = []
            for action in actions {
                switch action {
                case .finish(let id, let result):
                    guard let index = waiters.firstIndex(where: { $0.id == id }) else { continue }
                    waiters.remove(at: index).continuation.resume(returning: result)
                case .deliver(let handle, let value, let kind):
                    deliver(value, from: handle, isIndication: kind == .indication)
                case .send(let pdu):
                    next += send(pdu)
                case .close(let reason):
                    close(DisconnectReason(reason))
                }
            }
            actions = next
        }
        armTimer()
    }

    private func send(_ pdu: [UInt8]) -> [GATTClient.Action] {
        let collector = subscriptionHub.isCollecting ? subscriptionHub.collector(for: client.operationInHand) : nil
        let isRequest = ATTOpcode(rawValue: pdu.first ?? 0).isRequest
        if isRequest || collector != nil, !isReadUp, let actions = readUp() { return actions }
        isReadUp = false
        guard socket != nil, let outcome = socket?.send(pdu) else { return [] }
        let now = loop.now()
        switch outcome {
        case .sent:
            if let collector { subscriptionHub.requestWritten(for: collector) }
            tellTrace(pdu, isOutgoing: true, at: now)
            return client.sent(at: now)
        case .wouldBlock:
            client.blocked()
            awaitWritable()
            return []
        case .failed(let errno) where errno == EMSGSIZE || errno == EINVAL:
            return client.refused(errno, at: now)
        case .failed:
            // The reason of the end is the reader's to find; it is behind what the peer sent before. A kernel that was
            // only short of memory gets the packet again a little later.
            client.blocked()
            readable()
            sendAgainLater()
            return []
        }
    }

    /// Reads what lies in the socket before a request is written, because all of that was sent without knowing of it: a value there is no
    /// response to it, and a second response to the request before is not this one's. What the peer is owed goes out at once.
    ///
    /// - Returns: What the client has to say then, with the packet that was to be written if it still is; `nil` when nothing lay there.
    private func readUp() -> [GATTClient.Action]? {
        var hasRead = false
        // The kernel keeps no more than this; whoever sends faster than it is read is not waited for.
        for _ in 0..<Self.packetsPerTurn * Self.turnsBeforeTheTime {
            guard let input = socket?.receive(into: &inbound, isAwaited: false) else { return [] }
            if case .wouldBlock = input { break }
            if !hasRead { client.hold() }
            hasRead = true
            switch input {
            case .packet(let count, _): take(count)
            case .ended(let errno): linkEnded(errno)
            case .wouldBlock: break
            }
            if isEnding || end != nil { return [] }
        }
        guard hasRead else { return nil }
        tellTroubles()
        let actions = client.release(at: loop.now())
        isReadUp = if case .send? = actions.last { true } else { false }
        return actions
    }

    private func awaitWritable() {
        guard let descriptor = socket?.descriptor, !isEnding else { return }
        // It is watched for input already, so it can be watched for room too.
        loop.onWritable(descriptor) { [weak self] in
            self?.assumeIsolated { $0.writable() }
        }
    }

    private func sendAgainLater() {
        guard end == nil, !isEnding else { return }
        _ = loop.schedule(at: loop.now() + .milliseconds(20)) { [weak self] in
            self?.assumeIsolated { $0.writable() }
        }
    }

    private func writable() {
        guard let descriptor = socket?.descriptor else { return }
        loop.onWritable(descriptor, nil)
        perform(client.writable(at: loop.now()))
    }

    // MARK: The socket

    func readable() {
        defer { tellTroubles() }
        readPackets()
    }

    /// Takes what one turn may take; answers whether there may be more.
    @discardableResult
    private func readPackets(pastAnswers: Bool = false) -> Bool {
        for _ in 0..<Self.packetsPerTurn {
            guard !isEnding, let input = socket?.receive(into: &inbound) else { return false }
            switch input {
            case .packet(let count, _):
                let opcode = take(count)
                // Values come in bursts, but after a response there is seldom anything, and the loop would call again. What there is
                // all the same is read before the next request is written.
                if !pastAnswers, opcode.isResponse { return false }
            case .wouldBlock:
                return false
            case .ended(let errno):
                linkEnded(errno)
                return false
            }
        }
        return true
    }

    /// Hands a packet that was read to the client; returns its opcode.
    @discardableResult
    private func take(_ count: Int) -> ATTOpcode {
        let pdu = Array(inbound.prefix(count))
        let now = loop.now()
        tellTrace(pdu, isOutgoing: false, at: now)
        perform(client.received(pdu, at: now))
        return ATTOpcode(rawValue: pdu.first ?? 0)
    }

    /// The controller has the link no more: it was reset.
    private func controllerForgot() {
        // What had come before is there to be read; so may be the end, with its reason.
        readable()
        if !isEnding { close(.adapterLost) }
    }

    func linkEnded(_ errno: Int32) {
        isEnding = true
        guard let controls else { return close(DisconnectReason(errno: errno, status: nil), code: errno) }
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
        Task(executorPreference: loop) {
            let status = await controls.lastReason()
            await self.close(DisconnectReason(errno: errno, status: status), code: errno)
        }
    }

    private func tellTrace(_ pdu: [UInt8], isOutgoing: Bool, at now: BootInstant) {
        guard trace != nil || linkTrace != nil else { return }
        let traced = TracedPDU(isOutgoing: isOutgoing, bytes: pdu, peer: name, time: now)
        trace?(traced)
        linkTrace?(.pdu(traced))
    }

    // MARK: Time

    private func armTimer() {
        let deadline = end == nil ? client.nextDeadline : nil
        // A timer that is too early stays: most requests are answered long before, and each would set and cancel one.
        if let timer {
            if end == nil, deadline.map({ timer.deadline <= $0 }) ?? true { return }
            loop.cancel(timer)
        }
        timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { $0.timePassed() }
            }
        }
    }

    private func timePassed() {
        timer = nil
        if let deadline = client.nextDeadline, deadline <= loop.now() {
            // What has arrived in time counts, however late this process comes to look at it. The kernel keeps no more than this.
            for _ in 0..<Self.turnsBeforeTheTime where !readPackets(pastAnswers: true) { break }
        }
        perform(client.timePassed(loop.now()))
    }

    // MARK: The end

    /// Ends the link: pending calls fail, then the subscriptions and channels end, then those who wait for the end are told.
    ///
    /// Each of them on the loop gets to know before the next ones do, however many jobs that takes.
    func close(_ cause: DisconnectReason, code: Int32 = 0) {
        guard end == nil else { return }
        let reason = isEndRequested ? .requested : cause
        end = reason
        for handler in endHandlers { handler(reason) }
        endHandlers = []
        linkTrace?(.ended(reason, at: loop.now()))
        linkTrace = nil
        tellEnding(reason)
        tellTroubles(isEnd: true)
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
        if let drops = socket?.droppedPackets { formerDrops = drops }
        socket = nil
        perform(client.linkLost(code, at: loop.now()))
        interruptCollectors()
        scheduler.linkLost()
        peerDatabase.linkLost()
        let ended = reason.isIntended ? nil : endError(during: "go on with a subscription")
        let streams = subscriptionHub.linkLost()
        loop.afterJobs { [self] in
            assumeIsolated { peripheral in
                for stream in streams { stream.finish(ended) }
                peripheral.peerDatabase.endObservers(ended)
                peripheral.endChannels(reason)
                peripheral.loop.afterJobs { peripheral.assumeIsolated { $0.tellEnd(reason) } }
            }
        }
    }

    private func tellEnd(_ reason: DisconnectReason) {
        for (_, waiter) in endWaiters.sorted(by: { $0.key < $1.key }) { waiter.resume(returning: reason) }
        endWaiters = [:]
    }
}
