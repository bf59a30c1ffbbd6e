import BLECore

/// The diagnosis for users: a line for each finding, followed by the remedy.
struct DoctorScreen {
    let diagnosis: Diagnosis
    var repairs: [Repair] = []
    /// Whether it is the beginning of a report already.
    var isReport = false

    /// The lines, each with its level in colour.
    var lines: [StyledText] {
        repairs.map { Self.line(of: $0) } + diagnosis.lines.flatMap { Self.lines(of: $0.finding) } + [summary]
    }

    private static func line(of repair: Repair) -> StyledText {
        let level: Finding.Level = repair.failure == nil ? .ok : .fail
        var line = StyledText((level == .ok ? "fix" : word(level)).padded(to: 6), style(level))
        line.add([repair.adapter, repair.text].compactMap(\.self).joined(separator: ": ").printable)
        return line
    }

    private static func lines(of finding: Finding) -> [StyledText] {
        var line = StyledText(word(finding.level).padded(to: 6), style(finding.level))
        let subject = finding.adapter.map { $0 + ": " } ?? ""
        // Other programs chose their own names.
        line.add((subject + finding.text).printable)
        return [line] + (finding.remedy.map { [StyledText("      → " + $0.printable)] } ?? [])
    }

    private var summary: StyledText {
        let (failures, warnings) = (diagnosis.count(.fail), diagnosis.count(.warn))
        let worst: Finding.Level = failures > 0 ? .fail : warnings > 0 ? .warn : .ok
        var line = StyledText(
            "\(failures.counted("failure")), \(warnings.counted("warning")).", Self.style(worst))
        if worst != .ok, !isReport { line.add("  For a bug: `blescan doctor --report` masks addresses and names.") }
        return line
    }

    private static func word(_ level: Finding.Level) -> String { level == .fail ? "FAIL" : level.rawValue }

    private static func style(_ level: Finding.Level) -> ScreenStyle {
        switch level {
        case .ok: .good
        case .warn: .warning
        case .fail: .failure
        case .skip: .skipped
        }
    }
}

extension JSONLine {
    /// Shows a repair by `--fix`.
    init(_ repair: Repair) {
        self = .object([
            "v": 1, "fix": .string(repair.fix.rawValue), "adapter": repair.adapter.map { .string($0) },
            "done": .bool(repair.failure == nil), "text": .string(repair.text),
        ])
    }

    /// One finding.
    init(_ line: Diagnosis.Line) {
        let finding = line.finding
        self = .object([
            "v": 1, "check": .integer(line.check.rawValue), "name": .string(line.check.name),
            "level": .string(finding.level.rawValue), "id": .string(finding.id),
            "adapter": finding.adapter.map { .string($0) }, "text": .string(finding.text),
            "remedy": finding.remedy.map { .string($0) }, "fix": finding.fix.map { .string($0.rawValue) },
        ])
    }

    /// Shows the number of findings of each kind.
    init(summaryOf diagnosis: Diagnosis, kernel: String? = nil) {
        self = .object([
            "v": 1, "failures": .integer(diagnosis.count(.fail)), "warnings": .integer(diagnosis.count(.warn)),
            "skipped": .integer(diagnosis.count(.skip)), "status": .integer(Int(diagnosis.status.rawValue)),
            "version": kernel.map { _ in .string(DoctorReport.version) },
            "kernel": kernel.map { .string($0) },
            "architecture": kernel.map { _ in .string(DoctorReport.architecture) },
        ])
    }
}
