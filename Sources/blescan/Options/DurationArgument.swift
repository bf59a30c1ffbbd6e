/// A time on the command line: `10s`, `500ms`, `5min`, `1m30s`; a bare number counts seconds.
struct DurationArgument: Hashable, Sendable, CustomStringConvertible {
    let duration: Duration
    let description: String

    /// The time for users, such as 1 min 30 s: a bare number has its unit, and a space is before each.
    var words: String {
        if Double(description) != nil { return description + " s" }
        var parts: [String] = []
        var rest = description[...]
        while !rest.isEmpty {
            let number = rest.prefix { !$0.isLetter }
            let unit = rest.dropFirst(number.count).prefix { $0.isLetter }
            guard !number.isEmpty, !unit.isEmpty else { return description }
            parts.append("\(number) \(Self.symbol(of: String(unit)))")
            rest = rest.dropFirst(number.count + unit.count)
        }
        return parts.joined(separator: " ")
    }

    private static func symbol(of unit: String) -> String {
        switch unit {
        case "m": "min"
        case "sec": "s"
        default: unit
        }
    }

    private static let year: Double = 31_536_000
    private static let units: [(names: [String], seconds: Double)] = [
        (["d"], 86_400), (["h"], 3600), (["m", "min"], 60), (["s", "sec"], 1), (["ms"], 0.001),
    ]

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        if NumberArgument.isNegative(argument) { throw BadValue(description: "it must not be negative.") }
        guard let seconds = Double(argument) ?? Self.seconds(in: argument), !seconds.isNaN else {
            throw BadValue(description: "write 10s, 500ms, 2m, 1m30s or 1h; a bare number is seconds.")
        }
        guard seconds >= 1e-9 else { throw BadValue(description: "it must be longer than 0.") }
        guard seconds <= Self.year else { throw BadValue(description: "it takes 8760h at most.") }
        // As a binary fraction, 10.24s is longer than 10.24 s.
        duration = .nanoseconds(Int64((seconds * 1e9).rounded()))
        description = argument
    }

    /// Returns the sum of numbers with units, each unit smaller than the one before it; `nil` for any other text.
    private static func seconds(in text: String) -> Double? {
        guard !text.isEmpty else { return nil }
        var rest = text[...]
        var smaller = units[...]
        var sum: Double = 0
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isWholeNumber || $0 == "." }
            let name = rest.dropFirst(digits.count).prefix { $0.isLetter }
            guard let number = Double(digits),
                let place = smaller.firstIndex(where: { $0.names.contains(String(name)) })
            else { return nil }
            sum += number * smaller[place].seconds
            smaller = smaller[(place + 1)...]
            rest = rest.dropFirst(digits.count + name.count)
        }
        return sum
    }
}
