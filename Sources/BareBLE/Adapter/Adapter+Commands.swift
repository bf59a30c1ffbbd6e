internal import BLECore
internal import BLELinux
internal import Logging

extension Adapter {
    /// How many packets one wake-up may take before the loop looks at its other descriptors.
    static let packetsPerTurn = 64

    // MARK: Sending

    /// Sends a command when its turn comes, and waits for its answer: 2 s at most from then on, and not beyond `deadline`.
    func run(
        _ command: HCICommandPacket, until deadline: BootInstant? = nil
    ) async -> Result<HCICommandComplete, HCICommandFailure> {
        var ticket: HCICommandQueue.Ticket?
        let (wake, number) = await suspend(until: deadline) { ticket = enqueue(command, for: .sleeper($0)) }
        if let answer = answers.removeValue(forKey: number) { return answer }
        // It may have ended in the same moment.
        if wake != .resumed, let ticket, owners[ticket] != nil {
            owners[ticket] = .nobody
            perform(queue.cancel(ticket, at: loop.now()))
        }
        return .failure(HCICommandFailure(opcode: command.opcode, reason: wake == .timedOut ? .timeout : .cancelled))
    }

    /// Sends a query, and reads its answer.
    func ask<Query: HCIQuery>(_ query: Query, during operation: String) async throws(BLEError) -> Query.Answer {
        do throws(HCICommandFailure) {
            return try await run(HCICommandPacket(query)).get().answer(to: Query.self)
        } catch {
            throw self.error(error, during: operation)
        }
    }

    @discardableResult
    func enqueue(_ command: HCICommandPacket, for owner: CommandOwner) -> HCICommandQueue.Ticket {
        let (ticket, actions) = queue.enqueue(command, at: loop.now())
        owners[ticket] = owner
        perform(actions)
        return ticket
    }

    // MARK: The machines' actions

    func perform(_ actions: [HCICommandQueue.Action]) {
        for action in actions {
            switch action {
            case .send(let packet): send(packet)
            case .finish(let ticket, let result): finished(ticket, result)
            case .foreign(let opcode, let status): foreign(opcode, status)
            }
        }
        armTimer()
    }

    func performSession(_ step: (inout ScanSession, BootInstant) -> [ScanSession.Action]) {
        guard var machine = session.take() else { return }
        let actions = step(&machine, loop.now())
        listening.set(isListening: machine.isScanning, at: loop.now())
        session = consume machine
        for action in actions {
            switch action {
            case .send(let command): enqueue(command, for: .scan)
            case .notify(let event): scanEvent(event)
            }
        }
        armTimer()
    }

    func performCall(_ step: (inout LEConnect, BootInstant) -> [LEConnect.Action]) {
        guard var machine = call.take() else { return }
        let actions = step(&machine, loop.now())
        let peer = machine.peer
        call = consume machine
        for action in actions {
            switch action {
            case .send(let command):
                enqueue(command, for: .call)
            case .withdraw(let opcode):
                perform(queue.withdraw(opcode, at: loop.now()))
            case .finish(let result):
                call = nil
                callResult = result
                if case .failure(.notTakenBack) = result { leftCall = LeftCall(peer: peer) }
                if let waiter = callWaiter { wake(waiter) }
            }
        }
        armTimer()
    }

    private func send(_ packet: [UInt8]) {
        guard let outcome = sockets?.commands.send(packet) else { return perform(queue.adapterLost()) }
        switch outcome {
        case .sent:
            tellTrace(packet.span, isOutgoing: true)
        case .wouldBlock:
            perform(queue.notSent(errno: SystemCallError.tryAgain, at: loop.now()))
        case .failed(let errno):
            switch SystemCallError(call: "send", errno: errno).meaning {
            case .adapterDown: lost(.down)
            case .adapterGone: lost(.gone)
            default: return perform(queue.notSent(errno: errno, at: loop.now()))
            }
            // Also where that was known before: nothing is out that could be answered.
            perform(queue.adapterLost())
        }
    }

    private func finished(_ ticket: HCICommandQueue.Ticket, _ result: Result<HCICommandComplete, HCICommandFailure>) {
        guard let owner = owners.removeValue(forKey: ticket) else { return }
        let failure: HCICommandFailure? =
            if case .failure(let failure) = result { failure } else { nil }
        if failure?.reason == .timeout { counted.unansweredCommands += 1 }
        switch owner {
        case .nobody:
            break
        case .scan:
            performSession { $0.commandFinished(failure, at: $1) }
        case .call:
            guard let opcode = failure?.opcode ?? (try? result.get())?.opcode else { break }
            if call == nil { leftCallAnswered(failure) }
            performCall { $0.commandFinished(opcode, failure, at: $1) }
        case .update(let key):
            // One that was taken ends with its event.
            if let failure { ended(key, .failed(failure)) }
        case .leftCall:
            leftCall?.isTakingBack = false
            leftCallAnswered(failure)
        case .sleeper(let number):
            guard sleepers[number] != nil else { break }
            answers[number] = result
            wake(number)
        }
        if case .success(let complete) = result {
            controllerAnswered(complete.opcode)
        } else if let failure, failure.status != nil {
            controllerAnswered(failure.opcode)
        }
    }

