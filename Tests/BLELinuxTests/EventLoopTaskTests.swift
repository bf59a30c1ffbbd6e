import BLECore
import CBluetooth
import Glibc
import Testing

@testable import BLELinux

/// An actor on a loop, as the library's own are.
private actor Resident {
    nonisolated let loop: EventLoop
    private(set) var events: [String] = []
    private var waiting: CheckedContinuation<Void, Never>?

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init(loop: EventLoop) {
        self.loop = loop
    }

    func note(_ event: String) {
        events.append(event)
        waiting?.resume()
        waiting = nil
    }

    func watch(_ descriptor: Int32) {
        loop.onReadable(descriptor) {
            self.assumeIsolated {
                $0.loop.unregister(descriptor)
                $0.note("readable")
            }
        }
    }

    func schedule(_ name: String, after delay: Duration) -> TimerID {
        loop.schedule(at: loop.now() + delay) { self.assumeIsolated { $0.note(name) } }
    }

    func cancel(_ timer: TimerID) { loop.cancel(timer) }

    func waitForEvents(_ count: Int) async -> [String] {
        while events.count < count { await withCheckedContinuation { waiting = $0 } }
        return events
    }

    /// The number of times that another job ran between the check and the wait.
    func gaps(_ rounds: Int) async -> Int {
        var gaps = 0
        for _ in 0..<rounds {
            let seen = events.count
            // Queued after this job: it runs as soon as the actor releases the thread.
            Task { note("other") }
            await withCheckedContinuation { continuation in
                if events.count != seen { gaps += 1 }
                continuation.resume()
            }
            await Task.yield()
        }
        return gaps
    }

    func threadID() -> UInt64 { ble_thread() }
    func wakeUps() -> UInt64 { loop.wakeUps }
}

private func currentThread() async -> UInt64 { ble_thread() }

/// A descriptor and a timer wake an actor of the loop; a timer that was cancelled does not.
private func expectWakes(_ resident: Resident, after pause: Duration) async throws {
    let (near, far) = try LinkSocket.pair()
    await resident.watch(near)
    poke(far)
    #expect(await resident.waitForEvents(1) == ["readable"])
    let never = await resident.schedule("never", after: .seconds(3600))
    _ = await resident.schedule("soon", after: pause)
    await resident.cancel(never)
    #expect(await resident.waitForEvents(2) == ["readable", "soon"])
    close(near)
    close(far)
}

/// Actors and tasks that live on a loop.
@Suite("Event loop: tasks", .timeLimit(.minutes(10))) struct EventLoopTaskTests {
    @Test func anActorOnTheLoopIsEnteredByHandlers() async throws {
        let loop = EventLoop()
        loop.start()
        loop.start()
        let resident = Resident(loop: loop)
        try await expectWakes(resident, after: .milliseconds(1))
        #expect(await resident.threadID() != ble_thread())
        loop.stop()
    }

    /// Loops that live only for one descriptor and one timer each, several at a time: a lost wake-up would hang one.
    @Test func shortLivedLoopsMissNothing() async throws {
        let rounds = unsafe getenv("BAREBLE_STRESS_ROUNDS").flatMap { unsafe Int(String(cString: $0)) } ?? 25
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for round in 0..<rounds {
                        let loop = EventLoop()
                        loop.start()
                        let pause = Duration.microseconds(round * 37 % 400 * (worker + 1))
                        try await expectWakes(Resident(loop: loop), after: pause)
                        loop.stop()
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// A condition that a task checks before it waits on its own actor still holds inside the continuation's closure.
    @Test(arguments: [false, true]) func waitingOnTheSameActorLetsNothingIn(prefersLoop: Bool) async {
        let loop = EventLoop()
        loop.start()
        let resident = Resident(loop: loop)
        let preference = prefersLoop ? loop : nil
        let gaps = await Task(executorPreference: preference) { await resident.gaps(200) }.value
        #expect(gaps == 0)
        loop.stop()
    }

    @Test func jobsFromManyThreadsArriveOnce() async {
        let loop = EventLoop()
        loop.start()
        let resident = Resident(loop: loop)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask { for index in 0..<500 { await resident.note("\(worker).\(index)") } }
            }
        }
        let events = await resident.events
        #expect(events.count == 4000)
        #expect(Set(events).count == 4000)
        for worker in 0..<8 {
            #expect(events.filter { $0.hasPrefix("\(worker).") } == (0..<500).map { "\(worker).\($0)" })
        }
        loop.stop()
    }

    @Test func aTaskThatPrefersTheLoopStaysOnIt() async {
        let loop = EventLoop()
        loop.start()
        let resident = Resident(loop: loop)
        let threads = await Task(executorPreference: loop) {
            async let child = currentThread()
            return [await currentThread(), await child, await resident.threadID(), ble_thread()]
        }.value
        #expect(Set(threads).count == 1)
        #expect(threads.first == (await resident.threadID()))
        loop.stop()
    }

    /// In a process of its own, where nothing else starts threads.
    @Test func aTaskOnTheLoopStartsNoThread() async {
        await #expect(processExitsWith: .success) {
            let loop = EventLoop()
            let before = threadCount()
            let outcome = Lock<Int?>(nil)
            Task(executorPreference: loop) {
                let resident = Resident(loop: loop)
                for _ in 0..<100 {
                    await resident.note("x")
                    _ = await currentThread()
                }
                _ = await resident.schedule("timer", after: .milliseconds(1))
                let events = await resident.waitForEvents(101)
                outcome.withLock { $0 = events.count }
            }
            loop.run { outcome.withLock { $0 != nil } }
            guard outcome.withLock({ $0 }) == 101, threadCount() == before else { exit(1) }
        }
    }

    /// Threads of the runtime's pool would stay, and one of them would wake up each second.
    @Test func workElsewhereLeavesNoThread() async {
        await #expect(processExitsWith: .success) {
            let loop = EventLoop()
            let before = threadCount()
            let outcome = Lock<Int?>(nil)
            Task(executorPreference: loop) {
                var sum = 0
                for number in 1...10 { sum += try await loop.offload { number } }
                let result = sum
                outcome.withLock { $0 = result }
            }
            loop.run { outcome.withLock { $0 != nil } }
            guard outcome.withLock({ $0 }) == 55 else { exit(1) }
            // The last one may still be ending.
            while threadCount() != before { sched_yield() }
        }
    }

    @Test func anIdleLoopSleeps() async {
        let loop = EventLoop()
        loop.start()
        let resident = Resident(loop: loop)
        _ = await resident.schedule("far", after: .seconds(3600))
        let first = await resident.wakeUps()
        // Real time must pass for a loop that wakes up without a cause to be caught.
        try? await Task.sleep(for: .milliseconds(150))
        let second = await resident.wakeUps()
        // One for the question itself, one when the first response had left something behind.
        #expect(second - first <= 2)
        loop.stop()
    }
}

private func threadCount() -> Int {
    guard let directory = unsafe opendir("/proc/self/task") else { return -1 }
    defer { unsafe closedir(directory) }
    var count = 0
    while let entry = unsafe readdir(directory) {
        if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    return count
}
