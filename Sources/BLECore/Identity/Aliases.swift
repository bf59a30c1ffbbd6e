/// Numbers in place of values that must not be shown: the same value keeps its number for as long as the table lives.
///
/// At most 65,536 values are remembered, because a scan of months receives more random addresses than that. A value
/// that returns after it was forgotten gets a new number; no number is used twice.
package struct Aliases<Value: Hashable & Sendable>: Sendable {
    private static var capacity: Int { 65_536 }

    private var numbers: [Value: Int] = [:]
    private var last = 0

    package init() {}

    /// Returns the number of a value, counted from 1 in the order of first appearance.
    package mutating func number(of value: Value) -> Int {
        if let number = numbers[value] { return number }
        if numbers.count >= Self.capacity { numbers.removeAll(keepingCapacity: true) }
        last += 1
        numbers[value] = last
        return last
    }
}
