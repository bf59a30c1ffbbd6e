/// Numbers in place of texts that must not be shown: the same text has the same number for as long as the program
/// runs.
struct Aliases {
    /// Random addresses change every few minutes: a scan of months hears more of them than there should be room for.
    private static let capacity = 65_536

    private var numbers: [String: Int] = [:]
    private var last = 0

    /// The number of a text, counted from 1 in the order of first appearance.
    mutating func number(of text: String) -> Int {
        if let number = numbers[text] { return number }
        if numbers.count >= Self.capacity { numbers.removeAll(keepingCapacity: true) }
        last += 1
        numbers[text] = last
        return last
    }
}
