import BLECore

// Checks 8, 10 and 11: the features of the controller, and whether they work.
extension Check {
    static func features(_ facts: SystemFacts) -> [Finding] {
        each(facts, "features") { adapter in
            guard let controller = adapter.controller else {
                return [.skip("features", "features: \(reason(adapter, facts))", adapter: adapter.name)]
            }
            guard let bits = controller.features else {
                let why = controller.failures.first.map(text) ?? "no response"
                return [
                    .fail(
                        "no-response", "the controller does not report its LE features: \(why)", adapter: adapter.name,
                        remedy:
                            "unplug it and plug it in again; if it is built in: sudo hciconfig \(adapter.name) down && sudo hciconfig \(adapter.name) up"
                    )
                ]
            }
            let features = LEFeatures(rawValue: bits)
            let names: [(LEFeatures, String)] = [
                (.extendedAdvertising, "extended advertising"), (.coded, "coded PHY"), (.le2M, "2M PHY"),
                (.dataLengthExtension, "long packets"), (.addressResolution, "address resolution"),
            ]
            var parts = names.filter { features.contains($0.0) }.map(\.1)
            if hasDefectiveCodedPHY(adapter, facts), let coded = parts.firstIndex(of: "coded PHY") {
                parts[coded] += " (which the kernel's driver takes for broken on this controller)"
            }
            if parts.isEmpty { parts = ["only what Bluetooth 4.0 has"] }
            if let size = controller.acceptListSize { parts.append("accept list \(size)") }
            if let size = controller.resolvingListSize { parts.append("resolving list \(size)") }
            // None means that LE shares those of BR/EDR.
            if let count = controller.bufferCount, let length = controller.bufferLength, count > 0 {
                parts.append("\(Int(count).counted("buffer")) of \(length) bytes")
            }
            let text = parts.joined(separator: ", ")
            if features.contains(.extendedAdvertising), controller.listsExtendedScan == false {
                return [
                    .warn(
                        "mixed-features", "announces extended advertising without its commands: \(text)",
                        adapter: adapter.name, remedy: "update the firmware; blescan uses the legacy commands here")
                ]
            }
            return [.ok("features", text, adapter: adapter.name)]
        }
    }

    static func testScan(_ facts: SystemFacts) -> [Finding] {
        each(facts, "test-scan") { adapter in
            guard let scan = adapter.scan else {
                let isBusy = adapter.before.map { $0.reports > 0 } ?? false
                let why = isBusy ? "another scan runs already" : reason(adapter, facts)
                return [.skip("test-scan", "test scan: \(why)", adapter: adapter.name)]
            }
            let kind = scan.isExtended ? "extended" : "legacy"
            guard let bad = scan.steps.first(where: { $0.status != 0 }) else {
                return [
                    .ok(
                        "test-scan",
                        "a scan with \(kind) commands began and ended: "
                            + zip(["parameters", "on", "off"], scan.steps).map { name, step in
                                "\(name) 0x\(Hex.encode([step.status ?? 0xFF]))"
                            }.joined(separator: ", "), adapter: adapter.name)
                ]
            }
            switch bad.status {
            case HCIStatus.commandDisallowed.rawValue where isMasked(adapter, facts):
                return [
                    .skip(
                        "test-scan", "test scan: refused, as the kernel uses the other commands: \(text(bad))",
                        adapter: adapter.name)
                ]
            case HCIStatus.commandDisallowed.rawValue:
                return [
                    .fail(
                        "disallowed",
                        "the controller refuses \(kind) scan commands, because a scan runs or another program used the "
                            + "\(scan.isExtended ? "legacy" : "extended") ones: \(text(bad))",
                        adapter: adapter.name,
                        remedy:
                            "end other scanners (old hcitool among them), then: sudo hciconfig \(adapter.name) down && sudo hciconfig \(adapter.name) up",
                        status: .timedOut)
                ]
            case .none:
                return [
                    .fail(
                        "no-response", "the controller does not respond: \(text(bad))", adapter: adapter.name,
                        remedy:
                            "sudo hciconfig \(adapter.name) down && sudo hciconfig \(adapter.name) up; if that fails, unplug it and plug it in again"
                    )
                ]
            case .some:
                return [
                    .fail(
                        "scan-refused", "the controller refuses to scan: \(text(bad))", adapter: adapter.name,
                        remedy: "sudo hciconfig \(adapter.name) down && sudo hciconfig \(adapter.name) up")
                ]
            }
        }
    }

