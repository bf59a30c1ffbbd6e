import BLECore
import BareBLETestKit
import Glibc
import Testing

@testable import BareBLE
@testable import simulation

/// A short form of `make simulate`, which plays thousands of seeds in a release build.
@Suite(.timeLimit(.minutes(10))) struct SimulationTests {
    @Test(arguments: UInt64(0)..<12)
    func sameSeedMakesTheSameLog(seed: UInt64) async {
        let script = Script(seed: seed)
        let first = await World.play(script)
        let second = await World.play(script)
        #expect(first.failure == nil)
        #expect(first.hash == second.hash)
        #expect(first.events > 10)
    }

    @Test(arguments: UInt64(0)..<12)
    func aServerIsSimulatedWithTheSameLog(seed: UInt64) async {
        let first = await ServingWorld.play(seed: seed)
        let second = await ServingWorld.play(seed: seed)
        #expect(first.failure == nil)
        #expect(first.hash == second.hash)
        #expect(first.events > 10)
    }

    /// The encryption of a link began before it was accepted, and its end was not noticed.
    @Test(arguments: [UInt64(1293), 4392, 6350])
    func seedsOfTheServerThatOnceFailedPass(seed: UInt64) async {
        #expect(await ServingWorld.play(seed: seed).failure == nil)
    }

    @Test func differentSeedsMakeDifferentLogs() async {
        var hashes: Set<UInt64> = []
        for seed in UInt64(100)..<110 { hashes.insert(await World.play(Script(seed: seed)).hash) }
        #expect(hashes.count == 10)
    }

    @Test func streamsDoNotDisturbEachOther() {
        var first = Numbers(seed: 7, .faults)
        let expected = (0..<10).map { _ in first.next() }
        var other = Numbers(seed: 7, .applications)
        for _ in 0..<1000 { _ = other.next() }
        var second = Numbers(seed: 7, .faults)
        #expect((0..<10).map { _ in second.next() } == expected)
        var neighbour = Numbers(seed: 8, .faults)
        #expect((0..<10).map { _ in neighbour.next() } != expected)
    }

    @Test(arguments: UInt64(0)..<50)
    func scriptsAreTheirText(seed: UInt64) throws {
        let script = Script(seed: seed)
        #expect(try Script(text: script.text) == script)
    }

    @Test(arguments: [
        "sed 1", "neighbour -1", "linkLimit 0 fails 9", "linkLimit 17 fails 9", "linkLimit 2 vanishes 9",
        "linkLimit 2 fails 256", "linkLimit 2 fails", "linkLimit 2 stalls 9", "dataLoss -1 received 0",
        "dataLoss 0 received 5", "dataLoss 0 receivedEvery 1", "dataLoss 0 sentBeyond 0", "dataLoss 0 vanishes 0",
        "dataLoss 0 received", "at 1 step 2 fly 0 0 0 limit 0", "peer strange",
        "at x step 2 read 0 0 0 limit 0",
    ])
    func otherTextIsNoScript(text: String) {
        #expect(throws: Script.Malformed.self) { try Script(text: text) }
    }

    @Test(arguments: fixtures)
    func whatOnceFailedPasses(file: String) async throws {
        var bytes: [UInt8] = []
        guard let stream = unsafe fopen(folder + file, "r") else {
            Issue.record("\(file) cannot be read")
            return
        }
        while case let byte = unsafe fgetc(stream), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
        unsafe fclose(stream)
        let outcome = await World.play(try Script(text: String(decoding: bytes, as: UTF8.self)))
        #expect(outcome.failure == nil, "\(file): simulation --fixture \(folder)\(file)")
    }

    /// However a controller says that it has the two links that it can have, four peers can be used, and no link is
    /// lost.
    @Test(arguments: reactions)
    func peersBeyondTheLimitOfAControllerHaveTheirTurns(reaction: String) async throws {
        let peers = (0..<4).map { "peer honest\nat \($0 * 100) step \($0) session \($0) 0 0 limit 0" }
        let outcome = await World.play(
            try Script(text: "seed 7\nadapter bluetooth5\nlinkLimit 2 \(reaction)\n\(peers.joined(separator: "\n"))"))
        #expect(outcome.failure == nil)
        #expect(outcome.eventCounts.counts["effect.linkLimit"] == 2)
        #expect(outcome.eventCounts.counts["recovered.link"] == 4)
    }

    @Test func limitsOfLinksAreDrawn() {
        let scripts = (UInt64(0)..<2000).map { Script(seed: $0) }
        let limits = scripts.flatMap { script in
            script.text.split(separator: "\n").filter { $0.hasPrefix("linkLimit") }.map { $0.split(separator: " ") }
        }
        let links = Set(limits.compactMap { Int($0[1]) })
        #expect(links.isSubset(of: 1...16))
        #expect(links.isSuperset(of: [1, 2, 3, 4, 16]))
        #expect(Set(limits.map { "\($0[2]) \($0[3])" }) == Set(reactions))
        #expect(scripts.allSatisfy { $0.security.isEmpty || $0.linkLimits.isEmpty })
    }

    /// The clone of the CSR8510 is drawn as it is: it does not complete an attempt beyond its limit. Not beside another
    /// program, whose scans such an attempt would keep off.
    @Test func cloneStallsBeyondItsLimit() {
        var clones = 0
        for seed in UInt64(0)..<2000 {
            let script = Script(seed: seed)
            for index in script.linkLimits.indices {
                let stalls = script.linkLimit(index).reaction == .neverCompletes
                if script.neighbours.contains(index) {
                    #expect(!stalls)
                } else if script.adapters[index] == "csr8510Clone" {
                    clones += 1
                    #expect(stalls)
                }
            }
        }
        #expect(clones > 0)
    }

    @Test func lossesOfDataAreDrawn() {
        let scripts = (UInt64(0)..<2000).map { Script(seed: $0) }
        let kinds = Set(scripts.flatMap { $0.dataLosses.map(\.kind) })
        #expect(kinds == ["received", "receivedEvery", "reordersEvery", "sentBeyond"])
        #expect(scripts.allSatisfy { $0.security.isEmpty || $0.dataLosses.isEmpty })
        for script in scripts {
            for loss in script.dataLosses { #expect(script.personality(loss.adapter).losesData == loss.loss) }
        }
    }

    /// Whatever a controller loses of its links, each call ends, and everything works once it loses nothing any more.
    @Test(arguments: ["received 0", "receivedEvery 3", "receivedEvery 10", "reordersEvery 2", "sentBeyond 1"])
    func linksThatLoseDataWorkAgain(loss: String) async throws {
        let outcome = await World.play(
            try Script(
                text: """
                    seed 7
                    adapter bluetooth5
                    dataLoss 0 \(loss)
                    peer honest
                    peer honest
                    length 60000
                    at 0 step 0 session 0 0 0 limit 0
                    at 100 step 1 connect 1 0 0 limit 0
                    at 3000 step 2 subscribe 0 0 320007 limit 0
                    at 4000 step 3 notify 0 0 40 limit 0
                    at 5000 step 4 write 1 0 200 limit 0
                    at 6000 step 5 read 1 0 0 limit 5000
                    at 7000 step 6 read 0 0 0 limit 0
                    """))
        #expect(outcome.failure == nil)
        let kind = loss.prefix { $0 != " " }
        #expect(outcome.eventCounts.counts["dataLoss.\(kind)"] == 1)
        #expect(outcome.eventCounts.counts["recovered.link"] == 2)
        #expect(outcome.eventCounts.counts["recovered.read"] == 2)
    }

    // MARK: What must hold is seen when it does not

    @Test func gapsThatNothingReportsAreSeen() {
        typealias Loss = VirtualPersonality.DataLoss
        let cases: [(place: Int, dropped: Int, loss: Loss?, isAllowed: Bool)] = [
            (8, 0, nil, true), (9, 0, nil, false), (9, 1, nil, true), (7, 0, nil, false),
            (8, 0, .receivedEvery(3), true), (10, 1, .receivedEvery(3), true), (8, 1, .receivedEvery(3), false),
            (7, 0, .receivedEvery(3), false), (6, 0, .reordersEvery(2), true), (9, 0, .sentBeyond(1), false),
            (8, 0, .sentBeyond(1), true),
        ]
        for one in cases {
            #expect(World.mayFollow(one.place, 7, dropped: one.dropped, losing: one.loss) == one.isAllowed, "\(one)")
        }
    }

    private func event(_ bytes: [UInt8], isOutgoing: Bool) -> TracedLink.Event {
        .pdu(TracedPDU(isOutgoing: isOutgoing, bytes: bytes, peer: "peer", time: BootInstant(nanoseconds: 0)))
    }

    @Test func secondRequestIsSeen() {
        var watch = LinkWatch(peer: "peer")
        #expect(watch.see(event([0x0A, 3, 0], isOutgoing: true)) == nil)
        #expect(watch.see(event([0x1B, 3, 0], isOutgoing: false)) == nil)
        #expect(watch.see(event([0x0A, 5, 0], isOutgoing: true)) != nil)
    }

    @Test func requestAfterTheResponseMayBe() {
        var watch = LinkWatch(peer: "peer")
        #expect(watch.see(event([0x0A, 3, 0], isOutgoing: true)) == nil)
        #expect(watch.see(event([0x0B, 3], isOutgoing: false)) == nil)
        #expect(watch.see(event([0x0A, 5, 0], isOutgoing: true)) == nil)
        #expect(watch.see(event([0x01, 0x0A, 5, 0, 1], isOutgoing: false)) == nil)
        #expect(watch.see(event([0x12, 5, 0, 1], isOutgoing: true)) == nil)
    }

    @Test(
        "What a server must not send is seen",
        arguments: [
            ([(false, [0x0A, 3, 0]), (true, [0x0B, 1]), (true, [0x0B, 1])], "a response too many"),
            ([(false, [0x0A, 3, 0]), (true, [0x13])], "another response"),
            ([(false, [0x0A, 3, 0]), (true, [0x01, 0x12, 3, 0, 1])], "an error for another request"),
            ([(false, [0x52, 3, 0]), (true, [0x01, 0x52, 3, 0, 1])], "a response to a command"),
            ([(true, [0x1B, 3, 0] + [UInt8](repeating: 1, count: 21))], "more than the MTU"),
            ([(true, [0x1D, 3, 0]), (true, [0x1D, 3, 0])], "a second indication"),
            ([(true, [0x1B, 3, 0, 0xE7, 0xE7, 0xE7])], "a protected value without encryption"),
        ] as [([(Bool, [UInt8])], String)])
    func faultOfAServerIsSeen(packets: [(Bool, [UInt8])], what: String) {
        var watch = ServedLinkWatch(peer: nil, ownMTU: 517)
        let wrong = packets.compactMap { watch.see(event($0.1, isOutgoing: $0.0)) }
        #expect(!wrong.isEmpty, "\(what)")
    }

    @Test func serverMayUseTheMTUOnceTheResponseIsSent() {
        var watch = ServedLinkWatch(peer: nil, ownMTU: 64)
        let packets: [(Bool, [UInt8])] = [
            (false, [0x02, 100, 0]), (true, [0x03, 64, 0]), (true, [0x1B, 3, 0] + [UInt8](repeating: 1, count: 61)),
            (false, [0x0A, 3, 0]), (true, [0x0B]), (true, [0x1D, 3, 0]), (false, [0x1E]), (true, [0x1D, 3, 0]),
        ]
        #expect(packets.allSatisfy { watch.see(event($0.1, isOutgoing: $0.0)) == nil })
    }

    @Test func activityAfterTheEndIsDetected() {
        var watch = LinkWatch(peer: "peer")
        #expect(watch.see(.ended(.requested, at: BootInstant(nanoseconds: 0))) == nil)
        #expect(watch.see(event([0x52, 3, 0], isOutgoing: true)) != nil)
    }

    @Test func confirmationOfNothingIsSeen() {
        var watch = LinkWatch(peer: "peer")
        #expect(watch.see(event([0x1D, 3, 0, 1], isOutgoing: false)) == nil)
        #expect(watch.see(event([0x1E], isOutgoing: true)) == nil)
        #expect(watch.see(event([0x1E], isOutgoing: true)) != nil)
    }
}

/// What a controller does about an attempt beyond its limit of links, as a script has it.
private let reactions = ["fails 9", "refuses 9", "fails 13", "refuses 13", "fails 7", "refuses 7", "stalls 0"]

private let folder: String = {
    let here = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    return "/\(here)/Fixtures/simulation/"
}()

private let fixtures: [String] = {
    guard let directory = unsafe opendir(folder) else { return [] }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name.hasSuffix(".script") { names.append(name) }
    }
    return names.sorted()
}()
