/// One consumer's way through a stream: it takes over whole batches and gives one entry after the other.
struct StreamWalk<Element: Sendable>: Sendable {
    private let buffer: StreamBuffer<Element>
    private var batch: [StreamBuffer<Element>.Entry] = []
    private var position = 0

    init(_ buffer: StreamBuffer<Element>) {
        self.buffer = buffer
    }

    /// The next entry, which stays the next one until `pass()`; `nil` when the stream is over or the task was cancelled.
    ///
    /// - Throws: What the stream was finished with, once; `.busy` when another task waits already.
    // Inlined, because nearly always there is nothing to wait for.
    @inline(__always)
    mutating func peek() async throws(BLEError) -> StreamBuffer<Element>.Entry? {
        if position == batch.count {
            batch = try await buffer.nextBatch()
            position = 0
        }
        return position < batch.count ? batch[position] : nil
    }

    /// Leaves the entry behind that `peek()` gave.
    mutating func pass() {
        position += 1
    }
}
