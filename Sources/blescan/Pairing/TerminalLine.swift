import BLELinux
import Dispatch
import Glibc

/// Questions to the user on the terminal.
enum TerminalLine {
    /// The most bytes of a line; a longer one is none.
    private static let limit = 256

    /// Whether there is a user to ask: who sees standard error, and types on standard input.
    static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// Prints `prompt` and returns the line that is typed then; `nil` at the end of the input, and to a cancelled task.
    static func ask(_ prompt: String) async -> String? {
        Console.progress.end()
        // What was typed before the question is no reply to it.
        tcflush(STDIN_FILENO, TCIFLUSH)
        await show(Array(prompt.printable.utf8))
        let line = await read()
        if line == nil { await show([0x0A]) }
        return line
    }

    /// Writes to the terminal. One that is stopped delays this question, and not the thread that asks, which may be that
    /// of the event loop.
    private static func show(_ bytes: [UInt8]) async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                _ = Console.write(bytes, to: STDERR_FILENO)
                continuation.resume()
            }
        }
    }

    private static func read() async -> String? {
        let reader = LineReader()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { reader.start($0, limit: limit) }
        } onCancel: {
            reader.end(nil)
        }
    }
}

/// Reads one line beside the event loop.
private final class LineReader: Sendable {
    private struct State {
        var continuation: CheckedContinuation<String?, Never>?
        var source: (any DispatchSourceRead)?
        var bytes: [UInt8] = []
        var hasEnded = false
    }

    private let state = Lock(State())

    func start(_ continuation: CheckedContinuation<String?, Never>, limit: Int) {
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .global())
        source.setEventHandler { self.readable(limit: limit) }
        let hasEnded = state.withLock { state in
            guard !state.hasEnded else { return true }
            state.continuation = continuation
            state.source = source
            return false
        }
        // A source is resumed before it goes away.
        source.resume()
        guard hasEnded else { return }
        source.cancel()
        continuation.resume(returning: nil)
    }

    /// Ends the reading, once.
    func end(_ line: String?) {
        let (continuation, source) = state.withLock { state in
            defer {
                state.hasEnded = true
                state.continuation = nil
                state.source = nil
            }
            return (state.continuation, state.source)
        }
        source?.cancel()
        continuation?.resume(returning: line)
    }

    private func readable(limit: Int) {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR || errno == EAGAIN { return }
        guard count > 0 else { return end(nil) }
        let bytes = state.withLock { state in
            state.bytes += buffer.prefix(count)
            return state.bytes
        }
        if let index = bytes.firstIndex(of: 0x0A) {
            end(String(decoding: bytes[..<index], as: UTF8.self))
        } else if bytes.count >= limit {
            end(nil)
        }
    }
}
