import BLECore
import Testing

@Suite struct HandOverTests {
    private let link = ClientLink(at: BootInstant(nanoseconds: 5_000_000_000))

    @Test func theMTUIsKept() throws {
        link.exchangeMTU()
        try link.handOver()
        #expect(link.mtu == 64)
        #expect(link.sent.isEmpty)
        // A second response of the exchange is still a known stray.
        link.receive([0x03, 0x40, 0x00])
        #expect(link.statistics.knownStrays == 1)
        // 64 bytes are taken, and sent.
        let read = link.read(5)
        link.receive([0x0B] + [UInt8](repeating: 1, count: 62))
        #expect(link.outcome(of: read) == .success(.value([UInt8](repeating: 1, count: 62))))
    }

    @Test func theLateResponseIsDropped() throws {
        _ = link.read(3)
        try link.handOver()
        #expect(link.failures == [.failure(.linkLost)])
        let second = link.read(5)
        #expect(link.sent.isEmpty)
        link.receive([0x0B, 0xAA])
        #expect(link.sent == [[0x0A, 5, 0]])
        #expect(link.outcome(of: second) == nil)
        link.receive([0x0B, 0xBB])
        #expect(link.outcome(of: second) == .success(.value([0xBB])))
        #expect(link.statistics.lateResponses == 1)
    }

    @Test func thePeerHasWhatWasLeftOfItsTime() throws {
        _ = link.read(3)
        link.pass(.seconds(10))
        try link.handOver(after: .seconds(5))
        link.pass(.seconds(14))
        #expect(link.closed == nil)
        link.pass(.seconds(1))
        #expect(link.closed == .responseTimeout)
    }

    /// The response came while nobody read.
    @Test func aResponseThatWaitedIsRead() throws {
        _ = link.read(3)
        try link.handOver(after: .seconds(60))
        link.receive([0x0B, 0xAA])
        #expect(link.closed == nil)
        let second = link.read(5)
        link.receive([0x0B, 0xBB])
        #expect(link.outcome(of: second) == .success(.value([0xBB])))
    }

    @Test func thePreparedQueueIsEmptiedFirst() throws {
        _ = link.writeLong([UInt8](repeating: 0x11, count: 40))
        link.receive([0x17, 3, 0, 0, 0] + [UInt8](repeating: 0x11, count: 18))
        try link.handOver()
        let second = link.writeLong([UInt8](repeating: 0x22, count: 20))
        #expect(link.sent.isEmpty)
        // The response to the piece that was under way.
        link.receive([0x17, 3, 0, 18, 0] + [UInt8](repeating: 0x11, count: 18))
        #expect(link.sent == [[0x18, 0x00]])
        link.receive([0x19])
        #expect(link.sent.last?.first == 0x16)
        #expect(link.outcome(of: second) == nil)
    }

    /// A read went first, so Execute Write was never sent.
    @Test func thePreparedQueueIsEmptiedWhereItsExecutionWaited() throws {
        _ = link.writeLong([UInt8](repeating: 0x11, count: 20))
        link.receive([0x17, 3, 0, 0, 0] + [UInt8](repeating: 0x11, count: 18))
        _ = link.read(5)
        link.receive([0x17, 3, 0, 18, 0, 0x11, 0x11])
        try link.handOver()
        // The response to the read.
        link.receive([0x0B, 1])
        #expect(link.sent == [[0x18, 0x00]])
    }

    @Test func whatThePeerIsOwedIsSentFirst() throws {
        link.takesPackets = false
        link.receive([0x1D, 3, 0, 9])
        link.receive([0x02, 0x40, 0x00])
        link.takesPackets = true
        try link.handOver()
        #expect(link.sent == [[0x1E], [0x03, 0x05, 0x02]])
        #expect(link.mtu == 64)
    }

    /// Found by fuzzing: a peer that does not wait for the confirmation made the hand-over fail.
    @Test func everyIndicationIsConfirmed() throws {
        link.takesPackets = false
        link.receive([0x1D, 3, 0, 9])
        link.receive([0x1D, 3, 0, 10])
        link.takesPackets = true
        try link.handOver()
        #expect(link.sent == [[0x1E], [0x1E]])
    }

    /// Found by fuzzing: that the peer asked was forgotten.
    @Test func aPeerThatAsksForNoMTUKeepsTheSmallest() throws {
        link.receive([0x02, 0, 0])
        try link.handOver()
        link.exchangeMTU()
        #expect(link.mtu == 23)
    }
}
