import BLECore
import TestSupport
import Testing

@Suite struct GATTClientTests {
    private let link = ClientLink()
    /// The first piece of 40 zero bytes at MTU 23: Prepare Write Request, handle 3, offset 0, 18 bytes.
    private let firstPiece: [UInt8] = [0x16, 3, 0, 0, 0] + [UInt8](repeating: 0, count: 18)
    private let zeros = [UInt8](repeating: 0, count: 40)

    /// The echo of a Prepare Write Request repeats it with the response's opcode.
    private func echo(_ request: [UInt8]) -> [UInt8] { [0x17] + request.dropFirst() }

    @Test func oneRequestAtATimeInTheOrderOfTheCalls() {
        let (first, second) = (link.read(3), link.read(5))
        #expect(link.sent == [[0x0A, 3, 0]])
        link.receive([0x0B, 0xAA])
        #expect(link.sent == [[0x0A, 3, 0], [0x0A, 5, 0]])
        link.receive([0x0B, 0xBB])
        #expect(link.outcome(of: first) == .success(.value([0xAA])))
        #expect(link.outcome(of: second) == .success(.value([0xBB])))
        #expect(link.operationCount == 0)
        #expect(link.nextDeadline == nil)
    }

    @Test(.row("T08")) func aLateResponseIsNotTheNextOnes() {
        let first = link.read(3, timeout: .seconds(1))
        let second = link.read(5)
        link.pass(.seconds(1))
        #expect(link.outcome(of: first) == .failure(.timedOut))
        #expect(link.statistics.timedOut == 1)
        #expect(link.statistics.cancelled == 0)
        #expect(link.sent.count == 1)
        link.receive([0x0B, 0xAA])
        link.receive([0x0B, 0xBB])
        #expect(link.outcome(of: second) == .success(.value([0xBB])))
    }

    @Test(.row("C03")) func cancelledBeforeItWasSentIsNeverSent() {
        _ = link.read(3)
        let second = link.read(5)
        link.cancel(second)
        #expect(link.outcome(of: second) == .failure(.cancelled))
        link.receive([0x0B, 0xAA])
        #expect(link.sent.count == 1)
    }

    @Test func longWritesTakeTurns() {
        let (first, second) = (link.writeLong(zeros), link.writeLong(zeros))
        for _ in 0..<3 { link.receive(echo(link.sent.last ?? [])) }
        #expect(link.sent.last == [0x18, 0x01])
        link.receive([0x19])
        #expect(link.outcome(of: first) == .success(.done))
        #expect(link.sent.last == firstPiece)
        #expect(link.outcome(of: second) == nil)
    }

    /// Nothing of the later ones was sent, nor is in the queue of requests.
    @Test func aLongWriteGivenUpBeforeItsTurnIsCounted() {
        _ = link.writeLong(zeros)
        let late = link.writeLong(zeros, timeout: .seconds(1))
        let cancelled = link.writeLong(zeros)
        link.pass(.seconds(1))
        #expect(link.outcome(of: late) == .failure(.timedOut))
        #expect((link.statistics.timedOut, link.statistics.cancelled) == (1, 0))
        link.cancel(cancelled)
        #expect(link.outcome(of: cancelled) == .failure(.cancelled))
        #expect((link.statistics.timedOut, link.statistics.cancelled) == (1, 1))
    }

    @Test func aLongWriteGivenUpMidwayEmptiesThePeersQueueFirst() {
        let (first, second) = (link.writeLong(zeros), link.writeLong(zeros))
        link.receive(echo(firstPiece))
        link.cancel(first)
        #expect(link.outcome(of: first) == .failure(.cancelled))
        let pieces = link.sent.count
        link.receive(echo(link.sent.last ?? []))
        #expect(link.sent.count == pieces + 1)
        #expect(link.sent.last == [0x18, 0x00])
        link.receive([0x19])
        #expect(link.sent.last == firstPiece)
        #expect(link.outcome(of: second) == nil)
    }

