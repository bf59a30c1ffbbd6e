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
        let question = Array(prompt.printable.utf8)
        await show(question)
        // After ^Z and `fg` the lines of the shell are below the question, and what was typed is gone.
        let repeating: @Sendable () -> Void = { _ = Console.write(question, to: STDERR_FILENO) }
        let resumption = DispatchSource.makeSignalSource(signal: SIGCONT, queue: .global())
        resumption.setEventHandler(handler: repeating)
        resumption.resume()
        defer { resumption.cancel() }
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
        let reader = LineReader(of: STDIN_FILENO)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { reader.start($0, limit: limit) }
        } onCancel: {
            reader.end(nil)
        }
    }
}

/// Reads one line of a terminal beside the event loop.
final class LineReader: Sendable {
    private struct State {
        var continuation: CheckedContinuation<String?, Never>?
        var source: (any DispatchSourceRead)?
        var bytes: [UInt8] = []
        var hasEnded = false
    }

    private let descriptor: Int32
    private let state = Lock(State())

    init(of descriptor: Int32) {
        self.descriptor = descriptor
    }

    func start(_ continuation: CheckedContinuation<String?, Never>, limit: Int) {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: .global())
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

    /// Takes what is there, without waiting.
    ///
    /// The source may call it once more after the end: what is typed then is the reply to the next question. The lock
    /// keeps reading and the end apart, and the read returns at once.
    func readable(limit: Int) {
        let (hasEnded, line) = state.withLock { state -> (Bool, String?) in
            var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard !state.hasEnded, unsafe poll(&input, 1, 0) > 0 else { return (false, nil) }
            var buffer = [UInt8](repeating: 0, count: limit)
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR || errno == EAGAIN { return (false, nil) }
            guard count > 0 else { return (true, nil) }
            state.bytes += buffer.prefix(count)
            if let index = state.bytes.firstIndex(of: 0x0A) {
                return (true, String(decoding: state.bytes[..<index], as: UTF8.self))
            }
            return (state.bytes.count >= limit, nil)
        }
        if hasEnded { end(line) }
    }
}
