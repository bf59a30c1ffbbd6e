// One thread that waits for everything: readable and writable descriptors, timers, and the jobs of the actors and
// tasks on it. It is the serial executor of those actors and the task executor of those tasks at once, so a
// descriptor's handler is inside its actor already (`assumeIsolated`), and awaiting an actor of the loop from a task
// on the loop changes threads as little as a function call does.
//
// A turn of the loop: run the queued jobs and those that they add, arm the timer for the earliest deadline, wait, call
// the handlers of what is ready. While jobs are queued the wait does not block, so neither side starves the other.
//
// Invariants
// - Only the loop's thread, or the owner of the loop before it runs, accesses descriptors and timers. Other threads
//   call `enqueue`, `start`, `stop`, `end`, `now`, `hold` and `release`, and return results of `offload`; what these
//   share is atomic or has a lock.
// - An event of a descriptor that was unregistered earlier in the same batch is ignored, even if its number is in use
//   again: the event carries the generation of its registration.
// - Watching is level-triggered: a handler may stop early and is called again. A handler that leaves a hung-up
//   descriptor registered spins; it must unregister the descriptor at its end. What no task waits for is not watched.
// - The kernel may refuse to watch one more descriptor, for lack of memory or of watches. It never refuses a change of
//   the watched events: `EPOLL_CTL_MOD` fails only if the descriptor was closed, or closed and opened again.
// - A task that prefers the loop and enters one of its actors from a foreign actor runs, until it next suspends, as if
//   it had no preference; each `await` on the same actor may then let other jobs in. So code that waits for a
//   condition checks it inside the closure of `withCheckedContinuation`, not before.
// - An idle loop sleeps in one system call. A cancelled timer may cause one needless wake-up: arming the clock again
//   for each request that is completed in time would cost a system call every time.
// - Time is the boot-time clock: a deadline that passed while the machine slept is due when it wakes. A loop for tests
//   may have virtual time instead: see "Time and work on other threads".
// - No precondition here depends on anything that a peer or a file has sent: they concern the calling thread, and the
//   loop's own three descriptors. What is read from a socket is never examined here.

package import BLECore
internal import CBluetooth
internal import Glibc
internal import Synchronization

