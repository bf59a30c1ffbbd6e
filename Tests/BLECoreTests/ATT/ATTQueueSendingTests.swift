import BLECore
import TestSupport
import Testing

@Suite struct ATTQueueSendingTests {
    @Test func oneRequestIsOutstandingAtATime() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        let second = link.enqueue("0a0500")
        #expect(link.sent == ["0a0300"])
        link.receive("0b01")
        #expect(link.sent == ["0a0300", "0a0500"])
        #expect(link.result(first) == "0b01")
        #expect(link.result(second) == nil)
        link.receive("0b02")
        #expect(link.result(second) == "0b02")
        #expect(link.count == 0)
        #expect(link.wrongs.isEmpty)
    }

    @Test func aCommandGoesWhileARequestIsOutstanding() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        let command = link.enqueue("52030001")
        #expect(link.sent == ["0a0300", "52030001"])
        #expect(link.result(command) == "")
    }

    @Test func aCommandAfterAWaitingRequestKeepsItsPlace() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        link.enqueue("0a0400")
        let command = link.enqueue("52030001")
        link.enqueue("0a0500")
        #expect(link.sent == ["0a0300"])
        #expect(link.result(command) == nil)
        link.receive("0b01")
        #expect(link.sent == ["0a0300", "0a0400", "52030001"])
        link.receive("0b01")
        #expect(link.sent == ["0a0300", "0a0400", "52030001", "0a0500"])
    }

    @Test func theQueueHoldsSoManyOperationsAndNoMore() {
        let link = QueueOwner()
        for _ in 0..<64 { link.enqueue("0a0300") }
        #expect(link.finished.isEmpty)
        let refused = link.enqueue("0a0300")
        #expect(link.result(refused) == "queue full")
        #expect(link.statistics.refusedByFullQueue == 1)
        link.receive("0b")
        #expect(link.result(link.enqueue("0a0300")) == nil)
    }

    @Test(.row("O10")) func aBlockedSocketLosesNothing() {
        let link = QueueOwner()
        link.takesPackets = false
        let commands = (1...3).map { link.enqueue("520300\(Hex.encode([UInt8($0)]))") }
        let request = link.enqueue("0a0300")
        #expect(link.sent.isEmpty)
        #expect(link.finished.isEmpty)
        link.becomeWritable()
        #expect(link.sent == ["52030001", "52030002", "52030003", "0a0300"])
        #expect(commands.allSatisfy { link.result($0) == "" })
        link.receive("0b07")
        #expect(link.result(request) == "0b07")
        #expect(link.wrongs.isEmpty)
    }

    // While security is being raised, a send fails for a moment; the owner reports it like a full socket.
    @Test func theResponseTimeRunsFromTheMomentOfSending() {
        let link = QueueOwner()
        link.takesPackets = false
        let request = link.enqueue("0a0300")
        link.pass(.seconds(100))
        #expect(link.closed == nil)
        #expect(link.nextDeadline == nil)
        link.becomeWritable()
        #expect(link.nextDeadline == link.now + .seconds(30))
        link.receive("0b")
        #expect(link.result(request) == "0b")
    }

    @Test func aBlockedRequestCanBeCancelled() {
        let link = QueueOwner()
        link.takesPackets = false
        let first = link.enqueue("0a0300")
        let second = link.enqueue("0a0400", within: .seconds(1))
        let third = link.enqueue("0a0500")
        link.cancel(first)
        link.pass(.seconds(1))
        #expect(link.result(first) == "cancelled")
        #expect(link.result(second) == "timed out")
        link.becomeWritable()
        #expect(link.sent == ["0a0500"])
        #expect(link.result(third) == nil)
    }

    @Test func cancellingAWaitingRequestLetsTheCommandsAfterItGo() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        let waiting = link.enqueue("0a0400")
        link.enqueue("52030001")
        link.cancel(waiting)
        #expect(link.sent == ["0a0300", "52030001"])
        #expect(link.result(waiting) == "cancelled")
        link.cancel(waiting)
        #expect(link.wrongs.isEmpty)
    }

    @Test func aPacketLongerThanTheMTUIsNotSent() {
        let link = QueueOwner()
        let long = link.enqueue("520300" + String(repeating: "aa", count: 21))
        let exact = link.enqueue("520300" + String(repeating: "aa", count: 20))
        #expect(link.result(long) == "longer than 23")
        #expect(link.result(exact) == "")
        #expect(link.sent.count == 1)
    }

    @Test func anEmptyPacketIsRefused() {
        let link = QueueOwner()
        #expect(link.result(link.enqueue("")) == "malformed")
        #expect(link.sent.isEmpty)
    }

    @Test func theOwnerMayHoldAPacketWhileOthersCome() {
        var queue = ATTQueue()
        let now = BootInstant.zero
        #expect(Array(queue.enqueue([0x0A, 3, 0], id: RequestID(1), at: now)) == [.send([0x0A, 3, 0])])
        #expect(queue.enqueue([0x52, 3, 0], id: RequestID(2), at: now).isEmpty)
        let given = Array(queue.cancel(RequestID(1), at: now))
        #expect(given == [.finish(RequestID(1), .failure(.cancelled))])
        #expect(Array(queue.sent(at: now)) == [.send([0x52, 3, 0])])
        #expect(Array(queue.sent(at: now)) == [.finish(RequestID(2), .success([]))])
        #expect(queue.sent(at: now).isEmpty)
        #expect(queue.count == 1)
        #expect(queue.received([0x0B], at: now).isEmpty)
        #expect(queue.count == 0)
        #expect(queue.statistics.lateResponses == 1)
    }

    @Test func whatWasCancelledInTheOwnersHandsIsDroppedWhenItBlocks() {
        var queue = ATTQueue()
        let now = BootInstant.zero
        _ = queue.enqueue([0x0A, 3, 0], id: RequestID(1), at: now)
        _ = queue.cancel(RequestID(1), at: now)
        queue.blocked()
        #expect(queue.count == 0)
        #expect(queue.writable(at: now).isEmpty)
        #expect(Array(queue.enqueue([0x0A, 4, 0], id: RequestID(1), at: now)) == [.send([0x0A, 4, 0])])
    }

    /// What is read before a request is written is confirmed, or gets its response, at once.
    @Test func whatThePeerIsOwedGoesOutWhileARequestIsHeld() {
        var queue = ATTQueue()
        let now = BootInstant.zero
        #expect(Array(queue.enqueue([0x0A, 3, 0], id: RequestID(1), at: now)) == [.send([0x0A, 3, 0])])
        queue.hold()
        for _ in 0..<5 {
            let given = Array(queue.received([0x1D, 7, 0, 1], at: now))
            #expect(given == [.deliver(7, [1], .indication), .send([0x1E])])
            #expect(queue.sent(at: now).isEmpty)
            #expect(Array(queue.received([0x02, 0x17, 0], at: now)) == [.send([0x03, 0x05, 0x02])])
            #expect(queue.sent(at: now).isEmpty)
        }
        #expect(Array(queue.release(at: now)) == [.send([0x0A, 3, 0])])
        #expect(queue.statistics.overlappingIndications == 0)
        // Nothing is in hand after `sent`, so there is nothing to hold.
        _ = queue.sent(at: now)
        queue.hold()
        #expect(Array(queue.enqueue([0x52, 3, 0], id: RequestID(2), at: now)) == [.send([0x52, 3, 0])])
    }

    /// One that was given up in the owner's hands is not there afterwards.
    @Test func aHeldRequestThatWasCancelledIsDropped() {
        var queue = ATTQueue()
        let now = BootInstant.zero
        _ = queue.enqueue([0x0A, 3, 0], id: RequestID(1), at: now)
        _ = queue.cancel(RequestID(1), at: now)
        queue.hold()
        #expect(queue.enqueue([0x0A, 4, 0], id: RequestID(2), at: now).isEmpty)
        #expect(Array(queue.release(at: now)) == [.send([0x0A, 4, 0])])
    }

    @Test(.row("C03")) func linkLossFailsEverythingOnce() {
        let link = QueueOwner()
        let ids = [link.enqueue("0a0300"), link.enqueue("0a0400"), link.enqueue("52030001")]
        link.lose()
        link.lose()
        #expect(link.finishedOrder == ids)
        #expect(ids.allSatisfy { link.result($0) == "closed: linkLost(104)" })
        #expect(link.closed == nil)
        #expect(link.isClosed)
        #expect(link.result(link.enqueue("0a0300")) == "closed: linkLost(104)")
        link.receive("0b01")
        link.pass(.seconds(60))
        #expect(link.nextDeadline == nil)
        #expect(link.sent == ["0a0300"])
        #expect(link.wrongs.isEmpty)
    }

    /// EMSGSIZE and EINVAL: waiting would not help.
    @Test func aPacketThatTheSystemRefusesFailsAtOnce() {
        let link = QueueOwner()
        link.refusal = 90
        let request = link.enqueue("0a0300")
        #expect(link.result(request) == "unsendable 90")
        link.receive("1d030001")
        #expect(link.sent.isEmpty)
        link.refusal = nil
        let next = link.enqueue("0a0500")
        #expect(link.sent == ["0a0500"])
        link.receive("0b01")
        #expect(link.result(next) == "0b01")
        #expect(link.statistics.unsendable == 2)
        #expect(link.closed == nil)
        #expect(link.wrongs.isEmpty)
    }
}
