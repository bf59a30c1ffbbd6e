import BLECore

/// Everything that the self-test found out about an adapter.
struct SelfTestReport: Hashable, Sendable {
    /// What is known of the adapter itself.
    struct Adapter: Hashable, Sendable {
        var name = ""
        var address = BluetoothAddress.zero
        var bus: String?
        var usb: String?
        var bcdDevice: String?
        var driver: String?
        var version: HCIVersion?
        var firmwareLines: [String] = []
    }

    /// What surrounds it.
    struct Environment: Hashable, Sendable {
        var autosuspend: String?
        var wireless: [WirelessInterface] = []
        var hasDaemon = false
        var openers: [String] = []
    }

    /// The capabilities that the controller reports; `nil` where it did not.
    struct Capabilities: Hashable, Sendable {
        var features: UInt64?
        var commands: [UInt8]?
        var states: UInt64?
        var acceptList: UInt8?
        var resolvingList: UInt8?
        var bufferLength: UInt16?
        var bufferCount: UInt8?
        var maxDataLength: UInt16?
        var advertisingSets: UInt8?
        var maxAdvertisingData: UInt16?
    }

    /// Which commands the kernel scans with.
    struct KernelChoice: Hashable, Sendable {
        enum Source: String, Hashable, Sendable {
            case observed, inferred
        }

        var isExtended: Bool
        var leEventMask: UInt64?
        var source: Source
    }

    /// The limits that it reached.
    struct Limits: Hashable, Sendable {
        var linksHeld: Int?
        var linksRefusedWith: UInt8?
        var notificationsPerSecond: Double?
    }

    var date = ""
    var kernel = ""
    var distribution: String?
    var board: String?
    var hostName = ""
    var adapter = Adapter()
    var environment = Environment()
    var capabilities = Capabilities()
    var kernelChoice: KernelChoice?
    var limits = Limits()
    var results: [SelfTestResult] = []
    var kernelLog: [String] = []
    /// Whether the user has named a peer, or an adapter that is one.
    var expectsPeer = false
    var expectsPeerAdapter = false
    /// How many rounds `--soak` has made.
    var rounds: Int?
    /// Why it ended early: the adapter disappeared, or the user interrupted it.
    var end: String?
    var isInterrupted = false
    /// Whether what ended it makes the adapter unfit.
    var endIsFailure = false
    /// What could not be restored.
    var restoration: [String] = []

    /// The verdict on the adapter: `fit`, `remark` or `unfit`.
    ///
    /// A check that did not run leaves a doubt; not so one that needs a peer, where the user has named none.
    var verdict: SelfTestVerdict {
        if endIsFailure || results.contains(where: { $0.judgement.verdict == .unfit }) { return .unfit }
        return remarks.isEmpty ? .fit : .remark
    }

    /// The exit status of the program for the verdict.
    var status: Int32 {
        switch verdict {
        case .unfit: 2
        case .remark: 1
        case .notRun, .note, .fit: 0
        }
    }

    /// Everything that keeps the verdict from being plainly fit.
    var remarks: [String] {
        var remarks: [String] = []
        for result in results {
            remarks += result.judgement.remarks.map { "\(result.check.id): \($0)" }
            if result.judgement.verdict == .notRun, isExpected(result.check) {
                remarks.append("\(result.check.id): not run: \(result.judgement.text)")
            }
        }
        return remarks + restoration + [end].compactMap(\.self)
    }

    private func isExpected(_ check: SelfTestCheck) -> Bool {
        if !check.needsPeer { return true }
        return check.needsPeerAdapter ? expectsPeerAdapter : expectsPeer
    }

    /// The rows of the catalogue that were seen, each once.
    var quirks: [SelfTestQuirk] {
        var seen: Set<String> = []
        return results.flatMap(\.judgement.quirks).filter { seen.insert($0).inserted }.sorted().map {
            SelfTestQuirk($0)
        }
    }
}

// MARK: - JSON

extension SelfTestReport {
    /// The number of the format. It grows when a name or a meaning changes.
    static let schema = 1

