/// One line of a screen: texts in columns, never wider than the limit.
struct ScreenLine: Hashable, Sendable {
    private struct Piece: Hashable {
        var column: Int
        var text: String
        var style: ScreenStyle
    }

    /// The number of columns.
    let limit: Int
    private let look: ScreenLook
    private var pieces: [Piece] = []
    /// The number of used columns.
    private(set) var width = 0
    /// The style of the whole line, up to the edge of the screen.
    var style: ScreenStyle = []

    init(_ limit: Int, _ look: ScreenLook) {
        self.limit = limit
        self.look = look
    }

    /// Creates a line of one text.
    init(_ text: String, _ limit: Int, _ look: ScreenLook, _ style: ScreenStyle = []) {
        self.init(limit, look)
        add(text, style)
    }

    /// Creates a line of texts, clipped as needed to leave room for the keys at its end.
    static func title(
        _ parts: [(String, ScreenStyle)], keys: String, _ columns: Int, _ look: ScreenLook
    ) -> ScreenLine {
        var title = ScreenLine(columns, look)
        let room = max(columns - keys.count - 2, min(8, columns))
        for (text, style) in parts where title.width < room {
            title.add(text, style, column: min(ScreenText.width(ScreenText.shown(text, look)), room - title.width))
        }
        let rest = columns - title.width
        if keys.count + 2 <= rest { title.add(keys, .dim, column: rest, isRightAligned: true) }
        return title
    }

    /// Adds text as far as there is room; in a column of the given width, if any.
    mutating func add(
        _ text: String, _ style: ScreenStyle = [], column: Int? = nil, isRightAligned: Bool = false
    ) {
        let room = min(column ?? .max, limit - width)
        guard room > 0 else { return }
        let shown = ScreenText.clipped(ScreenText.shown(text, look), to: room, look)
        let taken = ScreenText.width(shown)
        let padding = column == nil ? 0 : room - taken
        if !shown.isEmpty {
            pieces.append(Piece(column: width + (isRightAligned ? padding : 0), text: shown, style: style))
        }
        width += taken + padding
    }

    /// Leaves columns empty.
    mutating func skip(_ columns: Int) {
        width = min(limit, width + max(0, columns))
    }

    /// The line without styles.
    var text: String {
        var text = ""
        var end = 0
        for piece in pieces {
            text += String(repeating: " ", count: max(0, piece.column - end)) + piece.text
            end = piece.column + ScreenText.width(piece.text)
        }
        return text
    }

    /// The line for a terminal, from its left edge on.
    ///
    /// After text whose width differs between terminals, the next one is positioned by its column number.
    var sequences: String {
        var result = ""
        var end = 0
        var isCertain = true
        for piece in pieces {
            if isCertain {
                result += painted(String(repeating: " ", count: max(0, piece.column - end)), [])
            } else {
                result += "\u{1B}[\(piece.column + 1)G"
                isCertain = true
            }
            result += painted(piece.text, piece.style)
            end = piece.column + ScreenText.width(piece.text)
            if !ScreenText.isCertain(piece.text) { isCertain = false }
        }
        if !style.isEmpty, isCertain { result += painted(String(repeating: " ", count: max(0, limit - end)), []) }
        return result
    }

    private func painted(_ text: String, _ own: ScreenStyle) -> String {
        let style = own.union(style)
        if style.isEmpty || text.isEmpty || !look.isColoured { return text }
        return style.sequence + text + "\u{1B}[0m"
    }
}

/// Converts frames to the bytes that a terminal needs to show them: the lines that differ from the previous ones.
struct ScreenPainter: Sendable {
    private var shown: [ScreenLine] = []

    /// The contents of the terminal are unknown: the next frame is written as a whole.
    mutating func forget() {
        shown = []
    }

    /// Returns the bytes that show the frame, to be written at once; empty if it is already shown.
    mutating func bytes(for frame: [ScreenLine]) -> [UInt8] {
        var text = ""
        for (row, line) in frame.enumerated() where row >= shown.count || shown[row] != line {
            // Cleared before the text: after a full line the cursor is on its last character.
            text += "\u{1B}[\(row + 1);1H\u{1B}[K" + line.sequences
        }
        if shown.count != frame.count, frame.count > 0 { text += "\u{1B}[\(frame.count);\(frame[0].limit)H" }
        shown = frame
        if text.isEmpty { return [] }
        // Terminals that support it show all of it at once.
        return Array(("\u{1B}[?2026h" + text + "\u{1B}[?2026l").utf8)
    }
}
