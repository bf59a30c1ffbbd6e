import Foundation
import Testing

@testable import blescan

/// `--fix` as far as files show it; the kernel tests switch real adapters.
@Suite struct FixTests {
    private func soft(_ machine: FakeMachine, _ name: String = "hci0") throws -> String {
        try String(contentsOf: machine.root.appending(path: "sys/class/rfkill/rfkill-\(name)/soft"), encoding: .utf8)
    }

    @Test func nothingIsChangedUnasked() async throws {
        let machine = try FakeMachine()
        try machine.rfkill("hci0", soft: true, hard: false)
        #expect(try await machine.doctor().status == 69)
        #expect(try soft(machine) == "1\n")
    }

    @Test func theBlockIsLiftedAndSaid() async throws {
        let machine = try FakeMachine()
        try machine.rfkill("hci0", soft: true, hard: false)
        try machine.rfkill("hci1", soft: true, hard: true)
        try machine.write("sys/class/rfkill/rfkill-phy0/type", "wlan\n")
        try machine.write("sys/class/rfkill/rfkill-phy0/soft", "1\n")
        let outcome = try await machine.doctor(["--fix", "rfkill"])
        #expect(try soft(machine).hasPrefix("0"))
        #expect(try soft(machine, "hci1").hasPrefix("0"))
        #expect(try soft(machine, "phy0") == "1\n")
        #expect(outcome.output.hasPrefix("fix   unblocked the radio\n"))
        // The screen shows the present state: the machine's own switch is still on.
        #expect(outcome.output.contains("hci1 is blocked by a switch of the machine"))
        #expect(!outcome.output.contains("hci0 is blocked"))
        #expect(outcome.status == 69)
    }

    @Test func whatNeedsNoRepairIsLeftAlone() async throws {
        let machine = try FakeMachine()
        let outcome = try await machine.doctor(["--fix", "rfkill", "--json"])
        #expect(outcome.status == 0)
        #expect(outcome.output.hasPrefix(#"{"v":1,"fix":"rfkill","done":true,"text":"nothing to unblock"}"# + "\n"))
    }

    /// A kernel file that contains 1 and accepts no write, not even from root, simulates the switch.
    @Test func aBlockThatStaysIsAFailure() async throws {
        let machine = try FakeMachine()
        try machine.link("sys/class/rfkill/rfkill-hci0/soft", to: "/sys/class/net/lo/ifindex")
        let outcome = try await machine.doctor(["--fix", "rfkill"])
        #expect(outcome.status == 77)
        #expect(outcome.output.hasPrefix("FAIL  could not unblock the radio: open: Permission denied (13)\n"))
        #expect(outcome.output.contains("hci0 is blocked by software"))
    }

    @Test func wrongUsagePrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["doctor", "--fix", "everything"],
            ["doctor", "--fix", "up", "--root", "/"],
            ["doctor", "--root", "/nowhere"],
            ["doctor", "--no-scan", "--for", "5s"],
            ["doctor", "--for", "soon"],
            ["doctor", "--adapter", "usb1"],
            ["doctor", "--connect", "kitchen lamp"],
            ["doctor", "--connect", "demo:toaster", "--root", "/"],
            ["doctor", "--record", "session.btsnoop"],
            ["doctor", "hci0"],
        ])
        try Golden.expect(session, matches: "doctor-wrong-usage.txt")
    }
}
