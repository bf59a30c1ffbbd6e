import BLECore
import BLELinux
import Foundation
import Glibc
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

    @Test func theBlockIsLiftedAndReported() async throws {
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

    @Test func noFurtherAdapterIsSwitchedOffAfterAnInterrupt() async {
        var facts = SystemFacts()
        // No machine has so many.
        facts.radio.adapters = [
            AdapterFacts(
                index: 0xFFF0, name: "hci65520", address: Self.address.description, isUp: true, isRunning: true)
        ]
        let task = Task { [facts] in
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return await Repair.all(.cycle, facts, root: nil)
        }
        #expect(await task.value == [])
    }

    /// The program would leave an adapter off.
    @Test func aSecondSignalWaitsForTheLastStep() {
        var steps = Interrupt.Steps()
        var ends: [Bool] = []
        steps.begin()
        ends.append(steps.end())
        // Two adapters are off when the signal comes.
        steps.begin()
        steps.begin()
        ends.append(steps.wantEnd())
        ends.append(steps.end())
        ends.append(steps.end())
        // None is.
        ends.append(steps.wantEnd())
        #expect(ends == [false, false, false, true, true])
    }

    /// `--fix cycle` switches an adapter off and on, but not where a link would end.
    @Test(arguments: [0, 1, 2]) func anAdapterWithLinksIsNotSwitchedOff(count: Int) {
        let (repair, calls) = cycle(links: Array(repeating: 0x0040, count: count))
        guard count > 0 else {
            #expect(repair == Repair(fix: .cycle, adapter: "hci3", text: "switched off and on"))
            #expect(calls == ["off", "on"])
            return
        }
        #expect(calls.isEmpty)
        #expect(repair.failure == .timedOut)
        #expect(
            repair.text.hasPrefix(
                "could not switch it off and on: \(count == 1 ? "1 link is" : "2 links are") up, and would end;"))
        #expect(repair.text.contains("`sudo bareble-recover --with-links power hci3`"))
    }

    /// Which exit status a failure has.
    @Test(arguments: [(EPERM, blescan.ExitStatus.notPermitted), (ERFKILL, .noAdapter), (ENODEV, .noAdapter)])
    func aPowerCycleThatFailsReportsTheReason(errno: Int32, status: blescan.ExitStatus) {
        let (repair, calls) = cycle(failing: SystemCallError(call: "HCIDEVDOWN", errno: errno))
        #expect(repair.failure == status)
        #expect(repair.text.hasPrefix("could not switch it off and on: "))
        #expect(calls.isEmpty)
    }

    /// Nor does it in the middle of a step of another program; and `--fix up` leaves that to the other program.
    @Test func anAdapterThatAnotherProgramRecoversIsLeftAlone() throws {
        let (repair, calls) = cycle(isClaimed: true)
        #expect(calls.isEmpty)
        #expect(repair.failure == .timedOut)
        #expect(repair.text.hasPrefix("could not switch it off and on: another program takes a recovery step"))

        let facts = AdapterFacts(
            index: 3, name: "hci3", address: Self.address.description, isUp: false, isRunning: true)
        var count = 0
        let switchedOn = try Repair.switchOn(
            facts, claim: { _ throws(RecoveryFailure) in throw .underWay },
            power: { _ throws(SystemCallError) in count += 1 },
            describe: { _ throws(SystemCallError) in Self.info(isUp: false) })
        #expect(count == 0)
        #expect(switchedOn.failure == .timedOut)
        #expect(switchedOn.text.hasPrefix("could not switch it on: another program takes a recovery step"))

        let repaired = try Repair.switchOn(
            facts, claim: { _ in nil }, power: { _ throws(SystemCallError) in count += 1 },
            describe: { _ throws(SystemCallError) in Self.info(isUp: false) })
        #expect(count == 1)
        #expect(repaired == Repair(fix: .up, adapter: "hci3", text: "switched on"))
    }

    private static let address = BluetoothAddress(rawValue: 0x00AA_0100_0042)

    private static func info(isUp: Bool) -> ControllerInfo {
        ControllerInfo(index: 3, name: "hci3", address: address, isUp: isUp)
    }

    /// Switches the adapter of a pretended machine off and on.
    private func cycle(
        links: [ConnectionHandle] = [], failing failure: SystemCallError? = nil, isClaimed: Bool = false
    ) -> (repair: Repair, calls: [String]) {
        let calls = Lock<[String]>([])
        // What cannot be switched off is on.
        let recovery = AdapterRecovery(
            root: "/nowhere", list: { () throws(SystemCallError) in [Self.info(isUp: failure != nil)] },
            power: { _, isOn throws(SystemCallError) in
                if let failure { throw failure }
                calls.withLock { $0.append(isOn ? "on" : "off") }
            },
            claim: { _ throws(RecoveryFailure) in
                if isClaimed { throw .underWay }
                return nil
            },
            pause: { _ in })
        let facts = AdapterFacts(
            index: 3, name: "hci3", address: Self.address.description, isUp: true, isRunning: true)
        let repair = Repair.cycle(
            facts, by: recovery, handles: { _ throws(SystemCallError) in links },
            describe: { _ throws(SystemCallError) in Self.info(isUp: true) })
        return (repair, calls.withLock(\.self))
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
            ["doctor", "--connect", "demo:battery", "--report", "--record", "session.btsnoop"],
            ["doctor", "hci0"],
        ])
        try Golden.expect(session, matches: "doctor-wrong-usage.txt")
    }
}
