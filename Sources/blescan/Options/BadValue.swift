/// The defect of a value on the command line, as the end of a sentence.
struct BadValue: Error, CustomStringConvertible {
    let description: String
    /// What was probably meant, or what to write, as a sentence of its own; `nil` if that is not known.
    let suggestion: String?

    init(description: String, suggestion: String? = nil) {
        self.description = description
        self.suggestion = suggestion
    }

    /// Names what was probably meant, and adds a sentence if there is one.
    init(meant words: String, _ sentence: String? = nil) {
        let end = "\(words)?\(sentence.map { " " + $0 } ?? "")"
        description = "did you mean \(end)"
        suggestion = "Did you mean \(end)"
    }
}

/// Numbers on the command line.
enum NumberArgument {
    /// Parses a number.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func parse<Number: FixedWidthInteger>(_ text: String) throws(BadValue) -> Number {
        if let number = text.dropped(prefix: "0x").map({ Number($0, radix: 16) }) ?? Number(text) { return number }
        if !Number.isSigned, isNegative(text) { throw BadValue(description: "it must not be negative.") }
        throw BadValue(description: "it takes a number from \(Number.min) to \(Number.max).")
    }

    /// Parses a count; the options check for 0.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func count(_ text: String) throws(BadValue) -> Int {
        if isNegative(text) { throw BadValue(description: "it must not be negative.") }
        guard let number = Int(text) else { throw BadValue(description: "it takes a number from 1.") }
        return number
    }

    /// Returns whether it is a number below 0, of any size.
    static func isNegative(_ text: String) -> Bool {
        guard let digits = text.dropped(prefix: "-") else { return false }
        return digits.utf8.first.map { (0x30...0x39).contains($0) } ?? false
    }
}
