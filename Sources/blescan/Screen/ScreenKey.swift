// The keys of a screen on a terminal, and the reader that makes them from the bytes that the terminal sends.
//
// Duties
// - A key is one byte, a character of several bytes, or a sequence that begins with Escape; each may arrive in pieces.
// - The Escape key itself looks like the beginning of a sequence: it is the key if nothing follows within
//   `escapeTimeout`, which the owner reports by `timePassed`. A slow link may deliver the rest of a sequence after
//   that: for `lateTimeout` a bracket belongs to the Escape before if a known sequence goes on from it. If not, it is a
//   key, late by what has shown that.
//
// Invariants
// - Any bytes are tolerated: what is no key is dropped, and at most `longestSequence` bytes of a sequence are kept.
// - The reader has no clock. At most one wait is in progress; each read ends it, and the end of the time of an earlier
//   wait changes nothing.

/// A key of the live table.
enum ScreenKey: Hashable, Sendable {
    case character(Unicode.Scalar)
    case up, down, left, right, pageUp, pageDown, home, end
    case enter, escape, backspace
    /// Deletes the character at the cursor.
    case delete
    /// ^U: clears the line.
    case clear
    /// ^L
    case redraw
    /// The left button of the mouse, at a place counted from 0.
    case click(column: Int, row: Int)

    /// A movement in a text or a list.
    private enum Movement {
        case back, forth, pageBack, pageForth, first, last
    }

    private var movement: Movement? {
        switch self {
        case .up, .character("k"): .back
        case .down, .character("j"): .forth
        case .pageUp: .pageBack
        case .pageDown: .pageForth
        case .home, .character("g"): .first
        case .end, .character("G"): .last
        case .enter, .escape, .backspace, .delete, .character, .clear, .redraw, .left, .right, .click: nil
        }
    }

    /// How far the key moves a recording forward, or back; `nil` for the other keys.
    var step: Duration? {
        switch self {
        case .character("["): .seconds(-10)
        case .character("]"): .seconds(10)
        case .character("{"): .seconds(-60)
        case .character("}"): .seconds(60)
        default: nil
        }
    }

    /// Returns the first line of a text to show after a key that scrolls it; `nil` for the other keys.
    ///
    /// - Parameters:
    ///   - line: The first line that is shown.
    ///   - rows: The rows of the screen. A page is what is below the heading, but for one line that stays.
    func scrolled(_ line: Int, rows: Int) -> Int? {
        let page = max(1, rows - 2)
        return switch movement {
        case .back: max(0, line - 1)
        case .forth: line + 1
        case .pageBack: max(0, line - page)
        case .pageForth: line + page
        case .first: 0
        case .last: .max / 2
        case nil: nil
        }
    }

    /// Returns the place in a list that is selected after a key that moves the selection; `nil` for the other keys, and
    /// for an empty list.
    ///
    /// - Parameters:
    ///   - place: The selected place; from no place the list is entered at the end that the key points away from.
    ///   - count: The length of the list.
    ///   - page: How far the page keys move.
    func moved(from place: Int?, count: Int, page: Int) -> Int? {
        guard count > 0, let movement else { return nil }
        let last = count - 1
        guard let place else { return movement == .back || movement == .last ? last : 0 }
        let next =
            switch movement {
            case .back: place - 1
            case .forth: place + 1
            case .pageBack: place - page
            case .pageForth: place + page
            case .first: 0
            case .last: last
            }
        return min(max(next, 0), last)
    }
}

/// Reads keys.
struct ScreenKeyReader: Sendable {
    private enum State: Hashable {
        case idle
        /// After Escape.
        case escape
        /// After an Escape that was a key by itself.
        case late
        /// After such an Escape and [.
        case lateBracket
        /// After Escape O.
        case single
        /// After Escape [, with the bytes since.
        case sequence([UInt8])
        /// After Escape [ M, with the bytes since.
        case report([UInt8])
        /// In a character of several bytes, with the number that is missing.
        case character([UInt8], missing: Int)
    }

    /// A wait for the rest of a sequence.
    struct Wait: Hashable, Sendable {
        let duration: Duration
        fileprivate let number: Int
    }

    /// The time for which an Escape waits for the rest of a sequence.
    static let escapeTimeout: Duration = .milliseconds(100)
    /// The time after that in which the rest of the sequence may still come.
    private static let lateTimeout: Duration = .milliseconds(400)
    private static let longestSequence = 16
    /// The lines that one step of the wheel moves.
    private static let wheelStep = 3

    private var state = State.idle
    /// The number of reads and of waits that were over: each of them ends the wait before.
    private var endedWaits = 0

    /// The wait that has begun with the last byte, or with the end of the wait before; `nil` if nothing is awaited.
    var wait: Wait? {
        switch state {
        case .escape: Wait(duration: Self.escapeTimeout, number: endedWaits)
        case .late, .lateBracket: Wait(duration: Self.lateTimeout, number: endedWaits)
        case .idle, .single, .sequence, .report, .character: nil
        }
    }

    /// Reads the next bytes.
    mutating func read(_ bytes: some Sequence<UInt8>) -> [ScreenKey] {
        endedWaits += 1
        return bytes.flatMap { take($0) }
    }

    /// Called when the duration of a wait is over; returns `nil` if bytes that came meanwhile have ended it.
    mutating func timePassed(_ wait: Wait) -> [ScreenKey]? {
        guard wait == self.wait else { return nil }
        endedWaits += 1
        switch state {
        case .escape:
            state = .late
            return [.escape]
        case .late:
            state = .idle
            return []
        case .lateBracket:
            state = .idle
            return [.character("[")]
        case .idle, .single, .sequence, .report, .character: return nil
        }
    }

