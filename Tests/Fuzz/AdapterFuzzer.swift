// One adapter as the input has it: its queue of commands, the scan that shares it with a connection attempt, the
// controller's responses, what other programs do to it, and how time passes.
//
// What holds in every run:
// - one command is on the wire at a time, and each ticket ends exactly once;
// - the scan has one command out at a time; what it was asked for gets a response once, and it sends nothing while the
//   adapter is down;
// - an attempt ends exactly once, and by itself once it was cancelled and time passes.

@testable import BLECore

func fuzzAdapter(_ input: [UInt8]) { FuzzedAdapter.play(input, atMost: 512) }

private struct FuzzedAdapter: ~Copyable, FuzzedRun {
    private enum Owner {
        case scan
        case connect
        case nobody
    }

    var script: FuzzInput
    private var queue = HCICommandQueue()
    private var scan: ScanSession
    private var initiator = Initiator()
    /// Whether an attempt, or the confirmation of a cancel, has begun and not ended.
    private var isConnecting = false
    private var now = BootInstant(nanoseconds: 1_000_000_000)

    private var owners: [HCICommandQueue.Ticket: Owner] = [:]
    private var finished: [(Owner, HCIOpcode, HCICommandFailure?)] = []
    private var tickets: [HCICommandQueue.Ticket] = []
    private var wire: HCIOpcode?
    private var scanCommandsOut = 0
    private var isDown = false
    private var owesPaused = false
    private var owesEnded = false
    private let peer = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE12_3456), type: .random)

    init(_ input: [UInt8]) {
        script = FuzzInput(input)
        let hasExtended = script.byte() & 1 == 1
        scan = ScanSession(.init(features: hasExtended ? [.extendedAdvertising, .coded] : []))
    }

    // MARK: What the machines want

    private mutating func obey(_ actions: [HCICommandQueue.Action]) {
        for action in actions {
            switch action {
            case .send(let packet):
                require(wire == nil, "one command is on the wire at a time")
                wire = packet.opcode
            case .finish(let ticket, let result):
                guard let owner = owners.removeValue(forKey: ticket) else {
                    return require(false, "every ticket ends exactly once")
                }
                switch result {
                case .success(let complete): finished.append((owner, complete.opcode, nil))
                case .failure(let failure): finished.append((owner, failure.opcode, failure))
                }
            case .foreign(let opcode, let status):
                obey(initiator.foreignCompletion(opcode, status, at: now))
                obey(scan.foreignCompletion(opcode, status, at: now))
            case .noResponse: break
            }
        }
        while !finished.isEmpty {
            let (owner, opcode, failure) = finished.removeFirst()
            switch owner {
            case .scan:
                scanCommandsOut -= 1
                obey(scan.commandFinished(failure, at: now))
            case .connect:
                obey(initiator.commandFinished(opcode, failure, at: now))
            case .nobody:
                break
            }
            if failure == nil || failure?.status != nil { obey(initiator.controllerResponded(opcode)) }
        }
    }

    private mutating func obey(_ actions: [ScanSession.Action]) {
        for action in actions {
            switch action {
            case .send(let packet):
                require(!isDown, "nothing is sent to an adapter that is down")
                require(scanCommandsOut == 0, "the scan has one command out at a time")
                scanCommandsOut += 1
                enqueue(packet, .scan)
            case .notify(.paused):
                require(owesPaused, "a pause is acknowledged once")
                owesPaused = false
            case .notify(.ended):
                require(owesEnded, "an end is acknowledged once")
                owesEnded = false
            case .notify: break
            }
        }
    }

    private mutating func obey(_ actions: [Initiator.Action]) {
        for action in actions {
            switch action {
            case .send(let packet): enqueue(packet, .connect)
            case .withdraw(let opcode): obey(queue.withdraw(opcode, at: now))
            case .disconnect(let handle, _): enqueue(HCICommandPacket(HCIDisconnect(handle: handle)), .nobody)
            case .finish, .cancelConfirmed:
                require(isConnecting, "what has begun ends once")
                require(!initiator.isBusy, "what has ended says so")
                isConnecting = false
            }
        }
    }

    private mutating func enqueue(_ packet: HCICommandPacket, _ owner: Owner) {
        let (ticket, actions) = queue.enqueue(packet, at: now)
        owners[ticket] = owner
        tickets.append(ticket)
        obey(actions)
    }

    // MARK: What happens

    mutating func step() {
        switch script.byte() % 18 {
        case 0: if let event = try? HCIEvent(script.piece().span) { received(event) }
        case 1: completed(wire ?? .none, script.byte())
        case 2:
            let status = HCIStatus(rawValue: script.byte())
            received(
                .commandStatus(HCICommandStatus(status: status, credits: script.byte() & 1, opcode: wire ?? .none)))
        case 3: completed(script.byte() & 1 == 0 ? .leSetScanEnable : .leSetExtendedScanEnable, 0)
        case 4:
            let pause = script.pause()
            now = now + pause
            pass()
        case 5: startScan()
        case 6:
            owesEnded = true
            obey(scan.stop(at: now))
        case 7:
            owesPaused = true
            obey(scan.pause(at: now))
        case 8: obey(scan.resume(at: now))
        case 9: goDown()
        case 10:
            isDown = false
            obey(scan.adapterUp(at: now))
        case 11: connect()
        case 12: obey(initiator.cancel(at: now))
        case 13: linkUp()
        case 14:
            wire = nil
            obey(queue.notSent(errno: 100, at: now))
        case 15:
            let opcode = HCIOpcode(rawValue: script.word())
            enqueue(HCICommandPacket(opcode: opcode, parameters: []), .nobody)
        case 16:
            guard !tickets.isEmpty else { return }
            let ticket = tickets[Int(script.byte()) % tickets.count]
            guard case .nobody = owners[ticket] else { return }
            obey(queue.cancel(ticket, at: now))
        case 17: anotherProgram()
        default: return
        }
    }

    private mutating func completed(_ opcode: HCIOpcode, _ status: UInt8) {
        let isEmpty = status == 0xEE
        received(
            .commandComplete(
                HCICommandComplete(
                    credits: script.byte() & 1, opcode: opcode, returnParameters: isEmpty ? [] : [status])))
    }

    /// Another program initiates or cancels, or the controller responds to that.
    private mutating func anotherProgram() {
        let choice = script.byte()
        let opcodes: [HCIOpcode] = [.leCreateConnection, .leExtendedCreateConnection, .leCreateConnectionCancel]
        let opcode = opcodes[Int(choice & 0x0F) % opcodes.count]
        guard choice & 0x10 != 0 else { return initiator.received(HCICommandPacket(opcode: opcode, parameters: [])) }
        let status: HCIStatus = choice & 0x20 == 0 ? .success : .commandDisallowed
        received(.commandStatus(HCICommandStatus(status: status, credits: 1, opcode: opcode)))
    }

    private mutating func received(_ event: HCIEvent) {
        switch event {
        case .commandComplete(let complete):
            if complete.opcode == wire, complete.opcode != .none { wire = nil }
            obey(queue.received(complete, at: now))
        case .commandStatus(let status):
            if status.opcode == wire, status.opcode != .none { wire = nil }
            obey(queue.received(status, at: now))
        case .connectionComplete(let complete):
            obey(initiator.received(complete, at: now))
        case .advertisingReports(let batch):
            for report in batch.reports { scan.reportSeen(hasData: !report.data.isEmpty, at: now) }
        case .disconnectionComplete, .encryptionChange, .encryptionKeyRefresh, .readRemoteVersionComplete,
            .hardwareError, .dataLengthChange, .numberOfCompletedPackets, .connectionUpdateComplete,
            .remoteFeaturesComplete, .phyUpdateComplete, .advertisingSetTerminated, .scanRequestReceived, .emptyMeta,
            .unknownMeta, .unknown:
            break
        }
    }

    private mutating func pass() {
        if let due = queue.nextDeadline, due <= now { wire = nil }
        obey(queue.timePassed(now))
        obey(scan.timePassed(now))
        obey(initiator.timePassed(now))
        require(queue.nextDeadline.map { $0 > now } ?? true, "what was due in the queue has been done")
        require(scan.nextDeadline.map { $0 > now } ?? true, "what was due in the scan has been done")
        require(initiator.nextDeadline.map { $0 > now } ?? true, "what was due in the attempt has been done")
    }

    private mutating func startScan() {
        let settings: [ScanSettings] = [.balanced, .passive, .lowLatency, .coexist, .longRange]
        let plan = ScanPlan(settings[Int(script.byte()) % settings.count])
        // One that is still owed gets a response by the start.
        obey(scan.start(plan, at: now))
    }

    private mutating func goDown() {
        isDown = true
        wire = nil
        // The scan's own command fails, and so the scan hears of it before `adapterDown`.
        obey(queue.adapterLost())
        obey(scan.adapterDown())
        obey(initiator.adapterLost(at: now))
        require(!isConnecting && initiator.isIdle, "an attempt ends with the adapter")
        require(!owesPaused && !owesEnded, "an adapter that is down scans for nobody")
    }

    private mutating func connect() {
        guard !isConnecting else { return }
        isConnecting = true
        let choice = script.byte()
        let deadline = now + .milliseconds(Int64(choice) * 100)
        if initiator.hasPendingCancel { return obey(initiator.confirmCancel(for: peer, until: deadline, at: now)) }
        obey(
            initiator.begin(
                .init(LEInitiation(peer: peer), isExtended: choice & 1 == 1, deadline: deadline), at: now))
    }

    private mutating func linkUp() {
        let choice = script.byte()
        let address = (0..<6).map { UInt8(truncatingIfNeeded: peer.address.rawValue >> (8 * UInt64($0))) }
        let parameters: [UInt8] =
            [0x01, script.byte(), 64, 0, choice >> 7, 1] + (choice & 1 == 0 ? address : [0, 0, 0, 0, 0, 0])
            + [24, 0, 0, 0, 42, 0, 0]
        let bytes = [0x3E, UInt8(parameters.count)] + parameters
        if let event = try? HCIEvent(bytes.span) { received(event) } else { require(false, "the event is one") }
    }

    // MARK: The end

    mutating func end() {
        obey(initiator.cancel(at: now))
        owesEnded = true
        obey(scan.stop(at: now))
        var rounds = 0
        while isConnecting || !owners.isEmpty {
            let connecting = initiator.nextDeadline
            guard let due = [queue.nextDeadline, connecting].compactMap({ $0 }).min() else {
                return require(false, "whatever waits waits for a time")
            }
            now = max(now, due)
            pass()
            rounds += 1
            require(rounds < 256, "the clock does not run forever")
        }
        // One whose end was not confirmed is ended again after a pause.
        require(!scan.isScanning && !owesEnded && !owesPaused, "a scan that nobody wants is over")
        goDown()
    }
}
