import Foundation
import TestSupport
import Testing

/// Runs the built program, as a shell does.
@Suite("blescan replay", .timeLimit(.minutes(10)))
struct ReplayTests {
    private static let fixtures = RepositoryFiles.root.appending(path: "Fixtures")
    private static let recording = fixtures.appending(path: "hci/three-devices.btsnoop").path

    private struct Result {
        var output: String
        var errors: String
        var status: Int32
        var lines: [Substring] { output.split(separator: "\n") }
    }

    private func replay(_ arguments: String...) async throws -> Result {
        let outcome = try await BuiltProgram.run(["replay"] + arguments)
        return Result(output: outcome.output, errors: outcome.errors, status: outcome.status)
    }

    @Test("Prints the recorded session as on the golden page")
    func theRecordedSessionIsPrintedAsOnItsPage() async throws {
        let result = try await replay(Self.recording)
        let page = try String(
            contentsOf: Self.fixtures.appending(path: "cli/replay-three-devices.txt"), encoding: .utf8)
        #expect(result.output == page)
        #expect(result.errors.isEmpty)
        #expect(result.status == 0)
    }

    /// At half past eight in UTC.
    @Test(
        "Prints local times, with the date where the day changes",
        arguments: [
            ("IST-5:30", [], "2026-11-21, UTC+05:30", "14:12:"), ("NST3:30", [], "2026-11-21, UTC-03:30", "05:12:"),
            ("HST10", [], "2026-11-20, UTC-10:00", "22:42:"), ("HST10", ["--utc"], "2026-11-21, UTC", "08:42:"),
            ("UTC0", ["--utc"], "2026-11-21, UTC", "08:42:"),
        ])
    func localTimes(_ zone: String, _ options: [String], _ date: String, _ time: String) async throws {
        let outcome = try await BuiltProgram.run(
            ["replay", Self.recording, "--only", "att"] + options, environment: ["TZ": zone])
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.first.map(String.init) == date)
        #expect(lines.dropFirst().first?.contains(" \(time)") == true, "\(lines.prefix(2))")
        #expect(lines.filter { $0.contains("UTC") }.count == 1)
    }

    @Test("Prints the date of each day")
    func printsTheDateOfEachDay() async throws {
        // It is from 08:42:20 to 08:42:30 in UTC: midnight is in it.
        let outcome = try await BuiltProgram.run(["replay", Self.recording], environment: ["TZ": "TST-15:17:35"])
        let dates = outcome.output.split(separator: "\n").filter { $0.contains(", UTC") }.map { $0.prefix(10) }
        #expect(dates == ["2026-11-21", "2026-11-22"])
    }

    @Test("Takes --utc only where times are printed")
    func takesUTCOnlyWhereTimesArePrinted() async throws {
        #expect(try await replay(Self.recording, "--check", "--utc").status == 64)
    }

    @Test("Prints one layer alone")
    func oneLayer() async throws {
        let result = try await replay(Self.recording, "--only", "att")
        #expect(result.lines.filter { $0.hasPrefix("#") }.count == 39)
        #expect(result.lines.last == "39 of 178 packets, 17 requests, 4 errors, slowest response 31 ms")
        #expect(try await replay(Self.recording, "--only", "adv").lines.last == "41 of 178 packets")
        let whole = try await replay(Self.recording).lines.map { $0.split(separator: "  ").first }
        #expect(result.lines.dropLast().allSatisfy { whole.contains($0.split(separator: "  ").first) })
    }

    @Test("Prints an object a packet, with the keys of decode for what was advertised")
    func printsAnObjectForEachPacket() async throws {
        let result = try await replay(Self.recording, "--only", "adv", "--json")
        #expect(result.lines.count == 41)
        let names = try result.lines.flatMap { line -> [String] in
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            #expect(line.hasPrefix("{\"v\":1,"))
            let reports = try #require(object["reports"] as? [[String: Any]])
            return reports.compactMap { $0["localName"] as? String }
        }
        #expect(Set(names) == ["Virtual HRM", "Kitchen"])
    }

    @Test("Prints a dialogue")
    func printsADialogue() async throws {
        let result = try await replay(Self.fixtures.appending(path: "att/gar-cl-bv-05-c.dialogue").path)
        #expect(result.lines.first == "#1 < Read Multiple Request (0x0e)")
        #expect(result.lines.last == "2 packets, 1 request")
    }

    @Test("What cannot be replayed ends with the contract's status and a hint")
    func whatCannotBeReplayedEndsWithAStatusAndAHint() async throws {
        let noCapture = try await replay(Self.fixtures.appending(path: "README.md").path)
        #expect(noCapture.status == 65)
        #expect(noCapture.errors.contains("btmon -w"))
        #expect(try await replay("/nowhere/at/all").status == 64)
        #expect(try await replay(Self.fixtures.path).status == 64)
        // Standard input is empty here.
        #expect(try await replay().status == 65)
        #expect(try await replay("--hex", "0201").status == 0)
        #expect(
            try await replay(Self.fixtures.appending(path: "att/gar-cl-bv-05-c.dialogue").path, "--only", "adv").status
                == 1)
    }

    @Test("A capture that was cut off is printed as far as it goes")
    func aTruncatedCaptureIsPrintedAsFarAsItGoes() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "cut-\(UUID().uuidString).btsnoop")
        try Data(contentsOf: URL(filePath: Self.recording)).prefix(3000).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let result = try await replay(file.path)
        #expect(result.lines.last == "77 packets")
        #expect(result.errors.contains("cut off"))
        #expect(result.status == 0)
    }
}
