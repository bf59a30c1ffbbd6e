import Glibc
import TestSupport
import Testing

@testable import BLELinux

/// A directory of files that stands in for a part of /proc or /sys, and goes with its owner.
struct FakeTree: ~Copyable {
    let path: String
    private var made: [String] = []

    init() {
        var template = Array("/tmp/bareble-tests-XXXXXX".utf8CString)
        path = unsafe String(cString: mkdtemp(&template))
    }

    mutating func write(_ file: String, _ text: String) {
        var directory = path
        for part in file.split(separator: "/").dropLast() {
            directory += "/\(part)"
            if unsafe mkdir(directory, 0o755) == 0 { made.append(directory) }
        }
        let name = "\(path)/\(file)"
        let number = unsafe creat(name, 0o644)
        let bytes = Array(text.utf8)
        #expect(unsafe Glibc.write(number, bytes, bytes.count) == bytes.count)
        close(number)
        made.append(name)
    }

    mutating func link(_ file: String, to target: String) {
        let name = "\(path)/\(file)"
        #expect(unsafe symlink(target, name) == 0)
        made.append(name)
    }

    deinit {
        for entry in made.reversed() { unsafe remove(entry) }
        unsafe remove(path)
    }
}

@Suite("Files of the kernel") struct SystemFilesTests {
    @Test func filesAreReadUpToALimitAndListedByName() {
        var tree = FakeTree()
        tree.write("one", "hello\n")
        tree.write("two", "")
        tree.write("large", String(repeating: "x", count: 70_000))
        #expect(SystemFiles.names(in: tree.path) == ["large", "one", "two"])
        #expect(SystemFiles.text("\(tree.path)/one") == "hello")
        #expect(SystemFiles.text("\(tree.path)/two") == "")
        #expect(SystemFiles.text("\(tree.path)/large")?.count == 65536)
        #expect(SystemFiles.text("\(tree.path)/three") == nil)
        #expect(SystemFiles.text(tree.path) == nil)
        #expect(SystemFiles.names(in: "\(tree.path)/four") == [])
    }

