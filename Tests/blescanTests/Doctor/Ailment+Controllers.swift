@testable import blescan

/// Machines with defects of real controllers. The kernel's messages and the contents of files are those of users'
/// reports, which each comment names; addresses of devices are left out.
extension Ailment {
    /// Makes the scan that of an adapter that accepts it and hears nothing.
    private static func silence(_ machine: FakeMachine) {
        machine.radio.adapters[0].scan?.heard = HeardFacts(milliseconds: 3000)
    }

    /// Makes the adapter a Realtek 8761BU with its firmware loaded.
    private static func realtek(_ machine: FakeMachine) {
        machine.radio.adapters[0].management?.version = 10
        machine.radio.adapters[0].management?.company = 93
        machine.radio.adapters[0].controller?.version = VersionFacts(
            hciRevision: 0xDFC6, company: 93, linkSubversion: 0xD922)
    }

    /// The set-up of an 8761BU, from a patch of 2024 to linux-bluetooth for 2c4e:0115, "Mercusys MA530".
    private static let realtekSetup = """
        Bluetooth: hci0: RTL: examining hci_ver=0a hci_rev=000b lmp_ver=0a lmp_subver=8761
        Bluetooth: hci0: RTL: rom_version status=0 version=1
        Bluetooth: hci0: RTL: loading rtl_bt/rtl8761bu_fw.bin
        Bluetooth: hci0: RTL: loading rtl_bt/rtl8761bu_config.bin
        Bluetooth: hci0: RTL: cfg_sz 6, total sz 30210
        Bluetooth: hci0: RTL: fw version 0xdfc6d922

        """

