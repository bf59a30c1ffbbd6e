import BLECore
import BareBLE
import TestSupport

@testable import blescan

/// A machine with one fault, and the finding that must name it.
struct Ailment: Sendable, CustomStringConvertible {
    let description: String
    /// The expected finding; `nil` if there is no fault.
    let id: String?
    var arguments: [String] = []
    let afflict: @Sendable (FakeMachine) throws -> Void

    init(
        _ description: String, _ id: String?, arguments: [String] = [],
        _ afflict: @escaping @Sendable (FakeMachine) throws -> Void = { _ in }
    ) {
        self.description = description
        self.id = id
        self.arguments = arguments
        self.afflict = afflict
    }

    /// Returns the machine with the fault.
    func machine() throws -> FakeMachine {
        let machine = try FakeMachine()
        try afflict(machine)
        return machine
    }

    private static func closeSockets(_ machine: FakeMachine, _ number: Int32) {
        machine.radio = RadioFacts(controllerSocket: number, managementSocket: number, linkSocket: number)
    }

    private static func may(_ machine: FakeMachine, _ capabilities: String) throws {
        try machine.write("proc/self/status", "CapEff:\t\(capabilities)\nSeccomp:\t0\n")
        // Without CAP_NET_RAW neither other programs' sockets nor the controller can be examined.
        guard capabilities.suffix(4) < "2000" else { return }
        machine.radio.openers = nil
        machine.radio.adapters[0].controller = nil
        machine.radio.adapters[0].before = nil
        machine.radio.adapters[0].scan = nil
    }

    static func switchOff(_ machine: FakeMachine) {
        machine.radio.adapters[0].isUp = false
        machine.radio.adapters[0].isRunning = false
        machine.radio.adapters[0].management?.current = 0x0A80
        machine.radio.adapters[0].controller = nil
        machine.radio.adapters[0].before = nil
        machine.radio.adapters[0].scan = nil
    }

    /// Adds one that works.
    static func addAdapter(_ machine: FakeMachine) {
        var second = AdapterFacts.healthy
        second.index = 1
        second.name = "hci1"
        second.address = "5C:F3:70:9B:1A:03"
        machine.radio.adapters.append(second)
    }

    static func hear(_ machine: FakeMachine, reports: Int) {
        machine.radio.adapters[0].before = HeardFacts(
            milliseconds: 1000, reports: reports, empty: 0, legacy: reports, addresses: 3)
        machine.radio.adapters[0].scan = nil
    }

