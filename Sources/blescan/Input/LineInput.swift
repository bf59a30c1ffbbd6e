import BLELinux
import Dispatch
import Glibc

/// Lines that come while something else happens: the wait for one can be cancelled, and keeps no thread of the tasks.
///
/// Lines are read in order, by one task.
final class LineInput: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var isAtEnd = false
        /// Whether the rest of a line that is too long is still to come.
        var isSkipping = false
    }

    private let descriptor: Int32
    private let wake = WakePipe()
    private let queue = DispatchQueue(label: "input")
    private let state = Lock(State())

    /// Reads a descriptor, which stays open.
    init(_ descriptor: Int32 = STDIN_FILENO) {
        self.descriptor = descriptor
    }

    /// Returns the next line; `nil` after the last one, and to a cancelled task.
    func next() async -> InputLine? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [self] in continuation.resume(returning: read()) }
            }
        } onCancel: {
            wake.wake()
        }
    }

    private func read() -> InputLine? {
        while true {
            if let line = state.withLock({ Self.line(from: &$0) }) { return line }
            if state.withLock(\.isAtEnd) { return nil }
            guard wake.waitForInput(descriptor) else { return nil }
            switch InputFile.chunk(descriptor, 4096) {
            case .success(let bytes) where !bytes.isEmpty: state.withLock { $0.bytes += bytes }
            case .failure(EAGAIN): continue
            case .success, .failure: state.withLock { $0.isAtEnd = true }
            }
        }
    }

    private static func line(from state: inout State) -> InputLine? {
        while true {
            let end = state.bytes.firstIndex(of: 0x0A)
            let isTooLong = state.bytes.count > InputLine.longestBeforeLineFeed
            guard end != nil || isTooLong || state.isAtEnd && !state.bytes.isEmpty else { return nil }
            let line = state.bytes[..<(end ?? state.bytes.count)]
            let isRest = state.isSkipping
            state.isSkipping = end == nil
            defer { state.bytes.removeFirst(end.map { $0 + 1 } ?? state.bytes.count) }
            // The rest is no other line.
            if !isRest { return end == nil ? InputLine(line) : InputLine.ended(line) }
        }
    }
}
