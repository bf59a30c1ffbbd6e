/// A line of texts with styles, for a terminal with colours, and for one without.
struct StyledText: Hashable, Sendable {
    private struct Piece: Hashable {
        var text: String
        var style: ScreenStyle
    }

    private var pieces: [Piece] = []
    /// The number of columns.
    private(set) var width = 0
    /// Whether it is made of sentences: `Console.messageBytes` breaks no other messages, and only in sentences do
    /// backticks enclose a command.
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

    /// The line for a terminal that has only ASCII. It may be wider, so that it is wrapped after this.
    var ascii: StyledText {
        var line = StyledText()
        line.isProse = isProse
        for piece in pieces { line.append(Piece(text: piece.text.ascii, style: piece.style)) }
        return line
    }

    /// Returns the text in lines of at most this number of columns, all but the first one indented.
    ///
    /// They end between words. A longer word stays whole, and so does a command between backticks in sentences: where
    /// the terminal breaks it, it is copied as one line. A single backtick, such as in a name, begins no command.
    func wrapped(to limit: Int) -> [StyledText] {
        guard width > limit else { return [self] }
        let indentation = StyledText("  ")
        var lines: [StyledText] = []
        for (gap, word) in words(fitting: limit - indentation.width) {
            let isFirst = lines.isEmpty
            var line = lines.popLast() ?? StyledText()
            if isFirst || line.width + gap + word.width <= limit {
                if gap > 0 { line.append(Piece(text: String(repeating: " ", count: gap), style: [])) }
            } else {
                lines.append(line)
                line = indentation
            }
            line.append(word)
            lines.append(line)
        }
        return lines
    }

    /// Returns the words, each with the number of blanks before it. A number and its unit are one word where both fit
    /// in a line.
    private func words(fitting limit: Int) -> [(gap: Int, text: StyledText)] {
        var words: [(gap: Int, text: StyledText)] = []
        for (gap, word) in parts {
            guard let last = words.last?.text, last.plain.isNumber(of: word.plain, after: gap, fitting: limit) else {
                words.append((gap, word))
                continue
            }
            words[words.count - 1].text.append(Piece(text: " ", style: []))
            words[words.count - 1].text.append(word)
        }
        return words
    }

    /// The parts between blanks, each with the number of blanks before it. A command in sentences is one part.
    private var parts: [(gap: Int, text: StyledText)] {
        var parts: [(gap: Int, text: StyledText)] = []
        var gap = 0
        var isInPart = false
        var isCommand = false
        var backticks = pieces.reduce(0) { $0 + $1.text.count { $0 == "`" } }
        for piece in pieces {
            for character in piece.text {
                if isProse, character == "`" {
                    backticks -= 1
                    isCommand = !isCommand && backticks > 0
                }
                if character == " ", !isCommand {
                    gap = isInPart ? 1 : gap + 1
                    isInPart = false
                    continue
                }
                if !isInPart { parts.append((gap, StyledText())) }
                isInPart = true
                parts[parts.count - 1].text.append(Piece(text: String(character), style: piece.style))
            }
        }
        return parts
    }

    /// Returns a row of a table in lines of at most this number of columns, see `String.wrapped(to:indent:)`. Each
    /// character keeps its style.
    func wrapped(to limit: Int, indent: Int) -> [StyledText] {
        guard width > limit else { return [self] }
        // Only blanks are added or left out.
        let all: [ScreenStyle] = pieces.flatMap { piece in
            piece.text.filter { $0 != " " }.map { _ in piece.style }
        }
        var styles = all[...]
        return pieces.map(\.text).joined().wrapped(to: limit, indent: indent).map { row in
            var line = StyledText()
            for character in row {
                let style: ScreenStyle = character == " " ? [] : styles.popFirst() ?? []
                line.append(Piece(text: String(character), style: style))
            }
            return line
        }
    }

    /// Adds another line.
    private mutating func append(_ line: StyledText) {
        for piece in line.pieces { append(piece) }
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
    /// of the table, or near the edge where there would be no room below the first. A row that begins in that column
    /// begins near the edge then, too.
    func wrapped(to limit: Int, indent wanted: Int) -> [String] {
        guard ScreenText.width(self) > limit else { return [self] }
        let hasRoom = wanted + 20 <= limit
        let indent = hasRoom ? wanted : 2
        let isBelow = !hasRoom && prefix(wanted).allSatisfy { $0 == " " }
        let head = String(prefix(indent))
        let text = isBelow ? String(drop { $0 == " " }) : String(dropFirst(head.count))
        return text.wrapped(to: limit - indent).enumerated().map { number, part in
            (number == 0 ? head : String(repeating: " ", count: indent)) + part
        }
    }

    /// Returns the words in lines of at most this number of columns; a word that is longer is cut. A number and its
    /// unit are one word where both fit in a line.
    func wrapped(to limit: Int) -> [String] {
        let limit = max(1, limit)
        var lines: [String] = []
        for (gap, word) in words(fitting: limit) {
            let blanks = String(repeating: " ", count: gap)
            let width = gap + ScreenText.width(word)
            if let last = lines.last, ScreenText.width(last) + width <= limit {
                lines[lines.count - 1] = last + blanks + word
                continue
            }
            if lines.isEmpty, width <= limit {
                lines.append(blanks + word)
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
            if !rest.isEmpty { lines.append(String(rest)) }
        }
        return lines.isEmpty ? [""] : lines
    }

    /// Returns the words, each with the number of blanks before it.
    private func words(fitting limit: Int) -> [(gap: Int, text: String)] {
        var words: [(gap: Int, text: String)] = []
        var gap = 0
        for part in split(separator: " ", omittingEmptySubsequences: false) {
            if !part.isEmpty {
                let word = String(part)
                if let last = words.last?.text, last.isNumber(of: word, after: gap, fitting: limit) {
                    words[words.count - 1].text = last + " " + word
                } else {
                    words.append((gap, word))
                }
                gap = 0
            }
            gap += 1
        }
        return words
    }

    /// Returns whether this is the number of a unit that follows after `gap` blanks. Both are one word then.
    fileprivate func isNumber(of unit: String, after gap: Int, fitting limit: Int) -> Bool {
        gap == 1 && isBareNumber && unit.isUnit && ScreenText.width(self) + gap + ScreenText.width(unit) <= limit
    }

    /// Whether this is a number and nothing else, also as the first word in parentheses.
    private var isBareNumber: Bool {
        let digits: ClosedRange<Character> = "0"..."9"
        let number = drop { "+-(".contains($0) }
        guard let first = number.first, let last = number.last, digits.contains(first), digits.contains(last) else {
            return false
        }
        return number.allSatisfy { digits.contains($0) || $0 == "." || $0 == "," }
    }

    /// Whether this looks like a unit, with the punctuation after it.
    private var isUnit: Bool {
        let (digits, small): (ClosedRange<Character>, ClosedRange<Character>) = ("0"..."9", "a"..."z")
        var unit = self[...]
        while let last = unit.last, ",;:.)".contains(last) { unit.removeLast() }
        guard let first = unit.first, first.isLetter || "°%/".contains(first), unit.count <= 7,
            !unit.contains(where: digits.contains)
        else { return false }
        return Self.unitsLikeWords.contains(String(unit)) || !unit.allSatisfy(small.contains)
    }

    /// The units of lowercase letters alone. Others, such as dBm and m/s, contain a character that words do not.
    private static let unitsLikeWords: Set<String> = [
        "s", "ms", "min", "h", "d", "g", "kg", "m", "mm", "cm", "km", "l", "lb", "lx", "bpm", "rpm", "ppm", "ppb",
    ]
}
