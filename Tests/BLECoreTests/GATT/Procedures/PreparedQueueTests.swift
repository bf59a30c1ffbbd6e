import BLECore
import Testing

@Suite struct PreparedQueueTests {
    private let now = BootInstant(nanoseconds: 1)

    /// Performs the client's actions as a link would, on a socket that takes everything.
    private func perform(
        _ actions: [GATTClient.Action], _ client: inout GATTClient, _ sent: inout [[UInt8]],
        _ ended: inout [OperationID]
    ) {
        for action in actions {
            switch action {
            case .send(let pdu):
                sent.append(pdu)
                perform(client.sent(at: now), &client, &sent, &ended)
            case .finish(let id, _): ended.append(id)
            case .deliver, .close: break
            }
        }
    }

    /// What is left in the peer's queue would be written by the next long write.
    @Test func aFullQueueStillClearsThePeersPreparedWrites() {
        var client = GATTClient()
        var sent: [[UInt8]] = []
        var ended: [OperationID] = []
        let long = client.nextID()
        let write = WriteLong(handle: 3, value: [UInt8](repeating: 0xA5, count: 40), mtu: client.mtu)
        perform(client.start(write, id: long, deadline: nil, at: now) { .done }, &client, &sent, &ended)
        for _ in 0..<63 {
            perform(client.startRead(5, id: client.nextID(), deadline: nil, at: now), &client, &sent, &ended)
        }
        #expect(sent.map(\.first) == [0x16])
        perform(client.cancel(long, at: now), &client, &sent, &ended)
        #expect(ended == [long])
        perform(client.received([0x17, 3, 0, 0, 0], at: now), &client, &sent, &ended)
        for _ in 0..<63 { perform(client.received([0x0B, 1], at: now), &client, &sent, &ended) }
        #expect(ended.count == 64)
        #expect(sent.last == [0x18, 0x00])
    }
}
