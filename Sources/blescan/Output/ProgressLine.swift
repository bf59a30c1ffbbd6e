/// What the line of progress says, and when: values and times in, bytes for the terminal out.
///
/// Work begins in silence. What takes longer than `patience` gets a line, which is rewritten in place and says how long it has been
/// going on; anything else that is printed takes its place, and then there is silence again for as long. The only escape
/// sequence is the one that clears the line, and the line is never wider than the terminal: one that is cannot be taken back.
struct ProgressLine {
    /// How long nothing is said.
    static let patience: Duration = .seconds(1)

    private static let erase = "\r\u{1B}[K"
    /// Where the terminal does not say how wide it is.
    private static let usualWidth = 80

    private struct Work {
        let start: ContinuousClock.Instant
        var silentUntil: ContinuousClock.Instant
        var text: String
        var step: String?
    }

    private var work: Work?
    private var shown: String?

    /// Whether a line stands on the terminal.
    var isShown: Bool { shown != nil }

    /// Something begins that may take long.
    mutating func begin(_ text: String, at now: ContinuousClock.Instant) {
        work = Work(start: now, silentUntil: now + Self.patience, text: text)
    }

    /// What is being done by now.
    mutating func update(_ text: String) {
        work?.text = text
    }

    /// How far the whole of it has come, behind what is being done.
    mutating func step(_ text: String?) {
        work?.step = text
    }

    /// Nothing is being done any more. Answers what takes the line away.
    mutating func end() -> String {
        work = nil
        return clear()
    }

    /// Something else is printed. Answers what takes the line away first.
    mutating func makeRoom(at now: ContinuousClock.Instant) -> String {
        work?.silentUntil = now + Self.patience
        return clear()
    }

    /// What to write at `now`: the line where it has become due or has changed, else nothing.
    mutating func due(at now: ContinuousClock.Instant, width: Int?) -> String {
        guard let work, now >= work.silentUntil else { return "" }
        let seconds = (now - work.start).components.seconds
        let parts = [work.text, work.step, "\(seconds) s"].compactMap(\.self)
        let line = Self.plain(parts.joined(separator: ", "), atMost: (width ?? Self.usualWidth) - 1)
        guard line != shown, !line.isEmpty else { return "" }
        shown = line
        return Self.erase + line
    }

    private mutating func clear() -> String {
        shown.take() == nil ? "" : Self.erase
    }

    /// One column a character in every locale, and nothing that steers a terminal.
    private static func plain(_ text: String, atMost width: Int) -> String {
        let columns = text.unicodeScalars.prefix(max(0, width)).map { scalar in
            (0x20..<0x7F).contains(scalar.value) ? scalar : "?"
        }
        return String(String.UnicodeScalarView(columns))
    }
}
