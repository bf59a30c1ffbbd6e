import ArgumentParser

/// Help as it is printed: as wide as the terminal, but the blocks of examples and numbers are never wrapped, for they are
/// written line by line.
enum HelpScreen {
    /// What the blocks are written for.
    private static let blockWidth = 80

    /// The text of help, of the version, or of a script for completions, which the parser hands out as an error.
    static func text(for error: any Error) -> String {
        text(fitted: Blescan.fullMessage(for: error), whole: Blescan.fullMessage(for: error, columns: blockWidth))
    }

    /// All of `fitted`, but for the blocks, which are taken from `whole`.
    static func text(fitted: String, whole: String) -> String {
        guard fitted.hasPrefix("OVERVIEW: "), let narrow = blocks(of: fitted), let wide = blocks(of: whole) else {
            return fitted
        }
        return String(fitted[..<narrow.lowerBound] + whole[wide] + fitted[narrow.upperBound...])
    }

    /// What stands between the overview and the usage.
    private static func blocks(of text: String) -> Range<String.Index>? {
        guard let start = text.firstRange(of: "\n\n"), let end = text.firstRange(of: "\n\nUSAGE: "),
            start.upperBound <= end.lowerBound
        else { return nil }
        return start.upperBound..<end.lowerBound
    }
}
