// The server side of a link as the input has it: packets of the client, results of the application, values to send,
// changes of security and services, delays of the kernel, and how time passes.
//
// What holds in every run:
// - a request gets at most one response, and nothing else gets any; no packet is longer than the MTU;
// - an attribute that demands a pairing is never read, written or sent;
// - every notification and indication ends once, every subscription that began ends,
//   and nothing is kept after the link.

@testable import BLECore

func fuzzServer(_ input: [UInt8]) {
    if let record = try? ClientRecord(bytes: input) {
        require(record.bytes == input, "what was decoded encodes to the same bytes")
    }
    FuzzedServer.play(input, atMost: 512)
}

private struct FuzzedServer: FuzzedRun {
    private static let services = [
        ServiceDefinition(
            0xFFF0, includes: [.position(1)],
            [
                CharacteristicDefinition(0xFFF1, [.read, .write, .writeWithoutResponse], value: .stored([1, 2, 3])),
                CharacteristicDefinition(0xFFF2, [.read, .write, .notify, .indicate], value: .handled),
                CharacteristicDefinition(
                    0xFFF3, [.read, .write, .notify, .authenticatedSignedWrites], value: .stored(secret),
                    access: AttributeAccess(.authenticated)),
                CharacteristicDefinition(0xFFF4, [.read, .write, .indicate], value: .stored([4], isFixedLength: true)),
                CharacteristicDefinition(
                    0xFFF5, [.read, .write], value: .handled, access: AttributeAccess(.init(.open, isAuthorized: true))),
                CharacteristicDefinition(0xFFF6, .authenticatedSignedWrites, value: .stored([6])),
            ]),
        ServiceDefinition(0xFFE0, isPrimary: false, [CharacteristicDefinition(0xFFE1, .read, value: .fixed([7]))]),
    ]
    /// The value that only an authenticated link may see; no link here is. No other value has such bytes in a row.
    private static let secret: [UInt8] = [0xA5, 0x5A, 0xC3, 0x3C, 0x96, 0x69, 0xF0, 0x0F]

    var script: FuzzInput
    private var database: ServerDatabase
    private var server: GATTServer
    private var now = BootInstant(nanoseconds: 1_000_000_000)
    private var asked: [GATTServer.Token] = []
    private var offered: [UInt8]?
    private var isClosed = false
    private var requests = 0
    private var responses = 0
    private var nextUpdate: UInt64 = 0
    private var updates: Set<UInt64> = []
    private var subscriptions: Set<AttributeHandle> = []
    private var record: ClientRecord?
    private let secretHandle: AttributeHandle
    /// Whether the input could make up the secret itself, which is then echoed.
    private let mayEcho: Bool

    init(_ input: [UInt8]) {
        script = FuzzInput(input)
        mayEcho = input.contains(0xA5)
        var limits = GATTServer.Limits(mtu: script.word())
        limits.waitingIndications = 3
        limits.commands = 5
        database = ServerDatabase(name: "Fuzzed", appearance: 1)
        secretHandle = (try? database.publish(Self.services))?.services.first?.values.dropFirst(2).first ?? 0
        server = GATTServer(limits: limits)
    }

    mutating func step() {
        switch script.byte() % 16 {
        case 0, 1, 2, 3: receive(script.packet())
        case 4: receive([script.byte(), script.byte() % 48, 0] + script.piece())
        case 5: finish(.value(script.piece()))
        case 6: finish(.accepted)
        case 7: finish(.rejected(ATTErrorCode(rawValue: script.byte()), handle: script.word()))
        case 8: update()
        case 9: write()
        case 10:
            if offered.take() != nil { server.blocked() }
        case 11: obey(server.writable(in: database))
        case 12:
            now = now + script.pause()
            obey(server.timePassed(in: database, at: now))
            require(server.nextDeadline.map { $0 > now } ?? true, "what was due has been done")
        case 13:
            let bits = script.byte()
            obey(
                server.securityChanged(
                    ClientSecurity(keySize: bits & 1 == 0 ? 0 : 16, isBonded: bits & 2 != 0), in: database, at: now))
        case 14: change()
        default:
            if let record = try? ClientRecord(bytes: record?.bytes ?? []) {
                obey(server.identified(record, in: database, at: now))
            } else if offered.take() != nil {
                obey(server.refused(in: database))
            }
        }
        require(server.heldBytes <= 256 << 10, "what a client makes the server keep is bounded")
    }

    private mutating func receive(_ packet: [UInt8]) {
        let opcode = packet.first.map(ATTOpcode.init(rawValue:))
        if let opcode, opcode.isRequest || opcode.isResponse && opcode.specificationName == nil { requests += 1 }
        obey(server.received(packet, in: &database, at: now))
    }

    private mutating func finish(_ result: GATTServer.HandlerResult) {
        guard !asked.isEmpty else { return }
        obey(server.finished(asked[Int(script.byte()) % asked.count], result, in: &database, at: now))
        if asked.count > 16 { asked.removeFirst() }
    }

    private mutating func update() {
        nextUpdate += 1
        let handle = AttributeHandle(script.byte() % 48)
        let value = handle == secretHandle ? Self.secret : script.piece()
        let (outcome, actions) = server.update(value, of: handle, id: .init(nextUpdate), in: database)
        if outcome == .notified || outcome == .indicated { updates.insert(nextUpdate) }
        obey(actions)
    }

    private mutating func change() {
        switch script.byte() % 3 {
        case 0:
            guard let range = (try? database.publish([ServiceDefinition(0xFFF0)]))?.affected else { return }
            obey(server.databaseChanged(range, in: database, at: now))
        case 1:
            guard let range = try? database.withdraw(AttributeHandle(script.byte())) else { return }
            obey(server.databaseChanged(range, in: database, at: now))
        default: database.setHash(script.piece())
        }
    }

    /// The kernel takes the offered packet.
    private mutating func write() {
        guard let packet = offered.take(), let first = packet.first else { return }
        require(packet.count <= Int(server.mtu), "no packet is longer than the MTU")
        let opcode = ATTOpcode(rawValue: first)
        if opcode.isResponse { responses += 1 }
        require(responses <= requests, "one response for a request")
        require(
            mayEcho || !packet.indices.contains { packet[$0...].starts(with: Self.secret) },
            "what is protected is never sent")
        obey(server.sent(in: database, at: now))
    }

    private mutating func obey(_ actions: [GATTServer.Action]) {
        for action in actions {
            require(!isClosed, "nothing happens after the link")
            switch action {
            case .send(let packet):
                require(offered == nil, "one packet is offered at a time")
                offered = packet
            case .ask(let token, _, _):
                asked.append(token)
            case .store(let stored): record = stored
            case .configured(let handle, let configuration, _):
                require(handle != secretHandle, "what is protected is never subscribed to")
                require(!configuration.isEmpty || subscriptions.contains(handle), "a subscription ends once")
                if configuration.isEmpty { subscriptions.remove(handle) } else { subscriptions.insert(handle) }
            case .notified(let id, _), .finish(let id, _):
                require(updates.remove(id.rawValue) != nil, "an update ends once")
            case .wrote(let handle, _): require(handle != secretHandle, "what is protected is never written")
            case .close: isClosed = true
            case .dropped, .readyToUpdate: break
            }
        }
    }

    mutating func end() {
        if !isClosed { obey(server.ended(in: database)) }
        require(updates.isEmpty && subscriptions.isEmpty, "what began has ended")
        require(server.heldBytes == 0 && server.nextDeadline == nil, "nothing is kept after the link")
    }
}
