// Pairings of one adapter, one after the other, as the input has them: the kernel's questions, keys and responses in
// any order, the agent's replies, cancels, deadlines, ends of links and of the adapter, and what other programs do
// meanwhile. The exchange, the setup of the adapter and the queue of commands are put together as `SecurityCoordinator`
// has them.
//
// What holds in every run:
// - a pairing ends exactly once; nothing is asked, read or stored before it has begun or after it has ended;
// - a success has had Pair Device, a key for storage, encryption, and a stored bond of the level and size that were
//   demanded;
// - the agent is asked only while Pair Device is out, with a new number each time, and only what the kernel has asked
//   about this peer; the kernel gets a yes or a passkey only as the reply to the last question;
// - the adapter is bondable neither when a bond is stored nor when the pairing has ended, unless it is gone;
// - what a failed pairing has left is removed from the kernel, and nothing of another bond is;
// - no list is loaded while a pairing runs, or while its Pair Device is out;
// - what a pairing keeps does not grow with the number of events.

@testable import BLECore

func fuzzPairing(_ input: [UInt8]) {
    FuzzedPairings.play(input, atMost: 512)
}

private struct FuzzedPairings: ~Copyable, FuzzedRun {
    /// A command that was written and has no response.
    private struct Written {
        let ticket: ManagementCommandQueue.Ticket
        let packet: ManagementPacket
        let until: BootInstant
    }

    private enum Owner {
        case setup
        case pairing(PairingExchange.Command)
    }

    /// A pairing from its demand to its end, as it looks from outside.
    private struct Pairing {
        let demand: PairingExchange.Demand
        var mayBegin = false
        /// How often Pair Device was sent.
        var begun = 0
        /// Whether the exchange has begun to undo what it has done, or to check what it has got.
        var isClosing = false
        var isCancelled = false
        var isReading = false
        var isStoring = false
        var outcome: PairingExchange.Outcome?
        var isStored = false
        var isLost = false
        /// Whether the last Set Bondable that was sent switched it on.
        var isBondable = false
        var wasEncrypted = false
        var lastSecurity: (level: UInt8, keySize: UInt8)?
        /// The keys for storage since the last Pair Device.
        var keys: [ManagementLongTermKey] = []
        /// Whether the kernel has a key that the exchange knows of and has not removed.
        var hasLeftovers = false
        /// Whether the peer has said that it is another bond's.
        var hasForeignIdentity = false
        /// The question of the event that is being handled.
        var question: PairingExchange.Question?
        /// The command that the reply that is being handled may cause.
        var permitted: PairingExchange.Command?
    }

    private static let index: UInt16 = 0
    private static let identity = ManagementPeer(address: BluetoothAddress(rawValue: 0xC655_4433_2211), rawType: 2)
    private static let onAir = ManagementPeer(address: BluetoothAddress(rawValue: 0x62CC_28F3_EE75), rawType: 2)
    private static let otherBond = ManagementPeer(address: BluetoothAddress(rawValue: 0x0102_0304_0506), rawType: 1)
    private static let stranger = ManagementPeer(address: BluetoothAddress(rawValue: 0xC712_3456_789A), rawType: 2)

    var script: FuzzInput
    private var queue = ManagementCommandQueue(largestPacket: 0xFFFF)
    private var setup: ManagementSetup
    private var exchange = PairingExchange()
    private var now = BootInstant(nanoseconds: 10_000_000_000)
    /// The kernel's settings: Low Energy is on, the power is off.
    private var settings: UInt32 = 1 << 9

    private var owners: [ManagementCommandQueue.Ticket: Owner] = [:]
    private var written: [Written] = []
    private var pairing: Pairing?
    private var remains: Bool?
    private var lastQuestion: UInt64 = 0

    init(_ input: [UInt8]) {
        script = FuzzInput(input)
        setup = ManagementSetup(adapter: Self.index, at: BootInstant(nanoseconds: 0))
        manage()
    }

