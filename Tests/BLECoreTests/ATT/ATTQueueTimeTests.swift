import BLECore
import TestSupport
import Testing

@Suite struct ATTQueueTimeTests {
    @Test("silence closes the link after 30 s and fails everything once", .row("T06"))
    func silenceClosesTheLinkAfterThirtySeconds() {
        let link = QueueOwner()
        let ids = [link.enqueue("0a0300"), link.enqueue("0a0400"), link.enqueue("52030001")]
        #expect(link.nextDeadline == link.now + .seconds(30))
        link.pass(.seconds(30) - .nanoseconds(1))
        #expect(link.closed == nil)
        link.pass(.nanoseconds(1))
        #expect(link.closed == .responseTimeout)
        #expect(link.finishedOrder == ids)
        #expect(ids.allSatisfy { link.result($0) == "closed: responseTimeout" })
        #expect(link.sent == ["0a0300"])
        #expect(link.result(link.enqueue("0a0300")) == "closed: responseTimeout")
        #expect(link.wrongs.isEmpty)
    }

    @Test("a response at 29.999 s counts", .row("T07")) func justInTime() {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.wait(.milliseconds(29_999))
        link.receive("0b01")
        #expect(link.result(request) == "0b01")
        #expect(link.nextDeadline == nil)
    }

    @Test("a response at 30.001 s meets a closed link", .row("T07")) func tooLate() {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.pass(.seconds(30))
        link.wait(.milliseconds(1))
        link.receive("0b01")
        #expect(link.result(request) == "closed: responseTimeout")
        #expect(link.closed == .responseTimeout)
        #expect(link.wrongs.isEmpty)
    }

    @Test("a response that waits counts, however late this process reads it", .row("O21")) func processWasStopped() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        link.wait(.seconds(60))
        // What the application wants first does not judge the time either.
        let second = link.enqueue("0a0400")
        link.receive("0b01")
        #expect(link.result(first) == "0b01")
        link.pass(.zero)
        #expect(link.closed == nil)
        // The next request has its own 30 s, from when it was sent.
        #expect(link.sent == ["0a0300", "0a0400"])
        link.wait(.milliseconds(29_999))
        link.receive("0b02")
        #expect(link.result(second) == "0b02")
        #expect(link.wrongs.isEmpty)
    }

    @Test("an operation that comes while the timer is late fails with the others", .row("T06")) func lateTimer() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        link.wait(.seconds(31))
        let second = link.enqueue("0a0400")
        link.pass(.zero)
        #expect(link.finishedOrder == [first, second])
        #expect(link.result(second) == "closed: responseTimeout")
        #expect(link.sent == ["0a0300"])
        #expect(link.wrongs.isEmpty)
    }

    @Test("cancelled in flight, the late response is discarded and the next request gets its own", .row("T08"))
    func theLateResponseToACancelledRequestIsDiscarded() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        link.cancel(first)
        #expect(link.result(first) == "cancelled")
        let second = link.enqueue("0a0400")
        #expect(link.sent == ["0a0300"])
        link.receive("0b01")
        #expect(link.result(second) == nil)
        #expect(link.sent == ["0a0300", "0a0400"])
        link.receive("0b02")
        #expect(link.result(second) == "0b02")
        #expect(link.statistics.lateResponses == 1)
        #expect(link.closed == nil)
        #expect(link.wrongs.isEmpty)
    }

    /// The peer reports it once, and carries out the next request, whatever its handle means by now.
    @Test("a change that is reported to a cancelled request alone refuses the next one", .row("G21"))
    func aChangeThatNoCallerKnowsRefusesTheNextRequest() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        link.cancel(first)
        link.receive("010a030012")
        #expect(link.result(first) == "cancelled")
        // A search needs no handle that may be wrong.
        let search = link.enqueue("080100ffff2a2b")
        link.receive("010801000a")
        #expect(link.result(search) == "refused 0a")
        let second = link.enqueue("120300ff")
        #expect(link.result(second) == "refused 12")
        let third = link.enqueue("120300ff")
        #expect(link.result(third) == nil)
        #expect(link.sent == ["0a0300", "080100ffff2a2b", "120300ff"])
        #expect(link.wrongs.isEmpty)
    }

    /// That caller may have waited for a read, or for a search.
    @Test(
        "a change that another caller knows refuses no later request", .row("G21"),
        arguments: ["0a0400", "100100ffff0028"])
    func aChangeThatACallerKnowsRefusesNoLaterRequest(waiting: String) {
        let link = QueueOwner()
        let (first, second) = (link.enqueue("0a0300"), link.enqueue(waiting))
        link.cancel(first)
        link.receive("010a030012")
        #expect(link.result(second) == "refused 12")
        let third = link.enqueue("0a0400")
        #expect(link.result(third) == nil)
        #expect(link.sent == ["0a0300", "0a0400"])
        #expect(link.wrongs.isEmpty)
    }

    @Test("cancelled in flight and without a response, the link closes 30 s after sending", .row("T09"))
    func orphanWithoutResponse() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        link.pass(.seconds(10))
        link.cancel(first)
        let second = link.enqueue("0a0400")
        link.pass(.seconds(19))
        #expect(link.closed == nil)
        link.pass(.seconds(1))
        #expect(link.closed == .responseTimeout)
        #expect(link.result(first) == "cancelled")
        #expect(link.result(second) == "closed: responseTimeout")
        #expect(link.wrongs.isEmpty)
    }

    @Test func aDeadlineReleasesOnlyTheCaller() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300", within: .seconds(2))
        let second = link.enqueue("0a0400", within: .seconds(1))
        let third = link.enqueue("0a0500")
        #expect(link.nextDeadline == link.now + .seconds(1))
        link.pass(.seconds(1))
        #expect(link.result(second) == "timed out")
        #expect(link.nextDeadline == link.now + .seconds(1))
        link.pass(.seconds(1))
        #expect(link.result(first) == "timed out")
        #expect(link.nextDeadline == link.now + .seconds(28))
        link.receive("0b01")
        #expect(link.sent == ["0a0300", "0a0500"])
        link.receive("0b02")
        #expect(link.result(third) == "0b02")
        #expect(link.statistics.timedOut == 2)
        #expect(link.wrongs.isEmpty)
    }

    @Test func whatIsTooLateIsNotSent() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        let second = link.enqueue("0a0400", within: .seconds(1))
        link.wait(.seconds(2))
        link.receive("0b01")
        #expect(link.sent == ["0a0300"])
        #expect(link.result(second) == "timed out")
    }

    @Test func aStrayDoesNotRestartTheTimer() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        link.pass(.seconds(29))
        link.receive("13")
        link.pass(.seconds(1))
        #expect(link.closed == .responseTimeout)
    }
}
