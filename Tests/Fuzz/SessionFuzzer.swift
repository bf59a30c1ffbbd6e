// A whole link, from its first packet to its end, as the input has it: what the peer sends, what the application asks
// for, what the socket takes, and how time passes. Beside the machines runs a model of the link that was written from
// the specification, and which they must agree with.
//
// What holds in every session:
// - one request is out at a time, and one `send` is in the owner's hands;
// - each operation ends exactly once, and all end by themselves as time passes, whatever the peer does;
// - each subscriber is notified once of its result; one that left or was ended receives nothing more;
// - a closed link sends and delivers nothing; every indication is confirmed once, every request of the peer gets at
//   most one response;
// - packets fit the MTU, handles and ranges are possible, values are 512 bytes at most, what a discovery finds is in
//   order;
// - after `timePassed` nothing is due any more: no owner is called again and again.

@testable import BLECore

func fuzzSession(_ input: [UInt8]) { FuzzedSession.play(input, atMost: 256) }

struct FuzzedSession: ~Copyable, FuzzedRun {
    /// The result of an operation.
    enum Purpose {
        case plain
        case configuration(AttributeHandle)
        case discovery(DiscoveryLevel)
        case hash
    }

    var script: FuzzInput
    var client: GATTClient
    var subscriptions = Subscriptions()
    var knowledge = DatabaseState()
    var now = BootInstant(nanoseconds: 1_000_000_000)

    // What the application knows.
    var purposes: [OperationID: Purpose] = [:]
    var started: [OperationID] = []
    var followUps: [(Purpose, Result<GATTOutcome, OperationFailure>)] = []
    var undecided: Set<Subscriptions.ID> = []
    var subscribed: Set<Subscriptions.ID> = []
    var lastSubscriber: UInt64 = 0

    // What goes over the wire, as the peer sees it.
    var outstanding: [UInt8]?
    var unconfirmed = 0
    var unanswered = 0
    var isClosed = false

    // What the socket does.
    var takesPackets = true
    var refusesPackets = false

    init(_ input: [UInt8]) {
        script = FuzzInput(input)
        var limits = ATTQueue.Limits()
        let options = script.byte()
        limits.isStrict = options & 1 == 1
        if options & 2 == 2 { limits.operations = 3 }
        if options & 4 == 4 { limits.mtu = 64 }
        client = GATTClient(limits: limits)
        if options & 8 == 8 { perform(.exchangeMTU) }
        if options & 16 == 16 { perform(.discover(.full)) }
    }

    // MARK: What the machines want

    mutating func obey(_ actions: [GATTClient.Action]) {
        var waiting = actions
        while !waiting.isEmpty {
            let packets = waiting.count { if case .send = $0 { true } else { false } }
            require(packets <= 1, "one packet is in the owner's hands")
            let round = waiting
            waiting = []
            for action in round {
                switch action {
                case .finish(let id, let result): finished(id, result)
                case .deliver(let handle, let value, let kind): delivered(handle, value, kind)
                case .send(let pdu): waiting = write(pdu)
                case .close: lose()
                }
            }
        }
        while !followUps.isEmpty {
            let (purpose, result) = followUps.removeFirst()
            follow(purpose, result)
        }
    }

    private mutating func write(_ pdu: [UInt8]) -> [GATTClient.Action] {
        require(!isClosed, "a closed link sends nothing")
        require(pdu.count <= Int(client.mtu), "a packet fits the MTU")
        if refusesPackets { return client.refused(90, at: now) }
        guard takesPackets else {
            client.blocked()
            return []
        }
        let opcode = pdu.first ?? 0
        if isRequest(opcode) {
            require(outstanding == nil, "one request is out at a time")
            require(hasPossibleHandles(pdu), "a request asks about handles that there can be")
            outstanding = pdu
        } else if opcode == 0x1E {
            require(unconfirmed > 0, "what is confirmed was indicated")
            unconfirmed -= 1
        } else if opcode == 0x01 || opcode == 0x03 {
            require(unanswered > 0, "what has a response was requested")
            unanswered -= 1
        }
        return client.sent(at: now)
    }

    private mutating func finished(_ id: OperationID, _ result: Result<GATTOutcome, OperationFailure>) {
        guard let purpose = purposes.removeValue(forKey: id) else {
            return require(false, "every operation ends exactly once")
        }
        if case .success(let outcome) = result { check(outcome) }
        followUps.append((purpose, result))
    }

    private mutating func delivered(_ handle: AttributeHandle, _ value: [UInt8], _ kind: ATTValueKind) {
        require(!isClosed, "a closed link delivers nothing")
        require(handle > 0, "a value has a handle")
        require(value.count <= 512, "a value is one that an attribute can have")
        for id in subscriptions.recipients(of: handle) {
            require(subscribed.contains(id), "values are for subscribers")
        }
        if kind == .indication, let change = try? ServiceChanged(value) {
            if handle == knowledge.serviceChangedHandle {
                changedServices(change.handles)
            } else {
                _ = knowledge.indicated(change.handles, at: handle)
            }
        }
    }

    mutating func changedServices(_ handles: ClosedRange<AttributeHandle>) {
        guard let range = knowledge.serviceChanged(handles) else { return }
        require(range.contains(handles.lowerBound), "what changed is in what is stale")
        followUps.append((.plain, .success(.done)))
        for id in subscriptions.servicesChanged(in: range) { ended(id) }
    }

