import BLECore

/// The strength of a device over the last two minutes, and the gaps between its advertisements.
struct SignalHistory: Sendable {
    /// The gaps between advertisements so far.
    struct Gaps: Hashable, Sendable {
        private(set) var least: Duration
        private(set) var most: Duration
        private var sum: Duration
        private var count = 1

        var mean: Duration { sum / count }

        fileprivate init(_ gap: Duration) { (least, most, sum) = (gap, gap, gap) }

        fileprivate mutating func add(_ gap: Duration) {
            least = min(least, gap)
            most = max(most, gap)
            sum += gap
            count += 1
        }
    }

    /// The time of one step.
    static let step: Duration = .seconds(2)
    /// The number of steps that are known.
    static let stepCount = 60

    /// Reports within this time belong to one advertising event: three channels, and a scan response.
    private static let longestEvent: Duration = .milliseconds(15)
    /// A longer silence is no gap: the device was away.
    private static let longestGap: Duration = .seconds(60)

    /// The strongest report of each step, in a ring.
    private var strengths = [Int8?](repeating: nil, count: Self.stepCount)
    /// The number of the newest step.
    private var newest: Int64?
    private var lastAdvertisement: BootInstant?
    private(set) var gaps: Gaps?

    /// A report was heard.
    mutating func record(_ strength: Int8?, at now: BootInstant) {
        if let strength {
            let step = Self.step(of: now)
            let former = newest ?? step
            if step > former {
                for passed in 0..<min(step - former, Int64(Self.stepCount)) {
                    strengths[Self.slot(step - passed)] = nil
                }
            }
            let current = max(former, step)
            newest = current
            strengths[Self.slot(current)] = max(strengths[Self.slot(current)] ?? .min, strength)
        }
        guard let last = lastAdvertisement else {
            lastAdvertisement = now
            return
        }
        let gap = now - last
        guard gap >= Self.longestEvent else { return }
        lastAdvertisement = now
        guard gap <= Self.longestGap else { return }
        if gaps?.add(gap) == nil { gaps = Gaps(gap) }
    }

    /// Returns the strongest report of each of the last steps, the oldest first; `nil` where there was none.
    func strengths(of count: Int, at now: BootInstant) -> [Int8?] {
        let last = Self.step(of: now)
        return (0..<Int64(count)).map { place in
            let step = last - Int64(count) + 1 + place
            guard let newest, step <= newest, step > newest - Int64(Self.stepCount) else { return nil }
            return strengths[Self.slot(step)]
        }
    }

    /// A recording may be from before 1970, if the clock was not set.
    private static func step(of time: BootInstant) -> Int64 {
        let length = Self.step.saturatedNanoseconds
        let rest = time.nanoseconds % length
        return time.nanoseconds / length - (rest < 0 ? 1 : 0)
    }

    private static func slot(_ step: Int64) -> Int {
        let rest = Int(step % Int64(stepCount))
        return rest < 0 ? rest + stepCount : rest
    }
}
