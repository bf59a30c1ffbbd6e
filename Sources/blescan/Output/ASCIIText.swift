extension String {
    /// The text for a terminal that knows nothing beyond ASCII: our own signs and units are spelled otherwise, and what is not
    /// ours is a question mark.
    var ascii: String {
        if utf8.allSatisfy({ $0 < 0x80 }) { return self }
        var result = ""
        for scalar in replacing("\u{B0}C", with: "C").unicodeScalars {
            switch scalar {
            case "\u{0}"..."\u{7F}": result.unicodeScalars.append(scalar)
            case "…": result += "..."
            case "→": result += "->"
            case "°": result += "deg"
            case "µ": result += "u"
            case "²": result += "2"
            case "³": result += "3"
            case "±": result += "+/-"
            case "×": result += "x"
            case "·", "–", "−": result += "-"
            default: result += "?"
            }
        }
        return result
    }
}
