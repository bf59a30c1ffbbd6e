// The management interface of the kernel as the input has it: packets as they are, responses to what was sent, what
// other programs do, pairings that begin and end, and how time passes.
//
// What holds in every run:
// - one command of a code is out at a time for an adapter, and each ticket ends exactly once;
// - a setup that began ends once, each load of keys ends once and in order, and a pairing may begin once;
// - no list of keys is loaded while a pairing runs.

@testable import BLECore

func fuzzManagement(_ input: [UInt8]) {
    readManagement(input)
    FuzzedManagement.play(input, atMost: 512)
}

/// Reads the input as a packet, and what follows its header as the response to each command.
private func readManagement(_ input: [UInt8]) {
    use(try? MonitorPacket(input.span))
    if let packet = try? ManagementPacket(input.span) {
        require(packet.bytes == input, "what was decoded encodes to the same bytes")
    }
    use(try? ManagementEvent(input.span))
    let returned = Array(input.dropFirst(6))
    use(try? ManagementReadVersion.response(from: returned.span))
    use(try? ManagementReadControllerInformation.response(from: returned.span))
    use(try? ManagementReadControllerCapabilities.response(from: returned.span))
    use(try? ManagementReadLocalOutOfBandData.response(from: returned.span))
    use(try? ManagementReadConfigurationInformation.response(from: returned.span))
    use(try? ManagementSetPowered.response(from: returned.span))
    use(try? ManagementPairDevice.response(from: returned.span))
    use(try? ManagementLoadLongTermKeys.response(from: returned.span))
    use(try? ManagementAddExtendedAdvertisingParameters.response(from: returned.span))
    use(try? ManagementRemoveAdvertising.response(from: returned.span))
    if let features = try? ManagementReadAdvertisingFeatures.response(from: returned.span) {
        require(features.instances.count + 8 == returned.count, "no instance is made up")
    }
    if let peers = try? ManagementGetConnections.response(from: returned.span) {
        require(peers.count * 7 + 2 == returned.count, "no peer is made up")
    }
    if let indices = try? ManagementReadUnconfiguredIndexList.response(from: returned.span) {
        require(indices.count * 2 + 2 == returned.count, "no adapter is made up")
    }
}

private struct FuzzedManagement: ~Copyable, FuzzedRun {
    /// A command that was written and has no response.
    private struct Written {
        let ticket: ManagementCommandQueue.Ticket
        let packet: ManagementPacket
        var until: BootInstant
    }

    var script: FuzzInput
    private var queue: ManagementCommandQueue
    private var setup = ManagementSetup(adapter: 0, at: BootInstant(nanoseconds: 1_000_000_000))
    private var now = BootInstant(nanoseconds: 1_000_000_000)

    /// Whether the setup sent it.
    private var owners: [ManagementCommandQueue.Ticket: Bool] = [:]
    private var tickets: [ManagementCommandQueue.Ticket] = []
    private var timeouts: [ManagementCommandQueue.Ticket: Duration] = [:]
    private var written: [Written] = []
    private var isBeginning = false
    private var requestedLoad: UInt64 = 0
    private var endedLoad: UInt64 = 0
    private var pairingWaits = false
    private var pairingRuns = false

    init(_ input: [UInt8]) {
        script = FuzzInput(input)
        queue = ManagementCommandQueue(largestPacket: script.byte() & 1 == 1 ? 1_028 : 0xFFFF)
    }

    // MARK: What the machines want