    mutating func lose() {
        isClosed = true
        outstanding = nil
        unconfirmed = 0
        for id in subscriptions.linkLost() { ended(id) }
        require(subscribed.isEmpty && undecided.isEmpty, "every subscription ends with the link")
    }

    private mutating func ended(_ id: Subscriptions.ID) {
        require(subscribed.remove(id) != nil, "who is ended was subscribed")
        undecided.remove(id)
    }

    private mutating func follow(_ purpose: Purpose, _ result: Result<GATTOutcome, OperationFailure>) {
        switch purpose {
        case .plain:
            break
        case .configuration(let handle):
            obey(subscriptions.configured(handle, result.map { _ in }))
        case .discovery(let level):
            guard case .success(.database(let database)) = result else { return knowledge.discoveryFailed() }
            try? knowledge.found(database, services: nil, level: level)
            for range in knowledge.missedChanges() { changedServices(range) }
        case .hash:
            switch result {
            case .success(.attributes(let values)): knowledge.hashRead(.value(values.first?.value ?? []))
            case .success, .failure: knowledge.hashRead(.unreadable)
            }
        }
    }

    mutating func obey(_ actions: [Subscriptions.Action]) {
        for action in actions {
            switch action {
            case .write(let handle, let value, let valueHandle):
                start(.configuration(valueHandle)) { client, id, now in
                    client.start(
                        WriteRequest(handle: handle, value: value, mtu: client.mtu), id: id, deadline: nil, at: now,
                        outcome: { .done })
                }
            case .began(let id, _):
                require(undecided.remove(id) != nil, "a subscriber is told once that it began")
            case .failed(let id, _):
                require(
                    undecided.remove(id) != nil && subscribed.remove(id) != nil,
                    "a subscriber is told once that it failed")
            case .left(let id):
                require(subscribed.remove(id) != nil, "a subscriber that leaves is notified once that it has left")
            }
        }
    }

    // MARK: What is asked for

    mutating func start(
        _ purpose: Purpose, _ body: (inout GATTClient, OperationID, BootInstant) -> [GATTClient.Action]
    ) {
        let id = client.nextID()
        purposes[id] = purpose
        started.append(id)
        let actions = body(&client, id, now)
        obey(actions)
    }

    // MARK: The end

    /// Lets the clock run: everything has to end by itself. Then the link goes, and stays gone.
    mutating func end() {
        takesPackets = true
        refusesPackets = false
        obey(client.writable(at: now))
        var rounds = 0
        while let deadline = client.nextDeadline {
            now = max(now, deadline)
            pass()
            rounds += 1
            require(rounds <= 256, "the clock does not run forever")
        }
        require(client.operationCount == 0 && purposes.isEmpty, "every operation ends by itself")
        obey(client.linkLost(104, at: now))
        if !isClosed { lose() }
        obey(client.writable(at: now))
        obey(client.received([0x1D, 3, 0, 1], at: now))
        perform(.read(3))
        require(client.nextDeadline == nil && client.operationCount == 0, "a closed link waits for nothing")
    }

    mutating func pass() {
        obey(client.timePassed(now))
        require(client.nextDeadline.map { $0 > now } ?? true, "what was due has been done")
    }
}

// MARK: - Results

extension FuzzedSession {
    private func check(_ outcome: GATTOutcome) {
        switch outcome {
        case .done: break
        case .mtu(let mtu): require((23...517).contains(mtu), "the MTU is one that there can be")
        case .value(let value): require(value.count <= 512, "a value is one that an attribute can have")
        case .values(let values): require(values.allSatisfy { $0.count <= 516 }, "values fit into one packet")
        case .attributes(let values): require(values.count <= GATTDatabase.attributeLimit, "a list is bounded")
        case .services(let services): check(services)
        case .includes(let includes): require(Self.rise(includes.map { $0.handle }), "includes rise")
        case .characteristics(let list): check(list)
        case .descriptors(let list): require(Self.rise(list.map { $0.handle }), "descriptors rise")
        case .database(let database):
            require(database.attributeCount <= GATTDatabase.attributeLimit, "a database is bounded")
            require(database.quirks.count <= 256, "quirks are bounded")
            check(database.services)
            check(database.characteristics)
            require(Self.rise(database.descriptors.map { $0.handle }), "descriptors rise")
        }
    }

    private func check(_ services: [GATTService]) {
        var last: AttributeHandle = 0
        for service in services {
            require(service.handles.lowerBound > last, "services do not overlap")
            last = service.handles.upperBound
        }
    }

    private func check(_ characteristics: [GATTCharacteristic]) {
        var last: AttributeHandle = 0
        for characteristic in characteristics {
            require(characteristic.declarationHandle > last, "characteristics do not overlap")
            require(characteristic.valueHandle > characteristic.declarationHandle, "a value is after its declaration")
            require(characteristic.endHandle >= characteristic.valueHandle, "a characteristic holds its value")
            last = characteristic.valueHandle
        }
    }

    private static func rise(_ handles: [AttributeHandle]) -> Bool {
        zip(handles, handles.dropFirst()).allSatisfy { $0 < $1 }
    }
}
