import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Logging
import TestSupport
import Testing

/// An entry that was removed from the state is not restored at the next start, however it ended.
@Suite struct ForgettingTests {
    private let limit = Duration.seconds(20)

    /// The stored entry of the one peer.
    private func expectStored(
        _ subscriptions: [RestorationState.Subscription], by central: Central, _ bench: RestorationBench,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await central.saveState()
        let stored = try bench.stored().peers.map(\.subscriptions)
        #expect(stored == [subscriptions], sourceLocation: sourceLocation)
    }

    @Test func aSubscriptionThatEndedByItselfIsForgottenWhenItIsEnded() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(RestorationBench.sensor)
            try await bench.run { central, _ in
                let session = try await central.session(with: peer)
                _ = try await session.ready(within: limit)
                let absent = await session.subscribe(to: 0xFFF9)
                var values = absent.makeAsyncIterator()
                await #expect(throws: error(.attributeNotFound)) { _ = try await values.next() }
                try await expectStored([RestorationState.Subscription(0xFFF9)], by: central, bench)
                await absent.unsubscribe()
                try await expectStored([], by: central, bench)
            }
        }
    }

    /// The place among several of a kind was worked out on a link; it is forgotten by that, without one.
    @Test func aTwinIsForgottenWhileThereIsNoLink() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (peripheral, peer) = try await bench.add(RestorationBench.twins)
            try await bench.run { central, _ in
                let session = try await central.session(with: peer)
                let device = try await session.ready(within: limit)
                let second = try #require(try await device.discover(level: .full).characteristics(0xFFF2).last)
                let values = await session.subscribe(to: .characteristic(second))
                try await central.saveState()
                let wanted = RestorationState.Subscription(0xFFF2, index: 1)
                #expect(try bench.stored().peers.map(\.subscriptions) == [[wanted]])
                await bench.radio.move(peripheral, to: .outOfRange)
                _ = await device.disconnected()
                await values.unsubscribe()
                try await expectStored([], by: central, bench)
            }
        }
    }

    @Test func aScanStaysInTheStateUntilItIsStopped() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            _ = try await bench.add(.battery)
            try await bench.run { central, _ in
                let scan = central.scan(RestorationState.Scan(ScanSettings.passive))
                var (first, second): (ScanSequence.AsyncIterator?, ScanSequence.AsyncIterator?) =
                    (scan.makeAsyncIterator(), scan.makeAsyncIterator())
                _ = try await first?.next()
                _ = try await second?.next()
                first = nil
                await time.settle()
                try await central.saveState()
                #expect(try bench.stored().scan == RestorationState.Scan(ScanSettings.passive))
                second = nil
                await time.settle()
                try await central.saveState()
                #expect(try bench.stored().scan == RestorationState.Scan(ScanSettings.passive))
                await scan.stop()
                try await central.saveState()
                #expect(try bench.stored().scan == nil)
                var third = scan.makeAsyncIterator()
                _ = try await third.next()
                await central.forgetScan()
                try await central.saveState()
                #expect(try bench.stored().scan == nil)
            }
        }
    }

    /// Two loops over scans of the same kind: the end of one leaves the other as it is.
    @Test func aScanThatIsStoppedEndsItsLoopsAlone() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            _ = try await bench.add(.battery)
            try await bench.run { central, _ in
                let (scan, other) = (central.scan(.any, .passive).lasting(), central.scan(.any, .passive).lasting())
                var (first, second) = (scan.makeAsyncIterator(), other.makeAsyncIterator())
                _ = try await first.next()
                _ = try await second.next()
                await scan.stop()
                while try await first.next() != nil {}
                #expect(await bench.radio.isScanning())
                try await central.saveState()
                #expect(try bench.stored().scan != nil)
                await other.stop()
                #expect(await !bench.radio.isScanning())
                try await central.saveState()
                #expect(try bench.stored().scan == nil)
                _ = (first, second)
            }
        }
    }

    /// At turns of the start before the radio scans and after that.
    @Test func aScanThatIsStoppedWhileItStartsIsForgotten() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            _ = try await bench.add(.battery)
            try await bench.run { central, _ in
                // Something is stored from here on.
                for try await _ in central.scan(RestorationState.Scan(ScanSettings.balanced)) { break }
                for turns in 0..<60 {
                    let scan = central.scan(RestorationState.Scan(ScanSettings.passive))
                    let isStarting = Lock(false)
                    let task = time.task {
                        isStarting.withLock { $0 = true }
                        for try await _ in scan {}
                    }
                    while !isStarting.withLock({ $0 }) { await Task.yield() }
                    for _ in 0..<turns { await Task.yield() }
                    await scan.stop()
                    #expect(await !bench.radio.isScanning(), "after \(turns) turns")
                    try await time.clock.sleep(for: .seconds(1))
                    #expect(await !bench.radio.isScanning(), "after \(turns) turns")
                    try await central.saveState()
                    #expect(
                        try bench.stored().scan != RestorationState.Scan(ScanSettings.passive), "after \(turns) turns")
                    task.cancel()
                    try await task.value
                }
            }
        }
    }

    @Test(.row("C05")) func whatALoopWasForIsRestoredAfterAnErrorInItsBody() async throws {
        struct DiskFull: Error {}
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (sensor, peer) = try await bench.add(RestorationBench.sensor)
            try await bench.run { central, _ in
                await #expect(throws: DiskFull.self) {
                    for try await _ in central.scan(.any, .passive).lasting() { throw DiskFull() }
                }
                let session = try await central.session(with: peer)
                await #expect(throws: DiskFull.self) {
                    for try await element in await session.subscribe(to: 0xFFF2) {
                        if case .began = element { try await sensor.notify(0xFFF2, [1]) } else { throw DiskFull() }
                    }
                }
            }
            try await bench.run { _, restoration in
                #expect(restoration.scan?.persisted == RestorationState.Scan(ScanSettings.passive))
                #expect(restoration.subscriptions.map(\.characteristic) == [0xFFF2])
            }
        }
    }

    @Test(.row("C04")) func aStateThatIsNotKeptIsNotSaved() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(RestorationBench.sensor)
            let log = KeptLog(from: .notice, detail: "store")
            var configuration = Configuration()
            configuration.logger = log.logger
            await #expect(throws: error(.invalidArgument)) {
                try await Central(configuration, radio: bench.radio).saveState()
            }
            configuration.stateStore = bench.store
            let central = Central(configuration, radio: bench.radio)
            for _ in 1...2 {
                let session = try await central.session(with: peer)
                _ = try await session.ready(within: limit)
                do throws(BLEError) {
                    try await central.saveState()
                    Issue.record("nothing is kept, and no error says so")
                } catch {
                    #expect(error.code == .invalidArgument)
                    #expect(error.hint?.contains("restore()") == true)
                }
                await session.disconnect()
            }
            #expect(
                log.all == [
                    "nothing is kept for the next start: call `Central.restore()` before the first session: \(bench.store.path)"
                ])
        }
    }

    /// A link that is given away is wanted at the next start, as the session is.
    @Test func aSessionThatGaveItsLinkAwayStaysInTheState() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(RestorationBench.sensor)
            try await bench.run { central, _ in
                let session = try await central.session(with: peer)
                _ = try await session.ready(within: limit)
                let values = await session.subscribe(to: 0xFFF2)
                _ = try await session.detach()
                try await expectStored([RestorationState.Subscription(0xFFF2)], by: central, bench)
                withExtendedLifetime(values) {}
            }
        }
    }
}
