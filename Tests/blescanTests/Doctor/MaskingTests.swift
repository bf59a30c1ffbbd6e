import Foundation
import Testing

@testable import blescan

/// The masked parts of `--report`, and the remaining ones.
@Suite struct MaskingTests {
    private func masked(_ text: String, host: String = "annas-laptop") -> String {
        var masking = Masking(hostName: host)
        return masking.mask(text)
    }

    @Test func anAddressHasTheSameNumberEverywhere() {
        var masking = Masking(hostName: "")
        #expect(masking.mask("5C:F3:70:9B:1A:02 and c1:22:33:44:55:66") == "(address 1) and (address 2)")
        #expect(masking.mask("dev_C1_22_33_44_55_66/5c-f3-70-9b-1a-02") == "dev_(address 2)/(address 1)")
        #expect(masking.mask("00:00:00:00:00:00") == "00:00:00:00:00:00")
        #expect(masking.mask("12:34:56 is a time") == "12:34:56 is a time")
    }

    @Test func theHostAndItsUsersAreNotNamed() {
        #expect(masked("kernel 6.1.0-Annas-Laptop of annas-laptop.local") == "kernel 6.1.0-(host) of (host).local")
        #expect(masked("unix:/home/anna/peer.sock") == "unix:/home/(user)/peer.sock")
        #expect(masked("pi sits in a picture", host: "pi") == "(host) sits in a picture")
        #expect(masked("a.b or axb", host: "a.b") == "(host) or axb")
        #expect(masked("localhost", host: "localhost") == "localhost")
        #expect(masked("nothing", host: "") == "nothing")
    }

    /// Some of these signs may not follow a backslash in a regular expression, and some end no word.
    @Test(arguments: ["anna’s-box", "box–1", "☃", "🙂 box", "a*b(c", "-x", "東京", "pi"])
    func aHostIsNotNamedWhateverItsCharacters(_ host: String) {
        #expect(masked("kernel of \(host).local", host: host) == "kernel of (host).local")
    }

    @Test func programsAndQuotedNamesAreNotNamed() {
        var facts = SystemFacts()
        facts.radio.openers = ["anna-logger", "bluetoothd", "other", "anna-logger"].map {
            SocketOpener(program: $0, kind: .raw, adapter: 0)
        }
        facts.kernelMessages = [#"Bluetooth: input "Anna's Mouse" of 01:02:03:04:05:06 tx timeout"#]
        var masking = Masking(hostName: "")
        let masked = masking.mask(facts)
        #expect(
            masked.radio.openers?.map(\.program) == ["(program 1)", "bluetoothd", "(program 2)", "(program 1)"])
        #expect(masked.kernelMessages == [#"Bluetooth: input "(name)" of (address 1) tx timeout"#])
    }

    @Test(arguments: [[], ["--json"]]) func aReportContainsNoNamesOrAddresses(_ more: [String]) async throws {
        let machine = try FakeMachine()
        try machine.write("proc/sys/kernel/osrelease", "6.1.0-annas-laptop\n")
        try machine.write(
            "dev/kmsg", "3,1,1,-;Bluetooth: hci0: command 0x200c tx timeout for \"Anna's Mouse\" D1:00:00:00:00:01\n")
        machine.radio.openers = [SocketOpener(program: "anna-logger", kind: .raw, adapter: 0)]
        machine.radio.adapters[0].links = [LinkFacts(handle: 64, address: "D1:00:00:00:00:01", isCentral: true)]
        let outcome = try await machine.doctor(["--report"] + more)
        for secret in ["anna", "Anna", "Mouse", "D1:00", "5C:F3", machine.root.path] {
            #expect(!outcome.output.contains(secret), "\(secret)")
        }
        for mark in ["(host)", "(program 1)", "(address 1)", "(address 2)", "tx timeout"] {
            #expect(outcome.output.contains(mark), "\(mark)")
        }
        if more.isEmpty {
            try Golden.expect(outcome.output, matches: "doctor-report.txt")
        } else {
            let objects = try outcome.objects()
            #expect(objects.count == 17)
            #expect((objects.last?["kernel"] as? String)?.hasPrefix("6.1.0-") == true)
            #expect(objects.last?["version"] is String && objects.last?["architecture"] is String)
        }
    }
}
