import BLECore
import Foundation
import TestSupport
import Testing

@testable import blescan

/// What the checks of the self-test say of measured values.
@Suite struct SelfTestJudgementTests {
    typealias Reply = SelfTestChannel.Reply

    private static func ok(_ values: [UInt8] = [], after time: Duration = .milliseconds(1)) -> Reply {
        Reply(end: .status(0), values: values, time: time, credits: 1)
    }

    private static func refused(_ status: UInt8) -> Reply {
        Reply(end: .status(status), time: .milliseconds(1), credits: 1)
    }

    private static let silent = Reply(end: .silence)
    private static let malformed = Reply(end: .malformed, time: .milliseconds(1), credits: 1)

    // MARK: S01

    private static func identity(
        _ usb: String?, company: UInt16, revision: UInt16, subversion: UInt16, address: String = "00:1A:7D:00:00:01"
    ) throws -> SelfTestJudgement {
        let version = try HCIReadLocalVersion.parameters(
            from: ([6] + [UInt8(truncatingIfNeeded: revision), UInt8(revision >> 8), 6]
                + [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)]
                + [UInt8(truncatingIfNeeded: subversion), UInt8(subversion >> 8)]).span)
        var adapter = AdapterFacts(
            index: 0, name: "hci0", address: address, isUp: true, isRunning: true, bus: usb == nil ? "uart" : "usb")
        adapter.controller = ControllerFacts(version: VersionFacts(version))
        var facts = SystemFacts()
        facts.radio.adapters = [adapter]
        if let usb {
            let machine = try FakeMachine()
            try machine.usb("hci0", usb, control: "on", status: "active")
            facts.usbDevices["hci0"] = USBDevice(adapter: machine.root.appending(path: "sys/class/bluetooth/hci0").path)
        }
        return .identity(adapter, facts, version)
    }

    @Test func aControllerOfItsMakerIsFit() throws {
        let judgement = try Self.identity("0a12:0001", company: 10, revision: 0x22BB, subversion: 0x22BB)
        #expect(judgement.verdict == .fit && judgement.quirks.isEmpty)
        #expect(judgement.text.contains("usb 0a12:0001"))
    }

    @Test func anImitationIsUnfit() throws {
        let judgement = try Self.identity("0a12:0001", company: 2279, revision: 0x0811, subversion: 0x22BB)
        #expect(judgement.verdict == .unfit && judgement.quirks == ["W54"])
    }

    @Test(
        arguments: [("AA:AA:AA:AA:AA:AA", "W57"), ("00:00:00:00:00:00", "W58")])
    func anAddressThatIsNoneIsRemarked(_ address: String, _ row: String) throws {
        let judgement = try Self.identity(nil, company: 15, revision: 1, subversion: 1, address: address)
        #expect(judgement.verdict == .remark && judgement.quirks == [row])
    }

    @Test func withoutVersionsNothingIsFit() {
        let adapter = AdapterFacts(
            index: 0, name: "hci0", address: "00:1A:7D:00:00:01", isUp: true, isRunning: true, bus: "uart")
        #expect(SelfTestJudgement.identity(adapter, SystemFacts(), nil).verdict == .unfit)
    }

    // MARK: S02

    @Test(
        arguments: [
            ([Reply](repeating: ok(), count: 30), SelfTestVerdict.fit, [String]()),
            ([ok(), silent], .unfit, ["W30"]), ([ok(), ok(after: .milliseconds(250))], .remark, ["W15"]),
            ([ok(), malformed], .remark, ["W06"]),
            ([Reply(end: .status(0), time: .zero, credits: 0)], .remark, ["W16"]),
        ]) func responsesAreJudged(_ replies: [Reply], _ verdict: SelfTestVerdict, _ quirks: [String])
    {
        let judgement = SelfTestResponses(replies: replies).judged()
        #expect(judgement.verdict == verdict && judgement.quirks == quirks)
    }

    // MARK: S03

    /// A controller with the extended commands and the features that belong to them.
    private static func capabilities(_ change: (inout SelfTestCapabilities) -> Void = { _ in }) -> SelfTestCapabilities
    {
        var measured = SelfTestCapabilities()
        measured.features = [.dataLengthExtension, .le2M, .extendedAdvertising]
        measured.commands = HCISupportedCommands(octets: [UInt8](repeating: 0xFF, count: 64))
        for query in SelfTestCapabilities.queries {
            measured.replies[query.opcode] = ok([UInt8](repeating: 8, count: query.length))
        }
        change(&measured)
        return measured
    }

    @Test func whatBelongsTogetherIsFit() {
        let measured = Self.capabilities()
        #expect(measured.judged().verdict == .fit)
        #expect(measured.capabilities.advertisingSets == 8 && measured.capabilities.bufferLength == 0x0808)
    }

    @Test func withoutFeaturesNothingIsFit() {
        #expect(Self.capabilities { $0.features = nil }.judged().verdict == .unfit)
        #expect(Self.capabilities { $0.commands = nil }.judged().verdict == .unfit)
    }

    @Test func featuresWithoutTheirCommandsAreRemarked() {
        let measured = Self.capabilities {
            $0.commands = HCISupportedCommands(octets: [UInt8](repeating: 0, count: 64))
        }
        let judgement = measured.judged()
        #expect(judgement.verdict == .remark && judgement.remarks.count == 3)
    }

    @Test(
        arguments: [
            (ok([1]), SelfTestVerdict.remark, ["W06"]), (malformed, .remark, ["W06"]), (refused(0x01), .remark, []),
            (silent, .unfit, ["W30"]),
        ]) func queriesThatFailAreNamed(_ reply: Reply, _ verdict: SelfTestVerdict, _ quirks: [String])
    {
        let judgement = Self.capabilities { $0.replies[SelfTestCapabilities.bufferSize] = reply }.judged()
        #expect(judgement.verdict == verdict && judgement.quirks == quirks)
        #expect(judgement.remarks.contains { $0.contains("0x2002") })
    }

    /// Return parameters of any length, also none, are no reason to trap.
    @Test(arguments: 0...9) func shortReturnParametersLeaveGaps(_ count: Int) {
        let measured = Self.capabilities { measured in
            for query in SelfTestCapabilities.queries {
                measured.replies[query.opcode] = Self.ok([UInt8](repeating: 1, count: count))
            }
        }
        #expect((measured.capabilities.bufferCount != nil) == (count >= 3))
        #expect((measured.capabilities.states != nil) == (count == 8))
        #expect((measured.judged().verdict == .fit) == (count >= 8))
    }

    // MARK: S04

    /// Bit 1 is LE Advertising Report, bit 12 LE Extended Advertising Report.
    @Test func theKernelsMaskIsJudged() {
        let cases: [(lists: Bool, mask: UInt64?, verdict: SelfTestVerdict, quirks: [String])] = [
            (true, 0x1002, .fit, []), (true, 0x0002, .remark, ["W01"]), (false, 0x0002, .fit, []),
            (false, 0x0001, .remark, ["W10"]), (true, nil, .note, []),
        ]
        for expected in cases {
            let measured = SelfTestKernelChoice(
                listsExtended: expected.lists, mask: expected.mask.map { LEEventMask(rawValue: $0) })
            let judgement = measured.judged()
            #expect(judgement.verdict == expected.verdict && judgement.quirks == expected.quirks)
            #expect(measured.choice.source == (expected.mask == nil ? .inferred : .observed))
        }
    }

    // MARK: S05

    @Test(
        arguments: [
            ([0, 0, 0, 0, 0, 0], [], SelfTestVerdict.fit, []),
            ([0x0C, 0, 0, 0x0C, 0, 0x0C], [], .fit, ["W09"]),
            ([0, 0x01], [0, 0, 0, 0, 0, 0], .remark, ["W04"]),
            ([0, 0, 0x0C], [], .unfit, []), ([0, 0, 0, 0, 0x0C, 0], [], .unfit, []),
            ([0, 0x01], [0, 0x01], .unfit, ["W04"]),
        ]) func statusesOfTheSwitchAreJudged(
            _ extended: [UInt8], _ legacy: [UInt8], _ verdict: SelfTestVerdict, _ quirks: [String]
        )
    {
        let measured = SelfTestScanSwitch(
            extended: extended.map { Self.refused($0) }, legacy: legacy.map { Self.refused($0) })
        #expect(measured.judged().verdict == verdict && measured.judged().quirks == quirks)
    }

    @Test func aSwitchWithoutResponseIsUnfit() {
        let judgement = SelfTestScanSwitch(extended: [Self.ok(), Self.silent]).judged()
        #expect(judgement.verdict == .unfit && judgement.quirks == ["W17"])
    }

    // MARK: S06 and S07

    private static func restarts(_ first: [Duration?], statuses: [UInt8?] = [0, 0, 0]) -> SelfTestRestarts {
        SelfTestRestarts(restarts: first.map { SelfTestRestarts.Restart(statuses: statuses, first: $0) })
    }

    @Test func restartsAreJudged() {
        let heard = [Duration?](repeating: .milliseconds(20), count: 10)
        #expect(Self.restarts(heard).judged().verdict == .fit)
        #expect(Self.restarts(heard, statuses: [0x0C, 0, 0]).judged().verdict == .fit)
        #expect(Self.restarts(heard, statuses: [0, 0, 0x0C]).judged().verdict == .unfit)
        #expect(Self.restarts(heard, statuses: [0, 0, nil]).judged().verdict == .unfit)
        #expect(Self.restarts([Duration?](repeating: nil, count: 10)).judged().verdict == .fit)
        let deaf = Self.restarts(Array(heard.prefix(3)) + [Duration?](repeating: nil, count: 7)).judged()
        #expect(deaf.verdict == .remark && deaf.quirks == ["W29"])
    }

    /// A scan of ten seconds with a report each 100 ms from one advertiser.
    private static func heard(
        _ count: Int = 100, _ change: (inout AdvertisingReport) -> Void = { _ in }
    ) -> SelfTestHeard {
        var heard = SelfTestHeard(time: .seconds(10))
        var report = AdvertisingReport(
            address: BluetoothAddress(rawValue: 0xC000_0000_0001), addressType: .random, rssi: -60,
            data: [0x02, 0x01, 0x06])
        change(&report)
        for number in 0..<count { heard.add(report, at: .milliseconds(100 * (number + 1))) }
        return heard
    }

    @Test(
        arguments: [
            (heard(), false, SelfTestVerdict.fit, [String]()), (heard(0), false, .remark, []),
            (heard(0), true, .unfit, []),
            (heard { $0.data = [] }, false, .unfit, ["W26"]), (heard { $0.rssi = nil }, false, .remark, ["W35"]),
            (heard { $0.eventType = 0x2513 }, false, .remark, ["W18"]),
        ]) func reportsAreJudged(
            _ heard: SelfTestHeard, _ expects: Bool, _ verdict: SelfTestVerdict, _ quirks: [String]
        )
    {
        let judgement = heard.judgedAsPassiveScan(expectsReports: expects, after: nil)
        #expect(judgement.verdict == verdict && judgement.quirks == quirks)
    }

    /// The three advertisements of the second adapter, of which one or all are missing.
    @Test(
        .row("W23", "W28"),
        arguments: [
            ([1, 2, 3], []), ([1, 2], ["W23"]), ([2, 3], ["W28"]), ([1], ["W23", "W28"]), ([], ["W23", "W28"]),
        ])
    func advertisementsThatAreNotHeardAreRemarks(_ marks: [UInt8], _ quirks: [String]) {
        var heard = Self.heard()
        for mark in marks {
            heard.add(
                AdvertisingReport(
                    address: BluetoothAddress(rawValue: 0xC000_0000_0010 + UInt64(mark)), addressType: .random,
                    rssi: -60,
                    data: [0x06, 0xFF, 0xFF, 0xFF, 0x5E, 0x1F, mark]), at: .seconds(2))
        }
        let judgement = heard.judgedAsPassiveScan(expectsReports: true, after: nil, expected: [1, 2, 3])
        #expect(judgement.quirks.sorted() == quirks)
        #expect(judgement.remarks.count == 3 - marks.count)
        #expect(judgement.verdict == (marks.count == 3 ? .fit : .remark))
        // What is not on air is not missed.
        #expect(heard.judgedAsPassiveScan(expectsReports: true, after: nil, expected: Set(marks)).verdict == .fit)
    }

    @Test func silenceAfterOneReportIsTheAdapters() {
        let busy = Self.restarts([Duration?](repeating: .milliseconds(20), count: 10))
        let judgement = Self.heard(1).judgedAsPassiveScan(expectsReports: false, after: busy)
        #expect(judgement.verdict == .unfit && judgement.quirks == ["W32"])
        // Where the restarts heard little as well, it may be the air.
        let quiet = Self.restarts([.milliseconds(20)] + [Duration?](repeating: nil, count: 9))
        #expect(Self.heard(1).judgedAsPassiveScan(expectsReports: false, after: quiet).verdict == .fit)
    }

    @Test func silenceAfterReportsIsTheAdapters() {
        let busy = Self.restarts([Duration?](repeating: .milliseconds(20), count: 10))
        let judgement = Self.heard(0).judgedAsPassiveScan(expectsReports: false, after: busy)
        #expect(judgement.verdict == .unfit && judgement.quirks == ["W29"])
    }

    @Test func malformedEventsAreCounted() throws {
        var heard = Self.heard()
        // A legacy report whose length says 40 bytes, in an event that holds them.
        let oversized = try HCIEvent(
            (Hex.bytes("3e34 02 01 03 01 665544332211 28") + [UInt8](repeating: 0, count: 40) + [0xC8]).span)
        heard.add(.init(time: .zero, content: .event(oversized)), since: .zero)
        heard.add(.init(time: .zero, content: .malformed), since: .zero)
        let judgement = heard.judgedAsPassiveScan(expectsReports: false, after: nil)
        #expect(judgement.quirks == ["W24"] && judgement.remarks.count == 2)
    }

    // MARK: S08 to S11

    @Test func scanResponsesAreExpectedOfScannableAdvertisers() {
        #expect(Self.heard().judgedAsActiveScan().verdict == .remark)
        #expect(Self.heard { $0.properties = [.legacy] }.judgedAsActiveScan().verdict == .note)
        let both = Self.heard { $0.properties = [.scannable, .scanResponse, .legacy] }
        #expect(both.judgedAsActiveScan().verdict == .fit)
    }

    @Test func theFilterIsDescribed() {
        let unfiltered = Self.heard()
        #expect(Self.heard(1).judgedAsFiltered(without: unfiltered).quirks.isEmpty)
        #expect(unfiltered.judgedAsFiltered(without: unfiltered).quirks == ["W22"])
        #expect(Self.heard(20).judgedAsFiltered(without: unfiltered).quirks == ["W21"])
        #expect(Self.heard(0).judgedAsFiltered(without: unfiltered).verdict == .note)
    }

    @Test func suspensionIsJudged() {
        var measured = SelfTestAutosuspend(bus: "usb", control: "on", before: "active", during: ["active", "active"])
        #expect(measured.judged().verdict == .fit)
        measured.control = "auto"
        #expect(measured.judged().verdict == .remark)
        measured.during = ["active", "suspended"]
        #expect(measured.judged().quirks == ["W61"])
        #expect(SelfTestAutosuspend(bus: "usb").judged().verdict == .notRun)
        #expect(SelfTestAutosuspend(bus: "uart").judged().verdict == .fit)
    }

    @Test func wirelessBesideAScanIsJudged() {
        func duty(_ times: [Duration], sent: Int, obstacle: String? = nil) -> SelfTestJudgement {
            SelfTestDuty(
                full: Self.heard(), part: Self.heard(), pingAtFull: GatewayPing(sent: sent, times: times),
                pingAtPart: GatewayPing(sent: sent, times: times), obstacle: obstacle
            ).judged()
        }
        #expect(duty([.milliseconds(20), .milliseconds(60)], sent: 2).verdict == .note)
        #expect(duty([.milliseconds(20), .milliseconds(260)], sent: 2).quirks == ["W50"])
        #expect(duty([], sent: 30).quirks == ["W50"])
        let none = duty([], sent: 0, obstacle: "no Wi-Fi interface is up")
        #expect(none.verdict == .note && none.text.contains("not measured: no Wi-Fi interface is up"))
    }

    /// A line of /proc/net/route: 192.168.1.1 is 0101A8C0 in the memory of a little-endian machine.
    @Test func theGatewayIsThatOfTheInterface() {
        let routes = """
            Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask
            eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000
            wlan0\t0001A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF
            """
        #expect(GatewayPing.gateway(over: ["wlan0"], routes: routes) == 0x0101_A8C0)
        #expect(GatewayPing.gateway(over: ["wlan1"], routes: routes) == nil)
        #expect(GatewayPing.gateway(over: ["wlan0"], routes: "") == nil)
        #expect(GatewayPing.gateway(over: ["wlan0"], routes: "Iface\nwlan0\t00000000\nwlan0\tx\ty\tz") == nil)
    }

    /// RFC 792. The checksum of the whole packet, its own field included, is FFFF.
    @Test func pingsHaveTheirForm() {
        let request = GatewayPing.request(258)
        let sum = stride(from: 0, to: request.count, by: 2).reduce(0) {
            $0 + Int(request[$1]) << 8 + Int(request[$1 + 1])
        }
        #expect(request.count == 8 && request[0] == 8 && sum % 0xFFFF == 0)
        let reply: [UInt8] = [0, 0, 0, 0] + request[4...]
        #expect(GatewayPing.number(in: reply, isRaw: false) == 258)
        #expect(GatewayPing.number(in: [0x45] + [UInt8](repeating: 0, count: 19) + reply, isRaw: true) == 258)
        #expect(GatewayPing.number(in: request, isRaw: false) == nil, "a request is no reply")
        for length in 0..<reply.count {
            #expect(GatewayPing.number(in: Array(reply.prefix(length)), isRaw: false) == nil)
        }
    }

    // MARK: S12 and S13

    private static func attempt(_ change: (inout SelfTestAttempt) -> Void = { _ in }) -> SelfTestJudgement {
        var measured = SelfTestAttempt()
        measured.whileScanning = refused(0x0C)
        measured.alone = ok()
        measured.second = refused(0x0C)
        measured.cancel = ok()
        measured.completion = .init(status: 0x02, time: .milliseconds(5))
        measured.scanAfterwards = ok()
        change(&measured)
        return measured.judged()
    }

    @Test func anAttemptThatEndsAsItShouldIsFit() {
        #expect(Self.attempt().verdict == .fit)
        #expect(Self.attempt { $0.whileScanning = Self.ok() }.verdict == .fit)
    }

    @Test func attemptsAreJudged() {
        #expect(Self.attempt { $0.refusedExtended = Self.refused(1) }.quirks == ["W05"])
        #expect(Self.attempt { $0.second = Self.refused(0x24) }.quirks == ["W38"])
        #expect(Self.attempt { $0.completion = nil }.verdict == .unfit)
        #expect(Self.attempt { $0.completion = nil }.quirks == ["W34"])
        #expect(Self.attempt { $0.completion = .init(status: 0, time: .zero) }.verdict == .remark)
        #expect(Self.attempt { $0.completion = .init(status: 2, time: .seconds(2)) }.verdict == .remark)
        #expect(Self.attempt { $0.cancel = Self.silent }.quirks == ["W37"])
        #expect(Self.attempt { $0.cancel = Self.refused(0x0C) }.verdict == .unfit)
        #expect(Self.attempt { $0.alone = Self.refused(0x0D) }.verdict == .unfit)
        #expect(Self.attempt { $0.scanAfterwards = Self.refused(0x0C) }.verdict == .unfit)
        #expect(Self.attempt { $0.early = 0x3E }.verdict == .remark)
    }

    @Test(
        arguments: [
            (refused(0x12), refused(0x01), refused(0x02), SelfTestVerdict.fit),
            (ok(), refused(0x01), refused(0x12), .fit), (refused(0x0D), refused(0x01), refused(0x02), .remark),
            (refused(0x12), ok(), refused(0x02), .remark), (refused(0x12), silent, refused(0x02), .remark),
            (refused(0x12), refused(0x01), ok(), .remark),
        ]) func refusalsAreJudged(_ address: Reply, _ unknown: Reply, _ link: Reply, _ verdict: SelfTestVerdict)
    {
        #expect(SelfTestRefusals(randomAddress: address, unknown: unknown, link: link).judged().verdict == verdict)
    }
}
