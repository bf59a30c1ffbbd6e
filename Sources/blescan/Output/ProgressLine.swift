/// The text of the progress line and its timing: values and times in, bytes for the terminal out.
///
/// Work begins silently. Work that takes longer than `firstLineDelay` gets a line, which is rewritten in place and
/// contains its duration; other output replaces it, and then there is silence again for as long. The only escape
/// sequence is the one that clears the line, and the line is never wider than the terminal, because a wider one could
/// not be cleared.
struct ProgressLine {
    /// The time without a line.
    static let firstLineDelay: Duration = .seconds(1)

    private static let erase = "\r\u{1B}[K"
    /// The width if the terminal does not report one.
    private static let usualWidth = 80

    private struct Work {
        let start: ContinuousClock.Instant
        var silentUntil: ContinuousClock.Instant
        var text: String
        var step: String?
    }

    private var work: Work?
    private var shown: String?

    /// Whether a line is on the terminal.
    var isShown: Bool { shown != nil }

    /// Begins work that may take long.
    mutating func begin(_ text: String, at now: ContinuousClock.Instant) {
        work = Work(start: now, silentUntil: now + Self.firstLineDelay, text: text)
    }

    /// Changes the current activity.
    mutating func update(_ text: String) {
        work?.text = text
    }

    /// Changes the progress of the whole, shown after the activity.
    mutating func step(_ text: String?) {
        work?.step = text
    }

    /// Ends the work. Returns the bytes that clear the line.
    mutating func end() -> String {
        work = nil
        return clear()
    }

    /// Other output follows. Returns the bytes that clear the line first.
    mutating func makeRoom(at now: ContinuousClock.Instant) -> String {
        work?.silentUntil = now + Self.firstLineDelay
        return clear()
    }

    /// Returns the bytes to write at `now`: the line if it has become due or has changed, otherwise nothing.
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

    /// One column for each character in every locale, and nothing that controls a terminal.
    private static func plain(_ text: String, atMost width: Int) -> String {
        let columns = text.unicodeScalars.prefix(max(0, width)).map { scalar in
            (0x20..<0x7F).contains(scalar.value) ? scalar : "?"
        }
        return String(String.UnicodeScalarView(columns))
    }
}
