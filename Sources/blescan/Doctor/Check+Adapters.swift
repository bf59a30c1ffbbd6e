import BLECore
import BLELinux
import Glibc

// Checks 4 to 6: the adapters, and whether they are switched on in every way in which they can be off.
extension Check {
    static func adapters(_ facts: SystemFacts) -> [Finding] {
        guard facts.radio.controllerSocket == 0 else {
            return [.skip("adapters", "adapters: no sockets to list them")]
        }
        let all = facts.radio.adapters
        guard !all.isEmpty else {
            return [
                .fail(
                    "no-adapter", "no Bluetooth adapter is there",
                    remedy: "plug one in; for one that is built in: sudo dmesg | grep -i -e bluetooth -e firmware")
            ]
        }
        return each(facts, "adapters") { adapter in
            let management = adapter.management
            let usb = facts.usbDevices[adapter.name]
            let parts =
                [
                    usb.map { "usb \($0.identifier)" } ?? adapter.bus,
                    (management?.company ?? adapter.configuration?.company).flatMap(AssignedNumbers.companyName),
                    management.flatMap { HCIVersion.specification(of: $0.version) }.map { "Bluetooth \($0)" },
                ].compactMap(\.self) + revisions(adapter, facts)
            let identity = ([adapter.address] + parts).joined(separator: ", ")
            let fault = addressFault(adapter, identity, facts)
            return defects(of: adapter, facts) + [fault ?? .ok("adapter", identity, adapter: adapter.name)]
                + [autosuspend(adapter, facts)].compactMap(\.self)
        }
    }

    static func blocks(_ facts: SystemFacts) -> [Finding] {
        guard !facts.switches.isEmpty else { return [.ok("rfkill", "no rfkill switch is there for Bluetooth")] }
        let blocked = facts.switches.filter(\.isBlocked)
        guard !blocked.isEmpty else {
            return [.ok("rfkill", "rfkill blocks nothing (\(facts.switches.map(\.name).joined(separator: ", ")))")]
        }
        return blocked.map { radioSwitch in
            radioSwitch.isHardBlocked
                ? .fail(
                    "rfkill-hard", "\(radioSwitch.name) is blocked by a switch of the machine",
                    remedy: "use the machine's switch or its flight-mode key; then: rfkill list bluetooth")
                : .fail(
                    "rfkill-soft", "\(radioSwitch.name) is blocked by software (flight mode, TLP, rfkill)",
                    remedy: "sudo blescan doctor --fix rfkill --fix up   (or: sudo rfkill unblock bluetooth)",
                    fix: .rfkill)
        }
    }

    static func settings(_ facts: SystemFacts) -> [Finding] {
        each(facts, "settings") { adapter in
            let name = adapter.name
            if let owner = facts.radio.openers?.first(where: { $0.kind == .user && $0.adapter == adapter.index }) {
                return [
                    .skip("settings", "settings: \(owner.program) has exclusive access to the adapter", adapter: name)
                ]
            }
            guard adapter.configuration == nil else {
                return [.skip("settings", "settings: it cannot be switched on before it is configured", adapter: name)]
            }
            var findings: [Finding] = []
            if !adapter.isUp {
                findings.append(
                    .fail(
                        "down",
                        adapter.isRunning
                            ? "in the two seconds after plugging in, and goes off then" : "switched off",
                        adapter: name, remedy: "sudo blescan doctor --fix up   (or: sudo hciconfig \(name) up)",
                        fix: .up
                    ))
            }
            guard let management = adapter.management else {
                return findings + [
                    .skip("settings", "settings: the management interface does not respond", adapter: name)
                ]
            }
            if !management.can(.lowEnergy) {
                findings.append(
                    .fail(
                        "no-le", "the adapter does not support Low Energy", adapter: name,
                        remedy: "use another adapter: --adapter hciN")
                )
            } else if !management.has(.lowEnergy) {
                findings.append(
                    .fail(
                        "le-off", "Low Energy is switched off: connects are refused [errno \(ECONNREFUSED)]",
                        adapter: name, remedy: "sudo blescan doctor --fix le   (or: sudo btmgmt le on)", fix: .le))
            }
            guard findings.isEmpty else { return findings }
            let canPair = facts.pairingAddresses.flatMap { addresses in
                BluetoothAddress(adapter.address).map(addresses.contains)
            }
            if canPair == false {
                findings.append(
                    .warn(
                        "pairing-off", "the kernel cannot pair: it was switched on before any program managed it",
                        adapter: name,
                        remedy: "when no link is in use: sudo hciconfig \(name) down && sudo hciconfig \(name) up"))
            }
            // bluetoothd refuses by itself what its agents do not allow.
            if management.has(.bondable), facts.daemon == nil {
                findings.append(
                    .warn(
                        "bondable", "bondable: devices may bond with it unasked, because a program left it so",
                        adapter: name, remedy: "sudo btmgmt bondable off"))
            }
            let on = ManagementFacts.Setting.allCases.filter(management.has).map(\.rawValue)
            let words = on + (canPair == true ? ["pairing"] : [])
            return [.ok("settings", "switched on: \(words.joined(separator: ", "))", adapter: name)] + findings
        }
    }
}

extension ManagementFacts {
    /// The settings of interest.
    enum Setting: String, CaseIterable {
        case powered = "power"
        case lowEnergy = "LE"
        case classic = "BR/EDR"
        case secureConnections = "secure connections"
        case privacy
        case staticAddress = "static address"
        case bondable

        /// The management interface's setting.
        var settings: ManagementSettings {
            switch self {
            case .powered: .powered
            case .lowEnergy: .lowEnergy
            case .classic: .classic
            case .secureConnections: .secureConnections
            case .privacy: .privacy
            case .staticAddress: .staticAddress
            case .bondable: .bondable
            }
        }
    }

    func has(_ setting: Setting) -> Bool { ManagementSettings(rawValue: current).contains(setting.settings) }
    func can(_ setting: Setting) -> Bool { ManagementSettings(rawValue: supported).contains(setting.settings) }
}
