import BLELinux

// The buffer between the event loop and one consumer.
//
// The producer never waits: it runs on the loop, inside a readable descriptor's handler. The consumer suspends only
// while the buffer is empty, and then takes its whole contents, so a burst costs one resumption.
//
// Duties
// - Order: elements are delivered in the order in which they were added.
// - Bounds: at most `capacity` elements and `byteLimit` bytes wait; the policy handles what does not fit, and the
//   number of losses travels with the next element (`droppedBefore`).
// - One end: after `finish` the waiting elements are still delivered, then the stream ends once, with or without an
//   error.
// - One consumer: a second task that waits at the same time gets an error, because only one of the two would get a
//   value.
// - Cancellation of the consuming task ends its wait at once, without an error: it is the usual way to stop.
// - A receiver, in place of a consumer, is called with each element within the call that adds it. So elements of
//   several buffers reach it in the order in which the producer has them.
//
// Invariants
// - An element that is longer than `byteLimit` waits alone, if the policy drops the oldest ones; else it does not fit.
// - A task waits only while the buffer is empty and has not ended. What ends the wait takes the `waiter` out of the
//   state under the lock, and resumes it outside, so that happens once.
// - Each loss is in `droppedInTotal`, and in the `droppedBefore` of the next element that is added or still waits, if
//   one follows.
// - Nothing is added after the end.
// - A receiver is called with no lock held, with every element in its order, then with the end, once.

/// The policy of a bounded stream for a value that does not fit. Losses are always counted.
public enum OverflowPolicy: Hashable, Sendable {
    /// The oldest waiting value is dropped; the next value delivered carries the number of dropped ones.
    case dropOldest
    /// The new value is dropped; the next value accepted carries the number of dropped ones.
    case dropNewest
    /// The stream ends with `BLEError.Code.valuesLost`, after the values that fitted.
    case fail
}

/// An element on its way to a consumer.
@usableFromInline struct StreamEntry<Element: Sendable>: Sendable {
    @usableFromInline let element: Element
    /// Its size, for the limit of its buffer.
    let bytes: Int
    /// The number of elements dropped right before it.
    @usableFromInline var droppedBefore: Int

    init(_ element: Element, bytes: Int = 0, droppedBefore: Int = 0) {
        self.element = element
        self.bytes = bytes
        self.droppedBefore = droppedBefore
    }
}

/// Hands elements from the event loop to one consumer, a whole batch at a time.
final class StreamBuffer<Element: Sendable>: Sendable {
    typealias Entry = StreamEntry<Element>

    /// Called with each element, and with `nil` at the end.
    typealias Receiver = @Sendable (Entry?) -> Void

    /// Resumed with whether it was the only consumer.
    private typealias Waiter = CheckedContinuation<Bool, Never>

    private let state: Lock<State>
    private let capacity: Int
    private let byteLimit: Int
    private let policy: OverflowPolicy
    private let subject: String?
    private let drops: DropCounter?

    /// - Parameters:
    ///   - subject: The owner of the elements, for messages.
    ///   - drops: Counts what is dropped here, together with what is dropped elsewhere.
    init(
        of subject: String?, capacity: Int, byteLimit: Int = .max, policy: OverflowPolicy,
        countingDropsIn drops: DropCounter? = nil
    ) {
        self.state = Lock(State())
        self.subject = subject
        self.capacity = max(1, capacity)
        self.byteLimit = byteLimit
        self.policy = policy
        self.drops = drops
    }

    /// The number of elements dropped since the stream began.
    var droppedInTotal: Int { state.withLock { $0.droppedInTotal } }

    /// The number of elements that wait. A producer that alone adds some can rely on it as an upper limit.
    var waitingCount: Int { state.withLock { $0.entries.count - $0.head } }

    /// Appends an element of `bytes` bytes; returns `false` if the policy ends the stream here, which happens once.
    ///
    /// `losses` is the number of elements lost right before it, on the way to this buffer.
    @discardableResult
    func yield(_ element: Element, bytes: Int = 0, after losses: Int = 0) -> Bool {
        let (waiter, goesOn, dropped, receiver) = state.withLock { state -> (Waiter?, Bool, Int, Receiver?) in
            guard !state.isFinished else { return (nil, true, 0, nil) }
            let droppedSoFar = state.droppedInTotal
            state.droppedBefore += losses
            state.droppedInTotal += losses
            if !state.fits(bytes, capacity, byteLimit) {
                switch policy {
                case .dropOldest:
                    while !state.fits(bytes, capacity, byteLimit), state.dropFirst() {}
                case .dropNewest:
                    state.droppedBefore += 1
                    state.droppedInTotal += 1
                    return (nil, true, state.droppedInTotal - droppedSoFar, nil)
                case .fail:
                    state.droppedInTotal += 1
                    state.isFinished = true
                    let count = state.entries.count - state.head
                    state.failure = BLEError(
                        .valuesLost, subject: subject, during: "keep up with a stream",
                        because: "\(count) values were waiting and another one did not fit",
                        hint: "Consume values faster, raise the capacity, or choose a policy that drops and counts.")
                    return (state.takeWaiter(), false, state.droppedInTotal - droppedSoFar, state.receiver)
                }
            }
            state.append(element, bytes)
            return (state.takeWaiter(), true, state.droppedInTotal - droppedSoFar, state.receiver)
        }
        if dropped > 0 { drops?.add(dropped) }
        waiter?.resume(returning: true)
        if let receiver { passOn(to: receiver) }
        return goesOn
    }

