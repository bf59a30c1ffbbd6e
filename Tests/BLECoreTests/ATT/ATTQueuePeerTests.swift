import BLECore
import TestSupport
import Testing

@Suite struct ATTQueuePeerTests {
    @Test func valuesAreDeliveredInTheOrderOfThePacket() {
        let link = QueueOwner(mtu: 100)
        link.receive("1b0600")
        link.receive("1b20000201")
        link.receive("230300020001020400000003000100ff")
        #expect(
            link.delivered == [
                "notification 6 ", "notification 32 0201", "notification 3 0102", "notification 4 ",
                "notification 3 ff",
            ])
        #expect(link.statistics.notifications == 5)
        #expect(link.sent.isEmpty)
    }

    @Test("an indication is confirmed at once, in front of everything that waits")
    func anIndicationIsConfirmedBeforeEverythingThatWaits() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        link.enqueue("0a0400")
        link.receive("1d030001")
        #expect(link.delivered == ["indication 3 01"])
        #expect(link.sent == ["0a0300", "1e"])
        #expect(link.statistics.confirmations == 1)
    }

    @Test("requests are refused, commands ignored, known or not", .row("T12"))
    func requestsAndCommands() {
        let link = QueueOwner()
        link.enqueue("0a0300")
        link.receive("2a0102")
        link.receive("2a")
        link.receive("6a0102")
        link.receive("6a")
        link.receive("00")
        #expect(link.sent == ["0a0300", "012a000006", "012a000006", "0100000006"])
        #expect(link.statistics.peerRequestsRefused == 3)
        #expect(link.statistics.peerCommandsIgnored == 2)
        #expect(link.closed == nil)
    }

    @Test(
        "a value longer than the MTU allows, or than any value can be, is dropped", .row("T14"),
        arguments: [23, 517, 600])
    func longValues(mtu: UInt16) {
        let link = QueueOwner(mtu: mtu)
        let allowed = min(Int(link.mtu) - 3, 512)
        for opcode in ["1b", "1d"] {
            link.receive(opcode + "0300" + String(repeating: "55", count: allowed))
            link.receive(opcode + "0300" + String(repeating: "55", count: allowed + 1))
        }
        #expect(link.delivered.count == 2)
        #expect(link.statistics.oversizedValues == 2)
        #expect(link.sent == ["1e", "1e"])
        #expect(link.closed == nil)
    }

    @Test(
        "inside a list, a value of more than 512 bytes is dropped alone; a list longer than the MTU as a whole",
        .row("T14"))
    func longValuesInLists() {
        let link = QueueOwner(mtu: 517)
        link.receive("2303000102" + String(repeating: "55", count: 513))
        #expect(link.statistics.oversizedValues == 1)
        #expect(link.delivered.isEmpty)
        let small = QueueOwner()
        small.receive("23030001000104000f00" + String(repeating: "55", count: 15))
        #expect(small.delivered.isEmpty)
        #expect(small.statistics.oversizedValues == 1)
    }

    @Test(
        "the 16th value without a whole handle closes the link", .row("T15"), arguments: ["1b", "1b01", "1d", "1d01"])
    func truncatedValues(pdu: String) {
        let link = QueueOwner()
        for _ in 0..<15 { link.receive(pdu) }
        #expect(link.closed == nil)
        #expect(link.statistics.truncatedValues == 15)
        let request = link.enqueue("0a0300")
        link.receive(pdu)
        #expect(link.closed == .truncatedValues)
        #expect(link.result(request) == "closed: truncatedValues")
        #expect(link.delivered.isEmpty)
        #expect(link.wrongs.isEmpty)
    }

    @Test("a notification for handle 0 is dropped", .row("T16")) func handleZero() {
        let link = QueueOwner(mtu: 100)
        link.receive("1b000001")
        link.receive("2300000100010500010002")
        #expect(link.delivered == ["notification 5 02"])
        #expect(link.statistics.valuesWithoutHandle == 2)
    }

    @Test("an indication is confirmed whatever its handle", .row("T18"), arguments: ["1dffff01", "1d000001", "1d01"])
    func indicationsOfNoUse(pdu: String) {
        let link = QueueOwner()
        link.receive(pdu)
        #expect(link.sent == ["1e"])
        #expect(link.delivered.count == (pdu == "1dffff01" ? 1 : 0))
    }

    @Test("a second indication before our confirmation is borne, a third closes", .row("T19"))
    func overlappingIndications() {
        let link = QueueOwner()
        link.takesPackets = false
        link.receive("1d030001")
        link.receive("1d030002")
        #expect(link.delivered == ["indication 3 01", "indication 3 02"])
        #expect(link.closed == nil)
        link.receive("1d030003")
        #expect(link.closed == .overlappingIndications)
        #expect(link.statistics.overlappingIndications == 2)
        #expect(link.wrongs.isEmpty)
    }

    @Test("both confirmations follow when the socket takes packets again", .row("T19")) func bothConfirmations() {
        let link = QueueOwner()
        link.takesPackets = false
        link.receive("1d030001")
        link.receive("1d030002")
        link.becomeWritable()
        #expect(link.sent == ["1e", "1e"])
        link.receive("1d030003")
        #expect(link.sent.count == 3)
    }

    @Test(
        "a list that does not add up is dropped as a whole", .row("T21"),
        arguments: ["23", "230300ff00aa", "2303000100aa04", "2303000100aa04000100", "23030002aa", "230300"])
    func malformedLists(pdu: String) {
        let link = QueueOwner(mtu: 512)
        for _ in 0..<20 { link.receive(pdu) }
        #expect(link.delivered.isEmpty)
        #expect(link.statistics.malformedLists == 20)
        #expect(link.closed == nil)
    }

    @Test(
        "known requests of the peer are refused too", .row("T24"),
        arguments: [
            "040100ffff", "100100ffff0028", "0a0300", "060100ffff00280018", "0c03000000", "12030001", "1603000000ff",
            "1801",
            "080100ffff0328", "0e03000400", "2003000400",
        ])
    func peerRequests(pdu: String) {
        let link = QueueOwner()
        link.receive(pdu)
        #expect(link.sent == ["01\(pdu.prefix(2))000006"])
    }

    @Test("a second request before our response closes the link; nothing piles up", .row("T24", "T25"))
    func overlappingRequests() {
        let link = QueueOwner()
        link.takesPackets = false
        link.receive("0a0300")
        #expect(link.closed == nil)
        link.receive("0a0400")
        #expect(link.closed == .overlappingRequests)
        let patient = QueueOwner()
        for _ in 0..<1_000 { patient.receive("0a0300") }
        #expect(patient.sent.count == 1_000)
        #expect(patient.closed == nil)
    }

    @Test("writes of the peer are ignored or refused", .row("T29")) func peerWrites() {
        let link = QueueOwner()
        link.receive("52030001")
        link.receive("d20300" + String(repeating: "00", count: 12))
        #expect(link.sent.isEmpty)
        #expect(link.statistics.peerCommandsIgnored == 2)
        link.receive("1603000000ff")
        #expect(link.sent == ["0116000006"])
    }

    @Test(arguments: [false, true]) func aConfirmationWithoutAnIndicationClosesAStrictLink(isStrict: Bool) {
        let link = QueueOwner { $0.isStrict = isStrict }
        link.receive("1e")
        #expect(link.statistics.strayConfirmations == 1)
        #expect(link.closed == (isStrict ? .unexplainedResponses : nil))
    }

    @Test func whatThePeerIsOwedGoesFirst() {
        let link = QueueOwner()
        link.takesPackets = false
        link.enqueue("0a0300")
        link.receive("021700")
        link.receive("1d030001")
        link.becomeWritable()
        #expect(link.sent == ["1e", "030502", "0a0300"])
        #expect(link.wrongs.isEmpty)
    }
}
