/// The result of a check of the adapter.
enum SelfTestVerdict: String, Hashable, Comparable, Sendable {
    /// It could not run; the text has the reason.
    case notRun = "not-run"
    /// Values without an opinion.
    case note
    case fit
    /// It works, with a restriction or a workaround.
    case remark
    /// Something that programs rely on does not work.
    case unfit

    static func < (first: Self, second: Self) -> Bool { first.severity < second.severity }

    private var severity: Int {
        switch self {
        case .notRun: 0
        case .note: 1
        case .fit: 2
        case .remark: 3
        case .unfit: 4
        }
    }
}

/// The judgement of a check: a line of text, the values that it follows from, and the remarks.
struct SelfTestJudgement: Hashable, Sendable {
    private(set) var verdict: SelfTestVerdict
    /// The measured values in words, on one line.
    let text: String
    var values: [JSONLine.Member] = []
    /// What is not as it should be, each as a sentence.
    private(set) var remarks: [String] = []
    /// The rows of the catalogue of controllers that were seen, such as `W09`.
    private(set) var quirks: [String] = []

    init(_ verdict: SelfTestVerdict, _ text: String, values: KeyValuePairs<String, JSONLine?> = [:]) {
        self.verdict = verdict
        self.text = text
        self.values = values.compactMap { key, value in value.map { JSONLine.Member(key: key, value: $0) } }
    }

    /// A check that could not run.
    static func notRun(_ reason: String) -> SelfTestJudgement { SelfTestJudgement(.notRun, reason) }

    /// Adds a remark, and makes the verdict at least as bad as `verdict`.
    mutating func remark(_ remark: String, _ quirks: String..., verdict: SelfTestVerdict = .remark) {
        self.verdict = max(self.verdict, verdict)
        remarks.append(remark)
        for quirk in quirks { self.quirk(quirk) }
    }

    /// Notes a row of the catalogue that changes no verdict.
    mutating func quirk(_ row: String) {
        if !quirks.contains(row) { quirks.append(row) }
    }
}

/// One check that has run, or has not.
struct SelfTestResult: Hashable, Sendable {
    let check: SelfTestCheck
    let judgement: SelfTestJudgement
    let time: Duration
    /// The statuses of the commands that it sent, in their order; `nil` for those without a response.
    let statuses: [SelfTestStatuses]
}

/// The statuses of one command.
struct SelfTestStatuses: Hashable, Sendable {
    let opcode: UInt16
    var statuses: [UInt8?]
}

extension JSONLine {
    /// A number with the digits that a measure has.
    static func measure(_ value: Double) -> JSONLine {
        let tenths = (value * 10).rounded() / 10
        return tenths == tenths.rounded() && abs(tenths) < 1e15 ? .integer(Int(tenths)) : .number(tenths)
    }

    /// Milliseconds, with one decimal.
    static func milliseconds(_ time: Duration) -> JSONLine { measure(time / .milliseconds(1)) }
}

extension Duration {
    /// The time in milliseconds, or from 1 s on in seconds.
    var short: String {
        self < .milliseconds(10)
            ? "\(JSONLine.milliseconds(self).text) ms"
            : self < .seconds(1)
                ? "\(Int((self / .milliseconds(1)).rounded())) ms" : "\(JSONLine.measure(self / .seconds(1)).text) s"
    }
}

/// Percentiles of measured times.
struct SelfTestTimes: Hashable, Sendable {
    private let sorted: [Duration]

    init(_ times: [Duration]) {
        sorted = times.sorted()
    }

    var count: Int { sorted.count }
    var maximum: Duration? { sorted.last }
    var median: Duration? { percentile(50) }
    var p95: Duration? { percentile(95) }

    /// The time that this share of all does not exceed.
    private func percentile(_ percent: Int) -> Duration? {
        guard !sorted.isEmpty else { return nil }
        return sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
    }
}
