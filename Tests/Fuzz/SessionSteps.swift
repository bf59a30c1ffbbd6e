// The steps of a session's script: a byte that says which, then what it needs.

@testable import BLECore

extension FuzzedSession {
    /// The request of an application.
    enum Call {
        case exchangeMTU
        case discover(DiscoveryLevel)
        case read(AttributeHandle)
    }

    mutating func step() {
        switch script.byte() % 20 {
        case 0: peerSends(script.packet())
        case 1: if let request = outstanding { peerSends([(request.first ?? 0) &+ 1] + script.packet()) }
        case 2:
            if let request = outstanding {
                peerSends([0x01, request.first ?? 0] + octets(word(request, 1)) + [script.byte()])
            }
        case 3: respondInPattern()
        case 4: for _ in 0...(script.byte() & 31) { respondHonestly() }
        case 5:
            let pause = script.pause()
            now = now + pause
            pass()
        case 6: perform(.discover([.structure, .subscribable, .full][Int(script.byte() % 3)]))
        case 7: list()
        case 8: read()
        case 9: write()
        case 10: perform(.exchangeMTU)
        case 11: cancel()
        case 12: changeSocket()
        case 13: subscribe()
        case 14: sendValue()
        case 15: changeDatabase()
        case 16: know()
        case 17: handOver()
        case 18: if script.byte() & 7 == 0 { loseLink() }
        default: peerSends([script.byte(), script.byte(), script.byte(), script.byte()])
        }
    }

    // MARK: The peer

    mutating func peerSends(_ pdu: [UInt8]) {
        if !isClosed, let first = pdu.first {
            if let request = outstanding?.first {
                let isNamed = first == 0x01 && (pdu.count < 2 || pdu[1] == request)
                if first == request + 1 || isNamed { outstanding = nil }
            }
            switch ATTOpcode(rawValue: first).kind {
            case .indication: unconfirmed += 1
            case .request: unanswered += 1
            case .response, .notification, .confirmation, .command: break
            }
        }
        obey(client.received(pdu, at: now))
    }

    private mutating func respondInPattern() {
        let response = ListedResponse(&script)
        for _ in 0...(script.byte() & 7) {
            guard let request = outstanding else { return }
            peerSends(response.response(to: request, mtu: Int(client.mtu)))
        }
    }

    private mutating func respondHonestly() {
        guard let request = outstanding else { return }
        peerSends(HonestPeer.response(to: request, mtu: Int(client.mtu)))
    }

    private mutating func sendValue() {
        let choice = script.byte()
        let handles = subscriptions.valueHandles.sorted() + [3]
        let handle = choice & 64 == 0 ? handles[Int(choice & 15) % handles.count] : script.word()
        let value = script.packet()
        if choice & 32 == 32 {
            peerSends(
                [0x23] + octets(handle, UInt16(truncatingIfNeeded: value.count)) + value + octets(handle, 1) + [5])
        } else {
            peerSends([choice & 128 == 0 ? 0x1B : 0x1D] + octets(handle) + value)
        }
    }

    private mutating func loseLink() {
        obey(client.linkLost(104, at: now))
        if !isClosed { lose() }
    }

    // MARK: The application

    private mutating func deadline() -> BootInstant? {
        let choice = script.byte()
        return choice & 3 == 0 ? now + .milliseconds(Int64(choice) * 250) : nil
    }

    mutating func perform(_ call: Call) {
        switch call {
        case .exchangeMTU:
            start(.plain) { client, id, now in
                client.start(
                    MTUExchange(offer: client.largestMTU), id: id, deadline: nil, at: now, outcome: { .mtu($0) })
            }
        case .discover(let level):
            knowledge.discoveryBegan()
            start(.discovery(level)) { client, id, now in
                client.start(
                    GATTDiscovery(level: level, mtu: client.mtu), id: id, deadline: nil, at: now,
                    outcome: { .database($0) })
            }
        case .read(let handle):
            start(.plain) { client, id, now in client.startRead(handle, id: id, deadline: nil, at: now) }
        }
    }

    private mutating func list() {
        let choice = script.byte()
        let first = max(1, script.word())
        let range = first...max(first, choice & 128 == 0 ? 0xFFFF : script.word())
        let limit = deadline()
        start(.plain) { client, id, now in
            switch choice % 6 {
            case 0: client.start(ServiceDiscovery(in: range), id: id, deadline: limit, at: now) { .services($0) }
            case 1:
                client.start(ServiceDiscovery(0x180D, in: range), id: id, deadline: limit, at: now) { .services($0) }
            case 2:
                client.start(CharacteristicDiscovery(in: range), id: id, deadline: limit, at: now) {
                    .characteristics($0)
                }
            case 3: client.start(IncludeDiscovery(in: range), id: id, deadline: limit, at: now) { .includes($0) }
            case 4: client.start(DescriptorDiscovery(in: range), id: id, deadline: limit, at: now) { .descriptors($0) }
            default:
                client.start(
                    GATTDiscovery(
                        level: .full, services: [0x1801, 0x180D], in: range, mtu: client.mtu, isStrict: choice & 64 == 0
                    ),
                    id: id, deadline: limit, at: now
                ) { .database($0) }
            }
        }
    }

