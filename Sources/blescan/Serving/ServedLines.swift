import BLELinux

/// The lines that `serve` prints.
///
/// A reader that is slow, or has stopped, such as a pager, holds up no central: lines wait for it, in their order and in
/// a bounded number, and further ones are counted.
final class ServedLines: Sendable {
    /// The maximum number of lines that wait.
    static let limit = 1_024

    private let waiting: AsyncStream<[UInt8]>
    private let continuation: AsyncStream<[UInt8]>.Continuation
    /// The number of lines that found no room, and were not reported yet.
    private let leftOut = Lock(0)
    private let output: LineOutput

    init(to output: LineOutput) {
        self.output = output
        (waiting, continuation) = AsyncStream.makeStream(
            of: [UInt8].self, bufferingPolicy: .bufferingOldest(Self.limit))
    }

    /// Adds a line; never waits.
    func add(_ line: [UInt8]) {
        if case .dropped = continuation.yield(line) { leftOut.withLock { $0 += 1 } }
    }

    /// Writes the lines until `finish()`, or until they cannot be written, which ends the program.
    func write() async {
        do {
            for await line in waiting {
                switch try await output.write(line) {
                case .written: break
                case .closed: return Interrupt.end(.done)
                case .givenUp: return
                }
                let count = takeLeftOut()
                if count > 0 { Console.warn("\(count.counted("line")) came faster than they were printed") }
            }
        } catch {
            let message = (error as? Failure)?.message ?? "\(error)"
            Console.note(Console.titled(message, .failure))
            Interrupt.end(.linkLost)
        }
    }

    /// No line follows. What the reader takes without a pause is still written.
    func finish() {
        continuation.finish()
        output.giveUp()
    }

    private func takeLeftOut() -> Int {
        leftOut.withLock { count in
            defer { count = 0 }
            return count
        }
    }
}