    private static let ofMachines = [
        Ailment("all is well", nil),
        Ailment("no Bluetooth in the kernel", "no-bluetooth") {
            closeSockets($0, 97)
            try $0.remove("sys/module/bluetooth")
            try $0.remove("sys/class/bluetooth")
        },
        Ailment("a container with its own network", "container") {
            closeSockets($0, 97)
            try $0.write(".dockerenv", "")
        },
        Ailment("another network namespace", "container") {
            closeSockets($0, 97)
            try $0.link("proc/self/ns/net", to: "net:[4026532281]")
        },
        Ailment("a filter of system calls", "filter") {
            closeSockets($0, 1)
            try $0.write("proc/self/status", "CapEff:\t0000000000003000\nSeccomp:\t2\n")
        },
        Ailment("users of its own", "user-namespace") {
            try $0.write("run/.containerenv", "")
            try $0.write("proc/self/uid_map", "         0       1000          1\n")
        },
        Ailment("no capability", "no-capability") { try may($0, "0000000000000000") },
        Ailment("CAP_NET_RAW alone", "no-net-admin") { try may($0, "0000000000002000") },
        Ailment("no adapter", "no-adapter") { $0.radio.adapters = [] },
        Ailment("no address", "no-address") { $0.radio.adapters[0].address = "00:00:00:00:00:00" },
        Ailment("two adapters with one address", "same-address") {
            var second = AdapterFacts.healthy
            second.index = 1
            second.name = "hci1"
            $0.radio.adapters.append(second)
        },
        Ailment("rfkill by software", "rfkill-soft") {
            try $0.rfkill("hci0", soft: true, hard: false)
            switchOff($0)
        },
        Ailment("rfkill by a switch", "rfkill-hard") {
            try $0.rfkill("hci0", soft: false, hard: true)
            switchOff($0)
        },
        Ailment("switched off", "down") { switchOff($0) },
        Ailment("just plugged in", "down") {
            switchOff($0)
            $0.radio.adapters[0].isRunning = true
        },
        Ailment("LE off", "le-off") { $0.radio.adapters[0].management?.current = 0x0881 },
        Ailment("no LE", "no-le") {
            $0.radio.adapters[0].management?.supported = 0xBCFF
            $0.radio.adapters[0].management?.current = 0x0881
        },
        Ailment("pairing is possible", nil) {
            try $0.channels("5C:F3:70:9B:1A:02 (1) 00:00:00:00:00:00 (0) 4 0 0x0006 0x0000 672 0 0 0")
        },
        Ailment("switched on before it was managed", "pairing-off") {
            // Only the other adapter's Security Manager is there, and a channel for ATT.
            try $0.channels(
                """
                5C:F3:70:9B:1A:03 (1) 00:00:00:00:00:00 (0) 4 0 0x0006 0x0000 672 0 0 0
                5C:F3:70:9B:1A:02 (1) D1:00:00:00:00:01 (2) 1 0 0x0004 0x0004 672 672 1 0
                """)
        },
        Ailment("left bondable", "bondable") { $0.radio.adapters[0].management?.current = 0x0A91 },
        Ailment("the second adapter is off, which is no failure", "down") {
            switchOff($0)
            var off = $0.radio.adapters[0]
            off.index = 1
            off.name = "hci1"
            off.address = "5C:F3:70:9B:1A:03"
            $0.radio.adapters = [.healthy, off]
        },
        Ailment("the second adapter is off, and is asked for", "down", arguments: ["--adapter", "hci1"]) {
            switchOff($0)
            var off = $0.radio.adapters[0]
            off.index = 1
            off.name = "hci1"
            off.address = "5C:F3:70:9B:1A:03"
            $0.radio.adapters = [.healthy, off]
        },
        Ailment("bluetoothd", "bluetoothd") {
            try $0.write("proc/812/comm", "bluetoothd\n")
            $0.radio.openers = [SocketOpener(program: "bluetoothd", kind: .management)]
        },
        Ailment("another program's raw socket", "raw-socket") {
            $0.radio.openers = [SocketOpener(program: "hcidump\u{1B}[2J", kind: .raw, adapter: 0)]
        },
        Ailment("another program's management socket", "management-socket") {
            // Each socket is listed; its program is named once.
            $0.radio.openers = [SocketOpener](
                repeating: SocketOpener(program: "btmgmt", kind: .management), count: 2)
        },
        Ailment("another program's user channel", "taken") {
            $0.radio.openers = [SocketOpener(program: "bumble", kind: .user, adapter: 0)]
            switchOff($0)
            $0.radio.adapters[0].management = nil
        },
        Ailment("a controller that does not respond", "no-response") {
            $0.radio.adapters[0].controller = ControllerFacts(failures: [
                CommandResult(command: 0x2003, status: nil)
            ])
            $0.radio.adapters[0].scan = nil
        },
        Ailment("extended features without the commands", "mixed-features") {
            $0.radio.adapters[0].controller?.listsExtendedScan = false
        },
        Ailment("somebody else scans", "foreign-scan") {
            $0.radio.openers = [SocketOpener(program: "hcitool", kind: .raw, adapter: 0)]
            hear($0, reports: 31)
        },
        Ailment("the kernel scans for a connect", "kernel-scan") {
            try $0.write("proc/net/l2cap", "sk               RefCnt Rmem\n0000000000000000 2      0\n")
            hear($0, reports: 2)
        },
        Ailment("a stale scan", "stale-scan") { hear($0, reports: 1) },
        Ailment("legacy commands where extended ones were used", "disallowed") {
            $0.radio.adapters[0].scan = ScanFacts(
                isExtended: true, steps: [CommandResult(command: 0x2041, status: 0x0C)])
        },
        Ailment("a controller that refuses to scan", "scan-refused") {
            $0.radio.adapters[0].scan = ScanFacts(
                isExtended: false,
                steps: [CommandResult(command: 0x200B, status: 0), CommandResult(command: 0x200C, status: 0x12)])
        },
        Ailment("a controller that stops responding", "no-response") {
            $0.radio.adapters[0].scan = ScanFacts(
                isExtended: false, steps: [CommandResult(command: 0x200B, status: nil)])
        },
        Ailment("silence", "silence") {
            $0.radio.adapters[0].scan?.heard = HeardFacts(milliseconds: 3000)
        },
        Ailment("silence where another adapter hears", "deaf") {
            $0.radio.adapters[0].scan?.heard = HeardFacts(milliseconds: 3000)
            addAdapter($0)
            $0.radio.openers = [SocketOpener(program: "node", kind: .raw, adapter: 0)]
        },
        Ailment("empty reports", "empty-reports") {
            $0.radio.adapters[0].scan?.heard = HeardFacts(
                milliseconds: 1500, reports: 12, empty: 12, legacy: 12, addresses: 1)
        },
        Ailment("links in use", "links-in-use") {
            $0.radio.adapters[0].links = [
                LinkFacts(handle: 0x40, address: "D1:00:00:00:00:01", isCentral: true),
                LinkFacts(handle: 0x41, address: "D1:00:00:00:00:02", isCentral: false),
            ]
        },
        Ailment("a kernel with a fault", "kernel-fault") {
            try $0.write("proc/sys/kernel/osrelease", "6.1.0-56-amd64\n")
        },
        Ailment("a newer kernel", "kernel-fault") {
            try $0.write("proc/sys/kernel/osrelease", "6.12.57+deb13-amd64\n")
            try may($0, "0000000000000000")
        },
        Ailment("a kernel log with trouble", "kernel-log") {
            try $0.write(
                "dev/kmsg",
                """
                3,10,1000,-;Bluetooth: hci0: Opcode 0x200c failed: -16
                3,11,1001,-;Bluetooth: hci0: command 0x200c tx timeout
                6,12,1002,-;usb 1-1: device firmware changed
                3,13,1003,-;Bluetooth: hci0: Opcode 0x200c failed: -16
                3,14,1004,-;Bluetooth: hci1: Frame reassembly failed (-84)
                3,15,1005,-;bluetooth hci0: Direct firmware load for brcm/BCM20702A1.hcd failed with error -2
                3,16,1006,-;Bluetooth: hci0: hardware error 0x35

                """)
        },
        Ailment("a kernel log without a reason of its own", "kernel-log") {
            // Forms that name no file, or belong to no adapter of now.
            try $0.kernelLog(
                """
                Bluetooth: hci0: BCM: firmware Patch file not found, tried:
                Bluetooth: hci7: CSR: Unbranded CSR clone detected; adding workarounds and force-suspending once...
                """)
        },
        Ailment("no kernel log", nil) { try $0.remove("dev/kmsg") },
        Ailment("Wi-Fi on the same chip", "combo-chip") {
            try $0.wireless("wlan0", driver: "brcmfmac", state: "up")
        },
        Ailment("Wi-Fi on another chip", nil) { try $0.wireless("wlan0", driver: "iwlwifi", state: "up") },
        Ailment("a bond, whose key the kernel has", nil) {
            _ = try $0.bonds([RecordedBonds.first])
            try $0.keys([
                "C6:55:44:33:22:11 (type 2) 1 0x03 16 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e"
            ])
        },
        Ailment("a bond, before its key is loaded", nil) {
            _ = try $0.bonds([RecordedBonds.first])
            try $0.keys([])
        },
        Ailment("a kernel with other keys", "bonds-not-loaded") {
            _ = try $0.bonds([RecordedBonds.first])
            try $0.keys([
                "D1:00:00:00:00:01 (type 2) 1 0x03 16 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e"
            ])
        },
        Ailment("a bond that the peer has lost", "bond-rejected") {
            let store = try $0.bonds([RecordedBonds.first])
            let adapter = BluetoothAddress(AdapterFacts.healthy.address) ?? .zero
            _ = try store.open(adapter: adapter).markRejected(RecordedBonds.phone, at: 1_790_000_002)
        },
        Ailment("a bond whose level is more than its key is worth", "bond-unusable") {
            _ = try $0.bonds([])
            let record = BondRecord(
                identity: RecordedBonds.phone, keys: RecordedBonds.legacy, level: .secureConnections,
                method: .passkeyTyped, bondedAt: 1_790_000_000)
            let file = BondFile(generation: 1, records: [record])
            try $0.bondFile("5CF3709B1A02.bonds", String(decoding: file.bytes, as: UTF8.self))
            // Nor does the kernel have its key.
            try $0.keys([
                "D1:00:00:00:00:01 (type 2) 1 0x03 16 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e"
            ])
        },
        Ailment("two bonds with one key of private addresses", "bond-addresses") {
            var twin = RecordedBonds.numbered(1)
            twin.identityKey = RecordedBonds.first.identityKey
            _ = try $0.bonds([RecordedBonds.first, twin])
        },
        Ailment("a damaged file of bonds", "bonds-damaged") {
            _ = try $0.bonds([])
            try $0.bondFile("5CF3709B1A02.bonds", "nonsense\n")
        },
        Ailment("a file of bonds that was moved aside", "bonds-moved") {
            _ = try $0.bonds([RecordedBonds.first])
            try $0.bondFile("5CF3709B1A02.bonds.damaged", "nonsense\n")
        },
        Ailment("bonds that others may replace", "bonds-refused") {
            _ = try $0.bonds([RecordedBonds.first])
            try $0.setMode("var/lib/bareble/bonds", 0o777)
        },
    ]

    static let all = ofMachines + ofControllers
}
