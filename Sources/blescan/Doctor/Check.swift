/// The checks of the diagnosis, in their order: from the kernel up to one peer. Each has a file, or shares one with
/// related ones.
///
/// A check only judges. All its facts were collected before and are in `SystemFacts`.
enum Check: Int, CaseIterable, Hashable, Sendable {
    case sockets = 1
    case surroundings
    case capabilities
    case adapters
    case blocks
    case settings
    case otherUsers
    case features
    case scanState
    case testScan
    case reports
    case links
    case kernel
    case wireless
    case connection
    case bonds

    /// The name in `--json`, in one word with dashes.
    var name: String {
        switch self {
        case .sockets: "sockets"
        case .surroundings: "surroundings"
        case .capabilities: "capabilities"
        case .adapters: "adapters"
        case .blocks: "rfkill"
        case .settings: "settings"
        case .otherUsers: "other-users"
        case .features: "features"
        case .scanState: "scan-state"
        case .testScan: "test-scan"
        case .reports: "reports"
        case .links: "links"
        case .kernel: "kernel"
        case .wireless: "wifi"
        case .connection: "connect"
        case .bonds: "bonds"
        }
    }

    /// Returns what the check finds in the facts; at least one finding.
    func findings(_ facts: SystemFacts) -> [Finding] {
        switch self {
        case .sockets: Self.sockets(facts)
        case .surroundings: Self.surroundings(facts)
        case .capabilities: Self.capabilities(facts)
        case .adapters: Self.adapters(facts)
        case .blocks: Self.blocks(facts)
        case .settings: Self.settings(facts)
        case .otherUsers: Self.otherUsers(facts)
        case .features: Self.features(facts)
        case .scanState: Self.scanState(facts)
        case .testScan: Self.testScan(facts)
        case .reports: Self.reports(facts)
        case .links: Self.links(facts)
        case .kernel: Self.kernel(facts)
        case .wireless: Self.wireless(facts)
        case .connection: Self.connection(facts)
        case .bonds: Self.bonds(facts)
        }
    }

    /// Returns the findings about each adapter in question; `skip` if there is none.
    ///
    /// A failure of an adapter that programs do not use by default does not count.
    static func each(
        _ facts: SystemFacts, _ id: String, _ body: (AdapterFacts) -> [Finding]
    ) -> [Finding] {
        guard let first = facts.radio.adapters.first else {
            let words = id.split(separator: "-").joined(separator: " ")
            return [.skip(id, "\(words): no adapter to look at")]
        }
        return facts.radio.adapters.flatMap { adapter in
            body(adapter).map { finding in
                guard adapter != first, finding.level == .fail else { return finding }
                return Finding(
                    level: .warn, id: finding.id, adapter: finding.adapter, text: finding.text, remedy: finding.remedy,
                    fix: finding.fix)
            }
        }
    }
}

/// The findings of all checks.
struct Diagnosis: Hashable, Sendable {
    struct Line: Hashable, Sendable {
        let check: Check
        let finding: Finding
    }

    let lines: [Line]

    init(lines: [Line]) {
        self.lines = lines
    }

    init(_ facts: SystemFacts) {
        lines = Check.allCases.flatMap { check in check.findings(facts).map { Line(check: check, finding: $0) } }
    }

    func count(_ level: Finding.Level) -> Int { lines.count { $0.finding.level == level } }

    /// The exit status: the worst failure's status, where the lack of a usable adapter is the worst.
    var status: ExitStatus {
        let failures = lines.filter { $0.finding.level == .fail }.map(\.finding.status)
        return [.noAdapter, .notPermitted].first(where: failures.contains) ?? failures.first ?? .done
    }
}
