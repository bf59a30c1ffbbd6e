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

    static func text() async throws -> String {
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
            page differs; `BAREBLE_UPDATE_GOLDEN=1` writes it again.

            - **pass** for a read or a write: every packet that was sent is the recorded one, and the call ended as recorded.
            - **pass** for discovery: what was found is what the recorded client found. The responses are the recorded ones where
              the same was asked; the order of the questions is our own.
            - **does not apply** names the reason.

            The bytes are facts from BlueZ's and NimBLE's unit tests; the identifiers are those of the SIG's suite where they
            begin with GATT, MICP, MCP, GMAP, TMAP, BAP or HOGP.

            The last section is about the server.


            """
        text += "## Operations: \(summary(operations.map(\.verdict)))\n\n| id | operation | result |\n|---|---|---|\n"
        for row in operations { text += "| \(row.id) | \(row.operation) | \(row.verdict) |\n" }
        text += "\n## Sessions: \(summary(sessions.map(\.verdict)))\n\n| id | result |\n|---|---|\n"
        for row in sessions { text += "| \(row.id) | \(row.verdict) |\n" }
        return text + (try serverSection())
    }

    /// The section about the server, from a run of each dialogue.
    private static func serverSection() throws -> String {
        var rows = ""
        var passed = 0
        var deviating = 0
        var failed = 0
        for dialogue in ServerDialogue.all {
            let differences = try dialogue.differences()
            let deviation = ServerDialogue.deviations[dialogue.name]
            let texts = differences.map { "`\($0.ours)`, expected `\($0.theirs)`" }.joined(separator: "; ")
            let result: String
            if differences.isEmpty {
                passed += 1
                result = "pass"
            } else if let deviation, deviation.differences == differences {
                deviating += 1
                result = "deviates: \(texts). \(deviation.reason)"
            } else {
                failed += 1
                result = "FAILS: \(texts)"
            }
            rows += "| \(dialogue.name) | \(dialogue.database) | \(result) |\n"
        }
        let title = "\(passed) of \(ServerDialogue.all.count) pass, \(deviating) deviates"
        return """

            ## Server: \(failed == 0 ? title : "\(title), \(failed) FAIL")

            The 90 server cases of BlueZ's unit tests, and 3 of robustness, against `GATTServer` without a socket. **pass**: every
            packet of the server is the expected one. `Fixtures/gatt` has the bytes and the databases;
            `swift test --filter GATTServerDialogueTests` runs them too. The 31 server cases that BlueZ's report of the SIG's suite
            has and its unit tests lack are dialogues of our own, in `GATTServerQualificationTests`.

            | id | database | result |
            |---|---|---|

            """ + rows
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