    private mutating func read() {
        let choice = script.byte()
        let handle = script.word()
        let limit = deadline()
        let handles = (0...Int(choice >> 4)).map { handle &+ UInt16($0) }
        start(choice % 5 == 0 ? .hash : .plain) { client, id, now in
            let mtu = client.mtu
            switch choice % 5 {
            case 0:
                return client.start(ReadByUUID(0x2B2A, mtu: mtu), id: id, deadline: limit, at: now) { .attributes($0) }
            case 1: return client.startRead(handle, id: id, deadline: limit, at: now)
            case 2:
                return client.start(
                    ReadLong(handle: handle, from: UInt16(choice), mtu: mtu), id: id, deadline: limit, at: now
                ) {
                    .value($0)
                }
            case 3:
                return client.start(ReadMultiple(handles: handles, mtu: mtu), id: id, deadline: limit, at: now) {
                    .values([$0])
                }
            default:
                return client.start(ReadMultipleVariable(handles: handles, mtu: mtu), id: id, deadline: limit, at: now)
                {
                    .attributes($0)
                }
            }
        }
    }

    private mutating func write() {
        let choice = script.byte()
        let handle = script.word()
        let value = script.packet()
        let limit = deadline()
        start(.plain) { client, id, now in
            let mtu = client.mtu
            switch choice % 4 {
            case 0:
                return client.start(
                    WriteRequest(handle: handle, value: value, mtu: mtu), id: id, deadline: limit, at: now
                ) { .done }
            case 1:
                return client.start(
                    WriteLong(handle: handle, value: value, offset: UInt16(choice), mtu: mtu), id: id, deadline: limit,
                    at: now
                ) { .done }
            case 2:
                let parts = [
                    ReliableWrite.Part(handle: handle, value: value), .init(handle: handle &+ 1, value: [1, 2]),
                ]
                return client.start(ReliableWrite(parts, mtu: mtu), id: id, deadline: limit, at: now) { .done }
            default:
                return client.startCommand([0x52] + octets(handle) + value, id: id, deadline: limit, at: now)
            }
        }
    }

    private mutating func cancel() {
        guard !started.isEmpty else { return }
        obey(client.cancel(started[Int(script.byte()) % started.count], at: now))
    }

    private mutating func changeSocket() {
        switch script.byte() % 4 {
        case 0: takesPackets = false
        case 1: refusesPackets.toggle()
        default:
            takesPackets = true
            obey(client.writable(at: now))
        }
    }

    private mutating func subscribe() {
        let choice = script.byte()
        if choice & 1 == 1, let id = subscribed.min(by: { $0.number < $1.number }) {
            undecided.remove(id)
            if choice & 2 == 2 { return obey(subscriptions.leave(id)) }
            subscribed.remove(id)
            return obey(subscriptions.unsubscribe(id))
        }
        guard !isClosed else { return }
        let known = knowledge.database?.characteristics ?? []
        let own = GATTCharacteristic(
            declarationHandle: 22, valueHandle: 23, endHandle: 25,
            properties: CharacteristicProperties(rawValue: choice),
            uuid: 0x2A37)
        let characteristic = known.isEmpty ? own : known[Int(choice >> 1) % known.count]
        let cccd = knowledge.database?.descriptors.first {
            $0.uuid == .clientCharacteristicConfiguration && characteristic.handles.contains($0.handle)
        }
        lastSubscriber += 1
        let id = Subscriptions.ID(lastSubscriber)
        undecided.insert(id)
        subscribed.insert(id)
        let invented = GATTDescriptor(handle: 24, uuid: .clientCharacteristicConfiguration, isInferred: choice & 2 == 2)
        obey(
            subscriptions.subscribe(
                id, to: characteristic, cccd: cccd ?? (choice & 4 == 4 ? invented : nil),
                preferring: choice & 8 == 8 ? .indication : .notification))
    }

    private mutating func changeDatabase() {
        let first = max(1, script.word())
        let range = first...max(first, script.word())
        changedServices(range)
        obey(client.servicesChanged(in: range, at: now))
    }

    private mutating func know() {
        let choice = script.byte()
        switch choice % 4 {
        case 0: _ = knowledge.purge(at: now)
        case 1:
            guard case .now(let ranges, let level) = knowledge.nextRediscovery(at: now) else { return }
            require(!ranges.isEmpty && level <= .full, "what is found again is something")
            for range in ranges { try? knowledge.rediscovered(range, with: GATTDatabase()) }
            knowledge.rediscoveryEnded(isComplete: choice & 4 == 4)
        case 2:
            guard let cache = knowledge.cache else { return }
            let stored = try? GATTCache(bytes: cache.bytes)
            require(stored?.database.services == cache.database.services, "what is stored can be read")
            knowledge = DatabaseState(cache: cache, validation: choice & 4 == 4 ? .skipped : .required)
        default: knowledge.hashRead(.absent)
        }
    }

    /// The link goes to another program: all calls fail, the wire stays.
    private mutating func handOver() {
        guard !isClosed else { return }
        var state = LinkState(peer: nil, name: "fuzzed")
        state.client = client.remains()
        // A call for handle 0 leaves a request that is as good as one without a handle.
        if state.client.queue.unanswered?.handle == 0 { state.client.queue.unanswered?.handle = nil }
        let stored = try? LinkState(bytes: state.bytes)
        require(stored == state, "what is handed over arrives")
        obey(client.linkLost(0, at: now))
        for id in subscriptions.linkLost() {
            subscribed.remove(id)
            undecided.remove(id)
        }
        require(purposes.isEmpty, "what is handed over has no callers")
        started = []
        client = GATTClient(limits: client.limits, remains: state.client, at: now)
        obey(client.resume(at: now))
    }
}
