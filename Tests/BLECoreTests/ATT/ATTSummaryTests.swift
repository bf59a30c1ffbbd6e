import Testing

@testable import BLECore

/// What each packet is for, and which attribute it concerns: the fields of Core Vol 3 Part F, 3.4.
@Suite struct ATTSummaryTests {
    private typealias Summary = ATTPacket.Summary

    private func summary(_ hex: String) throws -> Summary { try ATTPacket(bytes(hex)).summary }

    @Test func requestsNameTheirAttribute() throws {
        #expect(try summary("020502") == Summary(purpose: .mtuExchange))
        #expect(try summary("0401000500") == Summary(purpose: .discovery, handle: 1))
        #expect(try summary("060100ffff00280d18") == Summary(purpose: .discovery, handle: 1, type: 0x2800))
        #expect(try summary("100100ffff0028") == Summary(purpose: .discovery, handle: 1, type: 0x2800))
        #expect(try summary("082101ffff0328") == Summary(purpose: .discovery, handle: 0x0121, type: 0x2803))
        #expect(try summary("080100ffff192a") == Summary(purpose: .read, handle: 1, type: 0x2A19))
        #expect(try summary("0a2200") == Summary(purpose: .read, handle: 0x22))
        #expect(try summary("0c22000401") == Summary(purpose: .read, handle: 0x22, offset: 0x0104))
        #expect(try summary("0e22002300") == Summary(purpose: .read))
        #expect(try summary("12220001") == Summary(purpose: .write, handle: 0x22))
        #expect(try summary("52220001") == Summary(purpose: .write, handle: 0x22))
        #expect(try summary("1622001200ab") == Summary(purpose: .write, handle: 0x22, offset: 0x12))
        #expect(try summary("1801") == Summary(purpose: .write))
    }

    @Test func theServersPacketsAreDistinguished() throws {
        #expect(try summary("010a220005") == Summary(purpose: .error, handle: 0x22))
        #expect(try summary("0102000006") == Summary(purpose: .error))
        #expect(try summary("030502") == Summary(purpose: .mtuExchange))
        #expect(try summary("0b01") == Summary(purpose: .read))
        #expect(try summary("13") == Summary(purpose: .write))
        #expect(try summary("1b220001") == Summary(purpose: .notification, handle: 0x22))
        #expect(try summary("1d220001") == Summary(purpose: .notification, handle: 0x22))
        #expect(try summary("1e") == Summary(purpose: .notification))
        #expect(try summary("ff00") == Summary(purpose: .unknown))
    }

    /// A response is for the same as its request.
    @Test(arguments: ATTGoldenPDU.all) func everyDefinedPacketHasAPurpose(_ golden: ATTGoldenPDU) throws {
        let isUnknown = if case .unknown = golden.packet { true } else { false }
        #expect((try ATTPacket(golden.bytes).summary.purpose == .unknown) == isUnknown)
    }
}