    static func reports(_ facts: SystemFacts) -> [Finding] {
        each(facts, "reports") { adapter in
            guard let heard = adapter.scan?.heard else {
                return [.skip("reports", "reports: no test scan", adapter: adapter.name)]
            }
            let time = heard.milliseconds.seconds
            guard heard.reports > 0 else {
                if isMasked(adapter, facts) {
                    return [
                        .skip(
                            "reports", "reports: none in \(time), as the kernel masks them", adapter: adapter.name)
                    ]
                }
                if let other = hearing(beside: adapter, facts) { return [deaf(adapter, other, in: time, facts)] }
                return [
                    .warn(
                        "silence", "no advertisement in \(time)", adapter: adapter.name,
                        remedy:
                            "wake a device near it and look longer: sudo blescan doctor --for 20s; if it still hears none, "
                            + "it may be deaf, or masked by another program: sudo blescan doctor -i \(adapter.name) --fix cycle"
                    )
                ]
            }
            let text =
                "\(heard.reports.counted("report")) in \(time) (\(heard.perSecond) a second) of "
                + "\(heard.addresses) \(heard.addresses == 1 ? "address" : "addresses"), "
                + "\(heard.percent(heard.legacy)) % legacy, \(heard.percent(heard.empty)) % empty"
            guard heard.empty < heard.reports else {
                return [
                    .warn(
                        "empty-reports", text + ": without any data the firmware may be stuck", adapter: adapter.name,
                        remedy:
                            "sudo hciconfig \(adapter.name) down && sudo hciconfig \(adapter.name) up; if that fails, unplug it and plug it in again"
                    )
                ]
            }
            return [.ok("reports", text, adapter: adapter.name)]
        }
    }

    /// Returns the name of another adapter that has heard data, and the number of its reports: the air is not silent.
    private static func hearing(
        beside adapter: AdapterFacts, _ facts: SystemFacts
    ) -> (name: String, reports: Int)? {
        for other in facts.radio.adapters where other.index != adapter.index {
            for heard in [other.scan?.heard, other.before].compactMap(\.self) where heard.reports > heard.empty {
                return (other.name, heard.reports)
            }
        }
        return nil
    }

    /// Returns the warning about an adapter that hears nothing where another one hears. An event mask can be set and not
    /// read, so what is masked shows only by that.
    private static func deaf(
        _ adapter: AdapterFacts, _ other: (name: String, reports: Int), in time: String, _ facts: SystemFacts
    ) -> Finding {
        let raw = (facts.radio.openers ?? []).first { opener in
            opener.kind == .raw && (opener.adapter == nil || opener.adapter == adapter.index)
        }
        let cycle = "sudo blescan doctor -i \(adapter.name) --fix cycle   (the kernel sets the event masks again then)"
        return .warn(
            "deaf",
            "no advertisement in \(time), and \(other.name) has heard \(other.reports.counted("report")): it is deaf, or its LE "
                + "events are masked, which cannot be read"
                + (raw.map { "; \($0.program) has a raw HCI socket, by which it may have masked them" } ?? ""),
            adapter: adapter.name, remedy: raw == nil ? cycle : "end that program, then: " + cycle)
    }

    /// Returns whether the check of the adapters has warned that reports are masked.
    private static func isMasked(_ adapter: AdapterFacts, _ facts: SystemFacts) -> Bool {
        maskedReports(adapter, facts)?.level == .warn
    }

    private static func text(_ result: CommandResult) -> String {
        let command = HCIOpcode(rawValue: result.command)
        guard let status = result.status else { return "\(command) no response" }
        return "\(command) " + (status == 0 ? "ok" : HCIStatus(rawValue: status).description)
    }
}

extension HeardFacts {
    /// The reports in a second.
    fileprivate var perSecond: Int { whole(Double(reports) * 1000 / Double(max(1, milliseconds))) }

    /// Returns the percentage of `part` in all reports.
    fileprivate func percent(_ part: Int) -> Int { whole(Double(part) * 100 / Double(max(1, reports))) }

    private func whole(_ number: Double) -> Int { Int(min(max(number, 0), 1_000_000).rounded()) }
}
