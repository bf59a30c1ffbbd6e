import BLECore
import BLELinux
import BareBLE

// S01 to S04: what the controller is, how it responds, what it reports as supported, and what the kernel makes of that.

// MARK: - S01

extension SelfTestJudgement {
    /// Judges what an adapter is by the rules of the doctor.
    static func identity(_ adapter: AdapterFacts, _ facts: SystemFacts, _ version: HCIVersion?) -> SelfTestJudgement {
        let parts =
            [
                facts.usbDevices[adapter.name].map { "usb \($0.identifier)" } ?? adapter.bus,
                version.map { AssignedNumbers.companyName($0.company) ?? "company \($0.company)" },
                version.map { "Bluetooth \($0.specification ?? "version \($0.hciVersion)")" },
            ].compactMap(\.self) + Check.revisions(adapter, facts)
        var judgement = SelfTestJudgement(
            .fit, parts.joined(separator: ", "),
            values: [
                "company": version.map { .integer(Int($0.company)) },
                "hciRevision": version.map { .integer(Int($0.hciRevision)) },
                "linkSubversion": version.map { .integer(Int($0.linkSubversion)) },
            ])
        if version == nil { judgement.remark("the controller did not report its versions", verdict: .unfit) }
        let fault = Check.addressFault(adapter, "address \(adapter.address)", facts)
        for finding in Check.defects(of: adapter, facts) + [fault].compactMap(\.self) {
            guard finding.level == .warn || finding.level == .fail else { continue }
            let isWorst = finding.level == .fail || finding.id == "clone"
            judgement.remark(finding.text, verdict: isWorst ? .unfit : .remark)
            if let row = rows[finding.id] { judgement.quirk(row) }
        }
        return judgement
    }

    /// The rows of the doctor's findings.
    private static let rows = [
        "clone": "W54", "barrot": "W55", "masked-reports": "W01", "default-address": "W57", "unconfigured": "W57",
        "no-address": "W58", "same-address": "W68",
    ]
}

extension SelfTestRunner {
    func identity() async throws(SelfTestEnd) -> SelfTestJudgement {
        let reply = try await access.ask(HCICommandPacket(HCIReadLocalVersion()))
        let version = reply.decoded(HCIReadLocalVersion.self)
        report.adapter.version = version
        if let version {
            var known = adapter.controller ?? ControllerFacts()
            known.version = VersionFacts(version)
            adapter.controller = known
        }
        return .identity(adapter, facts, version)
    }
}

extension SelfTestChannel.Reply {
    /// The return parameters of a query; `nil` if it failed, or if they do not have their layout.
    func decoded<Query: HCIQuery>(_ query: Query.Type) -> Query.ReturnParameters? {
        guard isSuccess else { return nil }
        return try? Query.parameters(from: values.span)
    }
}

// MARK: - S02

/// The responses to harmless commands.
struct SelfTestResponses: Hashable, Sendable {
    var replies: [SelfTestChannel.Reply] = []

    /// The limit for the slowest of them.
    static let limit: Duration = .milliseconds(200)

    func judged() -> SelfTestJudgement {
        let responded = replies.filter { $0.status != nil || $0.end == .malformed }
        let times = SelfTestTimes(responded.map(\.time))
        let credits = Set(responded.compactMap(\.credits)).sorted()
        var text = "\(responded.count) of \(replies.count) commands had a response"
        if let median = times.median, let p95 = times.p95, let maximum = times.maximum {
            text += ", after \(median.short) (p95 \(p95.short), at most \(maximum.short))"
        }
        var judgement = SelfTestJudgement(
            .fit, text,
            values: [
                "commands": .integer(replies.count), "responses": .integer(responded.count),
                "p50": times.median.map { .milliseconds($0) }, "p95": times.p95.map { .milliseconds($0) },
                "max": times.maximum.map { .milliseconds($0) },
                "credits": .array(credits.map { .integer(Int($0)) }),
            ])
        let missing = replies.count - responded.count
        if missing > 0 {
            judgement.remark("\(missing.counted("command")) had no response", "W30", verdict: .unfit)
        }
        if responded.contains(where: { $0.end == .malformed }) {
            judgement.remark("there were responses without a status", "W06")
        }
        if let maximum = times.maximum, maximum >= Self.limit {
            judgement.remark("the slowest response took \(maximum.short); up to \(Self.limit.short) is usual", "W15")
        }
        if credits == [0] {
            judgement.remark("it reports that it takes no further command, where it takes them", "W16")
        }
        return judgement
    }
}

