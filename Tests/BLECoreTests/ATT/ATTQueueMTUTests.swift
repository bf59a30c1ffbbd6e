import BLECore
import TestSupport
import Testing

@Suite struct ATTQueueMTUTests {
    @Test(
        "the smaller number holds, between 23 and 517", .row("T22"),
        arguments: [
            ("020502", "030000", 23), ("020502", "031600", 23), ("020502", "03ffff", 517), ("020502", "03f700", 247),
            ("02f700", "030502", 247), ("02ffff", "03ffff", 517), ("021700", "030002", 23),
        ] as [(String, String, UInt16)])
    func theSmallerMTUOfBothSidesHolds(request: String, response: String, mtu: UInt16) {
        let link = QueueOwner()
        let id = link.enqueue(request)
        #expect(link.mtu == 23)
        link.receive(response)
        #expect(link.mtu == mtu)
        #expect(link.result(id) == response)
    }

    @Test("a malformed response leaves 23", .row("T22"), arguments: ["03", "03f7", "03f7000000"])
    func aMalformedResponseLeavesTheDefaultMTU(response: String) {
        let link = QueueOwner()
        let id = link.enqueue("020502")
        link.receive(response)
        #expect(link.mtu == 23)
        #expect(link.result(id) == "malformed")
        #expect(link.closed == nil)
    }

    // An error other than "not supported" stalls some clients for good.
    @Test("any error means 23, and the queue continues", arguments: ["0102000006", "0102000004"])
    func anyErrorLeavesTheDefaultMTUAndTheQueueContinues(response: String) {
        let link = QueueOwner()
        link.enqueue("020502")
        let next = link.enqueue("0a0300")
        link.receive(response)
        #expect(link.mtu == 23)
        link.receive("0b01")
        #expect(link.result(next) == "0b01")
    }

    @Test("a second response is a known stray, and closes a strict link", .row("T22"), arguments: [false, true])
    func secondResponse(isStrict: Bool) {
        let link = QueueOwner { $0.isStrict = isStrict }
        link.enqueue("020502")
        link.receive("03f700")
        let next = link.enqueue("0a0300")
        link.receive("030001")
        #expect(link.mtu == 247)
        #expect(link.statistics.knownStrays == 1)
        #expect(link.closed == (isStrict ? .unexplainedResponses : nil))
        if isStrict { return }
        link.receive("0b01")
        #expect(link.result(next) == "0b01")
        link.receive("030001")
        #expect(link.mtu == 247)
        #expect(link.closed == nil)
    }

    @Test func aLateResponseCountsForTheMTUAllTheSame() {
        let link = QueueOwner()
        link.cancel(link.enqueue("020502"))
        link.receive("03f700")
        #expect(link.mtu == 247)
        #expect(link.statistics.lateResponses == 1)
    }

    @Test func thePeerMayAskAlone() {
        let link = QueueOwner { $0.mtu = 247 }
        link.receive("020502")
        #expect(link.sent == ["03f700"])
        #expect(link.mtu == 247)
        link.receive("0b" + String(repeating: "55", count: 246))
        #expect(link.closed == nil)
    }

    @Test func aMalformedQuestionIsRefused() {
        let link = QueueOwner()
        link.receive("0217")
        #expect(link.sent == ["0102000004"])
        #expect(link.mtu == 23)
    }

    @Test("both ask; the smallest number holds once both are done, and more is accepted at once", .row("T23"))
    func crossingExchangesUseTheSmallestMTU() {
        let link = QueueOwner { $0.mtu = 400 }
        link.enqueue("029001")
        link.receive("022c01")
        #expect(link.sent == ["029001", "039001"])
        #expect(link.mtu == 23)
        link.receive("1b0300" + String(repeating: "55", count: 200))
        #expect(link.delivered.count == 1)
        link.receive("03fa00")
        #expect(link.mtu == 250)
    }

    @Test("both ask, the peer last", .row("T23")) func peerAsksLater() {
        let link = QueueOwner()
        link.enqueue("020502")
        link.receive("03f700")
        link.receive("026400")
        #expect(link.mtu == 100)
        link.receive("0b" + String(repeating: "55", count: 246))
        #expect(link.closed == nil)
    }

    @Test("both ask, and the peer refuses ours", .row("T23")) func crossingAndRefused() {
        let link = QueueOwner()
        link.enqueue("020502")
        link.receive("02f700")
        #expect(link.mtu == 23)
        link.receive("0102000006")
        #expect(link.mtu == 247)
    }

    @Test func theMTUDecidesWhenAPacketsTurnComes() {
        let link = QueueOwner()
        link.enqueue("020502")
        let command = link.enqueue("520300" + String(repeating: "55", count: 100))
        let write = link.enqueue("120300" + String(repeating: "55", count: 100))
        #expect(link.sent.count == 1)
        link.receive("03f700")
        #expect(link.sent.count == 3)
        #expect(link.result(command) == "")
        #expect(link.result(write) == nil)
    }
}
