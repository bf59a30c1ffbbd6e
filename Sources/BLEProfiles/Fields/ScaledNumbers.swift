internal import BLECore

extension FixedWidthInteger {
    /// Converts `quantity` to units of 1/`divisor`, rounded and clamped to the range of the type. NaN becomes 0.
    init(counting quantity: Double, per divisor: Double) {
        let count = (quantity * divisor).rounded()
        if let exact = Self(exactly: count) {
            self = exact
        } else {
            self = count.isNaN ? 0 : (count < 0 ? .min : .max)
        }
    }
}

/// The largest and the smallest value of a period.
public struct Extremes<Value: Hashable & Sendable>: Hashable, Sendable {
    /// The largest value.
    public let maximum: Value
    /// The smallest value.
    public let minimum: Value

    /// Creates a pair of extremes.
    public init(maximum: Value, minimum: Value) {
        self.maximum = maximum
        self.minimum = minimum
    }
}
