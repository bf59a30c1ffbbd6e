import BLECore
import BareBLETestKit
import Testing

@testable import BLELinux
@testable import BareBLE

/// The one way to wait in an actor: each waiter ends exactly once, in the order in which they began.
@Suite(.timeLimit(.minutes(10))) struct WaitersTests {
    private actor Owner {
        nonisolated let loop: EventLoop
        private let waiters: Waiters<Int>
        private(set) var ends: [String] = []
        private(set) var numbers: [UInt64] = []
        private(set) var hasBegunOnTheLoop: [Bool] = []

        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

        init(on loop: EventLoop) {
            self.loop = loop
            waiters = Waiters(on: loop)
        }

        var count: Int { waiters.count }

        func wait(
            _ name: String, as given: UInt64? = nil, for time: Duration? = nil,
            interruption: WaitInterruption = .ends, unless value: Int? = nil
        ) async {
            let end = await waiters.wait(
                as: given, until: time.map { loop.now() + $0 }, interruption: interruption
            ) { number in
                numbers.append(number)
                hasBegunOnTheLoop.append(loop.isOnThread)
                return value
            }
            ends.append("\(name) \(end)")
        }

        func resume(_ index: Int, _ value: Int) { resume(number: numbers[index], value) }

        func resume(number: UInt64, _ value: Int) { waiters.resume(number, value) }

        func resumeAll(_ value: Int) { waiters.resumeAll(value) }
    }

    private func begin(_ count: Int, of owner: Owner, _ body: (Int) -> Void) async {
        for index in 0..<count {
            body(index)
            while await owner.count <= index, !Task.isCancelled { await Task.yield() }
        }
    }

    @Test func allAreResumedInTheirOrder() async throws {
        await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            await withTaskGroup(of: Void.self) { group in
                await begin(3, of: owner) { index in group.addTask { await owner.wait("\(index)") } }
                await owner.resume(1, 7)
                // It does not wait any more.
                await owner.resume(1, 8)
                await owner.resumeAll(9)
            }
            #expect(await owner.ends == ["1 resumed(7)", "0 resumed(9)", "2 resumed(9)"])
            #expect(await owner.count == 0)
        }
    }

    @Test func aValueThatIsThereEndsTheWaitAtOnce() async throws {
        await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            await owner.wait("only", for: .seconds(1), unless: 4)
            #expect(await owner.ends == ["only resumed(4)"])
            #expect(await owner.count == 0)
            #expect(time.now == .zero)
        }
    }

    @Test func aDeadlineEndsOneWaitAndLeavesNoTimer() async throws {
        await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            await withTaskGroup(of: Void.self) { group in
                await begin(2, of: owner) { index in
                    group.addTask { await owner.wait("\(index)", for: index == 0 ? .seconds(5) : .seconds(60)) }
                }
                try? await time.clock.sleep(for: .seconds(6))
                #expect(await owner.ends == ["0 timedOut"])
                await owner.resumeAll(1)
            }
            #expect(await owner.ends == ["0 timedOut", "1 resumed(1)"])
            #expect(time.loop.timerCount == 0)
        }
    }

    @Test func aCancelledTaskStopsWaitingWhereItMay() async throws {
        await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            let cancelled = time.task { await owner.wait("first") }
            while await owner.count < 1, !Task.isCancelled { await Task.yield() }
            cancelled.cancel()
            _ = await cancelled.result
            // Cancelled before it waits.
            let late = time.task {
                while !Task.isCancelled { await Task.yield() }
                await owner.wait("second")
            }
            late.cancel()
            _ = await late.result
            let patient = time.task { await owner.wait("third", interruption: .ignoresCancellation) }
            while await owner.count < 1, !Task.isCancelled { await Task.yield() }
            patient.cancel()
            for _ in 0..<10 { await Task.yield() }
            #expect(await owner.count == 1)
            await owner.resumeAll(2)
            _ = await patient.result
            #expect(await owner.ends == ["first cancelled", "second cancelled", "third resumed(2)"])
        }
    }

    /// The state of the waiters belongs to the loop's thread.
    @Test(arguments: [WaitInterruption.ends, .ignoresCancellation]) func aTaskOffTheLoopBeginsToWaitOnIt(
        interruption: WaitInterruption
    ) async throws {
        let loop = EventLoop()
        loop.start()
        let owner = Owner(on: loop)
        let task = Task.detached { await owner.wait("only", interruption: interruption) }
        while await owner.count < 1, !Task.isCancelled { await Task.yield() }
        #expect(await owner.hasBegunOnTheLoop == [true])
        await owner.resumeAll(1)
        await task.value
        #expect(await owner.ends == ["only resumed(1)"])
        loop.stop()
    }

    @Test(arguments: [WaitFailure.cancelled, .timedOut]) func aHandledInterruptionIsForTheOwnerToEnd(
        failure: WaitFailure
    ) async throws {
        await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            let handled = Lock<[UInt64]>([])
            let interruption = WaitInterruption.handled { number, reason in
                if reason == failure { handled.withLock { $0.append(number) } }
            }
            let limit: Duration? = failure == .timedOut ? .seconds(5) : nil
            let task = time.task { await owner.wait("only", for: limit, interruption: interruption) }
            while await owner.count < 1, !Task.isCancelled { await Task.yield() }
            if failure == .cancelled { task.cancel() } else { try? await time.clock.sleep(for: .seconds(6)) }
            while handled.withLock({ $0.isEmpty }), !Task.isCancelled { await Task.yield() }
            #expect(await owner.count == 1)
            #expect(await owner.numbers == handled.withLock { $0 })
            await owner.resume(0, 5)
            _ = await task.result
            #expect(await owner.ends == ["only resumed(5)"])
            #expect(time.loop.timerCount == 0)
        }
    }

    @Test func aMachineMayNumberTheWaitersInAnyOrder() async throws {
        await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            await withTaskGroup(of: Void.self) { group in
                let given: [UInt64] = [30, 10, 40, 20]
                await begin(given.count, of: owner) { index in
                    group.addTask { await owner.wait("\(given[index])", as: given[index]) }
                }
                #expect(await owner.numbers == given)
                // No task has this number.
                await owner.resume(number: 25, 1)
                await owner.resume(number: 20, 2)
                await owner.resumeAll(3)
            }
            #expect(await owner.ends == ["20 resumed(2)", "10 resumed(3)", "30 resumed(3)", "40 resumed(3)"])
        }
    }
}