    /// The report as one object; the names are stable.
    ///
    /// - Parameter redacts: Whether addresses, the host's name and the names of programs are left out.
    func json(redacted redacts: Bool) -> JSONLine {
        var masking = redacts ? Masking(hostName: hostName) : nil
        func text(_ text: String) -> JSONLine { .string(masking?.mask(text) ?? text) }
        let remarks = self.remarks.map(text)
        let log = kernelLog.map { line in masking?.mask(quoted: line) ?? line }.map(text)
        let firmware = adapter.firmwareLines.map(text)
        let openers = environment.openers.map { masking?.mask(program: $0) ?? $0 }.map { JSONLine.string($0) }
        let checks = results.map { $0.json(text) }
        return .object([
            "schema": .integer(Self.schema), "tool": .string("blescan \(DoctorReport.version)"),
            "date": .string(date), "kernel": text(kernel), "distribution": .optional(distribution),
            "board": .optional(board),
            "adapter": adapterJSON(redacts, firmware), "environment": environmentJSON(openers),
            "capabilities": capabilities.json, "kernelChoice": kernelChoice?.json ?? .null,
            "checks": .array(checks), "kernelLogDuring": .array(log),
            "quirks": .array(
                quirks.map {
                    .object([
                        "id": .string($0.row), "confidence": .string($0.confidence.rawValue),
                        "workaround": .string($0.workaround),
                    ])
                }),
            "limits": .object([
                "linksHeld": .optional(limits.linksHeld),
                "linksRefusedWith": .optional(limits.linksRefusedWith.map { Int($0) }),
                "notificationsPerSecond": limits.notificationsPerSecond.map { .measure($0) } ?? .null,
            ]),
            "rounds": rounds.map { .integer($0) },
            "verdict": .string(verdict == .remark ? "fit-with-remarks" : verdict.rawValue),
            "remarks": .array(remarks),
        ])
    }

    private func adapterJSON(_ redacts: Bool, _ firmware: [JSONLine]) -> JSONLine {
        let version = adapter.version
        return .object([
            "name": .string(adapter.name), "address": redacts ? nil : .string(adapter.address.description),
            "bus": .optional(adapter.bus), "usb": .optional(adapter.usb), "bcdDevice": .optional(adapter.bcdDevice),
            "driver": .optional(adapter.driver), "company": .optional(version.map { Int($0.company) }),
            "hci": .object([
                "version": .optional(version.map { Int($0.hciVersion) }),
                "revision": .optional(version.map { Int($0.hciRevision) }),
            ]),
            "link": .object([
                "version": .optional(version.map { Int($0.linkVersion) }),
                "subversion": .optional(version.map { Int($0.linkSubversion) }),
            ]),
            "firmwareLines": .array(firmware),
            "addressKind": .string(adapter.address == .zero ? "none" : "public"),
        ])
    }

    private func environmentJSON(_ openers: [JSONLine]) -> JSONLine {
        .object([
            "autosuspend": .optional(environment.autosuspend),
            "wifi": .array(
                environment.wireless.map {
                    .object(["driver": .optional($0.driver), "band": .null, "up": .bool($0.isUp)])
                }),
            "bluetoothd": .bool(environment.hasDaemon), "otherOpeners": .array(openers),
        ])
    }
}

extension SelfTestReport.Capabilities {
    fileprivate var json: JSONLine {
        .object([
            "features": .optional(features.map { Hex.number($0) }),
            "commands": .optional(commands.map { Hex.encode($0) }),
            "states": .optional(states.map { Hex.number($0) }),
            "lists": .object([
                "accept": .optional(acceptList.map { Int($0) }), "resolving": .optional(resolvingList.map { Int($0) }),
            ]),
            "buffers": .object([
                "length": .optional(bufferLength.map { Int($0) }), "count": .optional(bufferCount.map { Int($0) }),
                "maxDataLength": .optional(maxDataLength.map { Int($0) }),
            ]),
            "advertisingSets": .optional(advertisingSets.map { Int($0) }),
            "maxAdvertisingData": .optional(maxAdvertisingData.map { Int($0) }),
        ])
    }
}

extension SelfTestReport.KernelChoice {
    fileprivate var json: JSONLine {
        .object([
            "set": .string(isExtended ? "extended" : "legacy"),
            "leEventMask": .optional(leEventMask.map { Hex.number($0) }), "how": .string(source.rawValue),
        ])
    }
}

extension SelfTestResult {
    fileprivate func json(_ text: (String) -> JSONLine) -> JSONLine {
        .object([
            "id": .string(check.id), "verdict": .string(judgement.verdict.rawValue),
            "seconds": .measure(time / .seconds(1)), "text": text(judgement.text),
            "values": .object(judgement.values),
            "statuses": .object(
                statuses.map { entry in
                    JSONLine.Member(
                        key: Hex.number(entry.opcode),
                        value: .array(entry.statuses.map { .optional($0.map { Int($0) }) }))
                }),
            "quirks": .array(judgement.quirks.map { .string($0) }),
        ])
    }
}

extension JSONLine {
    static func optional(_ value: String?) -> JSONLine { value.map { .string($0) } ?? .null }
    static func optional(_ value: Int?) -> JSONLine { value.map { .integer($0) } ?? .null }
}

extension Hex {
    /// Returns a number with 0x, and all digits of its type.
    static func number<Number: FixedWidthInteger>(_ number: Number) -> String {
        let digits = String(number, radix: 16)
        return "0x" + String(repeating: "0", count: max(0, Number.bitWidth / 4 - digits.count)) + digits
    }
}
