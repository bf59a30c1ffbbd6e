import Foundation
import TestSupport

/// Docs/maintainers/conformance.md, made from the run.
enum ConformancePage {
    static func verdict(of recorded: GATTVectors.Case) async -> Verdict {
        await ClientCaseRun(recorded: recorded).verdict()
    }

    static func verdict(of recorded: GATTVectors.Session) async -> Verdict {
        await ProfileSessionRun(recorded: recorded).verdict()
    }

    static func text() async -> String {
        var operations: [(id: String, operation: String, verdict: Verdict)] = []
        for recorded in GATTVectors.cases {
            operations.append((recorded.name, recorded.operation, await verdict(of: recorded)))
        }
        var sessions: [(id: String, verdict: Verdict)] = []
        for recorded in GATTVectors.sessions { sessions.append((recorded.name, await verdict(of: recorded))) }

        var text = """
            # Conformance

            What the client does in the exchanges of the Bluetooth SIG's test cases, of NimBLE's own tests, and of sessions of
            profiles. Each runs through the public interface (`Central.attach(descriptor:)` and the methods of `Peripheral`)
            against a peer on a socketpair. `Tests/BareBLETests/Conformance` makes this page from the run, and fails when the
            page says otherwise; `BAREBLE_UPDATE_GOLDEN=1` writes it again.

            - **pass** for a read or a write: every packet that was sent is the recorded one, and the call ended as recorded.
            - **pass** for discovery: what was found is what the recorded client found. The answers are the recorded ones where
              the same was asked; the order of the questions is our own.
            - **does not apply** names the reason.

            The bytes are facts from BlueZ's and NimBLE's unit tests; the identifiers are those of the SIG's suite where they
            begin with GATT, MICP, MCP, GMAP, TMAP, BAP or HOGP.


            """
        text += "## Operations: \(summary(operations.map(\.verdict)))\n\n| id | operation | result |\n|---|---|---|\n"
        for row in operations { text += "| \(row.id) | \(row.operation) | \(row.verdict) |\n" }
        text += "\n## Sessions: \(summary(sessions.map(\.verdict)))\n\n| id | result |\n|---|---|\n"
        for row in sessions { text += "| \(row.id) | \(row.verdict) |\n" }
        return text
    }

    private static func summary(_ verdicts: [Verdict]) -> String {
        var passed = 0
        var notApplicable = 0
        var failed = 0
        for verdict in verdicts {
            switch verdict {
            case .passed: passed += 1
            case .notApplicable: notApplicable += 1
            case .failed: failed += 1
            }
        }
        var parts = ["\(passed) of \(verdicts.count) pass"]
        if notApplicable > 0 { parts.append("\(notApplicable) do not apply") }
        if failed > 0 { parts.append("\(failed) FAIL") }
        return parts.joined(separator: ", ")
    }
}
