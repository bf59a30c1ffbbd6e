import BLECore

// Defects of known controllers, for the check of the adapters: what explains the findings of later checks.
//
// The numbers are the rows in Docs/users/adapters.md. A rule names a controller by what was read of it. What could not
// be read is a finding of its own, as far as a rule depends on it.
extension Check {
    /// Returns the defects of a controller, those that explain others first.
    static func defects(of adapter: AdapterFacts, _ facts: SystemFacts) -> [Finding] {
        [imitation(adapter, facts), barrot(adapter, facts), maskedReports(adapter, facts)].compactMap(\.self)
    }

    // MARK: - Imitations of CSR, and Barrot (W54, W55)

    /// The USB identifier of CSR, which imitations use, and CSR's company identifier.
    private static let csr = (usb: "0a12:0001", company: UInt16(10))
    private static let makerBarrot = (usb: "33fa", company: UInt16(0x08E7))

    private static func imitation(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Finding? {
        let usb = facts.usbDevices[adapter.name]
        guard usb.map({ $0.identifier == csr.usb }) ?? true else { return nil }
        let log = ControllerLog(facts.kernelMessages ?? [], adapter: adapter.name)
        let logged = log.last(.imitation)?.message
        guard usb != nil || logged != nil else { return nil }
        let version = adapter.controller?.version ?? log.versionOfCSR
        var evidence: [String] = []
        if let company = version?.company ?? adapter.management?.company, company != csr.company {
            evidence.append("its manufacturer is \(makerName(company)) instead of CSR")
        }
        if let version, version.hciRevision != version.linkSubversion {
            evidence.append(
                "its HCI revision \(hex(version.hciRevision)) is not its LMP subversion \(hex(version.linkSubversion))")
        }
        if let logged { evidence.append("kernel log: \(logged)") }
        guard !evidence.isEmpty else {
            guard version == nil else { return nil }
            return .skip(
                "clone",
                "imitation of CSR: without its versions, from the controller or the kernel log, this cannot be seen",
                adapter: adapter.name)
        }
        return .warn(
            "clone",
            "an imitation of a CSR controller, which loses data, hangs, and does not wake from USB suspend: "
                + evidence.joined(separator: "; "),
            adapter: adapter.name,
            remedy: "use another adapter: the workarounds of the kernel are not enough for imitations")
    }

    /// Returns whether the adapter is an imitation of one of CSR.
    static func isImitation(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Bool {
        imitation(adapter, facts)?.level == .warn
    }

    private static func barrot(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Finding? {
        let company = adapter.controller?.version?.company ?? adapter.management?.company
        let isBarrot =
            company == makerBarrot.company
            || facts.usbDevices[adapter.name].map { $0.vendor == makerBarrot.usb } ?? false
        guard isBarrot, !adapter.isUp, let release = KernelRelease(facts.kernelRelease), !release.isAtLeast(6, 17, 8)
        else { return nil }
        return .warn(
            "barrot",
            "kernels before 6.17.8 cannot set up controllers of Barrot, which send a byte too many for Read Local "
                + "Extended Features: it is off, and the kernel is \(facts.kernelRelease)",
            adapter: adapter.name, remedy: "boot kernel 6.17.8 or newer, or use another adapter")
    }

    // MARK: - Reports that the kernel masks (W01, W03)

    /// The USB identifiers of Realtek 8761B: those of btusb.c, and the one that the change of the kernel was made for.
    private static let realtek8761B: Set<String> = [
        "0b05:190e", "0bda:8771", "0bda:a728", "2357:0604", "2550:8761", "2b89:8761", "2c4e:0115", "6655:8771",
        "7392:c611",
    ]
    private static let realtek: UInt16 = 0x005D

    /// Returns whether a release treats all 8761B as without extended scanning, as commit 5ead2063611a does.
    private static func distrustsRealtek8761B(_ release: String) -> Bool {
        guard let release = KernelRelease(release) else { return false }
        return release.isAtLeast(7, 2) || release.isOfSeries(7, 1) && release.isAtLeast(7, 1, 9)
            || release.isOfSeries(6, 18) && release.isAtLeast(6, 18, 45)
    }

    /// Returns why extended reports of this adapter are masked: a warning, or what could not be read.
    ///
    /// The kernel enables the events of the set of commands that it uses itself.
    static func maskedReports(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Finding? {
        if let scan = adapter.scan, scan.isExtended, scan.heard.map({ $0.reports > 0 }) ?? false { return nil }
        guard adapter.controller?.listsExtendedScan != false else { return nil }
        guard distrustsRealtek8761B(facts.kernelRelease) else { return maskedByReads(adapter, facts) }
        let log = ControllerLog(facts.kernelMessages ?? [], adapter: adapter.name)
        let usb = facts.usbDevices[adapter.name]?.identifier
        let evidence: String
        if let usb, realtek8761B.contains(usb) {
            evidence = "USB \(usb)"
        } else if let chip = log.realtekChip {
            guard chip.hasPrefix("rtl8761b") else { return nil }
            evidence = "the kernel has loaded firmware for \(chip)"
        } else {
            let company = adapter.controller?.version?.company ?? adapter.management?.company
            guard company == realtek else { return maskedByReads(adapter, facts) }
            return .skip(
                "masked-reports",
                "masked reports: kernel \(facts.kernelRelease) masks those of Realtek 8761B, and whether this is one "
                    + "cannot be seen without the kernel's messages from its set-up", adapter: adapter.name)
        }
        var consequences: [String] = []
        if adapter.scan?.isExtended == true, let heard = adapter.scan?.heard {
            consequences.append("an extended scan was accepted, and no report came in \(heard.milliseconds.seconds)")
        }
        let resets = log.count(.usbReset)
        if resets > 0 { consequences.append("the kernel has reset it \(resets == 1 ? "once" : "\(resets) times")") }
        return .warn(
            "masked-reports",
            "kernel \(facts.kernelRelease) scans with legacy commands on Realtek 8761B (\(evidence)), and masks the "
                + "reports of extended scans (programs on BareBLE unmask them); some of these then hang when a scan ends"
                + (consequences.isEmpty ? "" : ": " + consequences.joined(separator: "; ")),
            adapter: adapter.name,
            remedy: "boot a kernel before 6.18.45, 7.1.9 or 7.2, or a later one whose changes name RTL8761B; or use "
                + "another adapter")
    }

    /// Returns the warning if the kernel was heard scanning with legacy commands on a controller that lists the
    /// extended ones: no other program has a socket by which it could.
    private static func maskedByReads(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Finding? {
        guard adapter.controller?.listsExtendedScan == true, let heard = adapter.before,
            let count = heard.fromLegacyScan, count > 0, facts.hasLinkSockets || facts.daemon != nil,
            let openers = facts.radio.openers,
            !openers.contains(where: { $0.kind == .raw && ($0.adapter == nil || $0.adapter == adapter.index) })
        else { return nil }
        return .warn(
            "masked-reports",
            "the kernel scans with legacy commands although the controller lists the extended ones, and masks the reports "
                + "of extended scans (programs on BareBLE unmask them): \(count.counted("report")) of legacy scans in \(heard.milliseconds.seconds), and "
                + "no program has a raw socket",
            adapter: adapter.name,
            remedy: "use another kernel or another adapter; where the kernel's mesh feature is on, switch it off")
    }

    // MARK: - Addresses (W57, W58, W68)

    /// The beginning of addresses that many imitations of CSR have, some of them the same.
    private static let sharedBlock = "00:1A:7D:DA:71:"

    /// Returns the fault of an adapter's address, if any. `identity` describes the adapter, and begins with it.
    static func addressFault(_ adapter: AdapterFacts, _ identity: String, _ facts: SystemFacts) -> Finding? {
        let isDefault = BluetoothAddress(adapter.address)?.isDefaultOfControllers ?? false
        if let configuration = adapter.configuration {
            return unconfigured(adapter, configuration, identity, isDefault: isDefault, facts)
        }
        if isDefault {
            return .warn(
                "default-address",
                identity
                    + ": the default address of such controllers, which many others have, so that bonds and state that are "
                    + "stored for it fit them too",
                adapter: adapter.name,
                remedy: addressRemedy(
                    facts, "sudo hciconfig \(adapter.name) down && sudo btmgmt -i \(adapter.name) public-addr ADDRESS"))
        }
        if adapter.address == BluetoothAddress.zero.description {
            let log = ControllerLog(facts.kernelMessages ?? [], adapter: adapter.name)
            if let failure = log.last(.firmware, .shortResponse, .noResponse) {
                return .warn(
                    "no-address",
                    identity + ": it has no address, because its set-up failed: \(failure.trouble.cause); kernel log: "
                        + failure.message,
                    adapter: adapter.name, remedy: failure.trouble.remedy(for: failure.message))
            }
            return .warn(
                "no-address", identity + ": it has no address, or not yet", adapter: adapter.name,
                remedy: "switch it on; if it stays so: sudo btmgmt static-addr ADDRESS   (one that begins with C to F)")
        }
        guard facts.radio.adapters.contains(where: { $0.address == adapter.address && $0.index != adapter.index })
        else { return nil }
        return .warn(
            "same-address",
            identity + ": another adapter has the same address"
                + (adapter.address.hasPrefix(sharedBlock) ? ", as many imitations of CSR have" : ""),
            adapter: adapter.name, remedy: "unplug one of them: programs know adapters by their addresses")
    }

    private static func unconfigured(
        _ adapter: AdapterFacts, _ configuration: ConfigurationFacts, _ identity: String, isDefault: Bool,
        _ facts: SystemFacts
    ) -> Finding {
        let missing = configuration.missing.map { ManagementConfigurationOptions(rawValue: $0) }
        if let missing, !missing.contains(.publicAddress), missing.contains(.external) {
            return .fail(
                "unconfigured",
                identity
                    + ": it is not configured by a program of its maker, and the kernel does not switch it on before",
                adapter: adapter.name,
                remedy: "run that program; then: sudo btmgmt -i \(adapter.name) ext-config on")
        }
        let why =
            if isDefault {
                "it has only the default address of such controllers, and the kernel does not switch it on before "
                    + "another one is set"
            } else if missing?.contains(.publicAddress) == true {
                "it has no address, and the kernel does not switch it on before one is set"
            } else {
                "it is not configured, and the kernel does not switch it on; what is missing cannot be read, mostly it is "
                    + "an address"
            }
        return .fail(
            "unconfigured", "\(identity): \(why)", adapter: adapter.name,
            remedy: addressRemedy(facts, "sudo btmgmt -i \(adapter.name) public-addr ADDRESS"))
    }

    private static func addressRemedy(_ facts: SystemFacts, _ command: String) -> String {
        command
            + ((facts.board?.hasPrefix("Raspberry Pi") ?? false)
                ? "   (the package pi-bluetooth sets the board's own at each start)"
                : "   (one that no other device has, at each start)")
    }

    // MARK: - A coded PHY that does not work (W13)

    /// Returns whether the kernel's driver takes the coded PHY of an adapter for broken: the identifiers of its device
    /// show that, or for a controller of Intel the name of its firmware.
    static func hasDefectiveCodedPHY(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Bool {
        facts.codedPHYDefects.contains(adapter.name)
            || ControllerLog(facts.kernelMessages ?? [], adapter: adapter.name).isOlderIntel
    }

    // MARK: - USB autosuspend (W61)

    /// Returns the remark about an adapter that the kernel may suspend, if any.
    static func autosuspend(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Finding? {
        guard adapter.bus == "usb" else { return nil }
        guard let device = facts.usbDevices[adapter.name], let control = device.control else {
            return .skip(
                "autosuspend", "USB autosuspend: the files of the USB device cannot be read", adapter: adapter.name)
        }
        guard control == "auto" else { return nil }
        // The driver allows it when it is loaded, after the USB device has appeared.
        let rule =
            #"ACTION=="add", SUBSYSTEM=="bluetooth", ENV{DEVTYPE}=="host", ATTRS{idVendor}=="\#(device.vendor)", "#
            + #"ATTRS{idProduct}=="\#(device.product)", RUN+="/bin/sh -c 'echo on > /sys%p/device/../power/control'""#
        return .warn(
            "autosuspend",
            "the kernel may suspend it in a scan, and reports are lost: USB \(device.identifier) has power/control auto, "
                + "runtime_status \(device.status ?? "not readable")",
            adapter: adapter.name,
            remedy: "restart, or plug it in again, with this line in /etc/udev/rules.d/90-bluetooth-power.rules: "
                + rule)
    }

    // MARK: - Words

    private static func makerName(_ company: UInt16) -> String {
        AssignedNumbers.companyName(company).map { "\($0) (\(company))" } ?? "\(company)"
    }

    private static func hex(_ number: UInt16) -> String {
        "0x" + Hex.encode([UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)])
    }

    /// Returns the revisions and the firmware of a controller, as far as they were read.
    static func revisions(_ adapter: AdapterFacts, _ facts: SystemFacts) -> [String] {
        var parts: [String] = []
        if let version = adapter.controller?.version {
            parts.append("HCI revision \(hex(version.hciRevision))")
            parts.append("LMP subversion \(hex(version.linkSubversion))")
        }
        if let firmware = ControllerLog(facts.kernelMessages ?? [], adapter: adapter.name).firmware {
            parts.append(firmware)
        }
        return parts
    }
}
