import BLECore
import BLELinux
import BareBLE

// S05 to S11: what the controller does with scans, and what it reports.

// MARK: - S05

/// The statuses of switching a scan off and on.
struct SelfTestScanSwitch: Hashable, Sendable {
    /// Off while idle, the parameters, on, on again, off, off again: as many as were sent.
    var extended: [SelfTestChannel.Reply] = []
    /// The same with the legacy commands, if the extended ones were refused, or if there are no others.
    var legacy: [SelfTestChannel.Reply] = []

    static let steps = ["off", "parameters", "on", "on", "off", "off"]

    /// Whether a controller does not have the commands that it lists.
    static func isRefused(_ replies: [SelfTestChannel.Reply]) -> Bool {
        replies.contains { reply in
            reply.status.map {
                [.unknownCommand, .unsupportedFeature, .invalidParameters].contains(HCIStatus(rawValue: $0))
            }
                ?? false
        }
    }

    func judged() -> SelfTestJudgement {
        let shown = legacy.isEmpty ? extended : legacy
        let statuses = shown.map { reply in reply.status.map { Hex.encode([$0]) } ?? "none" }
        var judgement = SelfTestJudgement(
            .fit,
            "off, parameters, on, on, off, off: \(statuses.joined(separator: ", "))"
                + (extended.isEmpty || legacy.isEmpty ? "" : " (legacy)"))
        if !extended.isEmpty, Self.isRefused(extended), !legacy.isEmpty {
            judgement.remark("it lists the extended scan and refuses it; the legacy commands are used", "W04")
        }
        for (place, (step, reply)) in zip(Self.steps, shown).enumerated() {
            switch reply.end {
            case .status(0): continue
            // Off without a scan, and on beside one.
            case .status(HCIStatus.commandDisallowed.rawValue) where place == 0 || place == 5: judgement.quirk("W09")
            case .status(HCIStatus.commandDisallowed.rawValue) where place == 3: continue
            case .status(let status):
                judgement.remark("scan \(step) was refused: \(HCIStatus(rawValue: status))", verdict: .unfit)
            case .silence:
                judgement.remark("scan \(step) had no response", "W17", verdict: .unfit)
            case .malformed: judgement.remark("scan \(step): a response without a status", verdict: .unfit)
            case .notSent(let errno): judgement.remark("scan \(step) was not sent: errno \(errno)", verdict: .unfit)
            case .gone: judgement.remark("the adapter disappeared", verdict: .unfit)
            }
        }
        return judgement
    }
}

extension SelfTestRunner {
    func scanSwitch() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard let scanner = controller.scanner else { return .notRun("the controller did not report its features") }
        var measured = SelfTestScanSwitch()
        if scanner.hasExtendedScan { measured.extended = try await switches(scanner) }
        if !scanner.hasExtendedScan || SelfTestScanSwitch.isRefused(measured.extended),
            let legacy = controller.useLegacyScan()
        {
            measured.legacy = try await switches(legacy)
        }
        let judgement = measured.judged()
        if judgement.verdict == .unfit { controller.cannotScan() }
        return judgement
    }

    private func switches(_ scanner: ScanSession.Controller) async throws(SelfTestEnd) -> [SelfTestChannel.Reply] {
        let plan = ScanPlan(.passive)
        let on = scanner.scanOn(for: plan)
        var replies: [SelfTestChannel.Reply] = []
        for command in [
            scanner.scanOff, scanner.parameters(for: plan), on, on, scanner.scanOff, scanner.scanOff,
        ] {
            let reply = try await access.ask(command)
            replies.append(reply)
            // Every further command may have the driver reset the device.
            if reply.status == nil || SelfTestScanSwitch.isRefused([reply]) { break }
        }
        return replies
    }

    /// Starts a scan; a reply other than success ends the attempt.
    func scanOn(_ plan: ScanPlan) async throws(SelfTestEnd) -> SelfTestChannel.Reply? {
        guard let scanner = controller.scanner else { return nil }
        let parameters = try await access.ask(scanner.parameters(for: plan))
        guard parameters.isSuccess else { return parameters }
        await access.channel.forget()
        return try await access.ask(scanner.scanOn(for: plan))
    }

    @discardableResult
    func scanOff() async throws(SelfTestEnd) -> SelfTestChannel.Reply? {
        guard let scanner = controller.scanner else { return nil }
        return try await access.ask(scanner.scanOff)
    }

    /// Scans for a time; `nil` if the scan could not be started.
    func scan(_ plan: ScanPlan, for time: Duration) async throws(SelfTestEnd) -> SelfTestHeard? {
        guard try await scanOn(plan)?.isSuccess == true else { return nil }
        let heard = try await access.listen(for: time)
        try await scanOff()
        return heard
    }

    /// Why a check that scans cannot run.
    static let noScan = "scanning does not work"
}

