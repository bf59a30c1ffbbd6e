import BLECore
import TestSupport
import Testing

@Suite struct ATTQueueMatchingTests {
    @Test(
        "a response that no request waits for is dropped, and closes a strict link", .row("T01"),
        arguments: [false, true])
    func aResponseWithoutARequestIsDroppedAndClosesAStrictLink(isStrict: Bool) {
        let link = QueueOwner { $0.isStrict = isStrict }
        for _ in 0..<5 where link.closed == nil { link.receive("0b01") }
        #expect(link.closed == (isStrict ? .unexplainedResponses : nil))
        #expect(link.statistics.unexplainedResponses == (isStrict ? 1 : 5))
        #expect(link.wrongs.isEmpty)
    }

    @Test(
        "a read that gets a write response goes on waiting, and closes a strict link", .row("T02"),
        arguments: [false, true])
    func wrongResponse(isStrict: Bool) {
        let link = QueueOwner { $0.isStrict = isStrict }
        let request = link.enqueue("0a0300")
        link.receive("13")
        #expect(link.result(request) == (isStrict ? "closed: unexplainedResponses" : nil))
        link.receive("0b01")
        #expect(link.result(request) == (isStrict ? "closed: unexplainedResponses" : "0b01"))
        #expect(link.wrongs.isEmpty)
    }