extension SelfTestRunner {
    private static let harmless: [HCICommandPacket] = [
        HCICommandPacket(HCIReadLocalVersion()), HCICommandPacket(HCIReadLocalSupportedCommands()),
        HCICommandPacket(HCIReadAddress()), HCICommandPacket(LEReadLocalFeatures()),
        HCICommandPacket(opcode: SelfTestCapabilities.bufferSize, parameters: []),
        HCICommandPacket(opcode: SelfTestCapabilities.acceptListSize, parameters: []),
    ]

    func responses() async throws(SelfTestEnd) -> SelfTestJudgement {
        var measured = SelfTestResponses()
        for _ in 0..<5 {
            for command in Self.harmless {
                measured.replies.append(try await access.ask(command))
                // A controller that is dead costs the deadline of each further one.
                if measured.replies.count(where: { $0.end == .silence }) > 2 { return measured.judged() }
            }
        }
        return measured.judged()
    }
}

// MARK: - S03

/// What the controller lists, and what became of the commands that it lists.
struct SelfTestCapabilities: Hashable, Sendable {
    static let bufferSize = HCIOpcode(rawValue: 0x2002)
    static let acceptListSize = HCIOpcode(rawValue: 0x200F)
    static let supportedStates = HCIOpcode(rawValue: 0x201C)
    static let resolvingListSize = HCIOpcode(rawValue: 0x202A)
    static let maximumDataLength = HCIOpcode(rawValue: 0x202F)

    /// The queries, with their places in the list of supported commands and the length of their return parameters.
    static let queries: [(opcode: HCIOpcode, octet: Int, bit: Int, length: Int)] = [
        (bufferSize, 25, 1, 3), (acceptListSize, 26, 6, 1), (supportedStates, 28, 3, 8), (resolvingListSize, 34, 6, 1),
        (maximumDataLength, 35, 3, 8), (.leReadMaximumAdvertisingDataLength, 36, 6, 2),
        (.leReadNumberOfSupportedAdvertisingSets, 36, 7, 1),
    ]

    var features: LEFeatures?
    var commands: HCISupportedCommands?
    /// The responses to the queries that it lists.
    var replies: [HCIOpcode: SelfTestChannel.Reply] = [:]
    /// Whether the driver does not use the coded PHY that it announces.
    var hasDefectiveCodedPHY = false

