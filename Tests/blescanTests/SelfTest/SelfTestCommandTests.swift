import ArgumentParser
import Foundation
import Testing

@testable import blescan

/// `blescan selftest` as its users run it, on virtual adapters.
@Suite struct SelfTestCommandTests {
    @Test func virtualAdaptersAreQualified() async throws {
        let session = try await Golden.session([
            ["selftest", "--adapter", "demo:bluetooth4"], ["selftest", "--adapter", "demo:ats2851"],
            ["selftest", "--adapter", "demo:rtl8723bu"],
        ])
        try Golden.expect(session, matches: "selftest.txt")
    }

    @Test func theReportIsPrintedAlone() async throws {
        let outcome = try await BuiltProgram.run(["selftest", "--adapter", "demo:bcm4378", "--json", "--redact"])
        #expect(outcome.status == 1 && outcome.errors.isEmpty)
        let objects = try outcome.objects()
        let report = try #require(objects.first)
        #expect(objects.count == 1 && report["schema"] as? Int == 1)
        #expect((report["checks"] as? [Any])?.count == 21)
        #expect(!outcome.output.contains("00:AA:01:00:00:42"))
    }

    /// A recording holds every packet, and can be read.
    @Test func aRecordingCanBeReplayed() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "selftest-\(UUID().uuidString).btsnoop")
        defer { try? FileManager.default.removeItem(at: file) }
        let outcome = try await BuiltProgram.run([
            "selftest", "--adapter", "demo:bluetooth5", "--record", file.path,
        ])
        #expect(outcome.status == 0)
        let replayed = try await BuiltProgram.run(["replay", file.path, "--json"])
        #expect(replayed.status == 0)
        #expect(try replayed.objects().count > 1000)
        let scanned = try await BuiltProgram.run(["replay", file.path, "--as-scan", "--each", "device"])
        #expect(scanned.output.split(separator: "\n").count == 3)
    }

    @Test func aRecordingIsNotRedacted() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "selftest-\(UUID().uuidString).btsnoop")
        defer { try? FileManager.default.removeItem(at: file) }
        let outcome = try await BuiltProgram.run([
            "selftest", "--adapter", "demo:bluetooth5", "--redact", "--record", file.path,
        ])
        #expect(outcome.status == 64 && outcome.errors.contains("everything in clear"), "\(outcome.errors)")
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    /// A report is a virtual adapter that behaves as it says; any other file is named in one line.
    @Test func aReportIsAnAdapter() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "selftest-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let first = try await BuiltProgram.run(["selftest", "--adapter", "demo:ats2851", "--json", "--redact"])
        try Data(first.output.utf8).write(to: file)
        let adapter = "demo:\(file.path)"
        let second = try await BuiltProgram.run(["selftest", "--adapter", adapter, "--json", "--redact"])
        #expect(second.status == first.status && second.errors.isEmpty)
        let object = try #require(try second.objects().first)
        let rows = (object["quirks"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
        #expect(rows.contains("W04") && rows.contains("W05"))
        for (text, reason) in [
            ("[]", "it does not have the form of a report"), ("{}", "it is not a report of the self-test"),
            (#"{"schema":2,"checks":[]}"#, "its schema is 2"),
            (#"{"schema":1,"checks":[]}"#, "the self-test ended before"),
        ] {
            try Data(text.utf8).write(to: file)
            let outcome = try await BuiltProgram.run(["selftest", "--adapter", adapter])
            #expect(outcome.status == 65 && outcome.output.isEmpty)
            #expect(outcome.errors.contains(reason), "\(outcome.errors)")
        }
    }

    /// Root keeps its way to the file, as for each file that the user names.
    @Test(arguments: [("demo:report.json", true), ("demo:bluetooth5", false), ("hci0", false)])
    func onlyAReportIsAFile(_ adapter: String, _ isFile: Bool) throws {
        #expect(try SelfTest.parse(["--adapter", adapter]).namesFiles == isFile)
    }

    @Test func wrongUsagePrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["selftest", "--adapter", "usb0"], ["selftest", "--adapter", "demo:toaster"],
            ["selftest", "--adapter", "hci0", "--peer-adapter", "hci0"],
            ["selftest", "--peer", "demo:battery"], ["selftest", "--peer", "kitchen"],
            ["selftest", "--peer", "AA:BB:CC:DD:EE:FF", "--peer-adapter", "hci1"],
            ["selftest", "--adapter", "demo:csr8510", "--peer-adapter", "hci1"],
            ["selftest", "--soak", "soon"], ["selftest", "--soak", "0"],
            ["selftest", "hci0"],
        ])
        try Golden.expect(session, matches: "selftest-wrong-usage.txt")
    }
}