    @Test("three unexplained responses within one request close the link", .row("T02")) func threeOfThem() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        link.receive("13")
        link.receive("0902")
        link.receive("0b01")
        #expect(link.result(first) == "0b01")
        let second = link.enqueue("0a0400")
        link.receive("13")
        link.receive("0902")
        #expect(link.closed == nil)
        link.receive("13")
        #expect(link.closed == .unexplainedResponses)
        #expect(link.result(second) == "closed: unexplainedResponses")
        #expect(link.statistics.unexplainedResponses == 5)
        #expect(link.wrongs.isEmpty)
    }

    @Test(
        "an Error Response of the wrong length fails the request", .row("T03"),
        arguments: ["010a", "010a0300", "010a03000a00", "01"])
    func malformedError(pdu: String) {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.receive(pdu)
        #expect(link.result(request) == "malformed")
        #expect(link.statistics.malformedResponses == 1)
        #expect(link.closed == nil)
        #expect(link.result(link.enqueue("0a0300")) == nil)
    }

    @Test("an Error Response with another handle is used", .row("T04")) func otherHandle() {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.receive("010a990005")
        #expect(link.result(request) == "refused 05")
        #expect(link.statistics.handleMismatches == 1)
        link.enqueue("0a0300")
        link.receive("010a030005")
        #expect(link.statistics.handleMismatches == 1)
    }

    @Test(
        "an Error Response about another request is not the response", .row("T04"), arguments: ["0112030005", "011203"])
    func otherRequest(pdu: String) {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.receive(pdu)
        #expect(link.result(request) == nil)
        #expect(link.statistics.unexplainedResponses == 1)
        link.receive("0b01")
        #expect(link.result(request) == "0b01")
    }

    @Test("a response that comes twice is counted, and whether it differs", .row("T31"))
    func aDuplicateResponseIsCounted() {
        let link = QueueOwner()
        let first = link.enqueue("0a0300")
        link.receive("0b01")
        link.receive("0b01")
        #expect(link.result(first) == "0b01")
        #expect(link.statistics.duplicatedResponses == 1 && link.contradictions == 0)
        link.receive("0b02")
        link.receive("010a030005")
        #expect(link.statistics.duplicatedResponses == 3 && link.contradictions == 2)
        #expect(link.statistics.knownStrays == 3)
        // An error about a command, and a second MTU response, are known and put nothing in doubt.
        link.receive("0152030003")
        link.enqueue("020502")
        link.receive("030502")
        link.receive("030502")
        #expect(link.statistics.duplicatedResponses == 3)
        #expect(link.closed == nil)
    }

    @Test("an Error Response that repeats the one before is not the next one's", .row("T33")) func staleError() {
        let link = QueueOwner()
        let (first, second) = (link.enqueue("0a0300"), link.enqueue("0a0500"))
        link.receive("010a030002")
        link.receive("010a030002")
        #expect(link.result(first) == "refused 02")
        #expect(link.result(second) == nil)
        #expect(link.statistics.duplicatedResponses == 1)
        link.receive("0b05")
        #expect(link.result(second) == "0b05")
        // From such a peer one for what has just ended well is not the next one's either.
        let third = link.enqueue("0a0700")
        link.receive("010a050008")
        #expect(link.result(third) == nil)
        #expect(link.statistics.handleMismatches == 0)
    }

    @Test("what names the handle before is taken from a peer that sends nothing twice", .row("T33")) func oldHandle() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        link.receive("0b03")
        let second = link.enqueue("0a0500")
        link.receive("010a030002")
        #expect(link.result(second) == "refused 02")
        #expect(link.statistics.handleMismatches == 1)
    }

    @Test("every error code reaches the caller as it is", .row("T05")) func everyCode() {
        let link = QueueOwner()
        for code in UInt8.min...UInt8.max {
            let request = link.enqueue("0a0300")
            link.receive("010a0300" + Hex.encode([code]))
            #expect(link.result(request) == "refused \(Hex.encode([code]))")
        }
        #expect(link.closed == nil)
    }

    @Test("a packet without bytes is counted", .row("T10")) func emptyPacket() {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.receive("")
        #expect(link.statistics.emptyPackets == 1)
        link.receive("0b")
        #expect(link.result(request) == "0b")
    }

    @Test("a response longer than the MTU closes the link", .row("T13"), arguments: [23, 24, 672])
    func aResponseLongerThanTheMTUClosesTheLink(count: Int) {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.receive("0b" + String(repeating: "55", count: count - 1))
        #expect(link.closed == (count > 23 ? .oversizedResponse : nil))
        #expect(link.statistics.oversizedResponses == (count > 23 ? 1 : 0))
        #expect(link.result(request)?.hasPrefix(count > 23 ? "closed: oversizedResponse" : "0b55") == true)
        #expect(link.wrongs.isEmpty)
    }

    @Test("a response to what has just ended is a known stray") func lateSecondResponse() {
        let link = QueueOwner()
        link.enqueue("100100ffff0028")
        link.receive("011001000a")
        let next = link.enqueue("080100ffff0328")
        for _ in 0..<9 {
            link.receive("1106010004000118")
            link.receive("011001000a")
        }
        #expect(link.closed == nil)
        #expect(link.statistics.knownStrays == 18)
        #expect(link.statistics.unexplainedResponses == 0)
        link.receive("09070200020300002a")
        #expect(link.result(next) == "09070200020300002a")
    }

    // Some peripherals respond to commands with an error, which the specification forbids.
    @Test func anErrorAboutACommandIsAKnownStray() {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        for _ in 0..<9 { link.receive("0152030003") }
        #expect(link.closed == nil)
        #expect(link.statistics.knownStrays == 9)
        link.receive("0b01")
        #expect(link.result(request) == "0b01")
    }

    // Some stacks take the peer's own request for the response to theirs.
    @Test func aRequestOfThePeerIsNotTheResponseToOurs() {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        link.receive("021700")
        #expect(link.sent == ["0a0300", "030502"])
        #expect(link.result(request) == nil)
        link.receive("0b01")
        #expect(link.result(request) == "0b01")
    }

    @Test("values in between do not disturb a request", .row("T17")) func valuesInBetween() {
        let link = QueueOwner()
        let request = link.enqueue("0a0300")
        for _ in 0..<1_000 { link.receive("1b030001") }
        link.receive("0b01")
        #expect(link.result(request) == "0b01")
        #expect(link.delivered.count == 1_000)
    }
}
