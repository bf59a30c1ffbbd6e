internal import BLECore

/// Decides when counts of problems are worth a line in the log: the first problem at once, and from then on once a
/// minute, however many there are. A peer that misbehaves a thousand times a second fills no disk that way.
struct WarningThrottle {
    typealias Counts = (_ body: (_ count: Int, _ what: StaticString) -> Void) -> Void

    static let pause: Duration = .seconds(60)

    private var logged = 0
    private var lastTime: BootInstant?

    /// Whether there is more than was logged and a line is due; an extra line always is.
    mutating func isDue(counts: Counts, isExtra: Bool = false, at now: BootInstant) -> Bool {
        let total = Self.sum(counts)
        guard total > logged, isExtra || lastTime.map({ now - $0 >= Self.pause }) ?? true else { return false }
        logged = total
        lastTime = now
        return true
    }

    /// Whether there is more than was logged.
    func hasRest(counts: Counts) -> Bool { Self.sum(counts) > logged }

    /// Returns a text such as "malformed responses: 3, empty packets: 1".
    static func text(_ counts: Counts) -> String {
        var parts: [String] = []
        counts { count, what in if count > 0 { parts.append("\(what): \(count)") } }
        return parts.joined(separator: ", ")
    }

    static func sum(_ counts: Counts) -> Int {
        var sum = 0
        counts { count, _ in sum &+= count }
        return sum
    }
}