    /// A read after which the last request of a long write waits; `echoes` are the responses to the pieces.
    private func longWriteAfterARead(
        echoes: [[UInt8]], _ giveUp: (OperationID) -> Void
    ) {
        let (write, second) = (link.writeLong(zeros), link.writeLong(zeros))
        for echo in echoes.dropLast() { link.receive(echo) }
        let read = link.read(5)
        link.receive(echoes.last ?? [])
        let sent = link.sent
        #expect(sent.last == [0x0A, 5, 0])
        giveUp(write)
        #expect(link.outcome(of: write) != nil)
        link.receive([0x0B, 1])
        #expect(link.outcome(of: read) == .success(.value([1])))
        #expect(link.sent == sent + [[0x18, 0x00]], "what the peer has queued must not stay")
        link.receive([0x19])
        #expect(link.sent.last == firstPiece)
        #expect(link.outcome(of: second) == nil)
    }

    /// The echoes of 40 zero bytes at MTU 23.
    private var echoes: [[UInt8]] {
        [[0x17, 3, 0, 0, 0], [0x17, 3, 0, 18, 0], [0x17, 3, 0, 36, 0]].enumerated().map { index, head in
            head + [UInt8](repeating: 0, count: index < 2 ? 18 : 4)
        }
    }

    @Test func aLongWriteGivenUpInFrontOfItsUnsentExecutionEmptiesThePeersQueue() {
        longWriteAfterARead(echoes: echoes) { link.cancel($0) }
    }

    @Test func aLongWriteGivenUpInFrontOfItsUnsentClearingEmptiesThePeersQueue() {
        let wrong: [UInt8] = [0x17, 3, 0, 36, 0, 9, 9, 9, 9]
        longWriteAfterARead(echoes: echoes.dropLast() + [wrong]) { link.cancel($0) }
    }

    /// A read may pass a long write that waits, and one that runs: only the peer's queue is shared.
    @Test func readsDoNotWaitForThePreparedQueue() {
        _ = link.writeLong(zeros)
        _ = link.writeLong(zeros)
        let read = link.read(7)
        link.receive(echo(firstPiece))
        link.receive([0x0B, 0x01])
        #expect(link.outcome(of: read) == .success(.value([0x01])))
    }

