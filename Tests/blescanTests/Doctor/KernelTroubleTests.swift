import BLECore
import BLELinux
import TestSupport
import Testing

@testable import blescan

/// The known kernels, and the known ones of their messages.
@Suite struct KernelTroubleTests {
    @Test(
        arguments: [
            ("6.1.0-55-amd64", [.closesTwice]), ("6.1.0-56-cloud-amd64", [.closesTwice]),
            ("6.1.0-57-amd64", [.closesTwice]), ("6.1.0-54-amd64", []), ("6.1.192", []), ("6.9.12", []),
            ("6.10.0", [.hangsAfterScans]),
            ("6.12.57+deb13-amd64", [.hangsAfterScans]), ("6.18.45", [.hangsAfterScans]),
            ("6.19.0-1-amd64", [.hangsAfterScans, .looksForIdentities]),
            ("7.2.13-amd64", [.hangsAfterScans, .looksForIdentities]), ("5.15.0-1055-aws", []),
            ("unknown", []), ("", []),
        ] as [(String, [KernelFault])])
    func theKnownFaultsOfAReleaseAreRecognized(_ release: String, _ faults: [KernelFault]) {
        #expect(KernelFault.all(of: release) == faults)
    }

    /// The kernel's own connect is to the identity of a bonded peer, from 6.19 on.
    @Test(
        arguments: [
            ("6.18.45", 0, true, false), ("6.19.0", 0, true, true), ("6.19.0", 0, false, false),
            ("7.2.13-amd64", 0x1000, true, true), ("7.2.13-amd64", 0x2000, true, false),
        ] as [(String, UInt64, Bool, Bool)])
    func connectsToPrivateAddressesNeedCommandsOnNewKernels(
        _ release: String, _ capabilities: UInt64, _ isPrivate: Bool, _ isFound: Bool
    ) {
        var facts = SystemFacts()
        facts.kernelRelease = release
        facts.privileges = Privileges(effective: capabilities)
        facts.kernelMessages = []
        facts.bonds = BondFacts(
            directory: "/bonds",
            bonds: [
                BondFacts.Bond(
                    peer: RecordedBonds.phone, adapter: .zero, isRejected: false, hasPrivateAddresses: isPrivate)
            ])
        let findings = Check.kernel(facts)
        let found = findings.first { $0.text.contains("private addresses") }
        #expect((found != nil) == isFound)
        if let found { #expect(found.id == "kernel-fault" && found.remedy?.contains("CAP_NET_RAW") == true) }
    }

    /// The messages are those of users' reports.
    @Test(
        .row("W31", "W34", "W44", "W63"),
        arguments: [
            ("Bluetooth: hci0: command 0x0c03 tx timeout", KernelTrouble.noResponse),
            ("Bluetooth: hci0: Opcode 0x0c1a failed: -110", .noResponse),
            ("Bluetooth: hci0: Reading Intel version command failed (-110)", .noResponse),
            ("Bluetooth: hci0: Opcode 0x200c failed: -16", .refused),
            ("Bluetooth: hci0: Frame reassembly failed (-84)", .lostBytes),
            ("Bluetooth: hci0: Failed to load Intel firmware file intel/ibt-20-1-3.sfi (-2)", .firmware),
            ("Bluetooth: hci0: RTL: firmware file rtl_bt/rtl8761bu_fw not found", .firmware),
            ("Bluetooth: hci0: BCM: firmware Patch file not found, tried:", .firmware),
            ("Bluetooth: hci0: hardware error 0x35", .hardware),
            ("Bluetooth: hci0: Controller not accepting commands anymore: ncmd = 0", .noCredits),
            ("Bluetooth: hci0: Resetting usb device.", .usbReset),
            ("Bluetooth: hci0 urb ffffa1f9d98d5d80 failed to resubmit (113)", .failedTransfers),
            ("Bluetooth: hci0: Failed to send wmt func ctrl (-22)", .shortResponse),
            ("Bluetooth: hci0: Failed to send wmt func ctrl (-110)", .noResponse),
            (
                "Bluetooth: hci0: CSR: Unbranded CSR clone detected; adding workarounds and force-suspending once...",
                .imitation
            ),
            ("Bluetooth: hci0: ACL packet for unknown connection handle 3585", .earlyData),
            ("Bluetooth: hci0: ACL packet for unknown connection handle 3837", nil),
            ("Bluetooth: hci0: SCO packet for unknown connection handle 257", nil),
            ("Bluetooth: hci0: HCI Delete Stored Link Key command is advertised, but not supported.", .absentCommands),
            (
                "Bluetooth: hci0: HCI Enhanced Setup Synchronous Connection command is advertised, but not supported.",
                nil
            ),
            ("Bluetooth: hci0: RTL: fw version 0xdfc6d922", nil),
            ("Bluetooth: Core ver 2.22", nil),
            ("iwlwifi 0000:00:14.3: Direct firmware load for iwlwifi-cc-a0-50.ucode failed with error -2", nil),
            ("usb 1-1: tx timeout", nil), ("xhci_hcd 0000:00:14.0: hardware error", nil),
        ])
    func aKernelMessageNamesItsTrouble(_ message: String, _ trouble: KernelTrouble?) {
        #expect(KernelTrouble(message) == trouble)
    }

    /// The package of the firmware is named where the file is.
    @Test(
        arguments: [
            (
                "bluetooth hci0: Direct firmware load for rtl_bt/rtl8761bu_fw.bin failed with error -2",
                "firmware-realtek"
            ),
            ("Bluetooth: hci0: Failed to load Intel firmware file intel/ibt-20-1-3.sfi (-2)", "intel/ibt-20-1-3.sfi "),
            ("Bluetooth: hci0: BCM: firmware Patch file not found, tried:", "firmware-* packages"),
            ("bluetooth hci0: Direct firmware load for new/blob.bin failed with error -2", "firmware-* packages"),
        ])
    func firmwareIsNamed(_ message: String, _ words: String) throws {
        #expect(try #require(KernelTrouble(message)).remedy(for: message).contains(words))
    }

    @Test(
        arguments: [
            ("6.17.8", true), ("6.17.7-300.fc43.x86_64", false), ("6.18.0-12-generic", true), ("7.0", true),
            ("6.17", false), ("6.1.0-55-amd64", false),
        ])
    func releasesAreCompared(_ release: String, _ isLater: Bool) throws {
        #expect(try #require(KernelRelease(release)).isAtLeast(6, 17, 8) == isLater)
    }
}

/// What the kernel's messages show of a controller. Their sources are those of `Ailment.ofControllers`.
@Suite struct ControllerLogTests {
    @Test func onlyTheAdaptersOwnMessagesCount() {
        let messages = ["Bluetooth: hci1: RTL: fw version 0x1", "bluetooth hci10: RTL: fw version 0x2", "hci1 fails"]
        #expect(ControllerLog(messages, adapter: "hci1").messages == [messages[0], messages[2]])
        #expect(ControllerLog(messages, adapter: "hci10").messages == [messages[1]])
    }

