import BLECore

/// A client whose packets are written at once, and whose peer is the test.
final class ClientLink {
    private var client = GATTClient()
    private(set) var sent: [[UInt8]] = []
    private(set) var finished: [(id: OperationID, result: Result<GATTOutcome, OperationFailure>)] = []
    private(set) var closed: ATTQueue.CloseReason?
    var now = BootInstant.zero

    var nextDeadline: BootInstant? { client.nextDeadline }
    var operationCount: Int { client.operationCount }
    var statistics: ATTStatistics { client.statistics }

    func read(_ handle: AttributeHandle, timeout: Duration? = nil) -> OperationID {
        let id = client.nextID()
        let procedure = ReadLong(handle: handle, mtu: client.mtu)
        perform(client.start(procedure, id: id, deadline: timeout.map { now + $0 }, at: now) { .value($0) })
        return id
    }

    func writeLong(_ value: [UInt8], timeout: Duration? = nil) -> OperationID {
        let id = client.nextID()
        let procedure = WriteLong(handle: 3, value: value, mtu: client.mtu)
        perform(client.start(procedure, id: id, deadline: timeout.map { now + $0 }, at: now) { _ in .done })
        return id
    }

    func write(_ handle: AttributeHandle, timeout: Duration? = nil) -> OperationID {
        let id = client.nextID()
        let procedure = WriteRequest(handle: handle, value: [9], mtu: client.mtu)
        perform(client.start(procedure, id: id, deadline: timeout.map { now + $0 }, at: now) { _ in .done })
        return id
    }

    func command(_ handle: AttributeHandle, timeout: Duration? = nil) -> OperationID {
        let id = client.nextID()
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
                sent.append(pdu)
                perform(client.sent(at: now))
            }
        }
    }
}
