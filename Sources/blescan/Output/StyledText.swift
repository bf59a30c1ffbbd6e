/// A line of texts with styles, for a terminal with colours, and for one without.
struct StyledText: Hashable, Sendable {
    private struct Piece: Hashable {
        var text: String
        var style: ScreenStyle
    }

    private var pieces: [Piece] = []
    /// The number of columns.
    private(set) var width = 0
    /// Whether it is made of sentences, which `wrapped(to:)` may break.
    var isProse = false

    init() {}

    init(_ text: String, _ style: ScreenStyle = []) {
        add(text, style)
    }

    /// Adds a text. What could control a terminal is escaped: paths, names and values come from elsewhere.
    mutating func add(_ text: String, _ style: ScreenStyle = []) {
        guard !text.isEmpty else { return }
        let text = text.printable
        pieces.append(Piece(text: text, style: style))
        width += ScreenText.width(text)
    }

    /// Adds columns up to this one.
    mutating func pad(to column: Int) {
        if column > width { add(String(repeating: " ", count: column - width)) }
    }

    /// Returns the text in lines of at most this number of columns, all but the first one indented.
    ///
    /// They end between words. A longer word stays whole, and so does a command between backticks: where the terminal
    /// breaks it, it is copied as one line. A single backtick, such as in a name, begins no command.
    func wrapped(to limit: Int) -> [StyledText] {
        var words = [StyledText()]
        var isCommand = false
        var backticks = pieces.reduce(0) { $0 + $1.text.count { $0 == "`" } }
        for piece in pieces {
            for character in piece.text {
                if character == "`" {
                    backticks -= 1
                    isCommand = !isCommand && backticks > 0
                }
                if character == " ", !isCommand {
                    words.append(StyledText())
                } else {
                    words[words.count - 1].append(Piece(text: String(character), style: piece.style))
                }
            }
        }
        var lines: [StyledText] = []
        for word in words {
            guard var line = lines.popLast() else {
                lines.append(word)
                continue
            }
            if line.width + 1 + word.width <= limit {
                line.append(Piece(text: " ", style: []))
            } else {
                lines.append(line)
                line = StyledText("  ")
            }
            for piece in word.pieces { line.append(piece) }
            lines.append(line)
        }
        return lines
    }

    /// Adds a piece, which was made printable before, to the last one if that has the same style.
    private mutating func append(_ piece: Piece) {
        if let last = pieces.indices.last, pieces[last].style == piece.style {
            pieces[last].text += piece.text
        } else {
            pieces.append(piece)
        }
        width += ScreenText.width(piece.text)
    }

    /// The line without styles, and without blanks at its end.
    var plain: String {
        var text = pieces.map(\.text).joined()
        while text.last == " " { text.removeLast() }
        return text
    }

    /// The line as `look` can show it, without blanks at its end.
    func painted(_ look: ScreenLook) -> String {
        guard look.isColoured else { return plain }
        var rest = pieces
        while let last = rest.last, last.text.allSatisfy({ $0 == " " }) { rest.removeLast() }
        return rest.map { $0.style.isEmpty ? $0.text : $0.style.sequence + $0.text + "\u{1B}[0m" }.joined()
    }
}

extension String {
    /// Returns a row of a table in lines of at most this number of columns. Those after the first one begin in a column
    /// of the table, or near the edge where there would be no room below the first.
    func wrapped(to limit: Int, indent wanted: Int) -> [String] {
        guard ScreenText.width(self) > limit else { return [self] }
        let indent = wanted + 20 <= limit ? wanted : 2
        let head = String(prefix(indent))
        let rest = String(dropFirst(head.count)).wrapped(to: limit - indent)
        return rest.enumerated().map { number, part in
            (number == 0 ? head : String(repeating: " ", count: indent)) + part
        }
    }

    /// Returns the words in lines of at most this number of columns; a word that is longer is cut.
    func wrapped(to limit: Int) -> [String] {
        let limit = max(1, limit)
        var lines: [String] = []
        for word in split(separator: " ", omittingEmptySubsequences: false) {
            if let last = lines.last, ScreenText.width(last) + 1 + ScreenText.width(String(word)) <= limit {
                lines[lines.count - 1] = last + " " + word
                continue
            }
            var rest = word[...]
            while ScreenText.width(String(rest)) > limit {
                var end = rest.startIndex
                var room = limit
                while end < rest.endIndex {
                    room -= ScreenText.width(String(rest[end]))
                    if room < 0, end > rest.startIndex { break }
                    end = rest.index(after: end)
                    if room < 0 { break }
                }
                lines.append(String(rest[..<end]))
                rest = rest[end...]
            }
            if !rest.isEmpty || lines.isEmpty { lines.append(String(rest)) }
        }
        return lines
    }
}