    private func foreign(_ opcode: HCIOpcode, _ status: HCIStatus?) {
        if opcode == .reset, status == .success {
            logger.debug("somebody reset the controller", metadata: ["adapter": "\(name)"])
            // A kernel that has not done it goes on with links that the controller has forgotten: nothing would ever come on them
            // again, and nobody would tell.
            let handlers = lossHandlers.sorted { $0.key < $1.key }
            // The kernel resets it as well when it switches it on.
            if presence == .up { counted.losses += 1 }
            controllerReset()
            for (_, handler) in handlers { handler() }
            // While it is being switched on, the kernel is not done yet.
            if presence == .up { performSession { $0.adapterUp(at: $1) } }
            return
        }
        // Late, or of another program: in any case nothing is out.
        if opcode == .leCreateConnectionCancel, status == .commandDisallowed { leftCallEnded() }
        performSession { $0.foreignCompletion(opcode, status, at: $1) }
    }

    // MARK: Receiving

    func commandsReadable() {
        defer { tellTroubles() }
        for _ in 0..<Self.packetsPerTurn {
            guard let input = sockets?.commands.receive(into: &inbound) else { return }
            guard let event = event(input) else { return }
            let now = loop.now()
            switch event {
            case .commandComplete(let complete):
                perform(queue.received(complete, at: now))
            case .commandStatus(let status):
                perform(queue.received(status, at: now))
            case .disconnectionComplete(let end):
                linkEnded(end)
            case .hardwareError:
                counted.hardwareErrors += 1
            case .connectionComplete(let complete):
                callEnded(complete)
            case .unknown, .unknownMeta, .emptyMeta:
                counted.unknownEvents += 1
            case .encryptionChange, .readRemoteVersionComplete, .numberOfCompletedPackets, .connectionUpdateComplete,
                .remoteFeaturesComplete, .dataLengthChange, .phyUpdateComplete, .advertisingReports:
                continue
            }
        }
    }

    func reportsReadable() {
        defer { tellTroubles() }
        let now = loop.now()
        for _ in 0..<Self.packetsPerTurn {
            guard let input = sockets?.reports.receive(into: &inbound) else { return }
            guard let event = event(input) else { return }
            switch event {
            case .advertisingReports(let batch):
                counted.reportLosses += batch.losses
                for report in batch.reports { received(report, at: now) }
            case .connectionComplete(let complete):
                linkBegan(complete)
                callEnded(complete)
            case .connectionUpdateComplete(let complete):
                linkUpdated(complete)
            case .phyUpdateComplete(let complete):
                linkUpdated(complete)
            case .unknown, .unknownMeta, .emptyMeta:
                counted.unknownEvents += 1
            case .commandComplete, .commandStatus, .disconnectionComplete, .hardwareError, .encryptionChange,
                .readRemoteVersionComplete, .numberOfCompletedPackets, .remoteFeaturesComplete, .dataLengthChange:
                continue
            }
        }
    }

    /// The event that was read; an unreadable one counts as unknown. `nil` when there is nothing to read now.
    private func event(_ input: HCIInput) -> HCIEvent? {
        switch input {
        case .wouldBlock:
            return nil
        case .gone:
            lost(.gone)
            return nil
        case .packet(let count, let length):
            let packet = inbound.span.extracting(first: count)
            tellTrace(packet, isOutgoing: false)
            guard length == count, count > 1, inbound.first == HCIPacketType.event.rawValue,
                let event = try? HCIEvent(packet.extracting(droppingFirst: 1))
            else {
                counted.malformedEvents += 1
                return .emptyMeta
            }
            return event
        }
    }

    private func tellTrace(_ packet: Span<UInt8>, isOutgoing: Bool) {
        guard let trace else { return }
        var reader = ByteReader(packet)
        guard let type = reader.u8().flatMap(HCIPacketType.init(rawValue:)) else { return }
        trace(
            TracedHCIPacket(
                isOutgoing: isOutgoing, type: type, bytes: reader.rest(), adapter: name, time: loop.now()))
    }
}
