internal import BLECore

// A controller that behaves as a report of the self-test describes: what it lists, which commands it has refused or not
// responded to, and the rows of the catalogue that a check has seen, where a personality has a property for them. Rows
// that follow from what the controller is, and those that concern the air or the machine, change nothing here.

extension VirtualPersonality {
    /// Creates the personality of a controller on which `blescan selftest` was run.
    ///
    /// What the report does not contain is as the specification has it. A controller that has stopped reporting does so
    /// here after some reports too, and receives again with the mildest action that is known to help.
    ///
    /// - Throws: `AdapterReport.Invalid`, if the report does not describe a controller.
    public init(report: AdapterReport) throws(AdapterReport.Invalid) {
        guard let schema = report.schema, let checks = report.checks else { throw .notAReport }
        guard schema == AdapterReport.supportedSchema else { throw .unknownSchema(schema) }
        self.init()
        capabilities = try Capabilities(report)
        guard capabilities.features != nil || capabilities.commands != nil else { throw .noCapabilities }
        useCapabilities()
        for check in checks {
            if !Self.provokingChecks.contains(check.id) { try useStatuses(of: check) }
            for row in check.quirks ?? [] { try use(row, of: check) }
        }
        if report.kernelChoice?.set == "legacy" { kernelScansExtended = false }
        // What a filter does not let through once it is known; the size of its memory was not found out.
        if let filter = checks.first(where: { $0.id == "S09" }), filter.verdict != "not-run",
            filter.quirks?.isEmpty ?? true
        {
            duplicateCache = Self.usualDuplicateCache
        }
        if let held = report.limits?.linksHeld, let refusal = report.limits?.linksRefusedWith {
            let path = "limits.linksRefusedWith"
            let status = HCIStatus(rawValue: try UInt8(reported: refusal, path))
            // Success would be a link that is not there.
            guard !status.isSuccess else { throw .malformed(path) }
            linkLimit = Int(try UInt8(reported: held, "limits.linksHeld"))
            beyondLimit = .fails(status)
        }
    }

    /// Checks whose commands are refused because of what else the controller does, or have to be refused.
    private static let provokingChecks: Set<String> = ["S13", "S15", "S19"]
    private static let usualDuplicateCache = 64

    /// The commands that are listed are there, and no others.
    private mutating func useCapabilities() {
        guard let octets = capabilities.commands else {
            let features = LEFeatures(rawValue: capabilities.features ?? 0)
            listsExtendedCommands = features.contains(.extendedAdvertising)
            return
        }
        let commands = HCISupportedCommands(octets: octets)
        listsExtendedCommands =
            commands.hasExtendedScan || commands.hasExtendedConnect || commands.hasExtendedAdvertising
        guard listsExtendedCommands else { return }
        if !commands.hasExtendedScan { refuse([0x2041, 0x2042], .unknownCommand) }
        if !commands.hasExtendedConnect { refuse([0x2043], .unknownCommand) }
        if !commands.hasExtendedAdvertising { refuse(Array(0x2035...0x203D), .unknownCommand) }
    }

    private mutating func refuse(_ opcodes: [UInt16], _ status: HCIStatus) {
        for opcode in opcodes where responses[opcode] == nil { responses[opcode] = .status(status) }
    }

    /// A command that was refused, or had no response, each time is so here. Command Disallowed depends on what else
    /// the controller does.
    private mutating func useStatuses(of check: AdapterReport.Check) throws(AdapterReport.Invalid) {
        for (name, statuses) in check.statuses ?? [:] {
            let path = "checks.\(check.id).statuses.\(name)"
            guard let opcode: UInt16 = Self.number(name) else { throw .malformed(path) }
            guard let first = statuses.first, statuses.allSatisfy({ $0 == first }) else { continue }
            guard let status = first else {
                responses[opcode] = .silence
                continue
            }
            let known = HCIStatus(rawValue: try UInt8(reported: status, path))
            if !known.isSuccess, known != .commandDisallowed { responses[opcode] = .status(known) }
        }
    }

