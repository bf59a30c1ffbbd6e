/// How often reports with data have come in the last minutes: five at least, and ten at most.
struct ReportRate {
    private var windowBegan: BootInstant?
    private var count = 0
    /// The number in the window before; `nil` where there was none.
    private var countBefore: Int?

    private static let window: Duration = .seconds(300)

    mutating func add(at now: BootInstant) {
        advance(to: now)
        count += 1
    }

    /// Whether more than one report in a second was usual.
    func isHigh(at now: BootInstant) -> Bool {
        var copy = self
        copy.advance(to: now)
        guard let before = copy.countBefore, let began = copy.windowBegan else { return false }
        return .seconds(before + copy.count) > Self.window + (now - began)
    }

    private mutating func advance(to now: BootInstant) {
        guard let began = windowBegan else { return windowBegan = now }
        let age = now - began
        guard age >= Self.window else { return }
        countBefore = age < Self.window * 2 ? count : nil
        count = 0
        windowBegan = now
    }
}
