import BareBLETestKit
import Foundation
import Testing

/// Standard streams that are closed: no socket gets their numbers, and no output is written into one.
@Suite struct ClosedDescriptorTests {
    private func run(_ redirection: String, _ arguments: [String]) async throws -> Outcome {
        let command = "exec \"$0\" \"$@\" \(redirection)"
        return try await RunningProgram(
            ["-c", command, BuiltProgram.url.path] + arguments, of: URL(filePath: "/bin/sh")
        ).outcome()
    }

    @Test(arguments: ["<&-", "2>&-", "<&- 2>&-"]) func theResultsAreComplete(_ redirection: String) async throws {
        let peer = try await SocketPeer(.battery)
        let outcome = try await run(redirection, ["read", "unix:\(peer.path)", "2a19", "--trace"])
        #expect(outcome.status == 0)
        #expect(outcome.output == "40  64 %\n")
        // All of them are ATT, and nothing else was written to the peer.
        #expect(peer.packets.count == 2 && peer.packets.allSatisfy { [0x02, 0x08].contains($0.first) })
    }

    @Test(arguments: [">&-", "<&- >&-"]) func resultsThatGoNowhereAreNoSuccess(_ redirection: String) async throws {
        let peer = try await SocketPeer(.battery)
        let outcome = try await run(redirection, ["read", "unix:\(peer.path)", "2a19"])
        #expect(outcome.status == 74)
        #expect(outcome.errors.contains("could not write the results: Bad file descriptor"))
        #expect(peer.packets.count == 2)
    }
}
