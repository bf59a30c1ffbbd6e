import BareBLE
import BareBLETestKit
import TestSupport

/// Runs one recorded client operation through the public interface.
///
/// Reads and writes must send exactly what the recorded client sent. Discovery asks in its own order, so there a server
/// responds that knows the recorded responses, and has what the recorded client found.
struct ClientCaseRun {
    let recorded: GATTVectors.Case

    func verdict() async -> Verdict {
        do {
            return try await run()
        } catch {
            return .failed("\(error)")
        }
    }

    private func run() async throws -> Verdict {
        switch recorded.operation {
        case "read", "read-long": return try await read()
        case "read-by-uuid": return try await readByUUID()
        case "read-multiple": return try await readMultiple()
        case "signed-write": return try await writeSigned()
        case "write": return try await write()
        case "write-without-response": return try await writeWithoutResponse()
        case "write-long", "reliable-write": return try await writeReliably()
        case "exchange-mtu": return try await exchangeMTU()
        case "concurrent-reads": return try await readConcurrently()
        case "subscribe-notify": return try await subscribe()
        case "argument-check": return try await checkArguments()
        case let name where name.hasPrefix("discover"): return try await discover()
        default: return .failed("unknown operation \(recorded.operation)")
        }
    }

    // MARK: Reads and writes

    private func read() async throws -> Verdict {
        let handle = try required(recorded.params.handle)
        var steps = try script()
        var note: String?
        // The recorded client stopped where a full packet might continue; that it does not is a response too.
        let response = try recorded.script.last?.s2c.map { try bytes($0) } ?? []
        if recorded.operation == "read", response.count == recorded.clientMtu, response.first == 0x0B {
            let offset = UInt16(clamping: response.count - 1)
            steps.append(.init(.sent([0x0C] + handle.wireBytes + offset.wireBytes)))
            steps.append(.init(.received([0x01, 0x0C] + handle.wireBytes + [0x0B])))
            note = "the packet is full, so one more request asks whether the value goes on"
        }
        return try await play(steps, note: note) { device throws(BLEError) in
            .value(try await device.read(.handle(handle)))
        }
    }

    private func readByUUID() async throws -> Verdict {
        let kind = try uuid(recorded.params.uuid)
        let range = try required(recorded.params.start)...(try required(recorded.params.end))
        return try await play(try script()) { device throws(BLEError) in
            .values(try await device.readAll(kind, in: range).map { RecordedValue(handle: $0.handle, bytes: $0.bytes) })
        }
    }

    private func readMultiple() async throws -> Verdict {
        let handles = try required(recorded.params.handles)
        return try await play(try script()) { device throws(BLEError) in
            .value(try await device.readJoined(handles))
        }
    }

    private func write() async throws -> Verdict {
        let handle = try required(recorded.params.handle)
        let value = try bytes(recorded.params.value)
        return try await play(try script()) { device throws(BLEError) in
            try await device.write(value, to: .handle(handle))
            return .done
        }
    }

    private func writeWithoutResponse() async throws -> Verdict {
        let handle = try required(recorded.params.handle)
        let value = try bytes(recorded.params.value)
        return try await play(try script()) { device throws(BLEError) in
            try await device.write(value, to: .handle(handle), .withoutResponse)
            return .done
        }
    }

    /// The code is the recorded one, given out for the recorded message only; that the key makes this code of it is for
    /// the tests of `BareBLECrypto`.
    private func writeSigned() async throws -> Verdict {
        let handle = try required(recorded.params.handle)
        let value = try bytes(recorded.params.value)
        let packet = try bytes(recorded.script.first?.c2s)
        return try await play(try script()) { device throws(BLEError) in
            var signer = WriteSigner(counter: 0) { message in
                message == Array(packet.dropLast(8)) ? Array(packet.suffix(8)) : []
            }
            try await device.write(value, to: .handle(handle), signedBy: &signer)
            return .done
        }
    }

