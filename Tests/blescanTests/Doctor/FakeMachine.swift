import BLECore
import BareBLE
import Foundation
import TestSupport

@testable import blescan

/// A directory of files that simulates a machine: `blescan doctor --root` takes it for /proc, /sys, /dev and the
/// sockets.
///
/// A new one has no fault; each test adds the fault that it is about.
final class FakeMachine {
    let root: URL
    /// The responses of the sockets; written by `write()`.
    var radio: RadioFacts

    init() throws {
        root = FileManager.default.temporaryDirectory.appending(path: "machine-\(UUID().uuidString)")
        radio = RadioFacts(adapters: [.healthy], openers: [])
        try write("proc/sys/kernel/osrelease", "6.1.0-50-amd64\n")
        try write("proc/sys/kernel/hostname", "annas-laptop\n")
        try write("proc/self/status", "Name:\tblescan\nCapEff:\t0000000000003000\nSeccomp:\t0\n")
        try write("proc/self/uid_map", "         0          0 4294967295\n")
        try write("proc/1/comm", "systemd\n")
        try write("proc/net/l2cap", "sk               RefCnt Rmem   Wmem   User   Inode  Parent\n")
        try write("sys/module/bluetooth/parameters/disable_esco", "N\n")
        try link("proc/1/ns/net", to: "net:[4026531840]")
        try link("proc/self/ns/net", to: "net:[4026531840]")
        try rfkill("hci0", soft: false, hard: false)
        try usb("hci0", "0a5c:21e8", control: "on", status: "active")
        try write("dev/kmsg", "6,1,100,-;Bluetooth: Core ver 2.22\n6,2,200,-;usb 1-1: new device\n")
    }

    deinit {
        try? FileManager.default.removeItem(at: root)
    }

    func write(_ path: String, _ text: String) throws {
        let file = root.appending(path: path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: file, atomically: true, encoding: .utf8)
    }

    func link(_ path: String, to destination: String) throws {
        let file = root.appending(path: path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try? FileManager.default.removeItem(at: file)
        try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: destination)
    }

    func remove(_ path: String) throws {
        try FileManager.default.removeItem(at: root.appending(path: path))
    }

    func rfkill(_ name: String, soft: Bool, hard: Bool) throws {
        for (file, text) in [
            ("type", "bluetooth"), ("name", name), ("soft", soft ? "1" : "0"), ("hard", hard ? "1" : "0"),
        ] {
            try write("sys/class/rfkill/rfkill-\(name)/\(file)", text + "\n")
        }
    }

    /// The USB device of an adapter, in the folders of the kernel: the adapter is below the interface of its driver.
    func usb(_ adapter: String, _ identifier: String, control: String, status: String) throws {
        let device = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-\(adapter)"
        let interface = device + "/1-\(adapter):1.0"
        let parts = identifier.split(separator: ":")
        for (file, text) in [
            ("idVendor", String(parts[0])), ("idProduct", String(parts[1])), ("power/control", control),
            ("power/runtime_status", status),
        ] {
            try write("\(device)/\(file)", text + "\n")
        }
        try write("\(interface)/bluetooth/\(adapter)/uevent", "DEVTYPE=host\n")
        try link("\(interface)/bluetooth/\(adapter)/device", to: "../../../1-\(adapter):1.0")
        try link("sys/class/bluetooth/\(adapter)", to: "../../../\(interface)/bluetooth/\(adapter)")
    }

    /// Puts the adapter on a bus without readable files.
    func moveAdapter(to bus: String) throws {
        radio.adapters[0].bus = bus
        try remove("sys/class/bluetooth/hci0")
    }

    /// The kernel's log of these messages, after the line about the core.
    func kernelLog(_ messages: String) throws {
        let lines = messages.split(separator: "\n").enumerated().map { "6,\($0 + 10),\($0 + 1000),-;\($1)\n" }
        try write("dev/kmsg", "6,1,100,-;Bluetooth: Core ver 2.22\n" + lines.joined())
    }

    /// The kernel's list of channels, which is for root.
    func channels(_ lines: String) throws { try write("sys/kernel/debug/bluetooth/l2cap", lines + "\n") }

    /// Root's directory of bonds, with these.
    func bonds(_ records: [BondRecord]) throws -> BondStore {
        let folder = root.appending(path: "var/lib/bareble")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let store = try BondStore(directory: folder.appending(path: "bonds").path)
        let adapter = BluetoothAddress(AdapterFacts.healthy.address) ?? .zero
        for record in records { _ = try store.open(adapter: adapter).save(record, isForStorage: true) }
        return store
    }

    /// Gives a file in root's directory of bonds a mode that only its owner can use.
    func bondFile(_ name: String, _ text: String) throws {
        try write("var/lib/bareble/bonds/" + name, text)
        try setMode("var/lib/bareble/bonds/" + name, 0o600)
    }

    func setMode(_ path: String, _ mode: Int) throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: mode], ofItemAtPath: root.appending(path: path).path)
    }

    /// The kernel's list of keys, which is for root.
    func keys(_ lines: [String]) throws {
        try write("sys/kernel/debug/bluetooth/hci0/long_term_keys", lines.map { $0 + "\n" }.joined())
    }

    func wireless(_ name: String, driver: String, state: String) throws {
        try write("sys/class/net/\(name)/wireless/status", "")
        try write("sys/class/net/\(name)/operstate", state + "\n")
        try link("sys/class/net/\(name)/device/driver", to: "../../../bus/drivers/\(driver)")
    }

    /// Runs `blescan doctor` on the machine.
    func doctor(_ arguments: [String] = []) async throws -> Outcome {
        try write("bluetooth.json", String(decoding: JSONEncoder().encode(radio), as: UTF8.self))
        return try await BuiltProgram.run(["doctor", "--root", root.path] + arguments)
    }
}

extension AdapterFacts {
    /// On, with LE, used by no other program, and receiving advertisements.
    static let healthy = AdapterFacts(
        index: 0, name: "hci0", address: "5C:F3:70:9B:1A:02", isUp: true, isRunning: true, bus: "usb",
        management: ManagementFacts(version: 9, company: 15, supported: 0xBEFF, current: 0x0A81),
        controller: ControllerFacts(
            version: VersionFacts(hciRevision: 0x1000, company: 15, linkSubversion: 0x220E), features: 0x1961,
            listsExtendedScan: true, acceptListSize: 32, resolvingListSize: 8, bufferLength: 251,
            bufferCount: 15),
        before: HeardFacts(milliseconds: 1000),
        scan: ScanFacts(
            isExtended: true,
            steps: [0x2041, 0x2042, 0x2042].map { CommandResult(command: $0, status: 0) },
            heard: HeardFacts(milliseconds: 3000, reports: 120, empty: 6, legacy: 90, addresses: 14)),
        links: [])
}