    func judged() -> SelfTestJudgement {
        guard let features, let commands else {
            return SelfTestJudgement(.unfit, "it did not report its \(features == nil ? "features" : "commands")")
                .remarking("a controller without them cannot be used")
        }
        let values = capabilities
        var parts = [commands.hasExtendedScan ? "extended scan" : "legacy scan"]
        if features.contains(.le2M) { parts.append("2M") }
        if features.contains(.coded) { parts.append("coded") }
        if let sets = values.advertisingSets { parts.append(Int(sets).counted("advertising set")) }
        if let count = values.bufferCount, let length = values.bufferLength {
            parts.append("\(count) buffers of \(length) bytes")
        }
        var judgement = SelfTestJudgement(.fit, parts.joined(separator: ", "))
        let rules: [(feature: LEFeatures, name: String, isListed: Bool, command: String)] = [
            (.extendedAdvertising, "extended advertising", commands.hasExtendedScan, "extended scan"),
            (.le2M, "the 2M PHY", commands.contains(octet: 35, bit: 6), "LE Set PHY"),
            (.dataLengthExtension, "long data packets", commands.contains(octet: 33, bit: 6), "LE Set Data Length"),
        ]
        for rule in rules where features.contains(rule.feature) && !rule.isListed {
            judgement.remark("it announces \(rule.name), and does not list the commands for it (\(rule.command))")
        }
        if commands.hasExtendedScan, !features.contains(.extendedAdvertising) {
            judgement.remark("it lists the commands of the extended scan, and does not announce the feature")
        }
        for query in Self.queries {
            guard let reply = replies[query.opcode] else { continue }
            switch reply.end {
            case .status(0):
                if reply.values.count < query.length {
                    judgement.remark("the response to \(query.opcode) is too short", "W06")
                }
            case .status(let status):
                judgement.remark(
                    "it lists \(query.opcode) and refuses it: \(HCIStatus(rawValue: status))")
            case .malformed: judgement.remark("the response to \(query.opcode) has no status", "W06")
            case .silence: judgement.remark("\(query.opcode) had no response", "W30", verdict: .unfit)
            case .notSent, .gone: judgement.remark("\(query.opcode) could not be sent")
            }
        }
        if hasDefectiveCodedPHY, features.contains(.coded) { judgement.quirk("W13") }
        return judgement
    }

    /// The sizes, as far as the responses hold them.
    var capabilities: SelfTestReport.Capabilities {
        var found = SelfTestReport.Capabilities(features: features?.rawValue, commands: commands?.octets)
        func reader(_ opcode: HCIOpcode) -> [UInt8] {
            guard let reply = replies[opcode], reply.isSuccess else { return [] }
            return reply.values
        }
        let buffer = reader(Self.bufferSize)
        if buffer.count >= 3 {
            found.bufferLength = UInt16(buffer[0]) | UInt16(buffer[1]) << 8
            found.bufferCount = buffer[2]
        }
        found.acceptList = reader(Self.acceptListSize).first
        found.resolvingList = reader(Self.resolvingListSize).first
        let states = reader(Self.supportedStates)
        if states.count == 8 { found.states = states.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        let length = reader(Self.maximumDataLength)
        if length.count >= 2 { found.maxDataLength = UInt16(length[0]) | UInt16(length[1]) << 8 }
        let data = reader(.leReadMaximumAdvertisingDataLength)
        if data.count >= 2 { found.maxAdvertisingData = UInt16(data[0]) | UInt16(data[1]) << 8 }
        found.advertisingSets = reader(.leReadNumberOfSupportedAdvertisingSets).first
        return found
    }
}

extension SelfTestJudgement {
    fileprivate func remarking(_ remark: String) -> SelfTestJudgement {
        var judgement = self
        judgement.remark(remark, verdict: .unfit)
        return judgement
    }
}

extension SelfTestRunner {
    func capabilities() async throws(SelfTestEnd) -> SelfTestJudgement {
        var measured = SelfTestCapabilities()
        measured.features = try await access.ask(HCICommandPacket(LEReadLocalFeatures())).decoded(
            LEReadLocalFeatures.self)
        measured.commands = try await access.ask(HCICommandPacket(HCIReadLocalSupportedCommands()))
            .decoded(HCIReadLocalSupportedCommands.self)
        for query in SelfTestCapabilities.queries
        where measured.commands?.contains(octet: query.octet, bit: query.bit) ?? false {
            measured.replies[query.opcode] = try await access.ask(
                HCICommandPacket(opcode: query.opcode, parameters: []))
        }
        measured.hasDefectiveCodedPHY = Check.hasDefectiveCodedPHY(adapter, facts)
        controller.reported(measured.features, measured.commands)
        report.capabilities = measured.capabilities
        if measured.features != nil {
            let address = try await access.ask(HCICommandPacket(HCIReadAddress())).decoded(HCIReadAddress.self)
            controller.scans(from: address)
        }
        return measured.judged()
    }
}

// MARK: - S04

/// The commands that the kernel sent to the controller while it was switched on.
struct SelfTestKernelChoice: Hashable, Sendable {
    /// Whether the controller lists the extended commands, by which the kernel should choose.
    var listsExtended: Bool
    /// The LE event mask that the kernel has set; `nil` if that was not seen.
    var mask: LEEventMask?
    /// Why the adapter was not switched off and on.
    var obstacle: String?