    static let ofControllers = [
        Ailment("a CSR clone", "clone") {
            // blueman-project/blueman issue 2510.
            try $0.kernelLog(
                """
                Bluetooth: hci0: CSR: Setting up dongle with HCI ver=9 rev=0810
                Bluetooth: hci0: LMP ver=9 subver=2312; manufacturer=10
                Bluetooth: hci0: CSR: Unbranded CSR clone detected; adding workarounds and force-suspending once...
                Bluetooth: hci0: HCI Delete Stored Link Key command is advertised, but not supported.
                Bluetooth: hci0: HCI Read Default Erroneous Data Reporting command is advertised, but not supported.
                Bluetooth: hci0: HCI Set Event Filter command not supported.
                """)
            try $0.usb("hci0", "0a12:0001", control: "auto", status: "active")
            $0.radio.adapters[0].address = "00:1A:7D:DA:71:13"
            $0.radio.adapters[0].management?.company = 10
            $0.radio.adapters[0].controller?.version = VersionFacts(
                hciRevision: 0x0810, company: 10, linkSubversion: 0x2312)
            silence($0)
        },
        Ailment("a CSR clone of another maker, which is off", "clone") {
            // README of AlexxIT/Jura.
            try $0.kernelLog(
                """
                Bluetooth: hci0: CSR: Setting up dongle with HCI ver=9 rev=0001; LMP ver=9 subver=0001; manufacturer=2279
                Bluetooth: hci0: CSR: Unbranded CSR clone detected; adding workarounds and force-suspending once...
                Bluetooth: hci0: CSR: Couldn't suspend the device for our Barrot 8041a02 receive-issue workaround
                """)
            try $0.usb("hci0", "0a12:0001", control: "on", status: "active")
            switchOff($0)
            $0.radio.adapters[0].management = nil
        },
        Ailment("a real CSR adapter", nil) {
            try $0.usb("hci0", "0a12:0001", control: "on", status: "active")
            $0.radio.adapters[0].management?.company = 10
            $0.radio.adapters[0].controller?.version = VersionFacts(
                hciRevision: 0x22BB, company: 10, linkSubversion: 0x22BB)
        },
        Ailment("an adapter with the identifier of CSR, whose versions are not read", "clone") {
            try $0.usb("hci0", "0a12:0001", control: "on", status: "active")
            $0.radio.adapters[0].management?.company = 10
            switchOff($0)
        },
        Ailment("a controller of Barrot before kernel 6.17.8", "barrot") {
            // ValveSoftware/SteamOS issue 2472.
            try $0.write("proc/sys/kernel/osrelease", "6.16.12-valve13-1-neptune-616\n")
            try $0.kernelLog("Bluetooth: hci0: Opcode 0x1005 failed: -110")
            try $0.usb("hci0", "33fa:0010", control: "on", status: "active")
            switchOff($0)
            $0.radio.adapters[0].management = nil
        },
        Ailment("an RTL8761B on kernel 7.2", "masked-reports") {
            // bluez/bluetooth-next pull requests 637 and 641.
            try $0.write("proc/sys/kernel/osrelease", "7.2.0-1-amd64\n")
            try $0.kernelLog(
                realtekSetup + """
                    Bluetooth: hci0: command 0x200c tx timeout
                    Bluetooth: hci0: Unable to disable scanning: -110
                    Bluetooth: hci0: Resetting usb device.
                    """)
            try $0.usb("hci0", "2357:0604", control: "on", status: "active")
            realtek($0)
            silence($0)
        },
        Ailment("an RTL8761B on kernel 7.1.9 without USB files, and without a scan", "masked-reports") {
            try $0.write("proc/sys/kernel/osrelease", "7.1.9\n")
            try $0.kernelLog(realtekSetup)
            try $0.moveAdapter(to: "uart")
            realtek($0)
            $0.radio.adapters[0].scan = nil
        },
        Ailment("an RTL8761B that refuses the extended scan on kernel 6.18.45", "masked-reports") {
            try $0.write("proc/sys/kernel/osrelease", "6.18.45+deb14-amd64\n")
            try $0.kernelLog(realtekSetup)
            realtek($0)
            $0.radio.adapters[0].scan = ScanFacts(
                isExtended: true, steps: [CommandResult(command: 0x2041, status: 0x0C)])
        },
        Ailment("a controller of Realtek on kernel 7.2 whose kind is not logged any more", "masked-reports") {
            try $0.write("proc/sys/kernel/osrelease", "7.2.0-1-amd64\n")
            realtek($0)
            silence($0)
        },
        Ailment("a kernel that scans with legacy commands where extended ones are listed", "masked-reports") {
            try $0.write("proc/812/comm", "bluetoothd\n")
            $0.radio.openers = [SocketOpener(program: "bluetoothd", kind: .management)]
            hear($0, reports: 12)
            $0.radio.adapters[0].before?.fromLegacyScan = 12
        },
        Ailment("a Raspberry Pi without an address", "unconfigured") {
            // RPi-Distro/pi-bluetooth issue 29 and agherzan/meta-raspberrypi issue 236; the messages are those of a
            // Raspberry Pi 5 in the same state, with kernel 6.12.
            try $0.write("proc/sys/kernel/osrelease", "6.12.47+rpt-rpi-2712\n")
            try $0.write("proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0")
            try $0.kernelLog(
                """
                Bluetooth: hci0: BCM4345C0 (003.001.025) build 0000
                Bluetooth: hci0: BCM4345C0 'brcm/BCM4345C0.raspberrypi,5-model-b.hcd' Patch
                Bluetooth: hci0: BCM: features 0x2f
                Bluetooth: hci0: BCM43455 37.4MHz Raspberry Pi 3+-0190
                Bluetooth: hci0: BCM4345C0 (003.001.025) build 0382
                Bluetooth: hci0: BCM: Using default device address (43:45:c0:00:1f:ac)
                """)
            try $0.moveAdapter(to: "uart")
            switchOff($0)
            $0.radio.adapters[0].address = "43:45:C0:00:1F:AC"
            $0.radio.adapters[0].management = nil
            $0.radio.adapters[0].configuration = ConfigurationFacts(company: 305, missing: 2)
        },
        Ailment("an adapter without a public address", "unconfigured") {
            switchOff($0)
            $0.radio.adapters[0].management = nil
            $0.radio.adapters[0].configuration = ConfigurationFacts(company: 29, missing: 2)
        },
        Ailment("an adapter that a program of its maker configures", "unconfigured") {
            switchOff($0)
            $0.radio.adapters[0].management = nil
            $0.radio.adapters[0].configuration = ConfigurationFacts(company: 29, missing: 1)
        },
        Ailment("an adapter that is not configured, and no more is known", "unconfigured") {
            switchOff($0)
            $0.radio.adapters[0].management = nil
            $0.radio.adapters[0].configuration = ConfigurationFacts()
        },
        Ailment("a default address that is in use", "default-address") {
            // balena-os/balena-raspberrypi issue 731.
            $0.radio.adapters[0].address = "AA:AA:AA:AA:AA:AA"
        },
        Ailment("a MediaTek controller whose set-up failed", "no-address") {
            // pop-os/linux issues 431 and 437.
            try $0.write("proc/sys/kernel/osrelease", "7.0.9-76070009-generic\n")
            try $0.kernelLog(
                """
                Bluetooth: hci0: HW/SW Version: 0x008a008a, Build Time: 20260106153735
                Bluetooth: hci0: Failed to send wmt func ctrl (-22)
                """)
            try $0.usb("hci0", "0e8d:0616", control: "on", status: "active")
            $0.radio.adapters[0].address = "00:00:00:00:00:00"
            switchOff($0)
            $0.radio.adapters[0].management = nil
        },
        Ailment("two imitations of CSR with one address", "same-address") {
            $0.radio.adapters[0].address = "00:1A:7D:DA:71:13"
            var second = $0.radio.adapters[0]
            second.index = 1
            second.name = "hci1"
            $0.radio.adapters.append(second)
            try $0.usb("hci1", "0a12:0001", control: "on", status: "active")
        },
        Ailment("a controller of Intel with a coded PHY that is not to be used", nil) {
            // The names of the files are those of linux-firmware; btintel.c logs them.
            try $0.kernelLog("Bluetooth: hci0: Found device firmware: intel/ibt-20-1-3.sfi")
            $0.radio.adapters[0].management?.company = 2
        },
        Ailment("USB autosuspend", "autosuspend") {
            try $0.usb("hci0", "8087:0aaa", control: "auto", status: "suspended")
        },
        Ailment("USB files that cannot be read", "autosuspend") { try $0.remove("sys/class/bluetooth/hci0") },
        Ailment("a kernel log of transfers, resets and early data", "kernel-log") {
            // A mail to linux-bluetooth about Intel AC9560, bluez/bluetooth-next pull request 637, an issue of
            // home-assistant/core about "ncmd = 0", and hci_core.c with the handle of MediaTek's firmware log.
            try $0.kernelLog(
                """
                Bluetooth: hci0: urb 0000000061b9a002 failed to resubmit (113)
                Bluetooth: hci0: Resetting usb device.
                Bluetooth: hci0: Resetting usb device.
                Bluetooth: hci0: Controller not accepting commands anymore: ncmd = 0
                Bluetooth: hci0: Injecting HCI hardware error event
                Bluetooth: hci0: hardware error 0x00
                Bluetooth: hci0: ACL packet for unknown connection handle 3585
                Bluetooth: hci0: ACL packet for unknown connection handle 3837
                Bluetooth: hci0: HCI Read Transmit Power Level command is advertised, but not supported.
                Bluetooth: hci0: HCI Enhanced Setup Synchronous Connection command is advertised, but not supported.
                Bluetooth: hci0: RTL: firmware file rtl_bt/rtl8761bu_fw not found
                """)
        },
    ]
}
