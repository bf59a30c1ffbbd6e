import BLELinux
import Dispatch
import Glibc

/// Writes lines to a reader that may be slow, or have stopped reading: the wait for it can be cancelled.
///
/// Nothing is lost or stored here: while a line waits, so does the caller, and later events gather in the bounded
/// buffer of the scan or the subscription. A thread of its own waits: neither the event loop nor the tasks' threads.
/// Lines are written in the order of the calls, which all come from one task or actor.
final class LineOutput: Sendable {
    /// The result of writing a line.
    enum Outcome {
        case written
        /// The reader is gone.
        case closed
        /// The program is ending, and the reader takes nothing now.
        case givenUp
    }

    private let descriptor: Int32
    private let wake = WakePipe()
    private let queue = DispatchQueue(label: "output")
    /// The number of lines that wait for the reader.
    private let waiting = Lock(0)

    init(_ descriptor: Int32 = STDOUT_FILENO) {
        self.descriptor = descriptor
    }

    /// Writes one whole line; returns when the reader has taken it, or is gone.
    ///
    /// - Throws: `Failure` if the line cannot be written, such as on a full disk.
    func write(_ line: [UInt8]) async throws -> Outcome {
        var rest = (line + [0x0A])[...]
        if waiting.withLock({ $0 == 0 }), let outcome = try write(&rest, timeout: 0) { return outcome }
        waiting.withLock { $0 += 1 }
        return try await withCheckedThrowingContinuation { [rest] continuation in
            queue.async { [self] in
                var rest = rest
                let result = Result { try write(&rest, timeout: -1) ?? .givenUp }
                waiting.withLock { $0 -= 1 }
                continuation.resume(with: result)
            }
        }
    }

    /// Writes what the reader takes; returns `nil` if it has taken nothing for `timeout` milliseconds, -1 forever.
    private func write(_ rest: inout ArraySlice<UInt8>, timeout: Int32) throws(Failure) -> Outcome? {
        while !rest.isEmpty {
            var wanted = [
                pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: wake.reading, events: Int16(POLLIN), revents: 0),
            ]
            let ready = unsafe poll(&wanted, 2, timeout)
            if ready < 0, errno != EINTR { throw Failure(unwritable: errno) }
            if wanted[0].revents == 0 {
                if wanted[1].revents != 0 { return .givenUp }
                if ready == 0 { return nil }
                continue
            }
            // A pipe that is ready takes a page without blocking, and perhaps not more.
            let piece = Array(rest.prefix(4096))
            let count = unsafe piece.withUnsafeBytes { bytes in
                unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count)
            }
            if count > 0 {
                rest.removeFirst(count)
            } else if errno == EPIPE {
                return .closed
            } else if errno != EINTR, errno != EAGAIN {
                throw Failure(unwritable: errno)
            }
        }
        return .written
    }

    /// Ends the wait, now and for good. From any thread.
    func giveUp() {
        wake.wake()
    }
}
