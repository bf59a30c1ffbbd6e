import BLECore
import BLELinux
import BareBLETestKit
import Testing

@Suite("Scripted peripheral", .timeLimit(.minutes(10)))
struct ScriptedPeripheralTests {
    private static let text = """
        test: own/read-then-lost

        < 02 f700
        > 03 f700
        ! wait 1 ms
        > 1b 0300 01
        < 0a 0300
        > 0b 01
        ! link lost
        """

    @Test("Plays a dialogue to its end")
    func playsADialogueToItsEnd() async throws {
        let peer = ScriptedPeripheral(try Dialogue(Self.text))
        var client = RawClient(try await peer.connect())
        #expect(client.request("02 f700") == "03f700")
        #expect(client.next() == "1b030001")
        #expect(client.request("0a 0300") == "0b01")
        #expect(client.next() == "end")
        #expect(await peer.finish().isComplete)
    }

    @Test("Names the line where the client left the text, and disconnects")
    func namesTheLineWhereTheClientDiffersAndDisconnects() async throws {
        let peer = ScriptedPeripheral(try Dialogue(Self.text))
        var client = RawClient(try await peer.connect())
        #expect(client.request("02 f700") == "03f700")
        #expect(client.next() == "1b030001")
        #expect(client.request("0a 0400") == "end")
        let report = await peer.finish()
        #expect(report.difference == .unexpected(line: 7, expected: [0x0A, 3, 0], got: [0x0A, 4, 0]))
        #expect(report.description == "line 7: expected 0a0300, got 0a0400")
    }

    @Test("Reports when the client disconnects or sends too much")
    func endsEarly() async throws {
        let peer = ScriptedPeripheral(try Dialogue(Self.text))
        do {
            var client = RawClient(try await peer.connect())
            #expect(client.request("02 f700") == "03f700")
            #expect(client.next() == "1b030001")
        }
        #expect(await peer.finish().difference == .ended(line: 7, expected: [0x0A, 3, 0]))

        let short = ScriptedPeripheral(try Dialogue("> 1b 0300 01\n! wait 100000 ms"))
        var client = RawClient(try await short.connect())
        #expect(client.next() == "1b030001")
        #expect(client.request("0a 0300") == "end")
        #expect(await short.finish().difference == .surplus(got: [0x0A, 3, 0]))
    }
}