    /// Counts elements that were lost on the way here, if none follows them.
    func lost(_ losses: Int) {
        state.withLock { $0.droppedInTotal += losses }
        if losses > 0 { drops?.add(losses) }
    }

    /// Ends the stream after the waiting elements; only the first call counts.
    func finish(_ failure: BLEError? = nil) {
        let (waiter, receiver) = state.withLock { state -> (Waiter?, Receiver?) in
            guard !state.isFinished else { return (nil, nil) }
            state.isFinished = true
            state.failure = failure
            return (state.takeWaiter(), state.receiver)
        }
        waiter?.resume(returning: true)
        if let receiver { passOn(to: receiver) }
    }

    /// Passes what waits, and each later element as it is added, to a receiver in place of a consumer. Call it where
    /// elements are added, so that none is passed on twice at a time.
    func forward(to receiver: @escaping Receiver) {
        state.withLock { $0.receiver = receiver }
        passOn(to: receiver)
    }

    /// Passes on what waits, and the end after it.
    private func passOn(to receiver: Receiver) {
        let (entries, isEnd) = state.withLock { state -> ([Entry], Bool) in
            let isEnd = state.isFinished && state.receiver != nil
            if isEnd { state.receiver = nil }
            return (state.takeAll(), isEnd)
        }
        for entry in entries { receiver(entry) }
        if isEnd { receiver(nil) }
    }

    /// Returns the waiting elements as soon as there are any; empty after the end of the stream or the cancellation of
    /// the task.
    ///
    /// - Throws: The error of `finish`, once; `.busy` if another task is already waiting.
    func nextBatch() async throws(BLEError) -> [Entry] {
        while true {
            if let batch = try takeBatch() { return batch }
            if Task.isCancelled { return [] }
            let isAlone = await withTaskCancellationHandler {
                // Not `Waiters`, which one loop owns: the consumer is on any thread, and the wait is part of what the
                // lock protects.
                await withCheckedContinuation { (continuation: Waiter) in
                    let isAlone = state.withLock { state -> Bool? in
                        if state.hasNews || Task.isCancelled { return true }
                        if state.waiter != nil { return false }
                        state.waiter = continuation
                        return nil
                    }
                    if let isAlone { continuation.resume(returning: isAlone) }
                }
            } onCancel: {
                state.withLock { $0.takeWaiter() }?.resume(returning: true)
            }
            guard isAlone else {
                throw BLEError(
                    .busy, subject: subject, during: "take values from a stream",
                    because: "another task is already waiting for them",
                    hint: "Start a second subscription or scan for a second consumer.")
            }
        }
    }

    /// Returns the waiting elements; empty at the end of the stream; `nil` if there are none yet.
    private func takeBatch() throws(BLEError) -> [Entry]? {
        let result = state.withLock { state -> Result<[Entry]?, BLEError> in
            if state.hasEntries { return .success(state.takeAll()) }
            guard state.isFinished else { return .success(nil) }
            guard let failure = state.failure else { return .success([]) }
            state.failure = nil
            return .failure(failure)
        }
        return try result.get()
    }
}

// MARK: - What waits

extension StreamBuffer {
    private struct State {
        var entries: [Entry] = []
        var head = 0
        /// The size of the last batch: the next one is likely to have as many elements.
        var lastBatch = 0
        var waitingBytes = 0
        var droppedBefore = 0
        var droppedInTotal = 0
        var waiter: Waiter?
        /// The receiver in place of a consumer; `nil` without one, and after the end.
        var receiver: Receiver?
        var isFinished = false
        var failure: BLEError?

        var hasEntries: Bool { head < entries.count }
        var hasNews: Bool { hasEntries || isFinished }

        func fits(_ bytes: Int, _ capacity: Int, _ byteLimit: Int) -> Bool {
            entries.count - head < capacity && waitingBytes + bytes <= byteLimit
        }

        mutating func append(_ element: Element, _ bytes: Int) {
            if entries.isEmpty { entries.reserveCapacity(lastBatch) }
            entries.append(Entry(element, bytes: bytes, droppedBefore: droppedBefore))
            waitingBytes += bytes
            droppedBefore = 0
        }

        /// Drops the oldest waiting element; returns whether there was one. Its own count of earlier losses is kept.
        mutating func dropFirst() -> Bool {
            guard head < entries.count else { return false }
            let lost = entries[head].droppedBefore + 1
            waitingBytes -= entries[head].bytes
            head += 1
            droppedInTotal += 1
            if head < entries.count {
                entries[head].droppedBefore += lost
            } else {
                droppedBefore += lost
            }
            if head > 64, head > entries.count / 2 {
                entries.removeFirst(head)
                head = 0
            }
            return true
        }

        mutating func takeAll() -> [Entry] {
            if head > 0 { entries.removeFirst(head) }
            var batch: [Entry] = []
            swap(&batch, &entries)
            lastBatch = batch.count
            head = 0
            waitingBytes = 0
            return batch
        }

        mutating func takeWaiter() -> Waiter? {
            defer { waiter = nil }
            return waiter
        }
    }
}
