// Texts of devices on a terminal. Every text from a device passes here: it cannot control the terminal, it does not
// shift the columns beside it, and on an ASCII terminal it is ASCII.

/// Makes text fit to be shown in columns.
enum ScreenText {
    /// The maximum number of marks above one character.
    private static let mostMarks = 2

    /// Returns the text without anything that could control the terminal, or leave its line.
    static func shown(_ text: String, _ look: ScreenLook) -> String {
        // Most texts are plain.
        if text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return text }
        var result = ""
        var marks = mostMarks
        for scalar in text.printable.unicodeScalars {
            guard look.isUnicode || scalar.isASCII else {
                result += scalar.asciiSpelling ?? escaped(scalar)
                continue
            }
            // A choice between text and picture, which terminals do not handle reliably.
            if isVariationSelector(scalar) { continue }
            guard columns(of: scalar) == 0 else {
                marks = 0
                result.unicodeScalars.append(scalar)
                continue
            }
            // A mark without a base would move onto the previous column.
            marks += 1
            if result.isEmpty {
                result += escaped(scalar)
            } else if marks <= mostMarks {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns the number of columns of a shown text.
    static func width(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { $0 + columns(of: $1) }
    }

    /// Returns the beginning of a shown text within this number of columns, with a mark if something is missing.
    static func clipped(_ text: String, to limit: Int, _ look: ScreenLook) -> String {
        if width(text) <= limit { return text }
        guard limit > 0 else { return "" }
        var result = ""
        var room = limit - 1
        for scalar in text.unicodeScalars {
            room -= columns(of: scalar)
            if room < 0 { break }
            result.unicodeScalars.append(scalar)
        }
        return result + (look.isUnicode ? "…" : "~")
    }

    /// Returns the end of a shown text within this number of columns.
    static func clippedInFront(_ text: String, to limit: Int, _ look: ScreenLook) -> String {
        let reversed = String(String.UnicodeScalarView(text.unicodeScalars.reversed()))
        return String(String.UnicodeScalarView(clipped(reversed, to: limit, look).unicodeScalars.reversed()))
    }

    /// Returns whether every terminal shows the text in the same number of columns.
    static func isCertain(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0..<0x300, 0x370..<0x483, 0x2010...0x2027, 0x2190...0x2193, 0x2500...0x25FF: true
            default: false
            }
        }
    }

    /// Returns the number of columns for a printable character.
    static func columns(of scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        default: break
        }
        switch scalar.value {
        case 0x1160...0x11FF: return 0
        // Hangul, ideographs and kana, full-width forms, pictures: those with the East Asian Width W or F in UAX 11.
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F,
            0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
            0x16FE0...0x18CFF, 0x1AFF0...0x1B2FF, 0x1F300...0x1F320, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            return 2
        default:
            return scalar.properties.isEmojiPresentation ? 2 : 1
        }
    }

    private static func isVariationSelector(_ scalar: Unicode.Scalar) -> Bool {
        (0xFE00...0xFE0F).contains(scalar.value) || (0xE0100...0xE01EF).contains(scalar.value)
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        "\\u{" + String(scalar.value, radix: 16) + "}"
    }
}