    @Test(
        arguments: [
            ("Bluetooth: hci0: RTL: fw version 0xdfc6d922", "RTL: fw version 0xdfc6d922"),
            ("Bluetooth: hci0: BCM4345C0 (003.001.025) build 0382", "BCM4345C0 (003.001.025) build 0382"),
            (
                "Bluetooth: hci0: HW/SW Version: 0x008a008a, Build Time: 20241106163512",
                "HW/SW Version: 0x008a008a, Build Time: 20241106163512"
            ),
            ("Bluetooth: hci0: Firmware Version: 98-13.25", "Firmware Version: 98-13.25"),
            ("Bluetooth: hci0: QCA controller version 0x03150200", "QCA controller version 0x03150200"),
            ("Bluetooth: hci0: BCM: features 0x2f", nil),
        ])
    func firmwareIsRead(_ message: String, _ firmware: String?) {
        #expect(ControllerLog([message], adapter: "hci0").firmware == firmware)
        #expect(ControllerLog.isIdentity(message) == (firmware != nil))
    }

    /// The index was that of another adapter before.
    @Test func theLastSetUpCounts() {
        let log = ControllerLog(
            [
                "Bluetooth: hci0: RTL: loading rtl_bt/rtl8761bu_fw.bin", "Bluetooth: hci0: RTL: fw version 0xdfc6d922",
                "Bluetooth: hci0: RTL: loading rtl_bt/rtl8822cu_fw.bin", "Bluetooth: hci0: RTL: fw version 0x05a1e7b3",
            ], adapter: "hci0")
        #expect(log.realtekChip == "rtl8822cu" && log.firmware == "RTL: fw version 0x05a1e7b3")
    }

    @Test(
        arguments: [
            ("ibt-20-1-3", true), ("ibt-11-5", true), ("ibt-0041-0041", false), ("ibt-1040-0041", false),
        ])
    func olderControllersOfIntelAreKnownByTheirFirmware(_ file: String, _ isOlder: Bool) {
        let line = "Bluetooth: hci0: Found device firmware: intel/\(file).sfi"
        #expect(ControllerLog([line], adapter: "hci0").isOlderIntel == isOlder)
        #expect(ControllerLog.isIdentity(line))
    }

    @Test func versionsOfCSRAreReadFromOneLineOrTwo() {
        let two = ControllerLog(
            [
                "Bluetooth: hci0: CSR: Setting up dongle with HCI ver=9 rev=0810",
                "Bluetooth: hci0: LMP ver=9 subver=2312; manufacturer=10",
            ], adapter: "hci0")
        #expect(two.versionOfCSR == VersionFacts(hciRevision: 0x0810, company: 10, linkSubversion: 0x2312))
        // Bugzilla of the kernel, 60824, on a Raspberry Pi.
        let line =
            "Bluetooth: hci0: CSR: Setting up dongle with HCI ver=9 rev=3120; LMP ver=9 subver=22bb; manufacturer=10"
        #expect(
            ControllerLog([line], adapter: "hci0").versionOfCSR
                == VersionFacts(hciRevision: 0x3120, company: 10, linkSubversion: 0x22BB))
        #expect(ControllerLog(["Bluetooth: hci0: CSR: nothing"], adapter: "hci0").versionOfCSR == nil)
    }
}
