import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

@Suite("Replay", .timeLimit(.minutes(10)))
struct ReplayTests {
    /// Requests that nobody waits for have no fixed place.
    private let options = ConnectOptions(observesServiceChanges: false)

    /// The code that is recorded and tested.
    private func visit(_ link: Peripheral) async throws -> [[UInt8]] {
        var seen = [try await link.read(0x2A38)]
        let beats = try await link.subscribe(to: 0x2A37)
        var iterator = beats.makeAsyncIterator()
        while seen.count < 4, let beat = try await iterator.next() { seen.append(beat.bytes) }
        try await link.write([0x01], to: 0x2A39)
        seen.append(try await link.read(0x2A29))
        await link.disconnect()
        withExtendedLifetime(beats) {}
        return seen
    }

    /// Records a visit in a virtual time; returns what it saw.
    private func record(_ folder: Folder) async throws -> [[UInt8]] {
        let recorder = try Recorder(btsnoop: folder["visit.btsnoop"], dialogue: folder["visit.dialogue"])
        let seen = try await VirtualTime.run { time in
            var configuration = Configuration()
            recorder.attach(to: &configuration)
            let belt = VirtualPeripheral(.heartRate, latency: .milliseconds(30), time: time)
            return try await visit(Central(configuration, time: time).attach(descriptor: belt.connect(), options))
        }
        try await recorder.finish()
        return seen
    }

    @Test(
        "The client that was recorded plays it through, from either file",
        arguments: ["visit.btsnoop", "visit.dialogue"])
    func roundTrip(name: String) async throws {
        let folder = try Folder()
        let seen = try await record(folder)
        let replay = try Replay(folder[name])
        let again = try await visit(Central().attach(descriptor: replay.connect(), options))
        #expect(again == seen && seen.count == 5)
        try await replay.finish()
    }

    @Test("Recorded pauses are kept in virtual time, or half of them")
    func recordedPausesAreKept() async throws {
        let folder = try Folder()
        let seen = try await record(folder)
        for (scale, seconds) in [(1.0, 2), (0.5, 1)] {
            try await VirtualTime.run { time in
                let replay = try Replay(folder["visit.dialogue"], timeScale: scale, time: time)
                let link = try await Central(time: time).attach(descriptor: replay.connect(), options)
                #expect(try await visit(link) == seen)
                try await replay.finish()
                let passed = time.now - .zero
                #expect(passed > .seconds(seconds) && passed < .seconds(seconds + 1), "\(passed)")
            }
        }
    }

