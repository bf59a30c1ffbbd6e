import BLECore

/// Names on the command line, in lower case with dashes, and suggestions for mistyped ones.
enum NearNames {
    /// The maximum number of suggestions; a part such as `measurement` is in more names.
    private static let limit = 12
    /// The number of bytes of a text that is compared.
    private static let longest = 64

    /// Returns `Battery Level` as `battery-level`.
    static func written(_ name: String) -> String {
        name.lowercased().split { !$0.isLetter && !$0.isNumber }.joined(separator: "-")
    }

    /// Returns those of `names` that differ from `text` by a typing error, otherwise those that contain it.
    static func near(_ text: String, in names: [String]) -> [String] {
        let slips = slips(text, in: names)
        if !slips.isEmpty { return slips }
        let wanted = written(text)
        guard (3...longest).contains(wanted.utf8.count) else { return [] }
        return unique(names.map(written).filter { $0.contains(wanted) })
    }

    /// Returns those of `names` that differ from `text` by at most two typing errors, and by at most one in three
    /// letters.
    static func slips(_ text: String, in names: [String]) -> [String] {
        let wanted = written(text)
        guard (1...longest).contains(wanted.utf8.count) else { return [] }
        let tolerance = min(2, wanted.count / 3)
        let slips = names.map(written).map { (name: $0, distance: distance(wanted, $0)) }
            .filter { $0.distance <= tolerance }
        guard let best = slips.map(\.distance).min() else { return [] }
        return unique(slips.filter { $0.distance == best }.map(\.name))
    }

    /// Returns the names as the end of a sentence: `a, b or c`.
    static func list(_ names: [String]) -> String {
        guard names.count > 1, let last = names.last, names.count <= limit else {
            let more = names.count - limit
            return names.prefix(limit).joined(separator: ", ") + (more > 0 ? " or one of \(more) more" : "")
        }
        return names.dropLast().joined(separator: ", ") + " or " + last
    }

    private static func unique(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }

    /// Returns the number of letters that are wrong, missing, superfluous, or swapped with their neighbours.
    private static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        guard abs(left.count - right.count) <= 2 else { return .max }
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for row in left.indices {
            var current = [row + 1]
            for column in right.indices {
                let same = left[row] == right[column]
                var cost = min(last[column] + (same ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
