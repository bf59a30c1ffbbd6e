import BLECore

/// The diagnosis for users: a line for each finding, followed by the remedy.
struct DoctorScreen {
    let diagnosis: Diagnosis
    var repairs: [Repair] = []
    /// The columns of the terminal; `nil` for no limit.
    var width: Int?
    /// Whether it is the beginning of a report already.
    var isReport = false

    /// The columns before the text of a finding.
    private static let indentation = 6

    /// The lines, each with its level in colour.
    var lines: [StyledText] {
        repairs.flatMap { block(of: $0) } + diagnosis.lines.flatMap { block(of: $0.finding) } + summary
    }

    private func block(of repair: Repair) -> [StyledText] {
        let level: Finding.Level = repair.failure == nil ? .ok : .fail
        let text = [repair.adapter, repair.text].compactMap(\.self).joined(separator: ": ")
        return block(text, after: level == .ok ? "fix" : Self.word(level), Self.style(level))
    }

    private func block(of finding: Finding) -> [StyledText] {
        let subject = finding.adapter.map { $0 + ": " } ?? ""
        let evidence = block(subject + finding.text, after: Self.word(finding.level), Self.style(finding.level))
        // It is often a command: the terminal breaks it, so that it can be copied as one line.
        return evidence + (finding.remedy.map { [StyledText("      → " + $0.printable)] } ?? [])
    }

    /// Returns a text in as many lines as the terminal needs, after the word that is in this style.
    private func block(_ text: String, after word: String, _ style: ScreenStyle) -> [StyledText] {
        // Other programs chose their own names.
        let text = text.printable
        let texts = width.map { text.wrapped(to: $0 - Self.indentation) } ?? [text]
        return texts.enumerated().map { number, text in
            var line = StyledText(number == 0 ? word : "", style)
            line.pad(to: Self.indentation)
            line.add(text)
            return line
        }
    }

    private var summary: [StyledText] {
        let (failures, warnings) = (diagnosis.count(.fail), diagnosis.count(.warn))
        let worst: Finding.Level = failures > 0 ? .fail : warnings > 0 ? .warn : .ok
        var counts = StyledText(
            "\(failures.counted("failure")), \(warnings.counted("warning")).", Self.style(worst))
        guard worst != .ok, !isReport else { return [counts] }
        let advice = "For a bug: `blescan doctor --report` masks addresses and names."
        if let width, counts.width + 2 + advice.count > width {
            return [counts] + advice.wrapped(to: width).map { StyledText($0) }
        }
        counts.add("  " + advice)
        return [counts]
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