// MARK: - S06

/// Repeated restarts of a scan.
struct SelfTestRestarts: Hashable, Sendable {
    struct Restart: Hashable, Sendable {
        /// The statuses of off, parameters and on.
        var statuses: [UInt8?]
        /// The time to the first report; `nil` if none came.
        var first: Duration?

        /// Off may find nothing to end.
        var isRefused: Bool { statuses.dropFirst().contains { $0 != 0 } }
    }

    var restarts: [Restart] = []

    static let limit: Duration = .seconds(1)

    /// In how many of them something was heard.
    var heard: Int { restarts.count { $0.first != nil } }

    func judged() -> SelfTestJudgement {
        let times = SelfTestTimes(restarts.compactMap(\.first))
        var judgement = SelfTestJudgement(
            .fit,
            "\(restarts.count) restarts, "
                + (times.median.map {
                    "first report in \(heard) of them, after \($0.short) (at most \((times.maximum ?? $0).short))"
                } ?? "no report"),
            values: [
                "restarts": .integer(restarts.count), "heard": .integer(heard),
                "firstReportP50": times.median.map { .milliseconds($0) },
                "firstReportMax": times.maximum.map { .milliseconds($0) },
            ])
        let refused = restarts.filter(\.isRefused).count
        if refused > 0 {
            judgement.remark("\(refused) of \(restarts.count) restarts of the scan were refused", verdict: .unfit)
        }
        // It was heard, and then was not any more: the air does not become silent at once.
        if let last = restarts.lastIndex(where: { $0.first != nil }), restarts.count - last > 4 {
            judgement.remark("no reports after restart \(last + 1)", "W29")
        }
        return judgement
    }
}

extension SelfTestRunner {
    func scanRestarts() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard let scanner = controller.scanner else { return .notRun(Self.noScan) }
        var measured = SelfTestRestarts()
        for _ in 0..<10 {
            let off = try await scanOff()
            let plan = ScanPlan(.passive)
            let parameters = try await access.ask(scanner.parameters(for: plan))
            await access.channel.forget()
            let on = try await access.ask(scanner.scanOn(for: plan))
            let heard = try await access.listen(for: SelfTestRestarts.limit) { $0.reports > 0 }
            measured.restarts.append(
                SelfTestRestarts.Restart(
                    statuses: [off?.status, parameters.status, on.status], first: heard.first))
            if [off, parameters, on].contains(where: { $0?.end == .silence }) { break }
        }
        try await scanOff()
        restarts = measured
        return measured.judged()
    }
}

// MARK: - S07

extension SelfTestHeard {
    /// The number of reports in a second from which the air is busy.
    private static let busyRate = 10.0