    private mutating func take(_ byte: UInt8) -> [ScreenKey] {
        switch state {
        case .idle:
            return begin(byte)
        case .escape:
            switch byte {
            case UInt8(ascii: "["): state = .sequence([])
            case UInt8(ascii: "O"): state = .single
            case 0x1B: return [.escape]
            default:
                state = .idle
                return [.escape] + begin(byte)
            }
            return []
        case .late:
            if byte == UInt8(ascii: "[") {
                state = .lateBracket
                return []
            }
            state = .idle
            return begin(byte)
        case .lateBracket:
            let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
            let isKnown = digits.contains(byte) || byte == UInt8(ascii: "<") || Self.key([byte]) != nil
            if isKnown { return continueSequence([], byte) }
            state = .idle
            return [.character("[")] + begin(byte)
        case .single:
            state = .idle
            return Self.key([byte]).map { [$0] } ?? []
        case .sequence(let before):
            return continueSequence(before, byte)
        case .report(let before):
            return continueReport(before, byte)
        case .character(let before, let missing):
            return continueCharacter(before, missing, byte)
        }
    }

    private mutating func begin(_ byte: UInt8) -> [ScreenKey] {
        switch byte {
        case 0x1B: state = .escape
        case 0x0D, 0x0A: return [.enter]
        case 0x08, 0x7F: return [.backspace]
        case 0x15: return [.clear]
        case 0x0C: return [.redraw]
        case 0x20...0x7E: return [.character(Unicode.Scalar(byte))]
        case 0xC2...0xDF: state = .character([byte], missing: 1)
        case 0xE0...0xEF: state = .character([byte], missing: 2)
        case 0xF0...0xF4: state = .character([byte], missing: 3)
        default: break
        }
        return []
    }

    private mutating func continueSequence(_ before: [UInt8], _ byte: UInt8) -> [ScreenKey] {
        if byte == 0x1B {
            state = .escape
            return []
        }
        if before.isEmpty, byte == UInt8(ascii: "M") {
            state = .report([])
            return []
        }
        if (0x40...0x7E).contains(byte) {
            state = .idle
            let sequence = before + [byte]
            return Self.key(sequence).map { [$0] } ?? Self.mouseKeys(sequence)
        }
        state = before.count < Self.longestSequence ? .sequence(before + [byte]) : .idle
        return []
    }

    /// Takes a byte of a mouse report of three bytes: a terminal that does not know the decimal form sends these, and
    /// as keys they would do anything.
    ///
    /// Source: "XTerm Control Sequences", Normal tracking mode.
    private mutating func continueReport(_ before: [UInt8], _ byte: UInt8) -> [ScreenKey] {
        if byte == 0x1B {
            state = .escape
            return []
        }
        let report = before + [byte]
        guard report.count == 3 else {
            state = .report(report)
            return []
        }
        state = .idle
        let numbers: [Int?] = report.map { Int($0) - 32 }
        return Self.keys(ofReport: numbers)
    }

    private mutating func continueCharacter(_ before: [UInt8], _ missing: Int, _ byte: UInt8) -> [ScreenKey] {
        guard (0x80...0xBF).contains(byte) else {
            state = .idle
            return begin(byte)
        }
        guard missing == 1 else {
            state = .character(before + [byte], missing: missing - 1)
            return []
        }
        state = .idle
        let text = String(decoding: before + [byte], as: UTF8.self).unicodeScalars
        guard text.count == 1, let scalar = text.first, scalar != "\u{FFFD}" else { return [] }
        return [.character(scalar)]
    }

    /// Returns the keys of a mouse report after Escape [, in the form that `Terminal.mouseSequence` requests: <,
    /// button, column and row, and M where the button was pressed. The wheel is an arrow key, pressed several times.
    ///
    /// Source: "XTerm Control Sequences", Extended coordinates, SGR (1006).
    private static func mouseKeys(_ sequence: [UInt8]) -> [ScreenKey] {
        let text = String(decoding: sequence, as: UTF8.self)
        guard text.hasPrefix("<"), text.hasSuffix("M") else { return [] }
        let numbers = text.dropFirst().dropLast().split(separator: ";", omittingEmptySubsequences: false).map {
            Int($0)
        }
        return keys(ofReport: numbers)
    }

    /// Returns the keys of a mouse report: button, column and row.
    private static func keys(ofReport numbers: [Int?]) -> [ScreenKey] {
        guard numbers.count == 3, let button = numbers[0], let column = numbers[1], let row = numbers[2] else {
            return []
        }
        guard column > 0, row > 0 else { return [] }
        return switch button {
        case 0: [.click(column: column - 1, row: row - 1)]
        case 64: Array(repeating: .up, count: wheelStep)
        case 65: Array(repeating: .down, count: wheelStep)
        default: []
        }
    }

    /// Returns the key of a sequence after Escape [ or Escape O.
    private static func key(_ sequence: [UInt8]) -> ScreenKey? {
        switch String(decoding: sequence, as: UTF8.self) {
        case "A": .up
        case "B": .down
        case "C": .right
        case "D": .left
        case "H", "1~", "7~": .home
        case "F", "4~", "8~": .end
        case "3~": .delete
        case "5~": .pageUp
        case "6~": .pageDown
        case "M": .enter
        default: nil
        }
    }
}
