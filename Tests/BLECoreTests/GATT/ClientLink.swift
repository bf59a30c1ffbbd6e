import BLECore

/// A client whose packets are written at once, unless they are not taken, and whose peer is the test.
final class ClientLink {
    private var client = GATTClient()
    private(set) var sent: [[UInt8]] = []
    private(set) var finished: [(id: OperationID, result: Result<GATTOutcome, OperationFailure>)] = []
    /// What became of the operations that were under way at the last hand-over.
    private(set) var failures: [Result<GATTOutcome, OperationFailure>] = []
    private(set) var closed: ATTQueue.CloseReason?
    private var now: BootInstant
    var takesPackets = true

    init(at now: BootInstant = .zero) {
        self.now = now
    }

    var mtu: UInt16 { client.mtu }

    var nextDeadline: BootInstant? { client.nextDeadline }
    var operationCount: Int { client.operationCount }
    var statistics: ATTStatistics { client.statistics }

    /// Returns a number for an operation that starts later.
    func number() -> OperationID { client.nextID() }

    func read(_ handle: AttributeHandle, as number: OperationID? = nil, timeout: Duration? = nil) -> OperationID {
        let id = number ?? client.nextID()
        perform(client.startRead(handle, id: id, deadline: timeout.map { now + $0 }, at: now))
        return id
    }

    func exchangeMTU() {
        let id = client.nextID()
        perform(client.start(MTUExchange(offer: 517), id: id, deadline: nil, at: now) { .mtu($0) })
        receive([0x03, 0x40, 0x00])
    }

    func writeLong(_ value: [UInt8], as number: OperationID? = nil, timeout: Duration? = nil) -> OperationID {
        let id = number ?? client.nextID()
        let procedure = WriteLong(handle: 3, value: value, mtu: client.mtu)
        perform(client.start(procedure, id: id, deadline: timeout.map { now + $0 }, at: now) { _ in .done })
        return id
    }

    func write(_ handle: AttributeHandle, as number: OperationID? = nil, timeout: Duration? = nil) -> OperationID {
        let id = number ?? client.nextID()
        let procedure = WriteRequest(handle: handle, value: [9], mtu: client.mtu)
        perform(client.start(procedure, id: id, deadline: timeout.map { now + $0 }, at: now) { _ in .done })
        return id
    }

    func command(_ handle: AttributeHandle, as number: OperationID? = nil, timeout: Duration? = nil) -> OperationID {
        let id = number ?? client.nextID()
        let pdu = ATTWriteCommand(handle: handle, value: [9]).bytes
        perform(client.startCommand(pdu, id: id, deadline: timeout.map { now + $0 }, at: now))
        return id
    }

    func receive(_ pdu: [UInt8]) { perform(client.received(pdu, at: now)) }
    func cancel(_ id: OperationID) { perform(client.cancel(id, at: now)) }
    func changeServices(in handles: ClosedRange<AttributeHandle> = 1...0xFFFF) {
        perform(client.servicesChanged(in: handles, at: now))
    }
    func lose() { perform(client.linkLost(104, at: now)) }

    func pass(_ time: Duration) {
        now = now + time
        perform(client.timePassed(now))
    }

    /// Another client continues, which knows what this one has left. The bytes are what crosses to the other program.
    func handOver(after time: Duration = .zero) throws {
        var state = LinkState(peer: nil, name: "link")
        state.client = client.remains()
        finished = []
        perform(client.linkLost(0, at: now))
        // The next client counts from the beginning.
        failures = finished.map(\.result)
        finished = []
        let bytes = state.bytes
        now = now + time
        client = GATTClient(limits: ATTQueue.Limits(), remains: try LinkState(bytes: bytes).client, at: now)
        sent = []
        perform(client.resume(at: now))
    }

    func outcome(of id: OperationID) -> Result<GATTOutcome, OperationFailure>? {
        finished.first { $0.id == id }?.result
    }

    private func perform(_ actions: [GATTClient.Action]) {
        for action in actions {
            switch action {
            case .finish(let id, let result): finished.append((id, result))
            case .deliver: break
            case .close(let reason): closed = reason
            case .send(let pdu):
                guard takesPackets else {
                    client.blocked()
                    continue
                }
                sent.append(pdu)
                perform(client.sent(at: now))
            }
        }
    }
}
