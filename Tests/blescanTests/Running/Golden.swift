import Foundation
import TestSupport
import Testing

/// Files of the program's output, in Fixtures/cli. `BAREBLE_UPDATE_GOLDEN=1` writes them again.
enum Golden {
    private static let folder = RepositoryFiles.root.appending(path: "Fixtures/cli")

    static func expect(_ text: String, matches name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let file = folder.appending(path: name)
        if ProcessInfo.processInfo.environment["BAREBLE_UPDATE_GOLDEN"] == "1" {
            return try text.write(to: file, atomically: true, encoding: .utf8)
        }
        guard let golden = try? String(contentsOf: file, encoding: .utf8) else {
            Issue.record("Fixtures/cli/\(name) is missing", sourceLocation: sourceLocation)
            return
        }
        let (old, new) = (golden.split(separator: "\n", omittingEmptySubsequences: false), lines(of: text))
        for number in 0..<max(old.count, new.count) {
            let was = number < old.count ? String(old[number]) : nil
            let became = number < new.count ? String(new[number]) : nil
            guard was != became else { continue }
            Issue.record(
                "\(name):\(number + 1)\n  golden: \(was ?? "(end)")\n  now:    \(became ?? "(end)")",
                sourceLocation: sourceLocation)
            return
        }
    }

    private static func lines(of text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// Runs the commands one after the other; the result looks like a terminal: `$` before the command, its output,
    /// `2>` before each line of standard error, `=` before the exit status. What differs from run to run is masked.
    static func session(_ commands: [[String]]) async throws -> String {
        var text = ""
        for arguments in commands {
            let outcome = try await BuiltProgram.run(arguments)
            let quoted = arguments.map { $0.contains(" ") || $0.isEmpty ? "'\($0)'" : $0 }
            text += "$ blescan \(quoted.joined(separator: " "))\n" + outcome.output
            for line in outcome.errors.split(separator: "\n") { text += "2> \(line)\n" }
            text += "= \(outcome.status)\n\n"
        }
        return masked(text)
    }

    /// Returns the text without times.
    static func masked(_ text: String) -> String {
        text.replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/, with: "(time)")
            .replacing(/(connected|in) \d+ ms/) { "\($0.output.1) (n) ms" }
            // Those of a trace, and its dates, of which there is one more at midnight.
            .replacing(/#\ \d\d:\d\d:\d\d\.\d{3}(?=\ \ )/, with: "# (time)")
            .replacing(/2>\ #\ \d{4}-\d\d-\d\d,\ UTC\n/, with: "")
    }
}