    @Test("One byte that differs ends it, and is reported with its line and both packets")
    func oneByte() async throws {
        let folder = try Folder()
        _ = try await record(folder)
        var changed = try Dialogue(String(contentsOfFile: folder["visit.dialogue"], encoding: .utf8))
        let write = try #require(
            changed.steps.last { if case .sent(let pdu) = $0.event { pdu.first == 0x12 } else { false } })
        guard case .sent(let pdu) = write.event else { return }
        let index = try #require(changed.steps.firstIndex { $0.line == write.line })
        changed.steps[index].event = .sent(pdu.dropLast() + [0x02])
        let replay = Replay([RecordedLink(changed, source: "visit.dialogue")])
        await #expect(throws: BLEError(.disconnected, during: "", because: "")) {
            _ = try await visit(Central().attach(descriptor: replay.connect(), options))
        }
        do throws(ReplayError) {
            try await replay.finish()
            Issue.record("no difference")
        } catch {
            guard case .difference(_, .unexpected(write.line, pdu.dropLast() + [0x02], pdu)) = error else {
                Issue.record("\(error)")
                return
            }
            // As the printer of packets calls it.
            let text = error.description
            #expect(
                text.hasPrefix("visit.dialogue, line \(write.line): the recording has Write Request (0x12) "), "\(text)"
            )
            #expect(text.contains("02], but the client sent Write Request (0x12) "), "\(text)")
            #expect(text.hasSuffix(" [\(Hex.encode(pdu))]"), "\(text)")
        }
    }

    @Test("Less than was recorded, and more, are differences too")
    func anotherLengthIsADifference() async throws {
        let text = """
            < 0a 0300
            > 0b 01
            < 0a 0500
            > 0b 02
            """
        let link = RecordedLink(try Dialogue(text))
        let short = Replay([link])
        var client = RawClient(try await short.connect())
        #expect(client.request("0a 0300") == "0b01")
        client = RawClient(try await Replay([link]).connect())
        await #expect(throws: ReplayError.difference(link, .ended(line: 3, expected: [0x0A, 5, 0]))) {
            try await short.finish()
        }
        let long = Replay([link])
        client = RawClient(try await long.connect())
        #expect(client.request("0a 0300") == "0b01")
        #expect(client.request("0a 0500") == "0b02")
        #expect(client.request("0a 0700") == "end")
        await #expect(throws: ReplayError.difference(link, .surplus(got: [0x0A, 7, 0]))) { try await long.finish() }
        let none = Replay([link])
        await #expect(throws: ReplayError.notConnected(link)) { try await none.finish() }
    }

    @Test("Another order is a difference, unless it is allowed")
    func anotherOrderIsADifferenceUnlessItIsAllowed() async throws {
        let text = """
            < 0a 0300
            ! wait 1 ms
            > 1b 0900 01
            > 0b 03
            < 0a 0500
            > 1b 0900 02
            > 0b 05
            < 12 0700 01
            > 13
            """
        let link = RecordedLink(try Dialogue(text))
        let strict = Replay([link])
        var client = RawClient(try await strict.connect())
        #expect(client.request("0a 0500") == "end")
        await #expect(
            throws: ReplayError.difference(link, .unexpected(line: 1, expected: [0x0A, 3, 0], got: [0x0A, 5, 0]))
        ) {
            try await strict.finish()
        }
        let reads = Replay([link], order: .readsInAnyOrder)
        client = RawClient(try await reads.connect())
        #expect(client.request("0a 0500") == "0b05")
        #expect(client.request("0a 0300") == "1b090001")
        #expect(client.next() == "0b03")
        #expect(client.next() == "1b090002")
        #expect(client.request("12 0700 01") == "13")
        try await reads.finish()
        let write = Replay([link], order: .readsInAnyOrder)
        client = RawClient(try await write.connect())
        #expect(client.request("12 0700 01") == "end")
        let any = Replay([link], order: .any)
        client = RawClient(try await any.connect())
        #expect(client.request("12 0700 01") == "13")
        #expect(client.request("0a 0300") == "1b090001")
    }

    @Test("A confirmation and a request may pass each other, and a quick client waits for the recorded pause")
    func liveClients() async throws {
        let text = """
            > 1d 0900 01
            < 1e
            < 0a 0300
            ! wait 20 ms
            > 0b 03
            ! wait 20 ms
            > 1b 0900 02
            < 0a 0500
            > 0b 05
            """
        let replay = Replay([RecordedLink(try Dialogue(text))], timeScale: 1)
        var client = RawClient(try await replay.connect())
        #expect(client.next() == "1d090001")
        client.send("0a 0300")
        client.send("1e")
        #expect(client.next() == "0b03")
        #expect(client.request("0a 0500") == "1b090002")
        #expect(client.next() == "0b05")
        try await replay.finish()
    }

    @Test("Several links of a capture go to their peripherals")
    func eachClientGetsTheLinkOfItsPeer() async throws {
        let lamp = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0001), type: .random)
        let texts = ["peer: \(lamp)\n< 0a 0100", "< 0a 0200", "peer: \(lamp)\n< 0a 0300"]
        let links = try texts.map { RecordedLink(try Dialogue($0)) }
        #expect(links.map(\.peer) == [lamp, nil, lamp])
        let replay = Replay(links)
        var first = RawClient(try await replay.connect(to: lamp))
        var second = RawClient(try await replay.connect(to: lamp))
        var other = RawClient(try await replay.connect())
        await #expect(throws: ReplayError.noSuchLink(peer: lamp)) { try await replay.connect(to: lamp) }
        second.send("0a 0300")
        other.send("0a 0200")
        first.send("0a 0100")
        try await replay.finish()
    }

    @Test("Files that are no recordings are refused with their reason")
    func filesThatAreNoRecordingsAreRefused() throws {
        let folder = try Folder()
        try Data("> 0b 01\nhello".utf8).write(to: URL(filePath: folder["a"]))
        do throws(ReplayError) {
            _ = try Replay(folder["a"])
            Issue.record("read")
        } catch {
            #expect(error.description.contains("line 2: "), "\(error)")
        }
        #expect(throws: ReplayError.unreadable(path: folder["b"], reason: "there is no such file")) {
            _ = try Replay(folder["b"])
        }
    }
}
