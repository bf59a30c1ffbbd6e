/// The size and the look of a screen, and lines that fit it.
struct ScreenArea: Hashable, Sendable {
    private(set) var columns: Int
    private(set) var rows: Int
    let look: ScreenLook

    init(columns: Int, rows: Int, _ look: ScreenLook) {
        self.columns = max(1, columns)
        self.rows = max(1, rows)
        self.look = look
    }

    /// The terminal has another size.
    mutating func resize(columns: Int, rows: Int) {
        self = ScreenArea(columns: columns, rows: rows, look)
    }

    /// A line without text.
    var empty: ScreenLine { ScreenLine(columns, look) }

    /// Returns a line of one text, clipped where it does not fit.
    func line(_ text: String, _ style: ScreenStyle = []) -> ScreenLine { ScreenLine(text, columns, look, style) }

    /// Returns a text in as many lines as it needs, but at most `limit`.
    func wrapped(_ text: String, _ style: ScreenStyle = [], limit: Int) -> [ScreenLine] {
        ScreenText.shown(text, look).wrapped(to: columns).prefix(max(1, limit)).map { line($0, style) }
    }

    /// Returns a line for each row: these, without those that do not fit, and empty ones after them.
    func filled(_ lines: [ScreenLine]) -> [ScreenLine] {
        Array(lines.prefix(rows)) + Array(repeating: empty, count: max(0, rows - lines.count))
    }
}
