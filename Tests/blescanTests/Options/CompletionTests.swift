import Foundation
import Testing

@testable import blescan

/// What shells offer, without a radio and without privileges.
@Suite struct CompletionTests {
    /// Each shell asks the program itself in this way, as its script in Docs/completions says.
    private func offered(_ arguments: [String]) async throws -> [String] {
        let outcome = try await BuiltProgram.run(arguments, environment: ["SAP_SHELL": "bash", "HOME": "/nowhere"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        return outcome.output.split(whereSeparator: \.isNewline).map(String.init)
    }

    @Test func virtualDevicesAreOffered() async throws {
        for command in ["read", "notify", "watch", "explore", "write", "talk"] {
            let words = try await offered(
                ["---completion", command, "--", "positional@0", "2", "0", "blescan", command, "demo:"])
            #expect(words.contains("demo:heart-rate") || words.contains { $0.hasPrefix("demo:heart-rate") }, "\(words)")
        }
    }

    @Test func scriptsAskForPeersAndAdapters() throws {
        let folder = Fixtures.folder.deletingLastPathComponent().appending(path: "Docs/completions")
        for name in ["_blescan", "blescan.bash", "blescan.fish"] {
            let script = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            #expect(script.contains("---completion read -- positional@0"), "\(name)")
            #expect(script.contains("---completion scan -- --adapter"), "\(name)")
        }
    }
}