/// The thread that runs sockets, timers and the actors isolated to it.
// Unchecked: what only the loop's thread accesses (`watched`, `timers`, `armedFor`, `wakeUps`) is guarded by
// `checkAccess`, or used in handlers that the loop calls; all the rest is immutable, atomic, or has a lock.
package final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    package typealias Handler = () -> Void

    /// The watched events of one descriptor, and their handlers.
    private struct Watch {
        /// Distinguishes it from earlier registrations of the same number.
        let generation: UInt32
        var readable: Handler?
        var writable: Handler?

        var interest: Int32 {
            (readable == nil ? 0 : BLE_READABLE) | (writable == nil ? 0 : BLE_WRITABLE)
        }
    }

    /// A piece of a task, and whether its task prefers the loop.
    private struct Job {
        let job: UnownedJob
        let prefersLoop: Bool
    }

    /// The state that other threads access.
    private struct Inbox {
        var jobs: [Job] = []
        var woken = false
        var started = false
        /// Called when the thread of `start` has ended.
        var ended: (@Sendable () -> Void)?
    }

    /// The number of batches of jobs that run before the descriptors have their turn.
    private static let batchesPerTurn = 1_024
    /// The number of packets that the owner of a descriptor reads at one wake-up, before the loop serves others.
    package static var packetsPerTurn: Int { 64 }

    /// The loop for all users without their own; its thread starts with the first `start()`.
    package static let shared = EventLoop()

    private let inbox = Lock(Inbox())
    /// The thread that runs the loop now; 0 if none does. Read at every entry into an actor.
    private let owner = Atomic<UInt64>(0)
    private let stopping = Atomic<Bool>(false)
    /// Whether the loop stops as soon as it has nothing to do.
    private let ending = Atomic<Bool>(false)
    /// The time that the timers follow.
    package let time: TimeSource
    /// The current virtual time, in nanoseconds.
    private let virtualTime = Atomic<Int64>(0)
    /// The number of pieces of work of this loop on other threads; virtual time stands still meanwhile.
    private let offloaded = Atomic<Int>(0)
    /// The results of such work in virtual time, in the order in which it began.
    private let results = Lock<[OffloadedResult]>([])
    private let epoll: Int32
    private let wakefd: Int32
    private let timerfd: Int32
    private var watched: [Int32: Watch] = [:]
    private var nextGeneration: UInt32 = 0
    private var jobsAfterPoll: [Handler] = []
    private var timers = TimerList()
    /// The deadline that the clock of the machine is set to.
    private var armedFor: BootInstant?
    /// The number of times that the loop returned from sleep; for tests of its idleness. Read it on the loop.
    package private(set) var wakeUps: UInt64 = 0

    /// Creates a loop that no thread runs yet: call `run` on a thread of the caller's, or `start`.
    package init(time: TimeSource = .boot) {
        self.time = time
        epoll = Self.open("epoll_create1", ble_epoll())
        wakefd = Self.open("eventfd", ble_wakefd())
        timerfd = Self.open("timerfd_create", ble_timerfd())
        onReadable(wakefd) { [unowned self] in clearWakeUp() }
        onReadable(timerfd) { [unowned self] in fireTimers() }
    }

    deinit {
        for descriptor in [timerfd, wakefd, epoll] { OwnedDescriptor.close(descriptor) }
    }

    // MARK: Running

    /// Runs the loop on the calling thread until `stop()` is called or `done`, called after every wake-up, returns
    /// `true`.
    ///
    /// Only one thread may do so at a time. Jobs that are queued when it returns wait for the next run.
    package func run(until done: () -> Bool = { false }) {
        // The caller owns the loop or has just created it, and `start` checks before it starts a thread.
        let claimed = owner.compareExchange(expected: 0, desired: ble_thread(), ordering: .acquiringAndReleasing)
        precondition(claimed.exchanged, "the loop runs already")
        defer { owner.store(0, ordering: .releasing) }
        var batch: [Job] = []
        var ready = [ble_ready](repeating: ble_ready(), count: 64)
        while !takeStop() && !done() {
            runJobs(&batch)
            while !jobsAfterPoll.isEmpty {
                runHandlersAfterJobs()
                runJobs(&batch)
            }
            if done() { return }
            turn(&ready)
        }
    }

    // MARK: Descriptors

    /// Calls `handler` on the loop whenever `descriptor` is readable, has ended or failed; `nil` stops that.
    ///
    /// - Returns: The error that prevents the kernel from watching the descriptor. If the descriptor is already
    ///   watched for writing, or a handler is removed, there is none.
    @discardableResult
    package func onReadable(_ descriptor: Int32, _ handler: Handler?) -> SystemCallError? {
        watch(descriptor) { $0.readable = handler }
    }

    /// Calls `handler` on the loop whenever `descriptor` is writable or failed; `nil` stops that.
    ///
    /// - Returns: The error that prevents the kernel from watching the descriptor. If the descriptor is already
    ///   watched for reading, or a handler is removed, there is none.
    @discardableResult
    package func onWritable(_ descriptor: Int32, _ handler: Handler?) -> SystemCallError? {
        watch(descriptor) { $0.writable = handler }
    }

    /// The number of watched descriptors, without the loop's own two.
    package var watchedCount: Int { watched.count - 2 }

    /// Unregisters a descriptor, including events that have already been collected. Call it before closing the
    /// descriptor.
    package func unregister(_ descriptor: Int32) {
        watch(descriptor) { $0 = Watch(generation: $0.generation) }
    }

    /// Calls `handler` once on the loop, after all queued jobs and those that they add: a task resumed before runs
    /// before `handler`.
    package func afterJobs(_ handler: @escaping Handler) {
        checkAccess()
        jobsAfterPoll.append(handler)
    }

    private func runHandlersAfterJobs() {
        var handlers: [Handler] = []
        swap(&handlers, &jobsAfterPoll)
        for handler in handlers { handler() }
    }

    // MARK: Executor

    /// Enqueues a job of an actor on the loop.
    package func enqueue(_ job: consuming ExecutorJob) {
        add(Job(job: UnownedJob(job), prefersLoop: false))
    }

    /// Enqueues a job of a task that prefers the loop; the attribute distinguishes the two methods, which have the
    /// same name.
    @_implements(TaskExecutor,enqueue(_:))
    package func enqueuePreferred(_ job: consuming ExecutorJob) {
        add(Job(job: UnownedJob(job), prefersLoop: true))
    }

    package func checkIsolated() {
        // The runtime checks this in code that was compiled to run here; only a defect of this package can be
        // elsewhere.
        precondition(isIsolatingCurrentContext() == true, "not on the event loop")
    }

    package func isIsolatingCurrentContext() -> Bool? {
        isOnThread
    }
}

