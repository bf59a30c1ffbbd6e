extension String {
    /// The text for a terminal that has only ASCII: our own signs and units have other spellings, and other characters
    /// become a question mark.
    var ascii: String {
        if utf8.allSatisfy({ $0 < 0x80 }) { return self }
        var result = ""
        for scalar in unicodeScalars {
            if scalar.isASCII {
                result.unicodeScalars.append(scalar)
            } else {
                result += scalar.asciiSpelling ?? "?"
            }
        }
        return result
    }
}

extension Unicode.Scalar {
    /// The ASCII spelling of a sign that this program writes itself; `nil` for others.
    var asciiSpelling: String? {
        switch self {
        case "…": "..."
        case "→": "->"
        case "←": "<-"
        case "°": "deg "
        case "µ": "u"
        case "²": "2"
        case "³": "3"
        case "±": "+/-"
        case "×": "x"
        case "·": "|"
        case "–", "−": "-"
        default: nil
        }
    }
}
