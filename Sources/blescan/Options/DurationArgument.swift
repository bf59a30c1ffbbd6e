import ArgumentParser

/// A time as people write it: `10s`, `500ms`, `2m`; a bare number counts seconds.
struct DurationArgument: Hashable, Sendable, CustomStringConvertible {
    let duration: Duration
    let description: String
}

extension DurationArgument: ExpressibleByArgument {
    init?(argument: String) {
        let units: [(suffix: String, seconds: Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("", 1)]
        for unit in units where argument.hasSuffix(unit.suffix) {
            let digits = argument.dropLast(unit.suffix.count)
            guard let number = Double(digits), number > 0, number * unit.seconds <= 31_536_000 else { return nil }
            duration = .seconds(number * unit.seconds)
            description = argument
            return
        }
        return nil
    }
}