// MARK: - Timers

extension EventLoop {
    /// Calls `handler` once on the loop when `deadline` has come; never from within this call.
    package func schedule(at deadline: BootInstant, _ handler: @escaping Handler) -> TimerID {
        checkAccess()
        return timers.add(at: deadline, handler)
    }

    /// Cancels a timer; does nothing if it has fired or was cancelled.
    package func cancel(_ timer: TimerID) {
        checkAccess()
        timers.remove(timer)
    }

    /// The number of pending timers.
    package var timerCount: Int { timers.count }

    /// The deadline of the timer that fires next.
    private var earliestDeadline: BootInstant? { timers.earliest }

    /// Removes all timers: their loop ends.
    private func dropTimers() { timers = TimerList() }

    private func armTimer() {
        guard time == .boot, let earliest = timers.earliest else { return }
        if let armedFor, armedFor <= earliest { return }
        armedFor = earliest
        _ = ble_timer_set(timerfd, earliest.nanoseconds)
    }

    private func fireTimers() {
        _ = ble_drain(timerfd)
        armedFor = nil
        fireDue()
    }

    /// Calls the handlers of the timers that are due.
    private func fireDue() {
        let moment = now()
        // No more than there were: a handler that schedules for now must not delay the others.
        for _ in 0..<timers.count {
            guard let handler = timers.takeDue(at: moment) else { return }
            handler()
        }
    }
}

// MARK: - One turn

extension EventLoop {
    private func add(_ job: Job) {
        let wake = inbox.withLock { inbox in
            inbox.jobs.append(job)
            if inbox.woken || isOnThread { return false }
            inbox.woken = true
            return true
        }
        if wake { _ = ble_wake(wakefd) }
    }

    /// Runs the jobs, and those that they add.
    ///
    /// One `await` can be several jobs in a row. If the descriptors were polled between any two of them, a consumer
    /// could not keep pace with what is read meanwhile. Even if jobs never end, the descriptors get their turn.
    private func runJobs(_ batch: inout [Job]) {
        let serial = unsafe asUnownedSerialExecutor()
        let task = unsafe asUnownedTaskExecutor()
        for _ in 0..<Self.batchesPerTurn {
            inbox.withLock { swap(&$0.jobs, &batch) }
            if batch.isEmpty { return }
            for entry in batch {
                // The runtime needs the preference that the task has: with another one it enqueues the task again on
                // every call within the same actor, and lets other jobs in between.
                if entry.prefersLoop {
                    unsafe entry.job.runSynchronously(isolatedTo: serial, taskExecutor: task)
                } else {
                    unsafe entry.job.runSynchronously(on: serial)
                }
            }
            batch.removeAll(keepingCapacity: true)
        }
    }

