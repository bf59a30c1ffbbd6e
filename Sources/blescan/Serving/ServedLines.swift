import BLELinux

/// Lines that `serve` prints to one of its streams.
///
/// A reader that is slow, or has stopped, such as a pager, or a terminal after ^S, holds up no central: lines wait for
/// it, in their order and in a bounded number, and further ones are counted.
final class ServedLines: Sendable {
    /// The maximum number of lines that wait.
    static let limit = 1_024

    private let waiting: AsyncStream<[UInt8]>
    private let continuation: AsyncStream<[UInt8]>.Continuation
    /// The number of lines that were not written, and not reported yet.
    private let leftOut = Lock(0)
    private let output: LineOutput
    private let notes: ServedNotes?

    /// - Parameters:
    ///   - output: Where they go.
    ///   - notes: Where it is reported that lines were not written; `nil` for messages, which report that among
    ///     themselves.
    init(to output: LineOutput, reportingTo notes: ServedNotes?) {
        self.output = output
        self.notes = notes
        (waiting, continuation) = AsyncStream.makeStream(
            of: [UInt8].self, bufferingPolicy: .bufferingOldest(Self.limit))
    }

    /// Adds a line; never waits.
    func add(_ line: [UInt8]) {
        if case .dropped = continuation.yield(line) { leftOut.withLock { $0 += 1 } }
    }

    /// Writes the lines until `finish()`, or until they cannot be written. That ends the program, unless they are
    /// messages.
    func write() async {
        do {
            var outcome = LineOutput.Outcome.written
            for await line in waiting {
                if case .written = outcome { outcome = try await output.write(line) }
                switch outcome {
                case .written: outcome = try await reportLeftOut()
                case .closed:
                    if notes != nil { Interrupt.end(.done) }
                    return
                case .givenUp: leftOut.withLock { $0 += 1 }
                }
            }
            _ = try await reportLeftOut()
        } catch {
            guard let notes else { return }
            let failure = error as? Failure ?? Failure(message: "\(error)", status: .linkLost)
            for line in Console.lines(about: failure) { notes.note(line) }
            Interrupt.end(.linkLost)
        }
    }

    /// No line follows. What the reader takes without a pause is still written.
    func finish() {
        continuation.finish()
        output.giveUp()
    }

    private func reportLeftOut() async throws -> LineOutput.Outcome {
        let count = takeLeftOut()
        guard count > 0 else { return .written }
        if let notes {
            notes.warn("\(count.counted("line")) came faster than they were printed")
            return .written
        }
        let warning = Console.warning("\(count.counted("message")) came faster than they were printed")
        return try await output.write(Console.messageBytes(warning))
    }

    private func takeLeftOut() -> Int {
        leftOut.withLock { count in
            defer { count = 0 }
            return count
        }
    }
}
