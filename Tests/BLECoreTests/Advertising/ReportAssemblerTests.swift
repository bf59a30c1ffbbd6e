import BLECore
import TestSupport
import Testing

@Suite struct ReportAssemblerTests {
    private func fragment(
        _ status: AdvertisingReport.DataStatus, _ data: [UInt8], address: UInt64 = 0xC00000000001, sid: UInt8? = 1,
        properties: AdvertisingReport.Properties = []
    ) -> AdvertisingReport {
        var report = AdvertisingReport(
            address: BluetoothAddress(rawValue: address), addressType: .random, properties: properties, data: data)
        report.dataStatus = status
        report.sid = sid
        return report
    }

    private func pass(
        _ assembler: inout ReportAssembler, _ report: AdvertisingReport, at now: BootInstant = .zero
    ) -> AdvertisingReport? {
        assembler.received(report, at: now)
    }

    @Test func joinsInOrder() {
        var assembler = ReportAssembler()
        #expect(pass(&assembler, fragment(.incomplete, [1, 2])) == nil)
        #expect(pass(&assembler, fragment(.incomplete, [3])) == nil)
        let whole = pass(&assembler, fragment(.complete, [4]))
        #expect(whole?.data == [1, 2, 3, 4] && whole?.dataStatus == .complete)
        #expect(assembler.openChains == 0)
    }

    @Test("fragments without end are cut once, and nothing of their tail comes through", .row("H05"))
    func endlessFragments() {
        var assembler = ReportAssembler()
        var delivered: [AdvertisingReport] = []
        let piece = [UInt8](repeating: 7, count: 229)
        for _ in 0..<100 {
            if let whole = pass(&assembler, fragment(.incomplete, piece)) { delivered.append(whole) }
        }
        #expect(delivered.count == 1 && delivered.first?.data.count == 1650)
        #expect(delivered.first?.dataStatus == .truncated && assembler.losses.cut == 1)
        #expect(pass(&assembler, fragment(.complete, piece)) == nil)
        #expect(assembler.openChains == 0)
        #expect(pass(&assembler, fragment(.complete, [1]))?.data == [1])
    }

    @Test func exactlyTheLongestPayloadIsWhole() {
        var assembler = ReportAssembler()
        #expect(pass(&assembler, fragment(.incomplete, .init(repeating: 1, count: 1400))) == nil)
        let whole = pass(&assembler, fragment(.complete, .init(repeating: 2, count: 250)))
        #expect(whole?.data.count == 1650 && whole?.dataStatus == .complete)
    }

    @Test("500 advertisers interleave", .row("H06"))
    func manyAdvertisers() {
        var assembler = ReportAssembler()
        for index in 0..<500 {
            #expect(pass(&assembler, fragment(.incomplete, [1], address: UInt64(index))) == nil)
        }
        #expect(assembler.openChains == 32 && assembler.losses.evicted == 468)
        #expect(pass(&assembler, fragment(.complete, [2], address: 499))?.data == [1, 2])
        #expect(pass(&assembler, fragment(.complete, [2], address: 0))?.data == [2])
    }

    @Test("chains are never glued", .row("H07"))
    func neverGlued() {
        var assembler = ReportAssembler()
        #expect(pass(&assembler, fragment(.incomplete, [1])) == nil)
        #expect(pass(&assembler, fragment(.complete, [2], sid: 2))?.data == [2])
        #expect(pass(&assembler, fragment(.complete, [3], sid: nil, properties: .legacy))?.data == [3])
        #expect(pass(&assembler, fragment(.complete, [4], properties: .scanResponse))?.data == [4])
        #expect(assembler.losses.abandoned == 1 && assembler.openChains == 0)
    }

    @Test func aQuietChainIsGivenUp() {
        var assembler = ReportAssembler()
        #expect(pass(&assembler, fragment(.incomplete, [1])) == nil)
        let later = BootInstant.zero + .seconds(3)
        #expect(pass(&assembler, fragment(.complete, [2]), at: later)?.data == [2])
        #expect(assembler.losses.abandoned == 1)
    }

    @Test func truncatedChainIsDeliveredFlagged() {
        var assembler = ReportAssembler()
        #expect(pass(&assembler, fragment(.incomplete, [1])) == nil)
        let whole = pass(&assembler, fragment(.truncated, [2]))
        #expect(whole?.data == [1, 2] && whole?.dataStatus == .truncated)
    }
}
