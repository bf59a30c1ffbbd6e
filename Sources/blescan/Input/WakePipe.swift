import Glibc

/// Ends a wait in `poll` from any thread, now and for good.
final class WakePipe: Sendable {
    /// The descriptor to wait for beside the others: it is readable once the wait is to end.
    let reading: Int32
    private let writing: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        _ = unsafe pipe(&ends)
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// Ends the wait, and every later one.
    func wake() {
        var byte: UInt8 = 0
        _ = unsafe Glibc.write(writing, &byte, 1)
    }
}