    /// Judges the reports of a passive scan without a filter.
    ///
    /// - Parameters:
    ///   - restarts: What the restarts of the scan before have shown.
    ///   - hasHeard: Whether an earlier passive scan has heard something.
    ///   - expected: The advertisements of the second adapter that it can hear, by their numbers.
    func judgedAsPassiveScan(
        expectsReports: Bool, after restarts: SelfTestRestarts?, hasHeard: Bool = false, expected: Set<UInt8> = []
    ) -> SelfTestJudgement {
        var text = "\(reports.counted("report")) in \(time.short)"
        if reports > 0 {
            text += " of \(advertisers.count.counted("address").replacing("addresss", with: "addresses"))"
            if extended > 0 { text += ", \(extended) extended" }
            if longest > 31 { text += ", up to \(longest) bytes" }
        }
        var judgement = SelfTestJudgement(
            .fit, text,
            values: [
                "reports": .integer(reports), "perSecond": .measure(rate), "addresses": .integer(advertisers.count),
                "legacy": .integer(legacy), "extended": .integer(extended), "empty": .integer(empty),
                "longest": .integer(longest), "over31": .integer(oversized), "rssi127": .integer(withoutRSSI),
                "reservedBits": .integer(reserved), "malformed": .integer(malformed),
                "peerAdvertisements": marks.isEmpty ? nil : .array(marks.keys.sorted().map { .integer(Int($0)) }),
            ])
        let heardBefore = restarts?.heard ?? 0
        if reports == 0 {
            if heardBefore > 0 || hasHeard {
                judgement.remark(
                    "no report in \(time.short), and the adapter had heard something before", "W29", verdict: .unfit)
            } else {
                judgement.remark(
                    expectsReports
                        ? "no report in \(time.short), though devices advertise: the adapter receives nothing"
                        : "nothing was heard: nothing advertises here, or the adapter is deaf. Switch a device on that "
                            + "advertises, and add --air",
                    verdict: expectsReports ? .unfit : .remark)
            }
        } else if empty == reports {
            judgement.remark("no report has data", "W26", verdict: .unfit)
        } else if let last, let restarts, heardBefore == restarts.restarts.count, heardBefore >= 10,
            time - last > time * 3 / 4
        {
            judgement.remark(
                "reports come after each restart, and here the last of \(reports) came after \(last.short)", "W32",
                verdict: .unfit)
        }
        // Where so much is on air, each restart has something to hear.
        if rate >= Self.busyRate, let restarts, restarts.heard < restarts.restarts.count {
            let deaf = restarts.restarts.count - restarts.heard
            judgement.remark(
                "\(deaf) of \(restarts.restarts.count) restarts of the scan heard nothing within a second, at "
                    + "\(Int(rate)) reports a second", "W29",
                verdict: deaf * 2 >= restarts.restarts.count ? .unfit : .remark)
        }
        if withoutRSSI > 0 {
            judgement.remark(
                withoutRSSI == reports
                    ? "no report has a signal strength" : "\(withoutRSSI) reports have no signal strength", "W35")
        }
        if reserved > 0 { judgement.remark("reserved bits are set in \(reserved.counted("report"))", "W18") }
        if oversized > 0 {
            judgement.remark("\(oversized.counted("legacy report")) with more than 31 bytes", "W24")
        }
        if malformed > 0 { judgement.remark("\(malformed.counted("event")) without their layout") }
        // Where nothing at all is heard, that is reported above.
        for mark in expected.subtracting(marks.keys).sorted() where reports > 0 {
            judgement.remark(
                "the \(Self.words(mark)) advertisement of the second adapter was not heard", mark == 3 ? "W23" : "W28")
        }
        return judgement
    }

    private static func words(_ mark: UInt8) -> String {
        switch mark {
        case 1: "legacy"
        case 2: "extended"
        default: "extended, 228 bytes long,"
        }
    }
}

extension SelfTestRunner {
    func passiveScan() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        guard let heard = try await scan(ScanPlan(.passive), for: .seconds(10)) else {
            return SelfTestJudgement(.unfit, "the scan could not be started")
        }
        let hasHeard = self.heard != nil
        if heard.reports > 0 {
            self.heard = heard
            peering.findTarget(heard)
        }
        return heard.judgedAsPassiveScan(
            expectsReports: plan.expectsReports || peering.peer != nil, after: restarts, hasHeard: hasHeard,
            // Extended advertisements are reported by the extended commands alone.
            expected: (peering.peer?.marks ?? []).filter { $0 == 1 || controller.scanner?.hasExtendedScan ?? false })
    }
}

// MARK: - S08

extension SelfTestHeard {
    /// Judges the reports of an active scan.
    func judgedAsActiveScan() -> SelfTestJudgement {
        let values: KeyValuePairs<String, JSONLine?> = [
            "reports": .integer(reports), "scannable": .integer(scannable), "scanResponses": .integer(scanResponses),
        ]
        guard scannable > 0 || scanResponses > 0 else {
            return SelfTestJudgement(
                .note, reports == 0 ? "nothing was heard" : "no advertiser here has a scan response", values: values)
        }
        var judgement = SelfTestJudgement(
            .fit, "\(scanResponses.counted("scan response")) to \(scannable.counted("scannable report"))",
            values: values)
        if scanResponses == 0 { judgement.remark("no scan response, though advertisers are scannable") }
        return judgement
    }
}

