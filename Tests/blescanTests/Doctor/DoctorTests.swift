import Foundation
import TestSupport
import Testing

@testable import blescan

/// `blescan doctor` on simulated machines: each of its findings, as text and as JSON.
@Suite struct DoctorTests {
    /// Every screen, one after the other, each followed by the findings that are not good as JSON.
    @Test func everyFindingHasItsScreen() async throws {
        var screens = ""
        var objects = ""
        for ailment in Ailment.all {
            let machine = try ailment.machine()
            let heading = "# \(ailment)\n$ blescan doctor"
            let arguments = ailment.arguments.map { " " + $0 }.joined()
            let screen = try await machine.doctor(ailment.arguments)
            screens += "\(heading)\(arguments)\n\(screen.output)\(screen.errors)= \(screen.status)\n\n"
            let json = try await machine.doctor(ailment.arguments + ["--json"])
            let lines = json.output.split(separator: "\n")
            let bad = lines.filter { !$0.contains(#""level":"ok""#) && !$0.contains(#""level":"skip""#) }
            objects +=
                "\(heading)\(arguments) --json\n\(bad.joined(separator: "\n"))\n\(json.errors)= \(json.status)\n\n"
            #expect(json.status == screen.status)
        }
        try Golden.expect(screens, matches: "doctor.txt")
        try Golden.expect(objects, matches: "doctor-json.txt")
    }

    @Test(arguments: Ailment.all) func whatIsWrongIsNamed(_ ailment: Ailment) async throws {
        let machine = try ailment.machine()
        let outcome = try await machine.doctor(ailment.arguments + ["--json"])
        let objects = try outcome.objects()
        let findings = objects.dropLast()
        let found = Set(findings.compactMap { $0["id"] as? String })
        if let id = ailment.id { #expect(found.contains(id)) }
        #expect(found.allSatisfy { !$0.contains(" ") }, "one name for a check, whatever it finds")
        // The sixteen checks, in their order, each with a result.
        let numbers = findings.compactMap { $0["check"] as? Int }
        #expect(numbers == numbers.sorted())
        #expect(Set(numbers) == Set(1...16))
        for finding in findings {
            let isBad = ["fail", "warn"].contains(finding["level"] as? String)
            #expect(((finding["remedy"] as? String) != nil) == isBad)
        }
        let failures = findings.count { $0["level"] as? String == "fail" }
        let summary = try #require(objects.last)
        #expect(summary["failures"] as? Int == failures)
        #expect(summary["status"] as? Int == Int(outcome.status))
        #expect((outcome.status == 0) == (failures == 0))
        #expect(outcome.errors.isEmpty)
    }

    /// The kernel's list has the keys in the same lines as the addresses.
    @Test(arguments: [[], ["--json"], ["--report"]]) func noKeyIsPrinted(_ arguments: [String]) async throws {
        let machine = try FakeMachine()
        _ = try machine.bonds([RecordedBonds.first])
        let key = "0123456789abcdef0011223344556677"
        try machine.keys(["D1:00:00:00:00:01 (type 2) 1 0x03 16 0000 0000000000000000 \(key)"])
        let outcome = try await machine.doctor(arguments)
        #expect(outcome.output.contains("the kernel has keys, but not those of"))
        #expect(!outcome.output.contains(key))
        #expect(!outcome.output.contains("ef8c26c1e45e8cbe9d7e39d53905d68e"))
    }

    /// A program's name and a kernel's message are untrusted text.
    @Test func noEscapeSequenceReachesTheTerminal() async throws {
        let machine = try FakeMachine()
        machine.radio.openers = [SocketOpener(program: "\u{1B}[31mred", kind: .raw, adapter: 0)]
        try machine.write("dev/kmsg", "3,1,1,-;Bluetooth: hci0: \u{1B}]0;x\u{07} tx timeout\n")
        for arguments in [[], ["--json"]] {
            let outcome = try await machine.doctor(arguments)
            #expect(!outcome.output.contains("\u{1B}") && !outcome.output.contains("\u{07}"))
            #expect(outcome.output.contains("red"))
        }
    }

    @Test(.row("O30")) func withoutAFileForTheSocketsThereIsNoBluetooth() async throws {
        let machine = try FakeMachine()
        let outcome = try await BuiltProgram.run(["doctor", "--root", machine.root.path])
        #expect(outcome.status == 69)
        let empty = try TestFolder()
        let nothing = try await BuiltProgram.run(["doctor", "--root", empty.path, "--json"])
        #expect(nothing.status == 69)
        #expect(nothing.output.contains(#""id":"no-bluetooth""#))
        let nowhere = try await BuiltProgram.run(["doctor", "--root", "/nowhere"])
        #expect(nowhere.status == 64)
        #expect(nowhere.errors.contains("/nowhere: no such folder."))
    }

    @Test func aFileThatIsNoneIsSaid() async throws {
        let machine = try FakeMachine()
        try machine.write("bluetooth.json", "{}")
        let outcome = try await BuiltProgram.run(["doctor", "--root", machine.root.path])
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("bluetooth.json"))
    }

    @Test func anAdapterThatIsNotThereIsSaid() async throws {
        let machine = try FakeMachine()
        let outcome = try await machine.doctor(["--adapter", "hci7"])
        #expect(outcome.status == 69)
        #expect(outcome.errors.contains("there is no hci7") && outcome.errors.contains("hci0"))
    }
}
