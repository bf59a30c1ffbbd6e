import BLECore
import BareBLE
import Testing

@testable import blescan

/// What the checks of links say of measured values.
@Suite struct SelfTestLinkJudgementTests {
    private static func connects(_ count: Int = 15, _ change: (inout SelfTestConnect, Int) -> Void) -> SelfTestJudgement
    {
        var connects: [SelfTestConnect] = []
        for number in 0..<count {
            var connect = SelfTestConnect(
                time: .milliseconds(60), firstResponse: .milliseconds(90), features: .milliseconds(5), attempts: 1)
            change(&connect, number)
            connects.append(connect)
        }
        return SelfTestConnects(connects: connects).judged()
    }

    @Test func connectsAreJudged() {
        #expect(Self.connects { _, _ in }.verdict == .fit)
        let refused = Self.connects { connect, number in
            if number == 0 { connect.failures = [0x3E] }
        }
        #expect(refused.verdict == .fit && refused.quirks == ["W41"])
        #expect(Self.connects { connect, number in connect.attempts = number == 0 ? 3 : 1 }.verdict == .remark)
        #expect(Self.connects { connect, _ in connect.time = .milliseconds(1500) }.verdict == .remark)
        #expect(Self.connects { connect, number in connect.early = number }.quirks == ["W44"])
        #expect(Self.connects { connect, _ in connect.firstResponse = nil }.verdict == .unfit)
    }

    /// LE Connection Complete and LE Read Remote Features Complete in the layouts of the Core Specification, Vol 4 Part
    /// E, 7.7.65.1 and 7.7.65.4.
    @Test func packetsOfAConnectAreCounted() throws {
        let complete = try HCIEvent(Hex.bytes("3e13 01 00 4000 00 01 665544332211 1800 0000 f401 00").span)
        let features = try HCIEvent(Hex.bytes("3e0c 04 00 4000 ff00000000000000").span)
        let failed = try HCIEvent(Hex.bytes("3e13 01 3e 0000 00 01 665544332211 0000 0000 0000 00").span)
        var connect = SelfTestConnect()
        let packets: [(Duration, SelfTestChannel.Content)] = [
            (.zero, .command(HCICommandPacket(opcode: .leCreateConnection, parameters: []))),
            (.milliseconds(5), .event(failed)),
            (.milliseconds(6), .command(HCICommandPacket(opcode: .leExtendedCreateConnection, parameters: []))),
            (.milliseconds(20), .data(0x0040, isIncoming: true)), (.milliseconds(21), .data(0x0041, isIncoming: true)),
            (.milliseconds(30), .event(complete)), (.milliseconds(31), .data(0x0040, isIncoming: true)),
            (.milliseconds(34), .event(features)),
        ]
        connect.add(
            packets.map { SelfTestChannel.Packet(time: .zero + $0.0, content: $0.1) }, since: .zero)
        #expect(connect.attempts == 2 && connect.failures == [0x3E] && connect.early == 1)
        #expect(connect.time == .milliseconds(30) && connect.features == .milliseconds(4))
    }

    @Test func scansWhileLinkedAreJudged() {
        var measured = SelfTestScanWhileLinked(
            start: SelfTestChannel.Reply(end: .status(0x0C)), heard: nil, rateBefore: 40)
        #expect(measured.judged().quirks == ["W02"])
        measured.heard = SelfTestHeard(time: .seconds(3))
        #expect(measured.judged().quirks == ["W33"])
        measured.heard?.reports = 100
        #expect(measured.judged().verdict == .fit)
    }

