internal import BLECore

/// Returns the revolutions per second, from a number of turns and of ticks of the sensor's clock. Returns `nil` if the
/// clock has not advanced, which means that no revolution was completed, or if the counter went backwards.
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
