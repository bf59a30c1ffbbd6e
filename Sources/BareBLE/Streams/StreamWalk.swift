/// One consumer's position in a stream: it takes whole batches and returns one entry after the other.
struct StreamWalk<Element: Sendable>: Sendable {
    private let buffer: StreamBuffer<Element>
    private var batch: [StreamBuffer<Element>.Entry] = []
    private var position = 0

    init(_ buffer: StreamBuffer<Element>) {
        self.buffer = buffer
    }

    /// Returns the next entry, which stays the next one until `pass()`; `nil` after the end of the stream or the
    /// cancellation of the task.
    ///
    /// - Throws: The error of `finish`, once; `.busy` if another task is already waiting.
    // Inlined, because nearly always there is nothing to wait for.
    @inline(__always)
    mutating func peek() async throws(BLEError) -> StreamBuffer<Element>.Entry? {
        if position == batch.count {
            batch = try await buffer.nextBatch()
            position = 0
        }
        return position < batch.count ? batch[position] : nil
    }

    /// Advances past the entry that `peek()` returned.
    mutating func pass() {
        position += 1
    }
}
