// The callbacks of one manager, on the delegate's queue.
//
// Duties
// - Callbacks run in the order in which they were posted, one at a time, in blocks of the delegate's queue: never
//   within the call that posts them.
// - A queue that the application blocks costs a bounded amount of memory, and keeps its order. Values are posted when
//   they arrive; `PostedValues` bounds how many wait. Of states (subscriptions) the last one is reported when there is
//   room, before the requests that came after it. Advertisements, and writes without response of centrals, wait for
//   room at their source, which has a bound of its own and counts losses: they keep their order among themselves, but
//   an advertisement that waits there is reported after what is posted meanwhile.
//
// Invariants
// - At most one block for the callbacks is on the queue. It runs the callbacks that it finds, and comes again for later
//   ones, so that other blocks of the queue have their turn.
// - Virtual time stands still while a callback is posted, has not returned, or holds its objects: what the application
//   drops is released first.

internal import BLELinux
internal import Dispatch

final class CallbackQueue: Sendable {
    typealias Callback = @Sendable () -> Void

    /// The number of callbacks beyond which sources wait.
    private static let comfortable = 256

    private struct State {
        var posted: [Callback?] = []
        var isScheduled = false
        /// The callbacks that were posted and have not returned.
        var unfinished = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let queue: DispatchQueue
    private let loop: EventLoop
    private let state = Lock(State())

    init(_ queue: DispatchQueue, loop: EventLoop) {
        self.queue = queue
        self.loop = loop
    }

    /// Runs a callback after those that were posted before.
    func post(_ callback: @escaping Callback) {
        loop.hold()
        let isFirst = state.withLock { state in
            state.posted.append(callback)
            state.unfinished += 1
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { schedule() }
    }

    /// Whether few callbacks are left to run.
    var hasRoom: Bool { state.withLock { $0.unfinished < Self.comfortable } }

    /// Waits until few callbacks are left to run. Call it in a task that prefers the loop.
    func awaitRoom() async {
        guard !hasRoom else { return }
        await withCheckedContinuation { continuation in
            let hasRoom = state.withLock { state in
                if state.unfinished < Self.comfortable { return true }
                state.waiting.append(continuation)
                return false
            }
            if hasRoom { continuation.resume() }
        }
    }

    private func schedule() {
        queue.async { self.runPosted() }
    }

    private func runPosted() {
        var callbacks = state.withLock { state in
            var callbacks: [Callback?] = []
            swap(&callbacks, &state.posted)
            return callbacks
        }
        for index in callbacks.indices {
            callbacks[index]?()
            // A request that was not answered is refused when its last reference goes.
            callbacks[index] = nil
            finished()
        }
        let hasMore = state.withLock { state in
            state.isScheduled = !state.posted.isEmpty
            return state.isScheduled
        }
        if hasMore { schedule() }
    }

    private func finished() {
        let resumed = state.withLock { state in
            state.unfinished -= 1
            guard state.unfinished < Self.comfortable, !state.waiting.isEmpty else {
                return [CheckedContinuation<Void, Never>]()
            }
            var waiting: [CheckedContinuation<Void, Never>] = []
            swap(&waiting, &state.waiting)
            return waiting
        }
        for continuation in resumed { continuation.resume() }
        loop.release()
    }
}