    /// Puts the adapter under management, which has no faults here: `fuzzManagement` has all of them.
    private mutating func manage() {
        obey(setup.begin(ManagementSetup.Plan(powersOn: true)))
        while !written.isEmpty { respond(at: 0, 0) }
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
                let code = ManagementCommandCode(rawValue: packet.code)
                written.append(
                    Written(ticket: ticket, packet: packet, until: now + ManagementCommandQueue.timeout(of: code)))
            case .finish(let ticket, let result):
                // The ones of a pairing that has ended are nobody's.
                guard let owner = owners.removeValue(forKey: ticket) else { continue }
                switch owner {
                case .pairing(let command): finished(command, result)
                case .setup:
                    switch result {
                    case .success(let complete): obey(setup.commandFinished(complete.command, result, at: now))
                    case .failure(let failure): obey(setup.commandFinished(failure.code, result, at: now))
                    }
                }
            }
        }
    }

    private mutating func finished(
        _ command: PairingExchange.Command, _ result: Result<ManagementCommandComplete, ManagementCommandFailure>
    ) {
        let end: PairingExchange.CommandEnd
        switch result {
        case .success(let complete):
            let peer = try? ManagementDisconnect.response(from: complete.returnParameters.span)
            if command == .pair, peer == Self.otherBond { pairing?.hasForeignIdentity = true }
            end = .success(peer)
        case .failure(let failure):
            switch failure.reason {
            case .status(let status): end = .failure(status)
            case .adapterLost, .socketLost:
                pairing?.isLost = true
                end = .lost
            case .malformed, .timeout, .queueFull, .tooLong, .cancelled, .notSent: end = .noResponse
            }
        }
        obey(exchange.commandFinished(command, end, at: now))
    }

    private mutating func obey(_ actions: [ManagementSetup.Action]) {
        for action in actions {
            switch action {
            case .send(let packet): enqueue(packet, .setup)
            case .load(let list):
                require(!exchange.isRunning, "no list is loaded while a pairing runs")
                require(
                    !queue.isOut(.pairDevice, adapter: Self.index) || pairing == nil && remains == nil,
                    "no list is loaded while a Pair Device is out")
                switch list {
                case .identityResolvingKeys:
                    enqueue(ManagementLoadIdentityResolvingKeys([]).packet(adapter: Self.index), .setup)
                case .longTermKeys: enqueue(ManagementLoadLongTermKeys([]).packet(adapter: Self.index), .setup)
                }
            case .pairingMayBegin:
                guard let demand = pairing?.demand else { return require(false, "a pairing that may begin waits") }
                require(pairing?.mayBegin == false, "a pairing may begin once")
                pairing?.mayBegin = true
                obey(exchange.begin(demand))
            case .pairingRefused:
                require(pairing?.mayBegin == false, "a pairing is refused once, and before it has begun")
                endPairing()
            case .madeBondable: require(!exchange.isRunning, "a pairing is bondable itself")
            case .bondableCleared: require(false, "what nobody has asked for is not set again")
            case .finish, .listsLoaded, .rested, .wasBondable, .secureConnectionsOff, .privacyOn: break
            }
        }
    }

    private mutating func obey(_ actions: [PairingExchange.Action]) {
        for action in actions {
            guard var running = pairing, running.mayBegin else {
                return require(false, "nothing is wanted without a pairing")
            }
            switch action {
            case .send(let command, let peer):
                note(command, peer, &running)
                pairing = running
                enqueue(
                    command.packet(peer, running.demand.capability, adapter: Self.index), .pairing(command))
            case .ask(let question, let number):
                require(number > lastQuestion, "no two questions have the same number")
                require(running.question == question, "only what the kernel has asked about this peer is asked")
                require(
                    running.begun > 0 && !running.isClosing && !running.isCancelled,
                    "the agent is asked while Pair Device is out")
                lastQuestion = number
            case .readSecurity:
                require(!running.isReading, "the security is read once at a time")
                running.isReading = true
                if running.begun > 0 { running.isClosing = true }
                pairing = running
            case .store(let outcome):
                require(!running.isStoring && running.outcome == nil, "a bond is stored once")
                require(!running.isBondable, "the adapter is not bondable when a bond is stored")
                check(outcome, running)
                running.isStoring = true
                running.outcome = outcome
                pairing = running
            case .finish(let result):
                require(!exchange.isRunning, "an exchange that has ended does not run")
                require(!running.isBondable || running.isLost, "no ended pairing leaves the adapter bondable")
                require(exchange.nextDeadline == nil, "an exchange that has ended waits for nothing")
                switch result {
                case .success(let outcome):
                    require(running.isStored && running.outcome == outcome, "a bond that is reported is stored")
                case .failure:
                    require(!running.isStored, "a bond that is stored is reported")
                    require(
                        !running.hasLeftovers || running.isLost || running.hasForeignIdentity,
                        "the keys of a failed pairing are removed")
                }
                endPairing()
            }
        }
    }

    private func note(_ command: PairingExchange.Command, _ peer: ManagementPeer, _ running: inout Pairing) {
        switch command {
        case .setBondable(let isOn):
            running.isBondable = isOn
            if !isOn { running.isClosing = true }
        case .pair:
            running.begun += 1
            require(running.begun <= 2, "a pairing begins at most twice")
            require(running.isBondable, "the adapter is bondable while it pairs")
            running.keys = []
            running.hasLeftovers = false
            running.isClosing = false
        case .removeKeys, .removeReplacedBond:
            require(peer != Self.otherBond, "nothing of another bond is removed")
            running.hasLeftovers = false
            if running.begun > 0 { running.isClosing = true }
        case .clearOutOfBandData, .disconnect: if running.begun > 0 { running.isClosing = true }
        case .confirm, .enter: require(running.permitted == command, "the kernel gets a yes as the agent's reply alone")
        case .cancelPairing: running.isCancelled = true
        case .addOutOfBandData, .reject, .enterNothing: break
        }
    }

    private func check(_ outcome: PairingExchange.Outcome, _ running: Pairing) {
        let demand = running.demand
        require(running.begun > 0, "a bond has had Pair Device")
        require(running.wasEncrypted || !demand.followsEncryption, "a bond has had encryption")
        require(
            running.lastSecurity.map { $0.level >= 2 && $0.keySize >= 7 } ?? false, "the link of a bond is encrypted")
        require(!outcome.longTermKeys.isEmpty, "a bond has a key")
        require(outcome.longTermKeys.count <= 2, "a bond has one key for each role at most")
        require(
            outcome.longTermKeys.allSatisfy { running.keys.contains($0) }, "a key is one of this pairing, for storage")
        require(
            outcome.longTermKeys.allSatisfy { ($0.kind.level.map { $0 >= demand.level } ?? false) },
            "each key is worth the level that was demanded")
        require(
            outcome.longTermKeys.allSatisfy { $0.size >= demand.minimumKeySize },
            "each key has the size that was demanded")
        require(!demand.otherBonds.contains(outcome.identity), "no other bond is replaced")
        require(outcome.identity.kind == .public || outcome.identity.kind == .static, "an identity does not change")
    }

    private mutating func enqueue(_ packet: ManagementPacket, _ owner: Owner) {
        let (ticket, actions) = queue.enqueue(packet, at: now)
        owners[ticket] = owner
        obey(actions)
    }

    private mutating func endPairing() {
        pairing = nil
        for (ticket, owner) in owners {
            guard case .pairing = owner else { continue }
            owners[ticket] = nil
            obey(queue.cancel(ticket))
        }
        if queue.isOut(.pairDevice, adapter: Self.index) {
            remains = exchange.mayBeBondable
        } else {
            obey(setup.pairingEnds(isBondable: exchange.mayBeBondable))
        }
    }

    private mutating func leaveRemains() {
        guard let isBondable = remains, !queue.isOut(.pairDevice, adapter: Self.index) else { return }
        remains = nil
        obey(setup.pairingEnds(isBondable: isBondable))
    }

    // MARK: What happens

    mutating func step() {
        switch script.byte() % 20 {
        case 0: begin()
        case 1, 2: if !written.isEmpty { respond(at: 0, 0) }
        case 3:
            guard !written.isEmpty else { return }
            respond(at: Int(script.byte()) % written.count, script.byte())
        case 4: ask()
        case 5: reply(script.byte())
        case 6: tellIdentity()
        case 7: tellKey()
        case 8: encryptionChanged(script.byte())
        case 9: securityRead(script.byte())
        case 10: stored(script.byte() & 1 == 0)
        case 11:
            now = now + script.pause()
            pass()
        case 12: cancel()
        case 13: obeyIfRunning(exchange.linkEnded(at: now))
        case 14: obey(setup.reload().1)
        case 15: receive([0x06, 0] + [0, 0, 4, 0] + script.bytes(4))
        case 16: adapterLost()
        case 17:
            let code: UInt8 = [0x0C, 0x11, 0x16, 0x0B, 0x19][Int(script.byte()) % 5]
            let rest: [UInt8] =
                code == 0x16 ? [] : code == 0x0B ? [0, 0, 0, 0, 0, 0] : code == 0x19 ? [2] + key(16) : [script.byte()]
            let parameters = (code == 0x19 ? [1] : []) + peer(script.byte()) + rest
            receive([code, 0, 0, 0, UInt8(parameters.count), 0] + parameters)
        case 18: receive(script.packet())
        default:
            guard let command = written.popLast() else { return }
            obey(queue.notSent(command.ticket, errno: 22, at: now))
            leaveRemains()
        }
    }

    private mutating func begin() {
        let bits = script.byte()
        guard pairing == nil, remains == nil, let identity = Self.identity.id, let onAir = Self.onAir.id,
            let other = Self.otherBond.id
        else { return }
        let hasBond = bits & 8 != 0
        let levels: [BondRecord.Level] = [.encrypted, .encrypted, .authenticated, .secureConnections]
        let demand = PairingExchange.Demand(
            peer: bits & 1 == 0 ? identity : onAir, onAir: bits & 2 == 0 ? nil : onAir,
            capability: bits & 4 == 0 ? .keyboardDisplay : .noInputNoOutput,
            outOfBand: bits & 16 == 0
                ? nil : PairingExchange.OutOfBandValues(confirmation: Self.secret(1), random: Self.secret(2)),
            level: levels[Int(script.byte() & 3)], minimumKeySize: bits & 32 == 0 ? 16 : 7, hasBond: hasBond,
            replacedBond: hasBond ? identity : nil, otherBonds: [other], followsEncryption: bits & 64 == 0,
            deadline: now + .seconds(25))
        pairing = Pairing(demand: demand)
        exchange = PairingExchange(after: exchange.lastQuestion)
        obey(setup.pairingBegins())
    }

    /// The kernel asks, or has a passkey shown.
    private mutating func ask() {
        let bits = script.byte()
        let number = number(UInt16(bits)) + [0, 0]
        let peer = peer(script.byte())
        switch bits & 3 {
        case 0: receive([0x0F, 0, 0, 0, 12, 0] + peer + [1] + number)
        case 1: receive([0x0F, 0, 0, 0, 12, 0] + peer + [0] + number)
        case 2: receive([0x10, 0, 0, 0, 7, 0] + peer)
        default: receive([0x17, 0, 0, 0, 12, 0] + peer + number + [0])
        }
    }

    private mutating func reply(_ bits: UInt8) {
        let reply: PairingExchange.Reply = bits & 1 == 0 ? .yes : bits & 2 == 0 ? .passkey(UInt32(bits) << 14) : .no
        let number = bits & 64 == 0 ? exchange.lastQuestion : exchange.lastQuestion &- UInt64(bits & 7)
        if exchange.isRunning, number == lastQuestion {
            switch reply {
            case .yes: pairing?.permitted = .confirm
            case .passkey(let passkey): if passkey <= 999_999 { pairing?.permitted = .enter(passkey) }
            case .no: break
            }
        }
        obeyIfRunning(exchange.replied(reply, to: number, at: now))
        pairing?.permitted = nil
    }

    private mutating func tellIdentity() {
        let bits = script.byte()
        let owner = script.byte()
        let onAir = bits & 2 == 0 ? [0, 0, 0, 0, 0, 0] : Array(bytes(of: Self.onAir).prefix(6))
        receive([0x18, 0, 0, 0, 30, 0] + [bits & 1] + onAir + peer(owner) + key(bits))
    }

    private mutating func tellKey() {
        let bits = script.byte()
        let entry =
            peer(script.byte()) + [(bits >> 2) % 5, bits >> 5 & 1, bits & 2 == 0 ? 16 : 7, 0, 0]
            + [UInt8](repeating: 0, count: 8) + key(bits)
        receive([0x0A, 0, 0, 0, 37, 0] + [~bits & 1] + entry)
    }

    private mutating func encryptionChanged(_ bits: UInt8) {
        if let running = pairing, running.begun > 0, bits & 1 == 0 { pairing?.wasEncrypted = true }
        obeyIfRunning(exchange.encryptionChanged(bits & 1 == 0))
    }

    private mutating func securityRead(_ bits: UInt8) {
        guard pairing?.isReading == true else { return }
        pairing?.isReading = false
        let isBeginning = pairing?.begun == 0
        let security: (level: UInt8, keySize: UInt8)? =
            bits & 3 == 3 ? nil : (bits & 3 == 0) == isBeginning ? (1, 0) : (bits >> 2 & 7, bits >> 5 == 0 ? 16 : 8)
        pairing?.lastSecurity = security
        obey(exchange.securityRead(security))
    }

    private mutating func stored(_ isStored: Bool) {
        guard pairing?.isStoring == true else { return }
        pairing?.isStoring = false
        pairing?.isStored = isStored
        if isStored { pairing?.hasLeftovers = false }
        obey(exchange.stored(isStored))
    }

    private mutating func cancel() {
        guard let running = pairing else { return }
        guard running.mayBegin else { return endPairing() }
        pairing?.isCancelled = true
        obey(exchange.cancel(at: now))
    }

    private mutating func obeyIfRunning(_ actions: [PairingExchange.Action]) {
        require(actions.isEmpty || pairing != nil, "a pairing that is over wants nothing")
        obey(actions)
    }

    /// The kernel's response to one of the commands, which has the effect that it says.
    private mutating func respond(at place: Int, _ status: UInt8) {
        let packet = written[place].packet
        var returned: [UInt8] = []
        let bit: UInt32? =
            switch ManagementCommandCode(rawValue: packet.code) {
            case .setPowered: 1
            case .setBondable: 1 << 4
            case .setLowEnergy: 1 << 9
            case .setSecureConnections: 1 << 11
            default: nil
            }
        if let bit {
            if status == 0 { settings = packet.parameters.first == 0 ? settings & ~bit : settings | bit }
            returned = settingBytes
        }
        switch ManagementCommandCode(rawValue: packet.code) {
        case .readControllerInformation:
            returned = [UInt8](repeating: 0, count: 9) + [0xFF, 0xFF, 0, 0] + settingBytes
            returned += [UInt8](repeating: 0, count: 3 + 249 + 11)
        case .setIOCapability, .loadLongTermKeys, .loadIdentityResolvingKeys: returned = []
        case .pairDevice: returned = status == 0 && script.byte() & 1 == 1 ? peer(script.byte()) : peerBytes(packet)
        default: if bit == nil { returned = peerBytes(packet) }
        }
        let parameters = number(packet.code) + [status] + returned
        receive([1, 0, 0, 0] + number(UInt16(parameters.count)) + parameters)
    }

    private mutating func receive(_ bytes: [UInt8]) {
        guard let event = try? ManagementEvent(bytes.span), event.adapter ?? Self.index == Self.index else { return }
        switch event.content {
        case .commandComplete(let complete):
            written.removeAll { $0.packet.code == complete.command.rawValue }
            obey(queue.received(complete, adapter: event.adapter, at: now))
        case .commandStatus(let status):
            if status.status != .success { written.removeAll { $0.packet.code == status.command.rawValue } }
            obey(queue.received(status, adapter: event.adapter, at: now))
        case .newSettings(let settings): obey(setup.received(settings, at: now))
        case .indexRemoved, .indexAdded: adapterLost()
        default: handle(event.content)
        }
        leaveRemains()
    }

    private mutating func handle(_ content: ManagementEvent.Content) {
        guard exchange.isRunning, let running = pairing else {
            return require(pairing != nil || exchange.received(content, at: now) == nil, "nobody else is paired")
        }
        let isGathering = running.begun > 0 && !running.isClosing
        let isConcerned: Bool
        switch content {
        case .userConfirmationRequest(let request):
            pairing?.question = request.number.map { .compare($0) } ?? .justWorks
            isConcerned = exchange.concerns(request.peer)
        case .userPasskeyRequest(let request):
            pairing?.question = .enter
            isConcerned = exchange.concerns(request.peer)
        case .passkeyNotify(let notification):
            pairing?.question = .show(notification.passkey)
            isConcerned = exchange.concerns(notification.peer)
        case .newLongTermKey(let new):
            isConcerned = exchange.concerns(new.key.peer)
            guard isConcerned, isGathering else { break }
            pairing?.hasLeftovers = true
            if new.isForStorage { pairing?.keys.append(new.key) }
        case .newIdentityResolvingKey(let new):
            isConcerned = false
            if new.key.peer == Self.otherBond { pairing?.hasForeignIdentity = true }
        default: isConcerned = false
        }
        let actions = exchange.received(content, at: now)
        require(!isConcerned || actions != nil, "events about the peer belong to the exchange")
        obey(actions ?? [])
        pairing?.question = nil
    }

    private mutating func pass() {
        let time = now
        written.removeAll { $0.until <= time }
        obey(queue.timePassed(now))
        obey(setup.timePassed(now))
        if exchange.isRunning { obey(exchange.timePassed(now)) }
        if let waiting = pairing, !waiting.mayBegin, waiting.demand.deadline <= now { endPairing() }
        leaveRemains()
        require(queue.nextDeadline.map { $0 > now } ?? true, "what was due in the queue has been done")
        require(exchange.nextDeadline.map { $0 > now } ?? true, "what was due in the exchange has been done")
    }

    private mutating func adapterLost() {
        written = []
        pairing?.isLost = true
        obey(queue.adapterLost(Self.index))
        obey(setup.adapterLost())
        if exchange.isRunning {
            obey(exchange.adapterLost())
        } else if pairing != nil {
            endPairing()
        }
        leaveRemains()
        require(!setup.isManaged, "the adapter is not managed after its loss")
        settings = 1 << 9
        if pairing == nil, remains == nil { manage() }
    }

    // MARK: Bytes

    private static func secret(_ byte: UInt8) -> Secret128 {
        Secret128([UInt8](repeating: byte, count: 16).span) ?? .zero
    }

    private var settingBytes: [UInt8] { [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: settings >> UInt32($0)) } }
    private func number(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
    private func key(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte | 1, count: 16) }
    private func peerBytes(_ packet: ManagementPacket) -> [UInt8] { Array(packet.parameters.prefix(7)) }

    private func peer(_ choice: UInt8) -> [UInt8] {
        let others = [Self.identity, Self.onAir, Self.otherBond, Self.stranger]
        if choice & 7 < 4, let demand = pairing?.demand { return bytes(of: ManagementPeer(demand.peer)) }
        return bytes(of: others[Int(choice & 3)])
    }

    private func bytes(of peer: ManagementPeer) -> [UInt8] {
        var writer = ByteWriter()
        writer.managementPeer(peer)
        return writer.bytes
    }

    // MARK: The end

    mutating func end() {
        var rounds = 0
        while pairing != nil || remains != nil || !owners.isEmpty {
            rounds += 1
            require(rounds < 1_024, "the clock does not run forever")
            if pairing?.isReading == true {
                securityRead(script.byte())
            } else if pairing?.isStoring == true {
                stored(script.byte() & 1 == 0)
            } else {
                let waiting = pairing?.mayBegin == false ? pairing?.demand.deadline : nil
                let deadlines = [queue.nextDeadline, setup.nextDeadline, exchange.nextDeadline, waiting]
                guard let due = deadlines.compactMap({ $0 }).min() else {
                    return require(false, "whatever waits waits for a time")
                }
                now = max(now, due)
                pass()
            }
        }
        require(!exchange.isRunning, "an exchange ends with its pairing")
    }
}
