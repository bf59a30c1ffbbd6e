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

    @Test(.row("W55", "W57", "W61", "W68"), arguments: Ailment.all) func whatIsWrongIsNamed(_ ailment: Ailment)
        async throws
    {
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

    /// What explains the other findings comes before them, and its remedy with it.
    @Test(
        .row("W01", "W54"),
        arguments: [
            ("a CSR clone", "clone", "use another adapter"),
            ("a CSR clone of another maker, which is off", "clone", "use another adapter"),
            ("an RTL8761B on kernel 7.2", "masked-reports", "boot a kernel before"),
            ("a Raspberry Pi without an address", "unconfigured", "sudo btmgmt -i hci0 public-addr ADDRESS"),
            ("a MediaTek controller whose set-up failed", "no-address", "boot another kernel"),
            ("a controller of Barrot before kernel 6.17.8", "barrot", "boot kernel 6.17.8"),
        ]) func theCauseComesFirst(_ name: String, _ id: String, _ remedy: String) async throws
    {
        let ailment = try #require(Ailment.all.first { $0.description == name })
        let machine = try ailment.machine()
        let objects = try await machine.doctor(["--json"]).objects()
        let first = try #require(objects.first { ["fail", "warn"].contains($0["level"] as? String) })
        #expect(first["id"] as? String == id)
        #expect((first["remedy"] as? String)?.hasPrefix(remedy) == true)
        let lines = try await machine.doctor().output.split(separator: "\n")
        let position = try #require(lines.firstIndex { $0.hasPrefix("warn") || $0.hasPrefix("FAIL") })
        #expect(lines[lines.index(after: position)].hasPrefix("      → " + remedy))
    }

    /// An adapter that the kernel does not switch on is not offered to `--fix up`, nor a silent room blamed for masked
    /// reports.
    @Test(
        arguments: [
            ("a Raspberry Pi without an address", "down"), ("an RTL8761B on kernel 7.2", "silence"),
            ("an RTL8761B that refuses the extended scan on kernel 6.18.45", "disallowed"),
            ("a CSR clone", "kernel-log"),
        ]) func aConsequenceHasNoRemedyOfItsOwn(_ name: String, _ consequence: String) async throws
    {
        let ailment = try #require(Ailment.all.first { $0.description == name })
        let objects = try await ailment.machine().doctor(["--json"]).objects()
        #expect(!objects.contains { $0["id"] as? String == consequence })
    }

    /// An event mask cannot be read: what is masked shows by the reports that another adapter has.
    @Test(.row("W10")) func silenceIsThatOfTheAdapterWhereAnotherOneHears() async throws {
        let name = "silence where another adapter hears"
        let machine = try #require(Ailment.all.first { $0.description == name }).machine()
        func findings() async throws -> [String: String] {
            let objects = try await machine.doctor(["--json"]).objects()
            let reports = objects.filter { $0["name"] as? String == "reports" && $0["adapter"] as? String == "hci0" }
            let pairs = reports.map { (($0["id"] as? String) ?? "", ($0["text"] as? String) ?? "") }
            return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
        }
        let deaf = try await findings()
        #expect(deaf["deaf"]?.contains("hci1 has heard 120 reports") == true)
        #expect(deaf["deaf"]?.contains("node has a raw HCI socket") == true)
        machine.radio.openers = [SocketOpener(program: "node", kind: .raw, adapter: 1)]
        #expect(try await findings()["deaf"]?.contains("node") == false)
        // A scan of others shows as well that the air is not silent; reports without data do not.
        machine.radio.adapters[1].scan = nil
        machine.radio.adapters[1].before = HeardFacts(milliseconds: 1000, reports: 3, empty: 1, legacy: 3, addresses: 1)
        #expect(try await findings().keys.sorted() == ["deaf"])
        machine.radio.adapters[1].before?.empty = 3
        #expect(try await findings().keys.sorted() == ["silence"])
    }

    /// Reports that arrive are not masked, whatever the kernel and the controller.
    @Test func whatIsHeardIsNotMasked() async throws {
        let machine = try FakeMachine()
        try machine.write("proc/sys/kernel/osrelease", "7.2.0-1-amd64\n")
        try machine.usb("hci0", "2357:0604", control: "on", status: "active")
        let hearing = try await machine.doctor(["--json"])
        #expect(!hearing.output.contains("masked-reports"))
        machine.radio.adapters[0].scan = nil
        let unknown = try await machine.doctor(["--json"])
        #expect(unknown.output.contains("masked-reports"))
    }

    /// The kernel's messages from the set-up of an adapter are soon gone; the identifiers of its device stay.
    @Test(
        .row("W13"),
        arguments: [
            ("usb:v8087p0029d0001dcE0dsc01dp01icE0isc01ip01in00", true),
            ("usb:v8087p0032d0000dcE0dsc01dp01icE0isc01ip01in00", false),
        ]) func aCodedPHYThatDoesNotWorkIsNamedByTheDevice(_ modalias: String, _ isDefective: Bool) async throws
    {
        let machine = try FakeMachine()
        try machine.usb("hci0", "8087:0029", control: "on", status: "active")
        let interface = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-hci0/1-hci0:1.0"
        try machine.write(interface + "/modalias", modalias + "\n")
        let outcome = try await machine.doctor()
        let remark = "coded PHY (which the kernel's driver takes for broken on this controller)"
        #expect(outcome.output.contains(remark) == isDefective)
    }

    /// Only the kernel can have begun a scan with legacy commands where no program has a raw socket.
    @Test func aScannerWithLegacyCommandsIsNotTheKernel() async throws {
        let name = "a kernel that scans with legacy commands where extended ones are listed"
        let machine = try #require(Ailment.all.first { $0.description == name }).machine()
        machine.radio.openers?.append(SocketOpener(program: "hcitool", kind: .raw, adapter: 0))
        #expect(try await !machine.doctor(["--json"]).output.contains("masked-reports"))
        machine.radio.openers = nil
        #expect(try await !machine.doctor(["--json"]).output.contains("masked-reports"))
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

    /// Words are not broken, and what goes on stands below the text. A remedy can be copied as one line.
    @Test(arguments: [40, 80, 120]) func findingsFitTheTerminal(_ width: Int) {
        let remedy = "sudo setcap cap_net_raw,cap_net_admin+ep \"$(command -v blescan)\""
        let text = "this process lacks CAP_NET_RAW, CAP_NET_ADMIN: no scan, no connection with parameters of one's own"
        let diagnosis = Diagnosis(lines: [
            Diagnosis.Line(
                check: .capabilities, finding: .fail("no-capability", text, adapter: "hci0", remedy: remedy)),
            Diagnosis.Line(check: .wireless, finding: .ok("wifi", "no Wi-Fi shares the antenna")),
        ])
        let lines = DoctorScreen(diagnosis: diagnosis, width: width).lines.map(\.plain)
        #expect(lines.contains("      → " + remedy))
        let others = lines.filter { !$0.contains("→") }
        #expect(others.allSatisfy { $0.count <= width }, "\(others)")
        #expect(lines[0].hasPrefix("FAIL  hci0: this process lacks"))
        #expect(lines[1].hasPrefix("      ") && !lines[1].contains("→") || width == 120)
        let words = others.joined(separator: " ").split(separator: " ").joined(separator: " ")
        #expect(words.contains(text) && words.hasSuffix("`blescan doctor --report` masks addresses and names."))
        let whole = DoctorScreen(diagnosis: diagnosis).lines.map(\.plain)
        #expect(whole[0] == "FAIL  hci0: " + text)
        #expect(whole.count == 4)
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
        #expect(nowhere.errors.contains("/nowhere: no such folder"))
    }

    @Test func aMalformedBluetoothFileIsReported() async throws {
        let machine = try FakeMachine()
        try machine.write("bluetooth.json", "{}")
        let outcome = try await BuiltProgram.run(["doctor", "--root", machine.root.path])
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("bluetooth.json"))
    }

    @Test func anAdapterThatIsNotThereIsReported() async throws {
        let machine = try FakeMachine()
        let outcome = try await machine.doctor(["--adapter", "hci7"])
        #expect(outcome.status == 69)
        #expect(outcome.errors.contains("there is no hci7") && outcome.errors.contains("hci0"))
    }
}
