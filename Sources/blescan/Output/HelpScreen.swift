import ArgumentParser

/// The help text: as wide as the terminal, but the blocks of examples and numbers are never wrapped, because they are
/// written line by line. That of a command ends with the page that lists the exit statuses.
enum HelpScreen {
    /// The heading of the list of exit statuses, which all commands share.
    private static let statuses = "EXIT STATUS"
    /// The width for which the blocks are written.
    private static let blockWidth = 80

    /// Returns the text of help, of the version, or of a completion script, which the parser throws as an error.
    static func text(for error: any Error) -> String {
        text(fitted: Blescan.fullMessage(for: error), whole: Blescan.fullMessage(for: error, columns: blockWidth))
    }

    /// Returns all of `fitted`, except the blocks, which are taken from `whole`.
    static func text(fitted: String, whole: String) -> String {
        guard fitted.hasPrefix("OVERVIEW: "), let narrow = blocks(of: fitted), let wide = blocks(of: whole) else {
            return fitted
        }
        let text = String(fitted[..<narrow.lowerBound] + whole[wide] + fitted[narrow.upperBound...])
        // The help of the program lists them itself.
        if whole[wide].contains(statuses) { return text }
        return text + (text.hasSuffix("\n") ? "\n" : "\n\n") + statuses + ": see `blescan --help`, or blescan(1)."
    }

    /// Returns the part between the overview and the usage.
    private static func blocks(of text: String) -> Range<String.Index>? {
        guard let start = text.firstRange(of: "\n\n"), let end = text.firstRange(of: "\n\nUSAGE: "),
            start.upperBound <= end.lowerBound
        else { return nil }
        return start.upperBound..<end.lowerBound
    }
}
