import Glibc
import Testing

@testable import BLELinux

/// A directory of files that stands in for a part of /proc or /sys, and goes with its owner.
private struct FakeTree: ~Copyable {
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

    deinit {
        for entry in made.reversed() { unsafe remove(entry) }
        unsafe remove(path)
    }
}

@Suite("Files of the kernel") struct SystemFilesTests {
    @Test func textAndNames() {
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

    @Test func radioSwitches() {
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

    @Test func privileges() {
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

    @Test func thisProcess() {
        if geteuid() == 0, Privileges.current().isInInitialUserNamespace {
            // Root may have been stripped of capabilities, but the file must have been understood.
            #expect(SystemFiles.text("/proc/self/status")?.contains("CapEff:") == true)
        }
    }
}