    private func turn(_ ready: inout [ble_ready]) {
        armTimer()
        // Other threads may have added jobs by now.
        let idle = inbox.withLock { $0.jobs.isEmpty } && !stopping.load(ordering: .acquiring)
        // A task that queues a job in each turn may wait for just that.
        if !idle { _ = returnResult() }
        let sleeps = idle && !mayLeap && !hasResult && !ending.load(ordering: .acquiring)
        let count = unsafe ble_wait(epoll, &ready, Int32(ready.count), sleeps ? -1 : 0)
        if sleeps { wakeUps &+= 1 }
        if idle, !sleeps, count == 0 {
            if !returnResult() { leap() }
            return
        }
        guard count > 0 else {
            // The other errors are a descriptor that is no epoll, and invalid memory: neither can occur, as `epoll` is
            // not closed before `deinit`, and `ready` is a whole array.
            precondition(count == 0 || count == -EINTR, "epoll_wait failed")
            return
        }
        // What has arrived is handled before the deadlines: if this process did not run for a while, both are due at
        // once.
        let events = ready.prefix(Int(count))
        for event in events where !isTime(event) { serve(event) }
        for event in events where isTime(event) { serve(event) }
    }

    private func isTime(_ event: ble_ready) -> Bool { Int32(truncatingIfNeeded: event.tag) == timerfd }

    private func serve(_ event: ble_ready) {
        let descriptor = Int32(truncatingIfNeeded: event.tag)
        let generation = UInt32(truncatingIfNeeded: event.tag >> 32)
        // Each handler may unregister the descriptor, so each is looked up only when its turn has come.
        if event.state & (BLE_READABLE | BLE_HANG_UP) != 0 {
            if let watch = watched[descriptor], watch.generation == generation { watch.readable?() }
        }
        if event.state & (BLE_WRITABLE | BLE_HANG_UP) != 0 {
            if let watch = watched[descriptor], watch.generation == generation { watch.writable?() }
        }
    }

    @discardableResult
    private func watch(_ descriptor: Int32, _ change: (inout Watch) -> Void) -> SystemCallError? {
        checkAccess()
        let known = watched[descriptor]
        var watch = known ?? newWatch()
        change(&watch)
        guard watch.interest != 0 else {
            if known != nil {
                watched[descriptor] = nil
                _ = ble_unwatch(epoll, descriptor)
            }
            return nil
        }
        var result = -ENOENT
        if known != nil {
            result = ble_watch(epoll, descriptor, watch.interest, tag(descriptor, watch), 1)
            if result == -ENOENT {
                // Closed without `unregister` and opened again: the old handlers are void.
                watch = newWatch()
                change(&watch)
            }
        }
        if result == -ENOENT { result = ble_watch(epoll, descriptor, watch.interest, tag(descriptor, watch), 0) }
        watched[descriptor] = result < 0 ? nil : watch
        return result < 0 ? SystemCallError(call: "epoll_ctl", errno: -result) : nil
    }

    private func newWatch() -> Watch {
        nextGeneration &+= 1
        return Watch(generation: nextGeneration)
    }

    private func tag(_ descriptor: Int32, _ watch: Watch) -> UInt64 {
        UInt64(watch.generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
    }

    private func clearWakeUp() {
        _ = ble_drain(wakefd)
        inbox.withLock { $0.woken = false }
    }

    private func takeStop() -> Bool {
        stopping.load(ordering: .acquiring) && stopping.exchange(false, ordering: .acquiringAndReleasing)
    }

    private static func open(_ call: String, _ descriptor: Int32) -> Int32 {
        // A loop is created before anything is connected, and a program without three free descriptors cannot
        // continue.
        precondition(descriptor >= 0, "\(call) failed: no descriptors left")
        return descriptor
    }
}

// MARK: - The thread

extension EventLoop {
    var isOnThread: Bool { owner.load(ordering: .relaxed) == ble_thread() }

    private func checkAccess() {
        // Descriptors and timers belong to actors of the loop, whose code the runtime runs nowhere else.
        precondition(owner.load(ordering: .acquiring) == 0 || isOnThread, "not on the event loop")
    }

