import BareBLE
import BareBLETestKit
import TestSupport

/// Runs one recorded session of a profile through the public interface: discovery, then the recorded reads, writes and
/// subscriptions in their order.
struct ProfileSessionRun {
    let recorded: GATTVectors.Session

    func verdict() async -> Verdict {
        do {
            try await run()
            return .passed()
        } catch {
            return .failed("\(error)")
        }
    }

    private func run() async throws {
        let lines = recorded.setup + recorded.script
        let requests = try lines.compactMap(\.c2s).map { try bytes($0) }
        let offer = requests.first { $0.first == 0x02 }.map { Int($0[1]) | Int($0[2]) << 8 } ?? 23
        var server = RecordedServer(try serverDatabase(requests), mtu: offer)
        try server.add(lines)
        let peer = RespondingPeer(server)
        let device = try await ClientCaseRun.central.attach(
            descriptor: try await peer.connect(), name: recorded.name, ConnectOptions(mtu: offer))
        let database = try await device.discover(level: .full)
        try compare(database)

        var subscriptions: [UInt16: ValueSequence] = [:]
        var position = 0
        while position < lines.count {
            let exchange = try nextExchange(lines, &position)
            try await follow(exchange, with: device, in: database, &subscriptions)
        }
        try await checkEvents(subscriptions, endingWith: device)

        let sent = await peer.received.filter(Self.isOperation)
        try Mismatch.unless(sent == requests.filter(Self.isOperation), "sent \(sent.map(Hex.encode))")
    }

    /// Reads and writes of values; the rest is discovery, or what the recorded client does beside it.
    private static func isOperation(_ pdu: [UInt8]) -> Bool {
        [0x0A, 0x0C, 0x0E, 0x12, 0x16, 0x18, 0x52].contains(pdu.first)
    }

    /// The discoveries of the recorded client, and the configurations that it wrote without having discovered them.
    private func serverDatabase(_ requests: [[UInt8]]) throws -> ServerDatabase {
        let discovered = recorded.expect.discovered
        var known = Set((discovered.characteristics ?? []).map(\.valueHandle))
        known.formUnion((discovered.descriptors ?? []).map(\.handle))
        let written = requests.filter { $0.first == 0x12 && $0.count == 5 }.map { UInt16($0[1]) | UInt16($0[2]) << 8 }
        return try discovered.serverDatabase(configurations: Set(written).subtracting(known))
    }

    private func compare(_ found: GATTDatabase) throws {
        let expected = recorded.expect.discovered
        try ClientCaseRun.compare(expected.services, with: found.services)
        try ClientCaseRun.compare(expected.characteristics, with: found.characteristics)
        for descriptor in expected.descriptors ?? [] {
            let type = try uuid(descriptor.uuid)
            try Mismatch.unless(
                found.descriptor(at: descriptor.handle)?.uuid == type, "no descriptor at \(descriptor.handle)")
        }
    }

    // MARK: One exchange

    /// A request with its response; a long read with all of its parts.
    private struct Exchange {
        var request: [UInt8]
        var outcome: RecordedOutcome
        var handle: UInt16 { UInt16(request[1]) | UInt16(request[2]) << 8 }
    }

    private func nextExchange(_ lines: [GATTVectors.Line], _ position: inout Int) throws -> Exchange {
        let request = try bytes(lines[position].c2s)
        position += 1
        var exchange = Exchange(request: request, outcome: .done)
        var value: [UInt8] = []
        while position < lines.count {
            let line = lines[position]
            if let response = line.s2c {
                let pdu = try bytes(response)
                if pdu.first == 0x01 { exchange.outcome = .refused(pdu[4]) }
                if pdu.first == 0x0B || pdu.first == 0x0D {
                    value += pdu.dropFirst()
                    exchange.outcome = .value(value)
                }
            } else if request.first != 0x0A || line.c2s?.hasPrefix("0c") != true {
                break
            }
            position += 1
        }
        return exchange
    }

    private func follow(
        _ exchange: Exchange, with device: Peripheral, in database: GATTDatabase,
        _ subscriptions: inout [UInt16: ValueSequence]
    ) async throws {
        guard Self.isOperation(exchange.request) else { return }
        let handle = exchange.handle
        let value = Array(exchange.request.dropFirst(3))
        var began: ValueSequence?
        let outcome = await RecordedOutcome.of { () throws(BLEError) in
            switch exchange.request.first {
            case 0x0A:
                return .value(try await device.read(.handle(handle)))
            case 0x52:
                try await device.write(value, to: .handle(handle), .withoutResponse)
            default:
                if value == [1, 0], database.type(at: handle) == .clientCharacteristicConfiguration,
                    let owner = database.characteristic(containing: handle)
                {
                    began = try await device.subscribe(to: .handle(owner.valueHandle))
                } else {
                    try await device.write(value, to: .handle(handle))
                }
            }
            return .done
        }
        try Mismatch.unless(
            outcome == exchange.outcome, "\(outcome) instead of \(exchange.outcome) for \(Hex.encode(exchange.request))"
        )
        if let began { subscriptions[began.handle] = began }
    }

    /// Every recorded value was received, and nothing else before the end of the link.
    private func checkEvents(
        _ subscriptions: [UInt16: ValueSequence], endingWith device: Peripheral
    ) async throws {
        var iterators: [(handle: UInt16, values: ValueSequence.AsyncIterator)] = []
        for (handle, values) in subscriptions {
            let expected = try recorded.expect.events.filter { $0.handle == handle }.map { try bytes($0.value) }
            var iterator = values.makeAsyncIterator()
            for bytes in expected {
                let value = try await iterator.next()
                try Mismatch.unless(value?.bytes == bytes, "received \(value as Any) of \(handle)")
            }
            iterators.append((handle, iterator))
        }
        await device.disconnect()
        for (handle, values) in iterators {
            var values = values
            let value = try await values.next()
            try Mismatch.unless(value == nil, "received \(value as Any) of \(handle) besides")
        }
        let missing = recorded.expect.events.filter { subscriptions[$0.handle] == nil }
        try Mismatch.unless(missing.isEmpty, "values without a subscription: \(missing.map(\.handle))")
    }
}