    private mutating func obey(_ actions: [ManagementCommandQueue.Action]) {
        for action in actions {
            switch action {
            case .send(let ticket, let secret):
                let bytes = secret.bytes
                guard let packet = try? ManagementPacket(bytes.span) else {
                    return require(false, "what is sent is a packet")
                }
                require(
                    !written.contains { $0.packet.code == packet.code && $0.packet.adapter == packet.adapter },
                    "one command of a code is out at a time")
                let code = ManagementCommandCode(rawValue: packet.code)
                let timeout = timeouts[ticket] ?? ManagementCommandQueue.timeout(of: code)
                written.append(Written(ticket: ticket, packet: packet, until: now + timeout))
            case .finish(let ticket, let result):
                guard let isSetup = owners.removeValue(forKey: ticket) else {
                    return require(false, "every ticket ends exactly once")
                }
                guard isSetup else { continue }
                switch result {
                case .success(let complete): obey(setup.commandFinished(complete.command, result, at: now))
                case .failure(let failure): obey(setup.commandFinished(failure.code, result, at: now))
                }
            }
        }
    }

    private mutating func obey(_ actions: [ManagementSetup.Action]) {
        for action in actions {
            switch action {
            case .send(let packet): enqueue(packet, isSetup: true)
            case .load(let list):
                require(!pairingRuns, "no list is loaded while a pairing runs")
                switch list {
                case .identityResolvingKeys:
                    enqueue(ManagementLoadIdentityResolvingKeys([]).packet(adapter: 0), isSetup: true)
                case .longTermKeys: enqueue(ManagementLoadLongTermKeys([]).packet(adapter: 0), isSetup: true)
                }
            case .finish:
                require(isBeginning, "a setup ends once")
                isBeginning = false
            case .listsLoaded(let number, _):
                require(number > endedLoad, "loads end once and in order")
                endedLoad = number
            case .pairingMayBegin:
                require(pairingWaits && !pairingRuns, "a pairing may begin once")
                (pairingWaits, pairingRuns) = (false, true)
            case .pairingRefused:
                require(pairingWaits && !pairingRuns, "a pairing is refused once")
                pairingWaits = false
            case .madeBondable:
                require(!pairingRuns, "a pairing is bondable itself")
            case .bondableCleared: require(false, "what nobody has asked for is not set again")
            case .rested, .wasBondable, .secureConnectionsOff, .privacyOn: break
            }
        }
    }

    private mutating func enqueue(_ packet: ManagementPacket, isSetup: Bool, timeout: Duration? = nil) {
        let (ticket, actions) = queue.enqueue(packet, timeout: timeout, at: now)
        owners[ticket] = isSetup
        tickets.append(ticket)
        timeouts[ticket] = timeout
        obey(actions)
    }

    // MARK: What happens

    mutating func step() {
        switch script.byte() % 19 {
        case 0: receive(script.packet())
        case 1, 2: respond(0)
        case 3: respond(script.byte())
        case 4:
            guard let command = written.first else { return }
            let header = [2, 0] + index(command.packet) + [3, 0] + number(command.packet.code)
            receive(header + [script.byte()])
        case 5:
            now = now + script.pause()
            pass()
        case 6:
            let bits = script.byte()
            isBeginning = true
            obey(
                setup.begin(
                    ManagementSetup.Plan(
                        powersOn: bits & 1 == 1, mayCyclePower: bits & 2 == 0,
                        canPair: bits & 4 == 0 ? nil : bits & 8 == 0)))
        case 7:
            let (load, actions) = setup.reload()
            require(load > endedLoad, "a load that was requested has not ended")
            requestedLoad = max(requestedLoad, load)
            obey(actions)
        case 8:
            guard !pairingWaits, !pairingRuns else { return }
            pairingWaits = true
            obey(setup.pairingBegins())
        case 9:
            (pairingWaits, pairingRuns) = (false, false)
            obey(setup.pairingEnds(isBondable: false))
        case 10: obey(setup.received(ManagementSettings(rawValue: UInt32(script.word())), at: now))
        case 11: adapterLost()
        case 12: socketLost()
        case 13:
            guard let command = written.popLast() else { return }
            obey(queue.notSent(command.ticket, errno: 22, at: now))
        case 14: setup.cannotPair()
        case 15:
            let packet = ManagementPacket(
                code: script.word() & 0x3F, adapter: UInt16(script.byte() & 1), parameters: script.piece())
            enqueue(
                packet, isSetup: false, timeout: script.byte() & 1 == 0 ? nil : max(.milliseconds(1), script.pause()))
        case 16:
            guard !tickets.isEmpty else { return }
            let ticket = tickets[Int(script.byte()) % tickets.count]
            guard owners[ticket] == false else { return }
            obey(queue.cancel(ticket))
        case 18:
            (pairingWaits, pairingRuns) = (false, false)
            obey(setup.pairingEnds(isBondable: true))
        default: respond(0x0A)
        }
    }

