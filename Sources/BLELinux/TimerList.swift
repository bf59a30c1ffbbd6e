package import BLECore

/// Identifies a timer of an `EventLoop` until it has fired or was cancelled.
package struct TimerID: Hashable, Comparable, Sendable {
    /// The time at which the timer fires.
    package let deadline: BootInstant
    let serial: UInt64

    package static func < (left: TimerID, right: TimerID) -> Bool {
        (left.deadline, left.serial) < (right.deadline, right.serial)
    }
}

/// Timers in the order in which they fire; those with equal deadlines in the order in which they were added.
struct TimerList {
    private var entries: [(id: TimerID, handler: EventLoop.Handler)] = []
    private var nextSerial: UInt64 = 0

    var count: Int { entries.count }
    var earliest: BootInstant? { entries.first?.id.deadline }

    mutating func add(at deadline: BootInstant, _ handler: @escaping EventLoop.Handler) -> TimerID {
        let id = TimerID(deadline: deadline, serial: nextSerial)
        nextSerial += 1
        entries.insert((id, handler), at: position(of: id))
        return id
    }

    /// Removes a timer; does nothing if it is already gone.
    mutating func remove(_ id: TimerID) {
        let index = position(of: id)
        guard index < entries.count, entries[index].id == id else { return }
        entries.remove(at: index)
    }

    /// Removes and returns the first timer if it is due.
    mutating func takeDue(at now: BootInstant) -> EventLoop.Handler? {
        guard let first = entries.first, first.id.deadline <= now else { return nil }
        entries.removeFirst()
        return first.handler
    }

    private func position(of id: TimerID) -> Int {
        var range = 0..<entries.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = entries[middle].id < id ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }
}