    @Test(.row("C03")) func theEndOfTheLinkFailsEverythingOnce() {
        let operations = [link.read(3), link.read(5), link.writeLong(zeros), link.writeLong(zeros)]
        link.lose()
        link.lose()
        #expect(link.finished.count == operations.count)
        for id in operations { #expect(link.outcome(of: id) == .failure(.linkLost)) }
        let late = link.read(9)
        #expect(link.outcome(of: late) == .failure(.linkLost))
        #expect(link.sent.count == 1)
    }

    /// Some wait for a response, some for the peer's prepared queue; none is there any more to be late.
    @Test(.row("C03")) func whatFailedWithTheLinkIsNotReportedAgainWhenItsTimeIsOver() {
        let operations = [
            link.writeLong(zeros, timeout: .seconds(1)), link.writeLong(zeros, timeout: .seconds(2)),
            link.read(5, timeout: .seconds(3)),
        ]
        link.lose()
        #expect(link.finished.map(\.id).sorted { $0.rawValue < $1.rawValue } == operations)
        #expect(link.operationCount == 0)
        #expect(link.nextDeadline == nil)
        link.pass(.seconds(60))
        #expect(link.finished.count == operations.count)
    }

    /// 30 s of silence close the link, and nothing more is sent.
    @Test(.row("T06")) func silenceClosesTheLink() {
        let operations = [link.read(3), link.writeLong(zeros), link.writeLong(zeros)]
        link.pass(.milliseconds(29_999))
        #expect(link.closed == nil)
        link.pass(.milliseconds(1))
        #expect(link.closed == .responseTimeout)
        for id in operations { #expect(link.outcome(of: id) == .failure(.linkLost)) }
        #expect(link.sent.count == 1)
    }

    @Test func tooManyOperationsAreRefused() {
        for handle in 1...64 as ClosedRange<AttributeHandle> { _ = link.read(handle) }
        let last = link.read(65)
        #expect(link.outcome(of: last) == .failure(.queueFull(limit: 64)))
        #expect(link.operationCount == 64)
        #expect(link.statistics.refusedByFullQueue == 1)
    }

    @Test func aRefusalIsTheOperationsAndNotTheLinks() {
        let read = link.read(3)
        link.receive([0x01, 0x0A, 3, 0, 0x05])
        #expect(
            link.outcome(of: read)
                == .failure(.gatt(.att(request: .readRequest, handle: 3, code: .insufficientAuthentication))))
        let next = link.read(3)
        link.receive([0x0B])
        #expect(link.outcome(of: next) == .success(.value([])))
    }

    /// What was sent is the peer's; what was not, and is for a handle that may mean something else now, never is.
    @Test func changedServicesGiveUpWritesThatWereNotSent() {
        let sent = link.write(5)
        let (inside, outside) = (link.write(6), link.write(20))
        link.changeServices(in: 1...10)
        #expect(link.outcome(of: inside) == .failure(.servicesChanged))
        link.receive([0x13])
        link.receive([0x13])
        #expect(link.outcome(of: sent) == .success(.done))
        #expect(link.outcome(of: outside) == .success(.done))
        #expect(link.sent == [[0x12, 5, 0, 9], [0x12, 20, 0, 9]])
    }

    /// A write that is given up makes way for the command after it, which must be given up as well, and before.
    @Test func changedServicesLetNoCommandOut() {
        let read = link.read(3)
        let (write, command, other) = (link.write(6), link.command(6), link.command(20))
        link.changeServices(in: 1...10)
        #expect(link.outcome(of: write) == .failure(.servicesChanged))
        #expect(link.outcome(of: command) == .failure(.servicesChanged))
        #expect(link.outcome(of: other) == .success(.done))
        link.receive([0x0B, 1])
        #expect(link.outcome(of: read) == .success(.value([1])))
        #expect(link.sent == [[0x0A, 3, 0], [0x52, 20, 0, 9]])
    }

    @Test func changedServicesLetNoCommandOutAfterALongWrite() {
        _ = link.read(3)
        let (long, command) = (link.writeLong(zeros), link.command(6))
        link.changeServices()
        #expect(link.outcome(of: long) == .failure(.servicesChanged))
        #expect(link.outcome(of: command) == .failure(.servicesChanged))
        link.receive([0x0B, 1])
        #expect(link.sent == [[0x0A, 3, 0], [0x18, 0]])
    }

    /// A number is given where a handle is looked up, and the change comes before the operation starts.
    @Test func changedServicesConcernWritesThatOnlyHaveANumber() {
        let numbers = (0..<5).map { _ in link.number() }
        link.changeServices(in: 1...10)
        let later = link.number()
        link.changeServices(in: 30...40)
        let given = [
            link.write(6, as: numbers[0]), link.command(6, as: numbers[1]), link.writeLong(zeros, as: numbers[2]),
        ]
        for id in given { #expect(link.outcome(of: id) == .failure(.servicesChanged)) }
        #expect(link.sent.isEmpty)
        #expect(link.statistics.cancelled == 3)
        // Another handle, a read, and a handle that was looked up after its change.
        let (outside, read) = (link.write(20, as: numbers[3]), link.read(6, as: numbers[4]))
        let write = link.write(6, as: later)
        for response in [[0x13], [0x0B, 1], [0x13]] as [[UInt8]] { link.receive(response) }
        #expect(link.outcome(of: outside) == .success(.done))
        #expect(link.outcome(of: read) == .success(.value([1])))
        #expect(link.outcome(of: write) == .success(.done))
        #expect(link.sent == [[0x12, 20, 0, 9], [0x0A, 6, 0], [0x12, 6, 0, 9]])
        #expect(link.operationCount == 0)
    }

    /// Their number is bounded, and none is forgotten.
    @Test func theFirstOfManyChangesConcernsAWriteThatOnlyHasANumber() {
        let number = link.number()
        for handle in 1...100 as ClosedRange<AttributeHandle> { link.changeServices(in: handle...handle) }
        let (early, late) = (link.write(1, as: number), link.write(1))
        #expect(link.outcome(of: early) == .failure(.servicesChanged))
        link.receive([0x13])
        #expect(link.outcome(of: late) == .success(.done))
        #expect(link.sent == [[0x12, 1, 0, 9]])
    }

    @Test func aCommandWhoseTimeIsOverIsNotLetOut() {
        _ = link.read(3)
        let (write, command) = (link.write(6, timeout: .seconds(1)), link.command(6, timeout: .seconds(1)))
        link.pass(.seconds(1))
        #expect(link.outcome(of: write) == .failure(.timedOut))
        #expect(link.outcome(of: command) == .failure(.timedOut))
        link.receive([0x0B, 1])
        #expect(link.sent == [[0x0A, 3, 0]])
    }

    /// Handles may mean something else, so the pieces must not be written.
    @Test(.row("G20")) func changedServicesEndALongWrite() {
        let write = link.writeLong(zeros)
        let read = link.read(5)
        link.changeServices()
        #expect(link.outcome(of: write) == .failure(.servicesChanged))
        #expect(link.outcome(of: read) == nil)
        link.receive([0x17] + firstPiece.dropFirst())
        link.receive([0x0B, 1])
        #expect(link.sent.last == [0x18, 0], "the peer's queue is emptied")
        #expect(link.outcome(of: read) == .success(.value([1])))
    }

    /// It was not sent, and must not be: the peer would write to what its handles mean now.
    @Test(.row("G20")) func changedServicesEndALongWriteWhoseExecutionWaits() {
        let write = link.writeLong(zeros)
        for echo in echoes.dropLast() { link.receive(echo) }
        let read = link.read(5)
        link.receive(echoes.last ?? [])
        #expect(link.sent.last == [0x0A, 5, 0])
        link.changeServices()
        #expect(link.outcome(of: write) == .failure(.servicesChanged))
        link.receive([0x0B, 1])
        #expect(link.outcome(of: read) == .success(.value([1])))
        #expect(link.sent.last == [0x18, 0x00], "the peer's queue is emptied")
        #expect(!link.sent.contains([0x18, 0x01]))
    }

    /// The peer may have changed its services because of the write. It announces that before its response to Execute
    /// Write, which is a confirmation, or the error Unlikely Error.
    @Test(.row("G20")) func changedServicesLeaveAnExecutedWriteToThePeersResponse() {
        let refusal = GATTFailure.att(request: .executeWriteRequest, handle: 3, code: .unlikelyError)
        let outcomes: [(response: [UInt8], result: Result<GATTOutcome, OperationFailure>)] = [
            ([0x19], .success(.done)), ([0x01, 0x18, 3, 0, 0x0E], .failure(.gatt(refusal))),
        ]
        for (response, result) in outcomes {
            let link = ClientLink()
            let (write, next) = (link.writeLong(zeros), link.writeLong(zeros))
            for echo in echoes { link.receive(echo) }
            // The indication, which is confirmed.
            link.receive([0x1D, 9, 0, 1, 0, 0xFF, 0xFF])
            link.changeServices()
            #expect(link.outcome(of: write) == nil)
            #expect(link.outcome(of: next) == .failure(.servicesChanged))
            link.receive(response)
            #expect(link.outcome(of: write) == result)
            #expect(link.sent.suffix(2) == [[0x18, 0x01], [0x1E]], "there is nothing to empty")
            #expect(link.finished.count == 2)
            #expect(link.operationCount == 0)
        }
    }

    /// The peer refuses a piece, and announces a change before it has emptied its queue: nothing was written.
    @Test func changedServicesEndALongWriteThatIsBeingWithdrawn() {
        let write = link.writeLong(zeros)
        link.receive([0x01, 0x16, 3, 0, 0x01])
        #expect(link.sent.last == [0x18, 0x00])
        link.changeServices()
        #expect(link.outcome(of: write) == .failure(.servicesChanged))
    }
}
