import BLECapture
import BareBLE
import Foundation
import TestSupport
import Testing

/// The dialogues of Fixtures/att that say what a user calls: they need nothing besides this repository.
@Suite("Dialogues through the public API", .timeLimit(.minutes(10)))
struct DialogueFixtureTests {
    private static let names: [String] = {
        let folder = RepositoryFiles.root.appending(path: "Fixtures/att")
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { name in
            name.hasSuffix(".dialogue")
                && (try? RepositoryFiles.text("Fixtures/att/\(name)").contains("\ncall: ")) == true
        }.sorted()
    }()

    @Test("A dialogue", arguments: names)
    func everyDialogueFixturePlaysToItsEnd(_ name: String) async throws {
        try await DialogueCalls(try RepositoryFiles.text("Fixtures/att/\(name)")).play()
    }

    /// Every group of the suite from which there are recordings, and every profile.
    @Test func everyGroupIsThere() throws {
        let tests = try Self.names.map {
            try DialogueCalls(try RepositoryFiles.text("Fixtures/att/\($0)")).dialogue.header("test") ?? ""
        }
        let groups = [
            "GATT/GAD/CL/BV", "GATT/GAR/CL/BV", "GATT/GAR/CL/BI", "GATT/GAW/CL/BV", "GATT/GAW/CL/BI", "GATT/GAN/CL/BV",
            "MICP/CL", "MCP/CL", "GMAP/CL", "TMAP/CL", "BAP/UCL", "HOGP/",
        ]
        for group in groups { #expect(tests.contains { $0.hasPrefix(group) }, "\(group)") }
    }
}