    var choice: SelfTestReport.KernelChoice {
        SelfTestReport.KernelChoice(
            isExtended: mask?.contains(.extendedAdvertisingReport) ?? listsExtended, leEventMask: mask?.rawValue,
            source: mask == nil ? .inferred : .observed)
    }

    func judged() -> SelfTestJudgement {
        let set = choice.isExtended ? "extended" : "legacy"
        guard let mask else {
            return SelfTestJudgement(
                .note, "the kernel likely scans with the \(set) commands: \(obstacle ?? "its event mask was not seen")",
                values: ["set": .string(set)])
        }
        var judgement = SelfTestJudgement(
            .fit, "the kernel scans with the \(set) commands, LE event mask \(Hex.number(mask.rawValue))",
            values: ["set": .string(set), "leEventMask": .string(Hex.number(mask.rawValue))])
        if listsExtended, !choice.isExtended {
            judgement.remark(
                "the kernel does not use the extended scan that the controller lists, and masks its reports", "W01")
        }
        if !mask.contains(.advertisingReport), !choice.isExtended {
            judgement.remark("the reports of legacy scans are masked", "W10")
        }
        return judgement
    }
}

extension SelfTestRunner {
    func kernelChoice() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard controller.features != nil else { return .notRun("the controller did not report its features") }
        var measured = SelfTestKernelChoice(listsExtended: controller.scanner?.hasExtendedScan ?? false)
        if let obstacle = linksInTheWay() {
            measured.obstacle = obstacle
        } else if machine.system.privileges().has(.netAdmin) {
            if let failure = try await powerCycle() {
                if !access.isUp { throw access.endWithoutPower }
                measured.obstacle = "the adapter could not be switched off and on: \(failure)"
            } else {
                measured.mask = try await maskOfKernel()
                if let mask = measured.mask { access.noteKernelMask(mask) }
            }
        } else {
            measured.obstacle = "switching the adapter off and on, to see it, needs CAP_NET_ADMIN"
        }
        report.kernelChoice = measured.choice
        controller.compareMask(of: measured.mask)
        try await unmask()
        return measured.judged()
    }

    /// Switches on what the kernel has masked, as programs on BareBLE do: its events do not come.
    func unmask() async throws(SelfTestEnd) {
        guard let wantedMask = controller.wantedMask else { return }
        _ = try await access.ask(HCICommandPacket(LESetEventMask(wantedMask)))
    }

    /// Switches the adapter off and on.
    ///
    /// - Returns: Why it was not switched, if it was not.
    func powerCycle() async throws(SelfTestEnd) -> SelfTestPowerFailure? {
        if Task.isCancelled { throw .interrupted }
        let failure = await access.cyclePower()
        // If the adapter is gone, the failure is no evidence of how it is switched.
        if failure != nil, (try? machine.system.info(adapter.index)) == nil { throw access.endWithoutPower }
        return failure
    }

    /// Reads the kernel's commands of the last power-up.
    private func maskOfKernel() async throws(SelfTestEnd) -> LEEventMask? {
        try await access.wait(for: .milliseconds(300)) { packet -> LEEventMask? in
            guard case .command(let command) = packet.content, command.opcode == .leSetEventMask else { return nil }
            var reader = ByteReader(command.parameters.span)
            return reader.u64().map { LEEventMask(rawValue: $0) }
        }
    }
}
