internal import BLELinux

/// How much work may be at a disk at a time. One that hangs keeps a thread for each piece of work: it gets so many, and no more.
package final class DiskGate: Sendable {
    private let limit: Int
    private let working = Lock(0)

    /// Far more than a disk that answers ever has at a time.
    package init(limit: Int = 64) {
        self.limit = limit
    }

    /// Does `work` on the calling thread; `nil` at once where the disk has as much to do as it may have.
    package func run<Value>(_ work: () -> Value) -> Value? {
        let isOpen = working.withLock { working in
            guard working < limit else { return false }
            working += 1
            return true
        }
        guard isOpen else { return nil }
        defer { working.withLock { $0 -= 1 } }
        return work()
    }
}
