/// A time on the command line: `10s`, `500ms`, `2m`; a bare number counts seconds.
struct DurationArgument: Hashable, Sendable, CustomStringConvertible {
    let duration: Duration
    let description: String

    private static let year: Double = 31_536_000

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        if NumberArgument.isNegative(argument) { throw BadValue(description: "it must not be negative.") }
        let units: [(suffix: String, seconds: Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("", 1)]
        let unit = units.first { argument.hasSuffix($0.suffix) } ?? ("", 1)
        guard let number = Double(argument.dropLast(unit.suffix.count)), !number.isNaN else {
            throw BadValue(description: "write 10s, 500ms, 2m or 1h; a bare number is seconds.")
        }
        guard number > 0 else { throw BadValue(description: "it must be longer than 0.") }
        guard number * unit.seconds <= Self.year else { throw BadValue(description: "it takes 8760h at most.") }
        duration = .seconds(number * unit.seconds)
        description = argument
    }
}