extension SelfTestRunner {
    func activeScan() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        var plan = ScanPlan(.passive)
        plan.isActive = true
        guard let heard = try await scan(plan, for: .seconds(5)) else {
            return SelfTestJudgement(.unfit, "the scan could not be started")
        }
        return heard.judgedAsActiveScan()
    }
}

// MARK: - S09

extension SelfTestHeard {
    /// The smallest cache of duplicates that is known.
    private static let smallestCache = 16

    /// Describes what the controller's filter of duplicates does; no opinion.
    ///
    /// - Parameter unfiltered: The reports without the filter.
    func judgedAsFiltered(without unfiltered: SelfTestHeard?) -> SelfTestJudgement {
        let addresses = advertisers.count
        let most = advertisers.values.map(\.reports).max() ?? 0
        let changed = advertisers.values.count(where: \.hasChanged)
        guard addresses > 0 else { return SelfTestJudgement(.note, "nothing was heard") }
        let repeats = Double(reports) / Double(addresses)
        var judgement = SelfTestJudgement(
            .note,
            "on average \(JSONLine.measure(repeats).text) reports of an address (at most \(most)), changed data of "
                + "\(changed) of \(addresses)",
            values: [
                "addresses": .integer(addresses), "reports": .integer(reports), "repeats": .measure(repeats),
                "mostRepeats": .integer(most), "changedData": .integer(changed),
            ])
        // A scan response, and data that change, are news.
        guard repeats > 3 else { return judgement }
        let isIgnored = unfiltered.map { rate > $0.rate * 0.7 } ?? false
        // A cache for fewer addresses than there are filters nothing either.
        judgement.quirk(isIgnored && addresses <= Self.smallestCache ? "W22" : "W21")
        return judgement
    }
}

extension SelfTestRunner {
    func duplicates() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        var plan = ScanPlan(.passive)
        plan.filtersDuplicates = true
        guard let filtered = try await scan(plan, for: .seconds(8)) else {
            return SelfTestJudgement(.unfit, "the scan could not be started")
        }
        return filtered.judgedAsFiltered(without: heard)
    }
}

// MARK: - S10

/// The rates of a scan that listens always, and of one that listens a part of the time.
struct SelfTestDuty: Hashable, Sendable {
    var full: SelfTestHeard
    var part: SelfTestHeard
    /// The pings of the gateway over Wi-Fi meanwhile.
    var pingAtFull: GatewayPing?
    var pingAtPart: GatewayPing?
    /// Why there are none.
    var obstacle: String?

    private static let limit: Duration = .milliseconds(200)

    func judged() -> SelfTestJudgement {
        func p95(_ ping: GatewayPing?) -> Duration? { ping.flatMap { SelfTestTimes($0.times).p95 } }
        func words(_ ping: GatewayPing?) -> String {
            (p95(ping).map { "p95 \($0.short)" } ?? "no response") + ", \(ping?.lost ?? 0) lost"
        }
        let wireless =
            obstacle.map { "Wi-Fi not measured: \($0)" }
            ?? "ping over Wi-Fi: \(words(pingAtFull)) and \(words(pingAtPart))"
        var judgement = SelfTestJudgement(
            .note,
            "\(JSONLine.measure(full.rate).text) reports/s at 100 % of the time, \(JSONLine.measure(part.rate).text) at 30 %; "
                + wireless,
            values: [
                "perSecondAt100": .measure(full.rate), "perSecondAt30": .measure(part.rate),
                "pingP95At100": p95(pingAtFull).map { .milliseconds($0) },
                "pingP95At30": p95(pingAtPart).map { .milliseconds($0) },
                "pingLostAt100": pingAtFull.map { .integer($0.lost) },
                "pingLostAt30": pingAtPart.map { .integer($0.lost) }, "pingNotRun": obstacle.map { .string($0) },
            ])
        guard let pingAtPart, pingAtPart.sent > 0 else { return judgement }
        if let time = p95(pingAtPart), time >= Self.limit {
            judgement.remark("a scan at 30 % of the time delays Wi-Fi by up to \(time.short)", "W50")
        } else if pingAtPart.times.isEmpty {
            judgement.remark("Wi-Fi loses every ping while it scans at 30 % of the time", "W50")
        }
        return judgement
    }
}

