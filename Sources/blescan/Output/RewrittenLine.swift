import BLELinux

/// The last line on a terminal, which `--plot` rewrites in place, and the messages that come above it.
///
/// The line is written by a task that a slow terminal may delay, messages by any thread, and neither waits for the
/// other. So each of them goes one line up first, erases what it replaces, and ends below the line. A message between
/// the first line and `wrote` leaves that line where it is: the next one begins below the message.
final class RewrittenLine: Sendable {
    private struct State {
        /// The line on the terminal; `nil` if there is none that can be replaced.
        var shown: [UInt8]?
        /// The number of messages so far.
        var messageCount = 0
        /// That number when the first line was about to be written.
        var countBefore = 0
    }

    private static let erase = Array("\u{1B}[1A\r\u{1B}[2K".utf8)

    private let state = Lock(State())

    /// Returns the bytes that show a line in place of the one before, without the newline at their end. Call `wrote`
    /// when they are on the terminal.
    func replacing(with line: [UInt8]) -> [UInt8] {
        state.withLock { state in
            guard state.shown == nil else { return Self.erase + line }
            state.countBefore = state.messageCount
            return line
        }
    }

    /// The line is on the terminal, with a newline after it.
    func wrote(_ line: [UInt8]) {
        state.withLock { state in
            guard state.shown != nil || state.messageCount == state.countBefore else { return }
            state.shown = line
        }
    }

    /// Returns the bytes that show a message on the same terminal, above the line if there is one.
    ///
    /// - Parameter message: The message with the newline at its end.
    func above(_ message: [UInt8]) -> [UInt8] {
        state.withLock { state in
            state.messageCount += 1
            guard let shown = state.shown else { return message }
            return Self.erase + message + shown + [0x0A]
        }
    }

    /// The line stays as it is; messages come below it.
    func end() {
        state.withLock { $0.shown = nil }
    }
}