    /// Behaves as a row of the catalogue describes.
    private mutating func use(_ row: String, of check: AdapterReport.Check) throws(AdapterReport.Invalid) {
        let scanEnable: UInt16 = hasExtended(\.hasExtendedScan) ? 0x2042 : 0x200C
        switch row {
        case "W01": kernelScansExtended = false
        case "W02": responsesWhileLinked[scanEnable] = .statusIfEnabling(.commandDisallowed)
        case "W03": isResetWhenSilent = true
        case "W04": refuse([0x2041, 0x2042], .unknownCommand)
        case "W05": refuse([0x2043], .unknownCommand)
        case "W06":
            if capabilities.maximumAdvertisingData == nil, responses[0x203A] == nil { responses[0x203A] = .short(1) }
            if capabilities.advertisingSets == nil, responses[0x203B] == nil { responses[0x203B] = .short(1) }
        case "W13": hasDefectiveCodedPHY = true
        case "W16": credits = 0
        case "W18": setsReservedBits = true
        case "W21": duplicateCache = 16
        case "W29": deafness = Deafness(afterReports: 20, recovery: .power)
        case "W32": deafness = Deafness(afterReports: 1, recovery: .rescan)
        case "W34": losesEvery = 10
        case "W35": rssi = 127
        case "W38":
            let statuses = (check.statuses?["0x2043"] ?? []) + (check.statuses?["0x200d"] ?? [])
            let refusal = statuses.compactMap(\.self).last { $0 != 0 } ?? 0x24
            secondAttemptStatus = HCIStatus(rawValue: try UInt8(reported: refusal, "checks.\(check.id).statuses"))
        case "W39": attemptStatusWhileAdvertising = .advertisingTimeout
        case "W40":
            let enable: UInt16 = hasExtended(\.hasExtendedAdvertising) ? 0x2039 : 0x200A
            responsesWhileLinked[enable] = .statusIfEnabling(.commandDisallowed)
        case "W44": dataLead = .milliseconds(12)
        case "W46": losesLinksOn2M = true
        default: break
        }
    }

    private func hasExtended(_ set: KeyPath<HCISupportedCommands, Bool>) -> Bool {
        capabilities.commands.map { HCISupportedCommands(octets: $0)[keyPath: set] } ?? listsExtendedCommands
    }

    /// Reads a number as reports have it, such as 0x200c.
    fileprivate static func number<Number: FixedWidthInteger>(_ text: String) -> Number? {
        guard text.hasPrefix("0x") else { return nil }
        return Number(text.dropFirst(2), radix: 16)
    }
}

extension VirtualPersonality.Capabilities {
    fileprivate init(_ report: AdapterReport) throws(AdapterReport.Invalid) {
        self.init()
        if let claimed = report.capabilities {
            features = try Self.bits(claimed.features, "capabilities.features")
            states = try Self.bits(claimed.states, "capabilities.states")
            if let text = claimed.commands {
                guard let octets = try? Hex.decode(text), octets.count == Self.commandOctets else {
                    throw .malformed("capabilities.commands")
                }
                commands = octets
            }
            acceptListSize = try UInt8(ifReported: claimed.lists?.accept, "capabilities.lists.accept")
            resolvingListSize = try UInt8(ifReported: claimed.lists?.resolving, "capabilities.lists.resolving")
            bufferLength = try UInt16(ifReported: claimed.buffers?.length, "capabilities.buffers.length")
            bufferCount = try UInt8(ifReported: claimed.buffers?.count, "capabilities.buffers.count")
            maximumDataLength = try UInt16(
                ifReported: claimed.buffers?.maxDataLength, "capabilities.buffers.maxDataLength")
            advertisingSets = try UInt8(ifReported: claimed.advertisingSets, "capabilities.advertisingSets")
            maximumAdvertisingData = try UInt16(
                ifReported: claimed.maxAdvertisingData, "capabilities.maxAdvertisingData")
        }
        company = try UInt16(ifReported: report.adapter?.company, "adapter.company")
        hciVersion = try UInt8(ifReported: report.adapter?.hci?.version, "adapter.hci.version")
        hciRevision = try UInt16(ifReported: report.adapter?.hci?.revision, "adapter.hci.revision")
        linkVersion = try UInt8(ifReported: report.adapter?.link?.version, "adapter.link.version")
        linkSubversion = try UInt16(ifReported: report.adapter?.link?.subversion, "adapter.link.subversion")
    }

    /// The length of the list of supported commands. Spec: Core Vol 4 Part E, 6.27.
    private static let commandOctets = 64

    private static func bits(_ text: String?, _ path: String) throws(AdapterReport.Invalid) -> UInt64? {
        guard let text else { return nil }
        guard let number: UInt64 = VirtualPersonality.number(text) else { throw .malformed(path) }
        return number
    }
}

extension FixedWidthInteger {
    /// Creates a number that a report has at a path.
    fileprivate init(reported number: Int, _ path: String) throws(AdapterReport.Invalid) {
        guard let exact = Self(exactly: number) else { throw .malformed(path) }
        self = exact
    }

    fileprivate init?(ifReported number: Int?, _ path: String) throws(AdapterReport.Invalid) {
        guard let number else { return nil }
        try self.init(reported: number, path)
    }
}
