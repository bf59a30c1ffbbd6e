import Foundation
import TestSupport
import Testing

/// Every recorded client operation and every recorded profile session, through the public interface over a socketpair,
/// and the page that says how each of them went.
@Suite(
    "Conformance through the public API", .enabled(if: SharedVectors.available(for: "ConformanceTests")),
    .timeLimit(.minutes(10)))
struct ConformanceTests {
    @Test("A recorded operation", arguments: GATTVectors.cases)
    func aRecordedOperationConforms(_ recorded: GATTVectors.Case) async {
        let verdict = await ConformancePage.verdict(of: recorded)
        if case .failed(let reason) = verdict { Issue.record("\(reason)") }
    }

    @Test("A recorded session", arguments: GATTVectors.sessions)
    func aRecordedSessionConforms(_ recorded: GATTVectors.Session) async {
        let verdict = await ConformancePage.verdict(of: recorded)
        if case .failed(let reason) = verdict { Issue.record("\(reason)") }
    }

    /// A guard against a file that shrinks.
    @Test func countsTheRecordings() {
        #expect(GATTVectors.cases.count == 110)
        #expect(GATTVectors.sessions.count == 55)
    }

    /// `BAREBLE_UPDATE_GOLDEN=1` writes the page again.
    @Test func thePageMatchesTheRun() async throws {
        let page = try await ConformancePage.text()
        let file = RepositoryFiles.root.appending(path: "Docs/maintainers/conformance.md")
        if ProcessInfo.processInfo.environment["BAREBLE_UPDATE_GOLDEN"] == "1" {
            return try page.write(to: file, atomically: true, encoding: .utf8)
        }
        let kept = try RepositoryFiles.text("Docs/maintainers/conformance.md")
        let (old, new) = (Self.lines(kept), Self.lines(page))
        for (was, became) in zip(old, new) where was != became {
            Issue.record("Docs/maintainers/conformance.md says \"\(was)\", and the run \"\(became)\"")
        }
        #expect(old.count == new.count)
    }

    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }
}
