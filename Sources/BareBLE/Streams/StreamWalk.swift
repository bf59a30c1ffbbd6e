/// One consumer's position in a stream: it takes whole batches and returns one entry after the other.
///
/// A task that is cancelled gets what waits then, and no more: a consumer that is slower than the producer would never
/// come to an end.
@usableFromInline struct StreamWalk<Element: Sendable> {
    /// Returns the next entries, as soon as there are any; empty at the end of the stream, or after the cancellation of
    /// the task.
    @usableFromInline typealias Fetch = @Sendable () async throws(BLEError) -> [StreamEntry<Element>]

    @usableFromInline let fetch: Fetch
    @usableFromInline var batch: [StreamEntry<Element>] = []
    @usableFromInline var position = 0
    /// Whether the task was cancelled before the batch was taken.
    @usableFromInline var isLast = false

    init(_ fetch: @escaping Fetch) {
        self.fetch = fetch
    }

    init(_ buffer: StreamBuffer<Element>) {
        self.init { () async throws(BLEError) in try await buffer.nextBatch() }
    }

    /// Returns the next entry, which stays the next one until `pass()`; `nil` after the end of the stream or the
    /// cancellation of the task.
    ///
    /// - Throws: The error of `finish`, once; `.busy` if another task is already waiting.
    // Inlined, because nearly always there is nothing to wait for.
    @inlinable @inline(__always)
    mutating func peek() async throws(BLEError) -> StreamEntry<Element>? {
        if position == batch.count {
            if isLast { return nil }
            isLast = Task.isCancelled
            batch = try await fetch()
            position = 0
        }
        return position < batch.count ? batch[position] : nil
    }

    /// Advances past the entry that `peek()` returned.
    @inlinable @inline(__always)
    mutating func pass() {
        position += 1
    }

    /// Drops the entries that were taken and not passed.
    mutating func discard() {
        batch = []
        position = 0
    }

    /// Forgets the losses before the entry that `peek()` returned, once they are reported.
    mutating func passLosses() {
        batch[position].droppedBefore = 0
    }
}