    /// A value that fits one request goes in one, so a "long" write is asked for as one that begins at the first byte.
    private func writeReliably() async throws -> Verdict {
        let handle = recorded.params.handle ?? 0
        let value = try bytes(recorded.params.value)
        if recorded.operation == "write-long", recorded.params.writes == nil {
            return try await play(try script()) { device throws(BLEError) in
                try await device.write(value, to: .handle(handle), at: 0)
                return .done
            }
        }
        var parts = [(value: value, characteristic: CharacteristicReference.handle(handle))]
        if let writes = recorded.params.writes {
            parts = try writes.map { (try bytes($0.value), .handle($0.handle)) }
        }
        let values = parts
        var steps = try script()
        var note: String?
        if recorded.params.autoSecurityUpgrade == true {
            steps.insert(contentsOf: [.init(.sent([0x18, 0x00])), .init(.received([0x19]))], at: 4)
            note = "what was refused is cancelled before it is asked for again"
        }
        return try await play(steps, note: note) { device throws(BLEError) in
            try await device.writeReliably(values)
            return .done
        }
    }

    private func exchangeMTU() async throws -> Verdict {
        let offer = try required(recorded.params.clientRxMtu)
        guard offer > 23 else {
            return .notApplicable("the smallest MTU needs no exchange, and none is made")
        }
        let peer = ScriptedPeripheral(Dialogue(steps: try script(withMTU: false)))
        let device = try await Self.central.attach(
            descriptor: try await peer.connect(), name: recorded.name, ConnectOptions(mtu: offer))
        let mtu = await device.mtu
        await device.disconnect()
        try Mismatch.unless(mtu == recorded.expect.mtu, "the MTU is \(mtu)")
        return try await finished(peer)
    }

    private func readConcurrently() async throws -> Verdict {
        let handles = try required(recorded.params.handles)
        let expected = try recorded.expect.values?.map { try bytes($0.value) } ?? []
        let peer = ScriptedPeripheral(Dialogue(steps: try script()))
        let device = try await attach(try await peer.connect())
        let values = try await read(handles, from: device)
        await device.disconnect()
        try Mismatch.unless(values == expected, "read \(values.map(Hex.encode))")
        return try await finished(peer)
    }

    /// Calls that overlap, made in this order: tasks of the peripheral's own actor begin in theirs, others in any.
    private func read(_ handles: [AttributeHandle], from device: isolated Peripheral) async throws -> [[UInt8]] {
        let reads = handles.map { handle in Task { try await device.read(.handle(handle)) } }
        var values: [[UInt8]] = []
        for read in reads { values.append(try await read.value) }
        return values
    }

    private func subscribe() async throws -> Verdict {
        let database = try required(GATTVectors.databases()[recorded.database ?? ""]).serverDatabase()
        var server = RecordedServer(database, mtu: recorded.clientMtu)
        try server.add(recorded.script)
        let peer = RespondingPeer(server)
        let device = try await attach(try await peer.connect())
        // The characteristic is in a secondary service, which only a full discovery looks for.
        try await device.discover(level: .full)
        let values = try await device.subscribe(to: .handle(try required(recorded.params.handle)))
        let event = try required(recorded.expect.events?.first)
        var iterator = values.makeAsyncIterator()
        let value = try await iterator.next()
        await device.disconnect()
        try Mismatch.unless(
            value?.bytes == bytes(event.value) && value?.isIndication == false, "received \(value as Any)")
        let requests = try recorded.script.compactMap(\.c2s).map { try bytes($0) }
        let sent = await peer.received
        try Mismatch.unless(Array(sent.suffix(requests.count)) == requests, "sent \(sent.map(Hex.encode))")
        return .passed()
    }

    /// Whether a request is sent at all. A handle 0 in a single read or write is left to the peer to refuse, because
    /// other cases of the suite send it.
    private func checkArguments() async throws -> Verdict {
        let parameters = recorded.params
        switch parameters.request {
        case "find-information":
            let range = try required(parameters.start)...(try required(parameters.end))
            return try await checkRefusal { device throws(BLEError) in
                _ = try await device.discoverDescriptors(in: range)
            }
        case "prepare-write" where parameters.handle != 0:
            return try await checkPreparedParts(try required(parameters.handle), try required(parameters.length))
        case "prepare-write":
            return .notApplicable("handle 0 is the peer's to refuse; GATT/GAW/CL/BI-07-C sends it")
        case "read", "read-blob":
            return .notApplicable("handle 0 is the peer's to refuse; GATT/GAR/CL/BI-01-C sends it")
        case "read-multiple":
            let handles = try required(parameters.handles)
            return try await checkRefusal { device throws(BLEError) in _ = try await device.readJoined(handles) }
        default:
            return .failed("unknown request \(parameters.request ?? "")")
        }
    }

