import BLECore

/// The diagnosis for users: a line for each finding, followed by the remedy.
struct DoctorScreen {
    let diagnosis: Diagnosis
    var repairs: [Repair] = []
    /// Whether it is the beginning of a report already.
    var isReport = false

    var lines: [String] {
        repairs.map { repair in
            ((repair.failure == nil ? "fix" : "FAIL").padded(to: 6)
                + [repair.adapter, repair.text].compactMap(\.self).joined(separator: ": ")).printable
        } + diagnosis.lines.flatMap { Self.lines(of: $0.finding) } + [summary]
    }

    private static func lines(of finding: Finding) -> [String] {
        let level = finding.level == .fail ? "FAIL" : finding.level.rawValue
        let subject = finding.adapter.map { $0 + ": " } ?? ""
        // Other programs chose their own names.
        let first = level.padded(to: 6) + (subject + finding.text).printable
        return [first] + (finding.remedy.map { ["      → " + $0.printable] } ?? [])
    }

    private var summary: String {
        let (failures, warnings) = (diagnosis.count(.fail), diagnosis.count(.warn))
        let counts = "\(failures.counted("failure")), \(warnings.counted("warning"))."
        return counts
            + (failures + warnings == 0 || isReport
                ? "" : "  For a bug: `blescan doctor --report` masks addresses and names.")
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
