// The line that a user types at the prompt of `talk`: bytes of the keyboard in, text for the terminal out.
//
// Duties: editing, the history of the lines, completion, and the drawing of the prompt with the line after it in one
// row, however long it is.
//
// Invariants:
// - `cursor` is between 0 and the number of scalars of `text`.
// - Only printable scalars are in `text`: what is pasted cannot control the terminal.

/// A line being typed.
struct PromptLine: Sendable {
    /// What a byte of the keyboard has done.
    enum Outcome: Hashable {
        /// The line may have changed.
        case typing
        /// The line is complete.
        case line(InputLine)
        /// The user ends the input.
        case end
        /// These words can stand at the cursor.
        case offers([String])
    }

    /// The sequence that clears the row.
    static let erase = "\r\u{1B}[K"

    /// The most scalars of a line. One more is kept, which shows that a line is too long.
    private static let limit = 4096
    /// The most lines that are remembered.
    private static let remembered = 200

    private let prompt: String
    private let completions: @Sendable ([String]) -> [String]
    private var text: [Unicode.Scalar] = []
    private var cursor = 0
    /// Whether characters of the line were dropped, as it was too long: what is left is another line.
    private var isCut = false
    private var history: [String] = []
    /// The line of the history that is shown, and the line that was being typed before.
    private var recalled: (index: Int, draft: [Unicode.Scalar], isDraftCut: Bool)?
    private var keys = ScreenKeyReader()

    /// - Parameter completions: Returns the words that may follow others, which begin the line.
    init(_ prompt: String, completions: @escaping @Sendable ([String]) -> [String] = { _ in [] }) {
        self.prompt = prompt
        self.completions = completions
    }

    /// Whether nothing is typed.
    var isEmpty: Bool { text.isEmpty }

    /// Drops what is typed; a line of the history stays there.
    mutating func drop() {
        clear()
        keys = ScreenKeyReader()
    }

    /// Takes a byte of the keyboard.
    mutating func take(_ byte: UInt8) -> Outcome {
        switch byte {
        case 0x01: cursor = 0
        case 0x04:
            if text.isEmpty { return .end }
            deleteCharacter()
        case 0x05: cursor = text.count
        case 0x09: return complete()
        case 0x0B: text.removeSubrange(cursor...)
        case 0x17: deleteWord()
        default:
            for key in keys.read([byte]) {
                if key == .enter { return .line(finish()) }
                press(key)
            }
        }
        if text.isEmpty { isCut = false }
        return .typing
    }

    /// Returns the text that draws the prompt and the line in one row, with the cursor in its place.
    func drawn(columns: Int) -> String {
        let mark = ScreenText.width(prompt) + 8 < columns ? prompt : "> "
        let room = max(1, columns - ScreenText.width(mark) - 1)
        var start = 0
        while start < cursor, Self.width(text[start..<cursor]) > room { start += 1 }
        var end = cursor
        while end < text.count, Self.width(text[start...end]) <= room { end += 1 }
        let back = Self.width(text[cursor..<end])
        return Self.erase + mark + Self.string(text[start..<end]) + (back > 0 ? "\u{1B}[\(back)D" : "")
    }

    // MARK: Editing

    private mutating func press(_ key: ScreenKey) {
        switch key {
        case .character(let scalar):
            guard !scalar.isUnprintable else { return }
            guard text.count <= Self.limit else {
                isCut = true
                return
            }
            text.insert(scalar, at: cursor)
            cursor += 1
        case .backspace:
            guard cursor > 0 else { return }
            cursor -= 1
            text.remove(at: cursor)
        case .delete: deleteCharacter()
        case .clear:
            text.removeSubrange(..<cursor)
            cursor = 0
        case .left: cursor = max(0, cursor - 1)
        case .right: cursor = min(text.count, cursor + 1)
        case .home: cursor = 0
        case .end: cursor = text.count
        case .up: recall(by: -1)
        case .down: recall(by: 1)
        case .enter, .escape, .redraw, .pageUp, .pageDown, .click: break
        }
    }

    /// Deletes the character at the cursor.
    private mutating func deleteCharacter() {
        if cursor < text.count { text.remove(at: cursor) }
    }

    /// Deletes the word before the cursor, and the blanks between.
    private mutating func deleteWord() {
        var start = cursor
        while start > 0, text[start - 1] == " " { start -= 1 }
        while start > 0, text[start - 1] != " " { start -= 1 }
        text.removeSubrange(start..<cursor)
        cursor = start
    }

    private mutating func finish() -> InputLine {
        defer { clear() }
        guard !isCut, text.count <= Self.limit else { return .tooLong("more than \(Self.limit) characters") }
        let line = Self.string(text[...])
        if !line.isEmpty, history.last != line { history.append(line) }
        if history.count > Self.remembered { history.removeFirst() }
        return .whole(line)
    }

    private mutating func clear() {
        (text, cursor, isCut, recalled) = ([], 0, false, nil)
    }

    private mutating func recall(by step: Int) {
        let index = (recalled?.index ?? history.count) + step
        guard (0...history.count).contains(index) else { return }
        let (draft, isDraftCut) = recalled.map { ($0.draft, $0.isDraftCut) } ?? (text, isCut)
        let isDraft = index == history.count
        recalled = isDraft ? nil : (index, draft, isDraftCut)
        text = isDraft ? draft : Array(history[index].unicodeScalars)
        isCut = isDraft && isDraftCut
        cursor = text.count
    }

    // MARK: Completion

    private mutating func complete() -> Outcome {
        let start = (text[..<cursor].lastIndex(of: " ") ?? -1) + 1
        let word = Self.string(text[start..<cursor])
        let before = Self.string(text[..<start]).split(separator: " ").map(String.init)
        let matches = completions(before).filter { $0.hasPrefix(word) }
        guard let first = matches.first else { return .typing }
        var common = first
        while !matches.allSatisfy({ $0.hasPrefix(common) }) { common.removeLast() }
        if matches.count == 1 { common += " " }
        let more = common.unicodeScalars.dropFirst(word.unicodeScalars.count)
        if more.isEmpty { return .offers(matches) }
        text.insert(contentsOf: more, at: cursor)
        cursor += more.count
        return .typing
    }

    private static func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        String(String.UnicodeScalarView(scalars))
    }

    private static func width(_ scalars: ArraySlice<Unicode.Scalar>) -> Int { ScreenText.width(string(scalars)) }
}