    /// The kernel's response to the oldest command.
    private mutating func respond(_ status: UInt8) {
        guard let command = written.first else { return }
        let packet = command.packet
        var returned: [UInt8] = []
        switch ManagementCommandCode(rawValue: packet.code) {
        case .readControllerInformation:
            returned = [UInt8](repeating: 0, count: 9) + number(script.word()) + [0, 0] + number(script.word())
            returned += [UInt8](repeating: 0, count: 2 + 3 + 249 + 11)
        case .setPowered, .setBondable, .setLowEnergy, .setSecureSimplePairing, .setSecureConnections:
            returned = number(script.word()) + [0, 0]
        default: break
        }
        let parameters = number(packet.code) + [status] + (status == 0 ? returned : [])
        receive([1, 0] + index(packet) + number(UInt16(parameters.count)) + parameters)
    }

    private mutating func receive(_ bytes: [UInt8]) {
        guard let event = try? ManagementEvent(bytes.span) else { return }
        switch event.content {
        case .commandComplete(let complete):
            respondTo(complete.command, event.adapter)
            obey(queue.received(complete, adapter: event.adapter, at: now))
        case .commandStatus(let status):
            if status.status != .success { respondTo(status.command, event.adapter) }
            obey(queue.received(status, adapter: event.adapter, at: now))
        case .newSettings(let settings) where event.adapter == 0: obey(setup.received(settings, at: now))
        case .indexRemoved where event.adapter == 0, .indexAdded where event.adapter == 0: adapterLost()
        default: use(event)
        }
    }

    private mutating func respondTo(_ code: ManagementCommandCode, _ adapter: UInt16?) {
        written.removeAll { $0.packet.code == code.rawValue && $0.packet.adapter == adapter }
    }

    private mutating func pass() {
        let time = now
        written.removeAll { $0.until <= time }
        obey(queue.timePassed(now))
        obey(setup.timePassed(now))
        require(queue.nextDeadline.map { $0 > now } ?? true, "what was due in the queue has been done")
        require(setup.nextDeadline.map { $0 > now } ?? true, "what was due in the setup has been done")
    }

    private mutating func adapterLost() {
        written.removeAll { $0.packet.adapter == 0 }
        obey(queue.adapterLost(0))
        obey(setup.adapterLost())
        require(!isBeginning && !setup.isManaged, "a setup ends with the adapter")
        require(endedLoad >= requestedLoad, "loads end with the adapter")
    }

    private mutating func socketLost() {
        written = []
        obey(queue.socketLost())
        require(owners.isEmpty, "commands end with the socket")
    }

    private func number(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
    private func index(_ packet: ManagementPacket) -> [UInt8] { number(packet.adapter ?? 0xFFFF) }

    // MARK: The end

    mutating func end() {
        (pairingWaits, pairingRuns) = (false, false)
        obey(setup.pairingEnds(isBondable: false))
        var rounds = 0
        while isBeginning || endedLoad < requestedLoad || !owners.isEmpty {
            let pausing = setup.nextDeadline
            guard let due = [queue.nextDeadline, pausing].compactMap({ $0 }).min() else {
                return require(false, "whatever waits waits for a time")
            }
            now = max(now, due)
            pass()
            rounds += 1
            require(rounds < 1_024, "the clock does not run forever")
        }
        adapterLost()
        socketLost()
    }
}
