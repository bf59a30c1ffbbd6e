import BLELinux

// Checks 13 and 14: known defects of kernels and firmware, and Wi-Fi on the same chip.
extension Check {
    static func kernel(_ facts: SystemFacts) -> [Finding] {
        var findings: [Finding] = []
        for fault in KernelFault.all(of: facts.kernelRelease) where fault.concerns(facts) {
            findings.append(
                .warn("kernel-fault", "kernel \(facts.kernelRelease) \(fault.sentence)", remedy: fault.remedy))
        }
        guard let messages = facts.kernelMessages else {
            return findings + [.skip("kernel-log", "kernel log: may be read by root only")]
        }
        let imitations = facts.radio.adapters.filter { isImitation($0, facts) }.map(\.name)
        let known = messages.compactMap { message in KernelTrouble(message).map { (trouble: $0, message: message) } }
        for trouble in KernelTrouble.allCases {
            let matching = known.filter { $0.trouble == trouble }.map(\.message).filter { message in
                ![.imitation, .absentCommands].contains(trouble)
                    // The check of the adapters has reported these.
                    || !imitations.contains { ControllerLog.isAbout($0, message) }
            }
            guard let last = matching.last else { continue }
            findings.append(
                .warn(
                    "kernel-log",
                    "\(trouble.cause); kernel log, \(matching.count == 1 ? "once" : "\(matching.count) times"): \(last)",
                    remedy: trouble.remedy(for: last)))
        }
        guard findings.isEmpty else { return findings }
        return [
            .ok(
                "kernel", "kernel \(facts.kernelRelease) has no defect that concerns this process, and its log is clean"
            )
        ]
    }

    static func wireless(_ facts: SystemFacts) -> [Finding] {
        guard !facts.wirelessInterfaces.isEmpty else { return [.ok("wifi", "no Wi-Fi shares the antenna")] }
        for interface in facts.wirelessInterfaces where interface.isUp {
            guard let driver = interface.driver,
                let makers = sharedChips.first(where: { driver.hasPrefix($0.driver) })?.makers,
                let adapter = facts.radio.adapters.first(where: {
                    $0.management.map { makers.contains($0.company) } ?? false
                })
            else { continue }
            return [
                .warn(
                    "combo-chip", "likely on one chip and antenna with Wi-Fi \(interface.name) (\(driver))",
                    adapter: adapter.name,
                    remedy: "use Wi-Fi at 5 GHz, or scan less than all the time (a window of 30 ms in 100 ms)")
            ]
        }
        let names = facts.wirelessInterfaces.map(\.name).joined(separator: ", ")
        return [.ok("wifi", "Wi-Fi \(names) is off, or on a chip of its own")]
    }

    /// Wi-Fi drivers whose chips often have Bluetooth too, and the makers of those.
    private static let sharedChips: [(driver: String, makers: [UInt16])] = [
        ("brcmfmac", [0x000F, 0x0131]), ("iwlwifi", [0x0002]), ("rtw", [0x005D]), ("rtl", [0x005D]),
        ("ath", [0x001D, 0x0045]), ("mt7", [0x0046]), ("mwifiex", [0x0048]),
    ]
}

/// A kernel with a defect that affects Bluetooth programs, as known in November 2026.
enum KernelFault: Hashable, Sendable {
    /// Closing a link's socket after the end of the link is a use after free.
    case closesTwice
    /// After an active scan, plain connects hang.
    case hangsAfterScans
    /// Plain connects look for the identity address of a bonded peer that is on air with private addresses.
    case looksForIdentities

    /// Returns the defects of a release such as `6.1.0-55-amd64`.
    static func all(of release: String) -> [KernelFault] {
        guard let release = KernelRelease(release) else { return [] }
        var faults: [KernelFault] = []
        if (55...57).contains(where: { release.numbers == [6, 1, 0, $0] }) { faults.append(.closesTwice) }
        if release.isAtLeast(6, 10) { faults.append(.hangsAfterScans) }
        if release.isAtLeast(6, 19) { faults.append(.looksForIdentities) }
        return faults
    }

    /// Whether the defect concerns this process. Plain connects are those of processes that may send no commands.
    func concerns(_ facts: SystemFacts) -> Bool {
        switch self {
        case .closesTwice: true
        case .hangsAfterScans: !facts.privileges.has(.netRaw)
        case .looksForIdentities:
            !facts.privileges.has(.netRaw) && (facts.bonds?.bonds.contains { $0.hasPrivateAddresses } ?? false)
        }
    }

    var sentence: String {
        switch self {
        case .closesTwice: "may stop a program that closes a lost link, and the adapter with it"
        case .hangsAfterScans: "lets connects of programs without CAP_NET_RAW hang after an active scan"
        case .looksForIdentities:
            "lets connects of programs without CAP_NET_RAW to bonded peers with private addresses hang, unless the "
                + "controller resolves these"
        }
    }

    var remedy: String {
        switch self {
        case .closesTwice: "boot another one: of Debian's 6.1.0 kernels -54 and older, or any 6.12"
        case .hangsAfterScans:
            "give such programs CAP_NET_RAW; for one that hangs: sudo hciconfig hci0 down && sudo hciconfig hci0 up"
        case .looksForIdentities: "give such programs CAP_NET_RAW: they connect to the address that is on air then"
        }
    }
}