    /// Runs the loop on a thread of its own from now on; does nothing if a thread runs it already.
    package func start() {
        let first = inbox.withLock { inbox in
            if owner.load(ordering: .acquiring) != 0 || inbox.started { return false }
            inbox.started = true
            return true
        }
        if first { startThread() }
    }

    /// Makes `run` return, and the thread of `start` end, after the current turn.
    package func stop() {
        stopping.store(true, ordering: .releasing)
        _ = ble_wake(wakefd)
    }

    /// Ends the thread of `start` as soon as there is nothing to do, and returns when it has ended.
    ///
    /// Timers are not waited for: they are dropped. Call it from another thread, once.
    package func end() async {
        await withCheckedContinuation { continuation in
            inbox.withLock { $0.ended = { continuation.resume() } }
            ending.store(true, ordering: .releasing)
            _ = ble_wake(wakefd)
        }
    }

    private func startThread() {
        var thread = pthread_t()
        // Balanced by the thread's body, which runs exactly once for each thread that was created.
        let context = unsafe Unmanaged.passRetained(self)
        let result = unsafe pthread_create(&thread, nil, Self.threadBody, context.toOpaque())
        // It fails only for lack of memory or of threads, when the program starts its first central.
        precondition(result == 0, "no thread for the event loop")
        pthread_detach(thread)
    }

    // A function, not a closure at the call: that would inherit the isolation of its context.
    private static let threadBody: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        // What `startThread` passed, retained there for this one use.
        guard let context = unsafe context else { return nil }
        var signals = sigset_t()
        unsafe sigfillset(&signals)
        // Signals belong to the program's own threads.
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        // The loop is released before its end is reported.
        let ended = unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().runToEnd()
        ended?()
        return nil
    }

    private func runToEnd() -> (@Sendable () -> Void)? {
        run()
        return inbox.withLock { inbox in
            inbox.started = false
            return inbox.ended.take()
        }
    }
}

// MARK: - Time and work on other threads

// The time of a loop's timers. A loop of a test may have virtual time, which stands still as long as there is anything
// to do and leaps to the next deadline when there is not: hours pass in milliseconds, and the same test has the same
// order of events every time.
//
// Invariants of virtual time
// - It begins at zero, and it moves only in `leap`, and in `jump` for tests. It leaps when no job is queued, no watched
//   descriptor is ready and no work is under way on other threads. Two events with a deadline between them can
//   therefore not change their order.
// - That is exact only for what runs on the loop: a peer of the code under test must run on it as well. Work on other
//   threads goes through `offload(_:)`, so that no deadline passes meanwhile. Its results return in the order
//   in which the work began, each when nothing else is left to do, and not when its thread happens to end. A task that
//   queues a job in each turn does not delay them.
// - Without any timer the loop waits in real time, for another thread or for a descriptor from outside.

/// The result of work on another thread, once there is one.
private final class OffloadedResult: Sendable {
    let deliver = Lock<(@Sendable () -> Void)?>(nil)
}

/// The reason that work on another thread has no result.
package enum WorkFailure: Error {
    /// No thread could be created for it, or the limit of such work was reached. It was not started.
    case noRoom
    /// It was not finished by the deadline; its result is dropped.
    case late
    /// The task was cancelled; the result is dropped, if the work was started.
    case cancelled
}

extension EventLoop {
    /// The time that a loop's timers follow.
    package enum TimeSource: Hashable, Sendable {
        /// The machine's time since it was started.
        case boot
        /// Virtual time, which leaps over all waiting.
        case virtual
    }

    /// Returns the current time of the timers' clock.
    package func now() -> BootInstant {
        switch time {
        case .boot: BootInstant(nanoseconds: ble_boot_nanoseconds())
        case .virtual: BootInstant(nanoseconds: virtualTime.load(ordering: .relaxed))
        }
    }

