/// A set of attribute handles, kept as sorted ranges that neither touch nor overlap.
///
/// Discovery uses it for the explained and the unexplained handles; gaps between services can be tens of thousands of
/// handles wide, so single handles would not do.
package struct HandleRanges: Hashable, Sendable {
    package private(set) var ranges: [ClosedRange<AttributeHandle>] = []

    package init() {}

    package init(_ range: ClosedRange<AttributeHandle>) {
        ranges = [range]
    }

    package var isEmpty: Bool { ranges.isEmpty }

    package func contains(_ handle: AttributeHandle) -> Bool {
        let index = firstIndex(endingAtOrAfter: handle)
        return index < ranges.count && ranges[index].lowerBound <= handle
    }

    package mutating func insert(_ range: ClosedRange<AttributeHandle>) {
        let first = range.lowerBound == 0 ? 0 : firstIndex(endingAtOrAfter: range.lowerBound &- 1)
        var lower = range.lowerBound
        var upper = range.upperBound
        var end = first
        while end < ranges.count, Int(ranges[end].lowerBound) <= Int(upper) + 1 {
            lower = min(lower, ranges[end].lowerBound)
            upper = max(upper, ranges[end].upperBound)
            end += 1
        }
        ranges.replaceSubrange(first..<end, with: [lower...upper])
    }

    /// Inserts a range; if there are more than `limit` ranges then, one range over all of them replaces them.
    package mutating func insert(_ range: ClosedRange<AttributeHandle>, atMost limit: Int) {
        insert(range)
        guard ranges.count > limit, let first = ranges.first, let last = ranges.last else { return }
        ranges = [first.lowerBound...last.upperBound]
    }

    package mutating func insert(_ handle: AttributeHandle) {
        insert(handle...handle)
    }

    package mutating func remove(_ range: ClosedRange<AttributeHandle>) {
        let first = firstIndex(endingAtOrAfter: range.lowerBound)
        var kept: [ClosedRange<AttributeHandle>] = []
        var end = first
        while end < ranges.count, ranges[end].lowerBound <= range.upperBound {
            let old = ranges[end]
            if old.lowerBound < range.lowerBound { kept.append(old.lowerBound...(range.lowerBound &- 1)) }
            if old.upperBound > range.upperBound { kept.append((range.upperBound &+ 1)...old.upperBound) }
            end += 1
        }
        guard end > first else { return }
        ranges.replaceSubrange(first..<end, with: kept)
    }

    /// Returns the parts of this set inside `range`, lowest first.
    package func intersection(_ range: ClosedRange<AttributeHandle>) -> [ClosedRange<AttributeHandle>] {
        var parts: [ClosedRange<AttributeHandle>] = []
        var index = firstIndex(endingAtOrAfter: range.lowerBound)
        while index < ranges.count, ranges[index].lowerBound <= range.upperBound {
            parts.append(ranges[index].clamped(to: range))
            index += 1
        }
        return parts
    }

    private func firstIndex(endingAtOrAfter handle: AttributeHandle) -> Int {
        ranges.firstSortedIndex { $0.upperBound >= handle }
    }
}

extension Array {
    /// Returns the first index whose element satisfies a condition that, once true, stays true to the end; `count` if
    /// none does.
    func firstSortedIndex(where condition: (Element) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = low + (high - low) / 2
            if condition(self[middle]) {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low
    }
}
