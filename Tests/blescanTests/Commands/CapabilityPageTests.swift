import Foundation
import Testing

/// Docs/users/blescan.md: each of its commands is run as it is printed there, from the root of the repository.
@Suite(.timeLimit(.minutes(3))) struct CapabilityPageTests {
    private static let root = Fixtures.folder.deletingLastPathComponent()

    /// A row of the table: what it is about, the command, and a text that its output has.
    struct Row: Sendable, CustomStringConvertible {
        let topic: String
        let command: String
        let expected: String
        var description: String { topic }
    }

    private static func rows() throws -> [Row] {
        let page = try String(contentsOf: root.appending(path: "Docs/users/blescan.md"), encoding: .utf8)
        return page.split(separator: "\n").compactMap { line in
            // A bar inside of a command is escaped in the table.
            let cells = line.replacing("\\|", with: "\u{1}").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces).replacing("\u{1}", with: "|")
            }
            guard cells.count == 3, cells[1].hasPrefix("`"), cells[2].hasPrefix("`") else { return nil }
            return Row(
                topic: cells[0], command: cells[1].trimmingCharacters(in: ["`"]),
                expected: cells[2].trimmingCharacters(in: ["`"]))
        }
    }

    @Test func everyRowIsTrue() async throws {
        let rows = try Self.rows()
        #expect(rows.count >= 14)
        let folder = try TestFolder()
        try FileManager.default.createSymbolicLink(
            atPath: folder["blescan"], withDestinationPath: BuiltProgram.url.path)
        for row in rows {
            let script = "cd '\(Self.root.path)' && PATH='\(folder.path)':$PATH && \(row.command)"
            let outcome = try await RunningProgram(["-c", script], of: URL(filePath: "/bin/bash")).outcome()
            #expect(outcome.status == 0, "\(row.command): \(outcome.errors)")
            #expect(outcome.output.contains(row.expected), "\(row.command): \(outcome.output)")
        }
    }
}
