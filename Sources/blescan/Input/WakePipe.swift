import Glibc

/// Ends a wait in `poll` from any thread, now and for good.
final class WakePipe: Sendable {
    /// The descriptor to wait for beside the others: it is readable once the wait is to end.
    let reading: Int32
    private let writing: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        _ = unsafe pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// Waits until a descriptor can be read; returns `false` once `wake` was called, or if waiting is impossible.
    func waitForInput(_ descriptor: Int32) -> Bool {
        while true {
            var wanted = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: reading, events: Int16(POLLIN), revents: 0),
            ]
            guard unsafe poll(&wanted, 2, -1) >= 0 || errno == EINTR else { return false }
            if wanted[1].revents != 0 { return false }
            if wanted[0].revents != 0 { return true }
        }
    }

    /// Ends the wait, and every later one.
    func wake() {
        var byte: UInt8 = 0
        _ = unsafe Glibc.write(writing, &byte, 1)
    }
}
