extension FixedWidthInteger {
    /// The whole number nearest to `quantity` when it is counted `divisor` to the unit; the nearest that fits where none
    /// does, and 0 for what is no number.
    init(counting quantity: Double, per divisor: Double) {
        let count = (quantity * divisor).rounded()
        if let exact = Self(exactly: count) {
            self = exact
        } else {
            self = count.isNaN ? 0 : (count < 0 ? .min : .max)
        }
    }
}

/// The largest and the smallest value since the last time.
public struct Extremes<Value: Hashable & Sendable>: Hashable, Sendable {
    /// The largest.
    public let maximum: Value
    /// The smallest.
    public let minimum: Value

    /// The two values.
    public init(maximum: Value, minimum: Value) {
        self.maximum = maximum
        self.minimum = minimum
    }
}
