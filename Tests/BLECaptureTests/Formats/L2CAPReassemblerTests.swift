import BLECapture
import BLECore
import Testing

@Suite("L2CAP reassembly")
struct L2CAPReassemblerTests {
    private static func piece(_ hex: String, _ direction: CapturedPacket.Direction = .received) throws
        -> CapturedPacket
    {
        CapturedPacket(
            direction: direction, kind: .asynchronousData, bytes: try Hex.decode(hex), timestamp: .zero)
    }

    @Test("A frame in one piece")
    func aFrameInOnePieceIsTakenWhole() throws {
        var reassembler = L2CAPReassembler()
        let outcome = reassembler.received(try Self.piece("4020 0700 0300 0400 02 1700"))
        guard case .frame(let frame) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(frame.origin.connection == 0x0040)
        #expect(frame.channel == L2CAPFrame.attributeChannel)
        #expect(frame.payload == [0x02, 0x17, 0x00])
    }

    @Test("A frame in three pieces, with the other way in between")
    func piecesOfAFrameAreJoined() throws {
        var reassembler = L2CAPReassembler()
        guard case .unfinished = reassembler.received(try Self.piece("4020 0500 0400 0400 0b")) else {
            Issue.record("the first piece does not end the frame")
            return
        }
        guard case .frame = reassembler.received(try Self.piece("4000 0500 0100 0400 1e", .sent)) else {
            Issue.record("each way has a frame of its own")
            return
        }
        guard case .unfinished = reassembler.received(try Self.piece("4010 0200 0102")) else {
            Issue.record("one byte is missing")
            return
        }
        guard case .frame(let frame) = reassembler.received(try Self.piece("4010 0100 03")) else {
            Issue.record("the frame is complete")
            return
        }
        #expect(frame.payload == [0x0B, 1, 2, 3])
        #expect(reassembler.abandonedFrameCount == 0)
    }

    @Test(
        "What fits nothing is unusable",
        arguments: [
            "", "4020", "4020 0700 0300 0400 02 17", "4010 0100 03", "4020 0300 030004", "4020 0600 0100 0400 1e1e",
        ]
    )
    func aPieceThatFitsNothingIsUnusable(_ hex: String) throws {
        var reassembler = L2CAPReassembler()
        #expect(reassembler.received(try Self.piece(hex)) == .unusable)
    }

    @Test("A new frame, or the end of the link, gives up the unfinished one")
    func aNewFrameOrTheEndOfTheLinkDropsTheUnfinishedOne() throws {
        var reassembler = L2CAPReassembler()
        for _ in 0..<2 { _ = reassembler.received(try Self.piece("4020 0500 0400 0400 0b")) }
        #expect(reassembler.abandonedFrameCount == 1)
        reassembler.linkEnded(controller: 0, connection: 0x0040)
        #expect(reassembler.abandonedFrameCount == 2)
        #expect(reassembler.received(try Self.piece("4010 0300 010203")) == .unusable)
    }

    @Test("Unfinished frames on ever more links stay bounded")
    func unfinishedFramesStayBounded() throws {
        var reassembler = L2CAPReassembler()
        for handle in 0..<4096 {
            let low = UInt8(truncatingIfNeeded: handle)
            let bytes: [UInt8] = [low, UInt8(handle >> 8) | 0x20, 5, 0, 4, 0, 4, 0, 0x0B]
            _ = reassembler.received(
                CapturedPacket(direction: .received, kind: .asynchronousData, bytes: bytes, timestamp: .zero))
        }
        #expect(reassembler.abandonedFrameCount >= 4096 - 64)
    }
}