    /// Does blocking work on another thread; virtual time stands still until the caller resumes.
    package func offload<Value: Sendable>(_ work: @Sendable @escaping () -> Value) async throws(WorkFailure) -> Value {
        hold()
        defer { release() }
        let result: Result<Value, WorkFailure> = await withCheckedContinuation { continuation in
            let end = inOrder { continuation.resume(returning: $0) }
            // Never on this thread instead: work that hangs would stop every link and every clock.
            let isBegun = BlockingThread.begin { end(.success(work())) }
            if !isBegun { end(.failure(.noRoom)) }
        }
        return try result.get()
    }

    /// Returns a closure that passes a result of another thread on: in virtual time, when its turn has come.
    private func inOrder<Value: Sendable>(_ end: @escaping @Sendable (Value) -> Void) -> @Sendable (Value) -> Void {
        guard time == .virtual else { return end }
        let result = OffloadedResult()
        results.withLock { $0.append(result) }
        return { value in
            result.deliver.withLock { $0 = { end(value) } }
            _ = ble_wake(self.wakefd)
        }
    }

    /// Whether the work that began first has ended, and its result has not returned.
    private var hasResult: Bool {
        time == .virtual && results.withLock { $0.first?.deliver.withLock { $0 != nil } ?? false }
    }

    /// Returns the result of the work that began first, if it has ended.
    private func returnResult() -> Bool {
        guard hasResult else { return false }
        results.withLock { $0.removeFirst() }.deliver.withLock { $0.take() }?()
        return true
    }

    /// Does blocking work as `offload(_:)`, but waits until `deadline` at most, and not in a cancelled task. Call it on
    /// the loop.
    package func offload<Value: Sendable>(
        until deadline: BootInstant, _ work: @Sendable @escaping () -> Value
    ) async throws(WorkFailure) -> Value {
        hold()
        defer { release() }
        let waiter = Lock<CheckedContinuation<Result<Value, WorkFailure>, Never>?>(nil)
        let end: @Sendable (Result<Value, WorkFailure>) -> Void = { result in
            waiter.withLock { $0.take() }?.resume(returning: result)
        }
        let timer = schedule(at: deadline) { end(.failure(.late)) }
        defer { cancel(timer) }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.withLock { $0 = continuation }
                if Task.isCancelled { return end(.failure(.cancelled)) }
                if !BlockingThread.begin({ end(.success(work())) }) { end(.failure(.noRoom)) }
            }
        } onCancel: {
            end(.failure(.cancelled))
        }
        return try result.get()
    }

    /// Stops virtual time until `release` has been called as often.
    package func hold() {
        offloaded.add(1, ordering: .relaxed)
    }

    /// Ends `hold`.
    package func release() {
        offloaded.subtract(1, ordering: .releasing)
        if time == .virtual, !isOnThread { _ = ble_wake(wakefd) }
    }

    /// Advances virtual time by `distance` at once, like the clock of a machine that was suspended: what is due by
    /// then is late.
    package func jump(by distance: Duration) {
        guard time == .virtual else { return }
        virtualTime.store((now() + distance).nanoseconds, ordering: .relaxed)
    }

    /// Whether time may leap to the next deadline; one at the end of all time counts as none.
    private var mayLeap: Bool {
        guard time == .virtual, offloaded.load(ordering: .acquiring) == 0, let earliest = earliestDeadline else {
            return false
        }
        return earliest.nanoseconds < .max
    }

    /// There is nothing to do now: ends the loop if requested, or advances to the next deadline.
    private func leap() {
        if ending.exchange(false, ordering: .acquiringAndReleasing) {
            dropTimers()
            stopping.store(true, ordering: .releasing)
            return
        }
        guard mayLeap, let earliest = earliestDeadline else { return }
        wakeUps &+= 1
        virtualTime.store(max(earliest.nanoseconds, virtualTime.load(ordering: .relaxed)), ordering: .relaxed)
        fireDue()
    }
}