    /// A call that is refused before anything is sent, or sends something.
    private func checkRefusal(_ call: (Peripheral) async throws(BLEError) -> Void) async throws -> Verdict {
        let peer = RespondingPeer(RecordedServer(ServerDatabase(attributes: [])))
        let device = try await attach(try await peer.connect())
        let outcome = await RecordedOutcome.of { () throws(BLEError) in
            try await call(device)
            return .done
        }
        let isSent = await !peer.received.isEmpty
        await device.disconnect()
        try Mismatch.unless(isSent == (outcome != .other(.invalidArgument)), "\(outcome)")
        try Mismatch.unless(isSent == recorded.expect.accepted, isSent ? "it was sent" : "it was refused")
        return .passed()
    }

    private func checkPreparedParts(_ handle: UInt16, _ length: Int) async throws -> Verdict {
        // What fits no packet is divided; the peer sees no part longer than 18 bytes.
        let value = [UInt8](repeating: 0xA5, count: length)
        let peer = RespondingPeer(RecordedServer(Self.writable(handle), mtu: 23))
        let device = try await attach(try await peer.connect())
        try await device.writeReliably([(value, .handle(handle))])
        let parts = await peer.received.filter { $0.first == 0x16 }
        await device.disconnect()
        try Mismatch.unless(parts.count == (length + 17) / 18, "\(parts.count) parts")
        try Mismatch.unless(parts.allSatisfy { $0.count <= 23 }, "a part is too long")
        return length > 18 ? .passed(note: "divided instead of refused") : .passed()
    }
}

// MARK: - The peer

extension ClientCaseRun {
    static let central = Central()
    /// Its application raises the security of every link that a peer finds wanting.
    private static let securingCentral: Central = {
        var configuration = Configuration()
        configuration.raiseSecurity = { _ in true }
        return Central(configuration)
    }()

    func attach(_ descriptor: Int32) async throws -> Peripheral {
        let central = recorded.params.autoSecurityUpgrade == true ? Self.securingCentral : Self.central
        return try await central.attach(
            descriptor: descriptor, name: recorded.name, ConnectOptions(mtu: recorded.clientMtu))
    }

    /// The recording as a dialogue, after the MTU exchange that `attach` makes.
    func script(withMTU: Bool = true) throws -> [Dialogue.Step] {
        var steps: [Dialogue.Step] = []
        if withMTU, recorded.clientMtu > 23 {
            let mtu = UInt16(clamping: recorded.clientMtu).wireBytes
            steps = [.init(.sent([0x02] + mtu)), .init(.received([0x03] + mtu))]
        }
        for line in recorded.script {
            if let sent = line.c2s { steps.append(.init(.sent(try bytes(sent)))) }
            if let received = line.s2c { steps.append(.init(.received(try bytes(received)))) }
        }
        return steps
    }

    /// Plays `steps` against one call; every request must be the recorded one, and the call end as recorded.
    func play(
        _ steps: [Dialogue.Step], note: String? = nil,
        _ call: @Sendable (Peripheral) async throws(BLEError) -> RecordedOutcome
    ) async throws -> Verdict {
        let peer = ScriptedPeripheral(Dialogue(steps: steps))
        let device = try await attach(try await peer.connect())
        let outcome = await RecordedOutcome.of { () throws(BLEError) in try await call(device) }
        await device.disconnect()
        let verdict = try await finished(peer, note: note)
        let expected = try RecordedOutcome(recorded.expect)
        try Mismatch.unless(outcome == expected, "\(outcome) instead of \(expected)")
        return verdict
    }

    func finished(_ peer: ScriptedPeripheral, note: String? = nil) async throws -> Verdict {
        let report = await peer.finish()
        try Mismatch.unless(report.isComplete, "\(report)")
        return .passed(note: note)
    }

    func required<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw Mismatch("the recording lacks a parameter") }
        return value
    }

    private static func writable(_ handle: UInt16) -> ServerDatabase {
        var attribute = ServerAttribute(handle: handle, type: 0xFFF1)
        attribute.writeMethods = .request
        return ServerDatabase(attributes: [attribute])
    }
}
