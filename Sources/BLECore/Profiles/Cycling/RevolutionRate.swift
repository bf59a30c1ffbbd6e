/// Turns per second, of so many turns in so many ticks of a sensor's clock; `nil` when the clock has not moved, which means
/// that no turn has ended, and when the counter went back.
func turnsPerSecond(_ turns: Int, ticks: UInt16, ticksPerSecond: Int) -> Double? {
    guard ticks > 0, turns >= 0 else { return nil }
    return Double(turns) * Double(ticksPerSecond) / Double(ticks)
}

extension FieldList {
    mutating func add(_ wheel: WheelRevolutions?) {
        guard let wheel else { return }
        add("wheel turns", wheel.count)
        add("last wheel event", Double(wheel.eventTime) / Double(max(1, wheel.ticksPerSecond)), places: 3, "s")
    }

    mutating func add(_ crank: CrankRevolutions?) {
        guard let crank else { return }
        add("crank turns", crank.count)
        add("last crank event", Double(crank.eventTime) / 1024, places: 3, "s")
    }
}
