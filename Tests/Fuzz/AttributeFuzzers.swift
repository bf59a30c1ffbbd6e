@testable import BLECore

func fuzzATTPacket(_ input: [UInt8]) {
    guard let packet = try? ATTPacket(input) else { return }
    require(packet.bytes == input, "what was decoded encodes to the same bytes")
}

/// A peer whose responses to a discovery and a long read are those of the input.
func fuzzGATTClient(_ input: [UInt8]) {
    var client = GATTClient()
    var now = BootInstant(nanoseconds: 0)
    var finished: [OperationID: Int] = [:]
    var isClosed = false

    func obey(_ first: [GATTClient.Action], _ client: inout GATTClient) {
        var waiting = first
        while !waiting.isEmpty {
            switch waiting.removeFirst() {
            case .finish(let id, _): finished[id, default: 0] += 1
            case .deliver: break
            case .send(let pdu):
                require(pdu.count <= Int(client.mtu), "a packet fits the MTU")
                waiting += client.sent(at: now)
            case .close: isClosed = true
            }
        }
    }

    let discovery = client.nextID()
    let read = client.nextID()
    obey(
        client.start(
            GATTDiscovery(level: .full, mtu: client.mtu), id: discovery, deadline: nil, at: now,
            outcome: { .database($0) }), &client)
    obey(
        client.start(
            ReadLong(handle: 3, mtu: client.mtu), id: read, deadline: nil, at: now, outcome: { .value($0) }), &client)
    for packet in packets(input) where !isClosed {
        now = now.advanced(by: .milliseconds(10))
        obey(client.received(packet, at: now), &client)
    }
    obey(client.linkLost(104, at: now), &client)
    require(finished[discovery] == 1 && finished[read] == 1, "every operation ends exactly once")
}

/// A procedure on its own, and a peer that never tires: it responds in the pattern that the input gives, over and over.
/// However it responds, the procedure has to end by itself. That takes thousands of requests at times, so that most runs
/// look at the first ones only.
func fuzzLists(_ input: [UInt8]) {
    var script = FuzzInput(input)
    let mtu = max(23, min(517, script.word()))
    let range = AttributeHandle(1)...0xFFFF
    switch script.byte() % 8 {
    case 0: runToEnd(GATTDiscovery(level: .structure, mtu: mtu), mtu, &script)
    case 1: runToEnd(GATTDiscovery(level: .subscribable, mtu: mtu), mtu, &script)
    case 2: runToEnd(GATTDiscovery(level: .full, mtu: mtu, isStrict: script.byte() & 1 == 1), mtu, &script)
    case 3: runToEnd(GATTDiscovery(level: .full, services: [0x180D, 0x1801], mtu: mtu), mtu, &script)
    case 4: runToEnd(ServiceDiscovery(in: range), mtu, &script)
    case 5: runToEnd(CharacteristicDiscovery(in: range), mtu, &script)
    case 6: runToEnd(IncludeDiscovery(in: range), mtu, &script)
    default: runToEnd(ReadByUUID(0x2A00, mtu: mtu), mtu, &script)
    }
}

private func runToEnd<Procedure: GATTProcedure>(_ first: Procedure, _ mtu: UInt16, _ script: inout FuzzInput) {
    let goesToTheEnd = script.byte() == 0xFF
    // Some responses that come once, then those that come forever.
    var opening: [ListedResponse] = []
    for _ in 0..<(script.byte() % 8) { opening.append(ListedResponse(&script)) }
    var pattern: [ListedResponse] = []
    repeat { pattern.append(ListedResponse(&script)) } while !script.isAtEnd && pattern.count < 4
    var procedure = first
    var step = procedure.begin()
    var requests = 0
    while case .send(let request) = step, goesToTheEnd || requests < 100 {
        require(request.count <= Int(mtu), "a request fits the MTU")
        require(hasPossibleHandles(request), "a request asks about handles that there can be")
        requests += 1
        // Twice the largest database, and what a peer without any attribute may cost.
        require(requests <= 2 * (GATTDatabase.attributeLimit + 1) + 256, "a discovery has an end")
        let response = requests <= opening.count ? opening[requests - 1] : pattern[requests % pattern.count]
        procedure.willReceive(mtu: mtu)
        step = procedure.received(response.reply(to: request, mtu: Int(mtu)))
    }
}
