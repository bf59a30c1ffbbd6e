import BLECore
import TestSupport
import Testing

/// What becomes of an operation whose packet the socket does not take, or not yet, and of responses that are none.
@Suite struct GATTClientSendingTests {
    private let now = BootInstant(nanoseconds: 1)
    private let id = OperationID(1)
    /// Write Command, handle 3.
    private let command: [UInt8] = [0x52, 3, 0, 9]
    private let request: [UInt8] = [0x0A, 3, 0]

    /// Starts a command, or a read.
    private func start(_ client: inout GATTClient, _ pdu: [UInt8]? = nil) -> [GATTClient.Action] {
        guard let pdu else { return client.startRead(3, id: id, deadline: nil, at: now) }
        return client.startCommand(pdu, id: id, deadline: nil, at: now)
    }

    @Test func aCommandIsOverWhenTheSocketHasTakenIt() {
        var client = GATTClient()
        var actions = start(&client, command)
        #expect(actions == [.send(command)])
        actions = client.sent(at: now)
        #expect(actions == [.finish(id, .success(.done))])
        let count = client.operationCount
        #expect(count == 0)
    }

    @Test func whatTheSocketDoesNotTakeYetComesAgain() {
        var client = GATTClient()
        var actions = start(&client, command)
        client.blocked()
        actions = client.timePassed(now)
        #expect(actions == [])
        actions = client.writable(at: now)
        #expect(actions == [.send(command)])
    }

    @Test func whatTheSocketNeverTakesFailsAlone() {
        for isCommand in [true, false] {
            var client = GATTClient()
            var actions = start(&client, isCommand ? command : nil)
            actions = client.refused(90, at: now)
            #expect(actions == [.finish(id, .failure(.unsendable(90)))])
            actions = client.startRead(5, id: OperationID(2), deadline: nil, at: now)
            #expect(actions == [.send([0x0A, 5, 0])])
        }
    }

    @Test func aCommandLongerThanTheMTUIsNotSent() {
        var client = GATTClient()
        let actions = start(&client, [0x52, 3, 0] + [UInt8](repeating: 0, count: 21))
        #expect(actions == [.finish(id, .failure(.gatt(.valueTooLong(partial: []))))])
    }

    /// An Error Response of two bytes says nothing, and ends the request that it names.
    @Test(.row("T03")) func aResponseThatIsMalformedFailsTheOperationAlone() {
        var client = GATTClient()
        var actions = start(&client)
        #expect(actions == [.send(request)])
        _ = client.sent(at: now)
        actions = client.received([0x01, 0x0A], at: now)
        guard case .finish(id, .failure(.gatt(.malformed)))? = actions.first, actions.count == 1 else {
            Issue.record("\(actions)")
            return
        }
        actions = client.startRead(5, id: OperationID(2), deadline: nil, at: now)
        #expect(actions == [.send([0x0A, 5, 0])])
    }
}