    @Test func theSwitchesOfBluetoothAreRead() {
        var tree = FakeTree()
        for (entry, type, name, soft, hard) in [
            ("rfkill0", "wlan", "phy0", "1", "0"), ("rfkill1", "bluetooth", "hci0", "1", "0"),
            ("rfkill7", "bluetooth", "tpacpi_bluetooth_sw", "0", "1"), ("rfkill8", "bluetooth", "hci1", "0", "0"),
        ] {
            tree.write("\(entry)/type", "\(type)\n")
            tree.write("\(entry)/name", "\(name)\n")
            tree.write("\(entry)/soft", "\(soft)\n")
            tree.write("\(entry)/hard", "\(hard)\n")
        }
        let switches = RadioSwitch.bluetooth(root: tree.path)
        #expect(
            switches == [
                RadioSwitch(name: "hci0", isSoftBlocked: true, isHardBlocked: false),
                RadioSwitch(name: "tpacpi_bluetooth_sw", isSoftBlocked: false, isHardBlocked: true),
                RadioSwitch(name: "hci1", isSoftBlocked: false, isHardBlocked: false),
            ])
        #expect(switches.map(\.isBlocked) == [true, true, false])
        #expect(RadioSwitch.bluetooth(root: "\(tree.path)/missing") == [])
    }

    /// The machine's own switch stays, and so do other radios.
    @Test func onlyTheSoftBlockOfBluetoothIsLifted() throws {
        var tree = FakeTree()
        for (entry, type, soft, hard) in [
            ("rfkill0", "wlan", "1", "0"), ("rfkill1", "bluetooth", "1", "0"), ("rfkill2", "bluetooth", "0", "1"),
        ] {
            tree.write("\(entry)/type", "\(type)\n")
            tree.write("\(entry)/name", "\(entry)\n")
            tree.write("\(entry)/soft", soft)
            tree.write("\(entry)/hard", hard)
        }
        try RadioSwitches(root: tree.path).unblock()
        #expect(RadioSwitch.bluetooth(root: tree.path).map(\.isBlocked) == [false, true])
        #expect(SystemFiles.text("\(tree.path)/rfkill0/soft") == "1")
        try RadioSwitches(root: "\(tree.path)/missing").unblock()
    }

    @Test func aSymbolicLinkIsResolvedAndNothingElse() {
        let own = SystemFiles.destination(ofLink: "/proc/self/exe")
        #expect(own?.hasPrefix("/") == true)
        #expect(SystemFiles.destination(ofLink: "/proc") == nil)
        #expect(SystemFiles.destination(ofLink: "/nowhere") == nil)
    }

    /// In the form that the kernel's documentation gives for /dev/kmsg: numbers, a semicolon, the text; details on
    /// lines that begin with a space.
    @Test func theKernelLogIsReadFromItsRecords() {
        var tree = FakeTree()
        let filling = String(repeating: "6,1,1,-;filling\n", count: 700)
        tree.write(
            "kmsg",
            "3,10,1000,-;Bluetooth: one; two\n SUBSYSTEM=bluetooth\n" + filling + "3,11,2000,-;Bluetooth: three\n")
        let log = KernelLog("\(tree.path)/kmsg")
        // Read as often as one likes.
        for _ in 1...2 {
            let wanted = log?.messages { $0.hasPrefix("Bluetooth") }
            #expect(wanted == ["Bluetooth: one; two", "Bluetooth: three"])
        }
        #expect(KernelLog("\(tree.path)/missing")?.messages { _ in true } == nil)
        #expect(KernelLog("\(tree.path)/kmsg")?.messages { _ in true }.count == 703)
        for count in [1200, 2700] {
            tree.write("many", String(repeating: "6,1,1,-;again\n", count: count) + "6,1,1,-;last\n")
            let newest = KernelLog("\(tree.path)/many")?.messages { _ in true }
            #expect(newest?.count == 1000 && newest?.last == "last")
        }
    }

    /// All families open, or none does: they come and go with the kernel's Bluetooth.
    @Test(.row("O30")) func socketFamiliesAreThereTogetherOrNotAtAll() {
        let families = SocketFamilies.current()
        if Controllers.isAddressFamilyAvailable {
            #expect(families.controller == 0)
        } else {
            #expect(families == SocketFamilies(controller: EAFNOSUPPORT, management: EAFNOSUPPORT, link: EAFNOSUPPORT))
        }
    }

    @Test func privilegesAreReadFromTheStatusFile() {
        var tree = FakeTree()
        tree.write(
            "status", "Name:\tx\nCapInh:\t0000000000000000\nCapEff:\t0000000000002000\nCapBnd:\t000001ffffffffff\n")
        tree.write("uid_map", "         0          0 4294967295\n")
        let scanning = Privileges.current(root: tree.path)
        #expect(scanning.effective == 0x2000)
        #expect(scanning.has(.netRaw))
        #expect(!scanning.has(.netAdmin))

        var container = FakeTree()
        container.write("status", "CapEff:\t000001ffffffffff\n")
        container.write("uid_map", "         0       1000          1\n")
        let contained = Privileges.current(root: container.path)
        #expect(contained.effective == 0x1FF_FFFF_FFFF)
        #expect(!contained.has(.netRaw))

        let nothing = Privileges.current(root: "\(tree.path)/missing")
        #expect(!nothing.has(.netAdmin))
        #expect(Privileges.effectiveCapabilities("CapEff: zz\n") == 0)
    }

    @Test func theStatusOfThisProcessIsRead() {
        if geteuid() == 0, Privileges.current().isInInitialUserNamespace {
            // Root may have been stripped of capabilities, but the file must have been understood.
            #expect(SystemFiles.text("/proc/self/status")?.contains("CapEff:") == true)
        }
    }
}
