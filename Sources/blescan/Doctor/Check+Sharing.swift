import BLELinux

// Checks 7, 9 and 12: the other users of the radio.
extension Check {
    static func otherUsers(_ facts: SystemFacts) -> [Finding] {
        var findings: [Finding] = []
        if let daemon = facts.daemon {
            findings.append(
                .warn(
                    "bluetoothd", "bluetoothd runs (process \(daemon)): it may change scans and take links",
                    remedy: "sudo systemctl stop bluetooth   (or let it and this program use different adapters)"))
        }
        guard let openers = facts.radio.openers else {
            let why = facts.radio.controllerSocket == 0 ? "needs CAP_NET_RAW" : "no sockets to ask"
            return findings + [.skip("other-users", "other programs' sockets: \(why)")]
        }
        var reported: Set<SocketOpener> = []
        for opener in openers where opener.program != "bluetoothd" && reported.insert(opener).inserted {
            let name = opener.adapter.map { "hci\($0)" }
            guard name == nil || facts.radio.adapters.contains(where: { $0.name == name }) else { continue }
            findings.append(finding(opener, name))
        }
        return findings.isEmpty ? [.ok("other-users", "no other program has an HCI socket open")] : findings
    }

    private static func finding(_ opener: SocketOpener, _ adapter: String?) -> Finding {
        let program = opener.program
        // The program chose its own name, which must not become a command.
        let isPlain = !program.isEmpty && program.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        let end = isPlain ? "sudo pkill -x -- \(program)" : "look for it with ps"
        return switch opener.kind {
        case .user:
            .fail(
                "taken", "\(program) has exclusive access (user channel)", adapter: adapter,
                remedy: "end that program: \(end)")
        case .raw:
            .warn(
                "raw-socket", "\(program) has a raw HCI socket open: it may scan, or change scans", adapter: adapter,
                remedy: "end that program if scans stop or fail: \(end)")
        case .management:
            .warn(
                "management-socket", "\(program) has the management interface open: it may change settings",
                adapter: adapter, remedy: "end that program if settings change by themselves: \(end)")
        }
    }

    static func scanState(_ facts: SystemFacts) -> [Finding] {
        each(facts, "scan-state") { adapter in
            guard let heard = adapter.before else {
                return [.skip("scan-state", "scan state: \(reason(adapter, facts))", adapter: adapter.name)]
            }
            let time = "\(heard.milliseconds.seconds) without a scan of ours"
            guard heard.reports > 0 else {
                return [.ok("scan-state", "no other scan: no report in \(time)", adapter: adapter.name)]
            }
            let reports = "\(heard.reports.counted("report")) in \(time)"
            let others = (facts.radio.openers ?? []).filter { $0.adapter == nil || $0.adapter == adapter.index }
            if let other = others.first(where: { $0.kind == .raw }) ?? others.first {
                return [
                    .warn(
                        "foreign-scan", "\(other.program) scans, or another of the programs above: \(reports)",
                        adapter: adapter.name,
                        remedy: "both scans disturb each other: end that one, or use another adapter")
                ]
            }
            if facts.hasLinkSockets {
                return [
                    .warn(
                        "kernel-scan", "the kernel scans for a program that connects: \(reports)",
                        adapter: adapter.name, remedy: "wait for that connect to end")
                ]
            }
            return [
                .warn(
                    "stale-scan",
                    "a scan without an owner runs, because its program ended without stopping it: \(reports)",
                    adapter: adapter.name, remedy: "sudo blescan doctor --fix stale-scan", fix: .staleScan)
            ]
        }
    }

    static func links(_ facts: SystemFacts) -> [Finding] {
        each(facts, "links") { adapter in
            guard let links = adapter.links else {
                return [.skip("links", "links: the kernel does not list them", adapter: adapter.name)]
            }
            guard !links.isEmpty else { return [.ok("links", "no link is in use", adapter: adapter.name)] }
            let list = links.map { "\($0.address) (\($0.isCentral ? "central" : "peripheral"))" }
            return [
                .warn(
                    "links-in-use", "\(links.count.counted("link")) in use: \(list.joined(separator: ", "))",
                    adapter: adapter.name,
                    remedy: "a connected device accepts no other link and is often not heard: end the link first, "
                        + "e.g. bluetoothctl disconnect ADDRESS")
            ]
        }
    }

    /// Returns why a controller was not queried.
    static func reason(_ adapter: AdapterFacts, _ facts: SystemFacts) -> String {
        if !adapter.isUp { return "the adapter is off" }
        return facts.privileges.has(.netRaw) ? "the controller was not queried" : "needs CAP_NET_RAW"
    }
}

extension Int64 {
    /// Milliseconds as seconds: `3 s`, `1.5 s`.
    var seconds: String {
        self % 1000 == 0 ? "\(self / 1000) s" : "\(Double(self / 100) / 10) s"
    }
}
