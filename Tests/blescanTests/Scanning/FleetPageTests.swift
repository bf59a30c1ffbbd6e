import Foundation
import Testing

/// Docs/users/fleets.md: each of its commands is run as it is printed there, with a recording in place of the radio and
/// a broker on loopback in place of the user's, unless the page excludes it.
@Suite(.enabled(if: Broker.available(for: "FleetPageTests")), .timeLimit(.minutes(10))) struct FleetPageTests {
    private static let page = Fixtures.folder.deletingLastPathComponent().appending(path: "Docs/users/fleets.md")

    private struct Block {
        let language: String
        let text: String
        var isRun: Bool { !text.hasPrefix("# not run by the tests") }
    }

    private func blocks() throws -> [Block] {
        let parts = try String(contentsOf: Self.page, encoding: .utf8).components(separatedBy: "```")
        return parts.enumerated().compactMap { index, part in
            guard index % 2 == 1, let end = part.firstIndex(of: "\n") else { return nil }
            return Block(language: String(part[..<end]), text: String(part[part.index(after: end)...]))
        }
    }

    @Test func theCommandsOfThePageWork() async throws {
        let broker = try await Broker()
        let listener = try await broker.subscriber("site/#", "home/#")
        var ran = 0
        for block in try blocks() where block.language == "sh" && block.isRun {
            ran += 1
            let command = block.text
                .replacing(
                    "sudo blescan scan", with: "'\(BuiltProgram.url.path)' replay '\(Fixtures.threeDevices)' --as-scan"
                )
                .replacing(" --heartbeat 30s", with: "")
                .replacing("-h broker", with: "-h 127.0.0.1 -p \(broker.port)")
            let outcome = try await RunningProgram(["-c", command], of: URL(filePath: "/bin/sh")).outcome()
            #expect(outcome.status == 0, "\(command)\(outcome.errors)")
        }
        #expect(ran >= 2)
        try await listener.printed(#""servicedatauuid":"181a""#)
        try await listener.printed(#""seq":5,"#)
        // The recording has ended, and with it the scanner.
        try await listener.printed("/state 0 gone")
        listener.signal(SIGKILL)
        let messages = Broker.messages(try await listener.outcome().output)
        #expect(messages.contains { $0.topic.hasPrefix("home/") && $0.topic.hasSuffix("/BTtoMQTT/undecoded") })
        #expect(messages.contains { $0.topic.hasPrefix("site/7/ble/") && $0.payload == "here" })
    }

    @Test func repeatedObjectsAreFilteredOut() async throws {
        let folder = try TestFolder()
        let script = try #require(try blocks().first { $0.language == "python" })
        try script.text.write(toFile: folder["unique.py"], atomically: true, encoding: .utf8)
        let lines = try await BuiltProgram.run(["replay", Fixtures.threeDevices, "--as-scan", "--json"]).output
        let unique = try await RunningProgram(
            [folder["unique.py"]], of: URL(filePath: "/usr/bin/python3"), input: lines + lines + "no JSON\n" + lines
        ).outcome()
        #expect(unique.output == lines)
        // A restarted scanner counts from 1 again: what it receives is not what was received before.
        let later = lines.replacing("\"t\":\"2", with: "\"t\":\"3")
        let both = try await RunningProgram(
            [folder["unique.py"]], of: URL(filePath: "/usr/bin/python3"), input: lines + later
        ).outcome()
        #expect(both.output == lines + later)
    }
}