    /// The peer advertises on beside the link, and would hide that nobody else is heard.
    @Test func reportsOfThePeerDoNotCountWhileLinked() {
        let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0011), type: .random)
        var heard = SelfTestHeard(time: .seconds(3))
        for number in 0..<90 {
            heard.add(
                AdvertisingReport(address: peer.address, addressType: .random, rssi: -60, data: [0x02, 0x01, 0x06]),
                at: .milliseconds(30 * number))
        }
        #expect(heard.rate == 30 && heard.rate(without: [peer]) == 0)
        var measured = SelfTestScanWhileLinked(
            start: SelfTestChannel.Reply(end: .status(0)), heard: heard, rateBefore: 30)
        #expect(measured.judged().verdict == .fit)
        measured.peers = [peer]
        #expect(measured.judged().quirks == ["W33"])
    }

    @Test func proceduresAreJudged() {
        let done = SelfTestProcedure(name: "2M", status: 0, end: 0, time: .milliseconds(40))
        let refused = SelfTestProcedure(name: "2M", status: 0x1A)
        let quiet = SelfTestProcedure(name: "data length", status: 0, isQuiet: true)
        #expect(SelfTestProcedures(mtu: 517, procedures: [done, refused, quiet]).judged().verdict == .fit)
        var other = done
        other.deviation = "1M to the peer and 2M from it"
        let judgement = SelfTestProcedures(mtu: 517, procedures: [other]).judged()
        #expect(judgement.verdict == .remark && judgement.remarks.contains { $0.contains("1M to the peer") })
        let unfinished = SelfTestProcedure(name: "2M", status: 0)
        #expect(SelfTestProcedures(mtu: 517, procedures: [unfinished]).judged().verdict == .remark)
        #expect(SelfTestProcedures(mtu: 517, procedures: [SelfTestProcedure(name: "2M")]).judged().verdict == .unfit)
        let dead = SelfTestProcedures(mtu: 517, procedures: [done], isAlive: false).judged()
        #expect(dead.verdict == .unfit && dead.quirks == ["W46"])
    }

    /// What an event says of the PHYs and of the interval, beside its status.
    @Test func changesThatWereNotMadeAreSeen() throws {
        func phys(_ bytes: String) throws -> LEPHYUpdateComplete {
            guard case .phyUpdateComplete(let update) = try HCIEvent(Hex.bytes("3e06 0c \(bytes)").span) else {
                throw CancellationError()
            }
            return update
        }
        #expect(SelfTestProcedure.deviation(of: try phys("00 4000 02 02"), from: .le2M) == nil)
        #expect(SelfTestProcedure.deviation(of: try phys("00 4000 01 02"), from: .le2M) != nil)
        #expect(SelfTestProcedure.deviation(of: try phys("00 4000 02 01"), from: .le2M) != nil)
        // A failure has a status of its own.
        #expect(SelfTestProcedure.deviation(of: try phys("1a 4000 01 01"), from: .le2M) == nil)
        guard
            case .connectionUpdateComplete(let update) = try HCIEvent(
                Hex.bytes("3e0a 03 00 4000 0600 0000 f401").span)
        else { throw CancellationError() }
        #expect(SelfTestProcedure.deviation(of: update, from: 6) == nil)
        #expect(SelfTestProcedure.deviation(of: update, from: 40)?.contains("7.5 ms") == true)
    }

    @Test func throughputIsJudged() {
        var received = SelfTestPeer.Received()
        for number in 0..<10 { received.add(SelfTestPeer.value(UInt32(number), count: 20)) }
        let good = SelfTestThroughput.Direction(sent: 10, received: received, time: .seconds(1))
        #expect(SelfTestThroughput(notifications: good, writes: good).judged().verdict == .fit)
        #expect(good.bytesPerSecond == 200)
        let lossy = SelfTestThroughput.Direction(sent: 11, received: received, time: .seconds(1))
        #expect(SelfTestThroughput(notifications: lossy, writes: good).judged().verdict == .unfit)
        var disordered = received
        disordered.add(SelfTestPeer.value(12, count: 20))
        let gap = SelfTestThroughput.Direction(sent: 11, received: disordered, time: .seconds(1))
        #expect(SelfTestThroughput(notifications: good, writes: gap).judged().verdict == .unfit)
        let none = SelfTestThroughput.Direction(time: .seconds(1))
        #expect(SelfTestThroughput(notifications: none, writes: good).judged().verdict == .unfit)
    }

    @Test func theNumberOfLinksIsJudged() {
        #expect(SelfTestLinkLimit(held: 8, alive: 8, wanted: 8).judged().verdict == .fit)
        let limited = SelfTestLinkLimit(held: 7, alive: 7, wanted: 8, refusal: 0x09).judged()
        #expect(limited.verdict == .fit && limited.quirks == ["W49"])
        #expect(SelfTestLinkLimit(held: 3, alive: 3, wanted: 8, refusal: 0x0D).judged().verdict == .remark)
        #expect(SelfTestLinkLimit(held: 4, alive: 3, wanted: 8).judged().verdict == .unfit)
        #expect(SelfTestLinkLimit(wanted: 8).judged().verdict == .unfit)
    }

    @Test func fewLinksAreNoVerdictWhereThePeerHasEndedTheCheck() {
        let few = SelfTestLinkLimit(held: 4, alive: 4, wanted: 8, obstacle: "hci1 cannot advertise").judged()
        #expect(few.verdict == .note && few.quirks.isEmpty)
        let enough = SelfTestLinkLimit(held: 5, alive: 5, wanted: 8, obstacle: "hci1 cannot advertise").judged()
        #expect(enough.verdict == .fit)
        let refused = SelfTestLinkLimit(held: 4, alive: 4, wanted: 8, refusal: 0x09, obstacle: "hci1 is gone").judged()
        #expect(refused.verdict == .remark && refused.quirks == ["W49"])
        let ended = SelfTestLinkLimit(held: 4, alive: 3, wanted: 8, obstacle: "hci1 cannot advertise").judged()
        #expect(ended.verdict == .unfit)
    }

    @Test func advertisingIsDescribed() {
        let reply = SelfTestChannel.Reply(end: .status(0x0C))
        #expect(SelfTestAdvertising(whileLinked: reply).judged().quirks == ["W40"])
        #expect(SelfTestAdvertising(attempt: 0x3C).judged().quirks == ["W39"])
        #expect(SelfTestAdvertising().judged().verdict == .note)
    }

    @Test func supervisionIsJudged() {
        #expect(SelfTestSupervision(reason: 0x08, time: .milliseconds(2040)).judged().verdict == .fit)
        #expect(SelfTestSupervision(reason: 0x08, time: .seconds(3)).judged().verdict == .remark)
        #expect(SelfTestSupervision(reason: 0x13, time: .seconds(1)).judged().verdict == .note)
        #expect(SelfTestSupervision().judged().verdict == .note)
    }

    @Test func powerCyclesAreJudged() {
        #expect(SelfTestPowerCycles(times: [.seconds(1), .seconds(1), .seconds(1)]).judged().verdict == .fit)
        #expect(SelfTestPowerCycles(times: [.seconds(6)]).judged().quirks == ["W62"])
        #expect(SelfTestPowerCycles(times: [.seconds(1), nil]).judged().verdict == .unfit)
        #expect(SelfTestPowerCycles(times: [.seconds(1)], isSame: false).judged().quirks == ["W59"])
        #expect(SelfTestPowerCycles(failure: "HCIDEVUP: busy").judged().verdict == .unfit)
    }
}
