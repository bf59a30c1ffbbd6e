/// The self-test for users: a line for each check as it ends, then the verdict with its remarks.
struct SelfTestScreen {
    /// The columns of the terminal; `nil` for no limit.
    let width: Int?
    /// Whether the terminal shows more than ASCII, in which some signs have more columns.
    var isUnicode = true

    /// The columns before the text of a check.
    private static let indentation = 34
    /// On a terminal with fewer columns, the text stands below the name of the check.
    private static let narrow = 76

    /// Returns the line of a check, and those that continue it.
    func lines(of result: SelfTestResult) -> [String] {
        let time = result.judgement.verdict == .notRun ? "" : result.time.short
        let head =
            result.check.id.padded(to: 5) + word(result.judgement.verdict).padded(to: 8)
            + result.check.name.padded(to: Self.indentation - 13)
        let words = words(of: result.judgement.text) + (time.isEmpty ? [] : ["(\(time))"])
        guard let width, width < Self.narrow else { return wrapped(words, after: head, to: Self.indentation) }
        return [String(head.trimmingSuffix)] + wrapped(words, after: "     ", to: 5)
    }

    /// Returns the verdict and the remarks.
    ///
    /// - Parameter name: The adapter as its user calls it, which may be the name of a file that somebody else has
    ///   named; `nil` for the kernel's name.
    func lines(of report: SelfTestReport, named name: String? = nil) -> [String] {
        let remarks = report.remarks
        let verdict =
            switch report.verdict {
            case .unfit: "UNFIT"
            case .remark: "fit with \(remarks.count.counted("remark"))"
            case .notRun, .note, .fit: "fit"
            }
        return ["\((name ?? report.adapter.name).printable): \(verdict)"]
            + remarks.flatMap { wrapped(words(of: $0), after: "  ", to: 7) }
            + report.quirks.flatMap { wrapped(words(of: "\($0.row): \($0.workaround)"), after: "  → ", to: 7) }
    }

    /// Returns the first line of a check with its verdict in colour.
    func styled(checkLine line: String, _ verdict: SelfTestVerdict) -> StyledText {
        line.firstRange(of: word(verdict)).map { styled(line, $0, verdict) } ?? StyledText(line)
    }

    /// Returns the first line of the report with its verdict, after the adapter's name, in colour.
    func styled(reportLine line: String, _ verdict: SelfTestVerdict) -> StyledText {
        let place = line.ranges(of: ": ").last.map { $0.upperBound..<line.endIndex }
        return place.map { styled(line, $0, verdict) } ?? StyledText(line)
    }

    private func styled(_ line: String, _ place: Range<String.Index>, _ verdict: SelfTestVerdict) -> StyledText {
        var text = StyledText(String(line[..<place.lowerBound]))
        text.add(String(line[place]), Self.style(verdict))
        text.add(String(line[place.upperBound...]))
        return text
    }

    private static func style(_ verdict: SelfTestVerdict) -> ScreenStyle {
        switch verdict {
        case .unfit: .failure
        case .remark: .warning
        case .fit: .good
        case .note: []
        case .notRun: .skipped
        }
    }

    private func word(_ verdict: SelfTestVerdict) -> String {
        switch verdict {
        case .unfit: "UNFIT"
        case .notRun: "not run"
        case .remark, .note, .fit: verdict.rawValue
        }
    }

    /// The words of a text. Other programs and the kernel chose some of them.
    private func words(of text: String) -> [String] { text.printable.split(separator: " ").map(String.init) }

    private func wrapped(_ words: [String], after head: String, to indentation: Int) -> [String] {
        guard let width else { return [head + words.joined(separator: " ")] }
        var lines: [String] = []
        var line = head
        var isEmpty = true
        for word in words {
            if !isEmpty, columns(line) + 1 + columns(word) > width {
                lines.append(line)
                line = String(repeating: " ", count: indentation)
                isEmpty = true
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        return lines + [line]
    }

    private func columns(_ text: String) -> Int { (isUnicode ? text : text.ascii).count }
}

extension String {
    fileprivate var trimmingSuffix: Substring {
        var rest = self[...]
        while rest.last == " " { rest.removeLast() }
        return rest
    }
}