extension SelfTestRunner {
    func duty() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        var full = ScanPlan(.passive)
        full.window = full.interval
        var part = full
        part.window = UInt16(UInt32(part.interval) * 3 / 10)
        let interfaces = facts.wirelessInterfaces.filter(\.isUp).map(\.name)
        let gateway = interfaces.isEmpty ? nil : machine.gateway(interfaces)
        let time: Duration = .seconds(3)
        let (first, pingAtFull) = try await scan(full, for: time, pinging: gateway)
        let (second, pingAtPart) = try await scan(part, for: time, pinging: gateway)
        guard let first, let second else { return SelfTestJudgement(.unfit, "the scan could not be started") }
        var measured = SelfTestDuty(full: first, part: second, pingAtFull: pingAtFull, pingAtPart: pingAtPart)
        if interfaces.isEmpty {
            measured.obstacle = "no Wi-Fi interface is up"
        } else if gateway == nil {
            // The name of an interface may contain its address.
            measured.obstacle = "there is no gateway over Wi-Fi"
        } else if pingAtPart == nil {
            measured.obstacle = "this process may not ping"
        }
        return measured.judged()
    }

    private func scan(
        _ plan: ScanPlan, for time: Duration, pinging gateway: UInt32?
    ) async throws(SelfTestEnd) -> (SelfTestHeard?, GatewayPing?) {
        guard let gateway else { return (try await scan(plan, for: time), nil) }
        let loop = machine.loop
        let ping = Task { try? await loop.offload { GatewayPing.measure(gateway, for: time) } ?? nil }
        let heard = try await scan(plan, for: time)
        return (heard, await ping.value)
    }
}

// MARK: - S11

/// Whether the kernel suspends the USB device while it scans.
struct SelfTestAutosuspend: Hashable, Sendable {
    var bus: String?
    /// `power/control`, and `power/runtime_status` before and in the scan.
    var control: String?
    var before: String?
    var during: [String] = []
    /// The first report of a scan after a pause of five seconds.
    var first: Duration?

    func judged() -> SelfTestJudgement {
        guard bus == "usb" else {
            return SelfTestJudgement(.fit, "not on USB: there is no autosuspend")
        }
        guard let control, !during.isEmpty else { return .notRun("the files of the USB device cannot be read") }
        let wasSuspended = during.contains("suspended")
        var judgement = SelfTestJudgement(
            .fit,
            "power/control \(control), \(before ?? "?") before the scan, \(wasSuspended ? "suspended" : "active") in it"
                + (first.map { ", first report after \($0.short)" } ?? ", no report"),
            values: [
                "control": .string(control), "before": .optional(before),
                "during": .array(during.map { .string($0) }), "firstReport": first.map { .milliseconds($0) },
            ])
        if wasSuspended {
            judgement.remark("the kernel suspended it while it scanned, and reports are lost", "W61")
        } else if control == "auto" {
            judgement.remark("the kernel may suspend it in quiet air (power/control is auto)", "W61")
        }
        return judgement
    }
}

extension SelfTestRunner {
    func autosuspend() async throws(SelfTestEnd) -> SelfTestJudgement {
        var measured = SelfTestAutosuspend(bus: adapter.bus)
        guard adapter.bus == "usb" else { return measured.judged() }
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        _ = try await access.listen(for: .seconds(5))
        let usb = machine.usb(adapter.name)
        measured.control = usb?.control
        measured.before = usb?.status
        guard try await scanOn(ScanPlan(.passive))?.isSuccess == true else {
            return SelfTestJudgement(.unfit, "the scan could not be started")
        }
        let start = machine.loop.now()
        for _ in 0..<3 {
            let heard = try await access.listen(for: .seconds(1))
            if measured.first == nil, let first = heard.first {
                measured.first = machine.loop.now() - start - heard.time + first
            }
            if let status = machine.usb(adapter.name)?.status { measured.during.append(status) }
        }
        try await scanOff()
        return measured.judged()
    }
}
