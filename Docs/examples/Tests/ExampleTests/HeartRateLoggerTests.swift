import BareBLE
import BareBLETestKit
import HeartRateLogging
import Synchronization
import SystemService
import Testing

/// The logger with a belt on a virtual radio.
@Suite(.timeLimit(.minutes(10))) struct HeartRateLoggerTests {
    /// A belt that sends when a test wants it to.
    private static let belt = VirtualDevice(
        name: "Belt",
        services: [
            .genericAccess(name: "Belt", appearance: 0x0341),
            VirtualService(
                0x180D,
                [VirtualCharacteristic(0x2A37, .notify), VirtualCharacteristic(0x2A38, .read, value: [0x01])]),
        ])

    private func session(_ bench: Bench, _ options: Session.Options = Bench.hasty) async throws -> Session {
        try await bench.peer.session(
            of: bench.central, options, onReady: HeartRateLogger.handshake { bench.lines.write($0) })
    }

    private func send(_ value: [UInt8], _ bench: Bench) async throws {
        try await waited(for: "the belt is asked for values") { try await bench.peripheral.notify(0x2A37, value) }
    }

    @Test func losesItsBeltAndGoesOn() async throws {
        let bench = try await Bench(Self.belt)
        let session = try await session(bench)
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session)
        async let end: Void = group.run()
        // 853 and 853 units of 1/1024 s.
        try await send([0x16, 72, 0x55, 0x03, 0x55, 0x03], bench)
        try await bench.lines.wait(for: "bpm 72")
        await bench.radio.disconnect(bench.peripheral)
        try await bench.lines.wait(for: "worn chest", count: 2)
        try await send([0x00, 73], bench)
        try await bench.lines.wait(for: "bpm 73")
        await group.triggerGracefulShutdown()
        try await end
        var lines = bench.lines.all
        #expect(lines.contains { $0.hasPrefix("interrupted ") })
        lines.removeAll { $0.hasPrefix("interrupted ") }
        #expect(lines == ["worn chest", "bpm 72 contact yes rr 833 833", "worn chest", "bpm 73"])
        #expect(session.state == .ended)
    }

    @Test func tellsTheBeltToBeQuietBeforeItGoes() async throws {
        let bench = try await Bench(Self.belt)
        let session = try await session(bench)
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session)
        async let end: Void = group.run()
        try await send([0x00, 72], bench)
        await group.triggerGracefulShutdown()
        try await end
        let steps = await bench.peripheral.transcript.steps
        // A write of 0000, and its response, come last before the end of the link.
        let writes = steps.compactMap { step -> [UInt8]? in
            if case .sent(let pdu) = step.event, pdu.first == 0x12 { pdu } else { nil }
        }
        #expect(writes.last?.suffix(2) == [0x00, 0x00])
        try await waited(for: "the link is gone") { await !bench.peripheral.isConnected }
    }

    @Test func writesPastAValueOfNonsense() async throws {
        let bench = try await Bench(Self.belt)
        let session = try await session(bench)
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session)
        async let end: Void = group.run()
        try await send([0x01, 72], bench)
        try await send([0x00, 74], bench)
        try await bench.lines.wait(for: "bpm 74")
        #expect(bench.lines.all.contains { $0.hasPrefix("malformed ") })
        await group.triggerGracefulShutdown()
        try await end
    }

    @Test func endsWithTheErrorWhenTheSessionGivesUp() async throws {
        let bench = try await Bench(Self.belt)
        let session = try await session(bench, Session.Options(reconnect: .never))
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session)
        async let end: Void = group.run()
        try await send([0x00, 72], bench)
        await bench.radio.disconnect(bench.peripheral)
        do {
            try await end
            Issue.record("it should not end well")
        } catch let error as BLEError {
            #expect(error.code == .disconnected)
        }
        #expect(session.state == .ended)
    }

    /// Stopped and started again, and killed and started again: the belt is named once.
    @Test(arguments: [false, true]) func goesOnAfterARestart(killed: Bool) async throws {
        let (bench, folder) = (try await Bench(Self.belt), try Folder())
        guard case .address(let belt) = bench.peer else { return }
        let write: @Sendable (String) -> Void = { bench.lines.write($0) }
        let state = StateStore(file: folder.path + "/belt.state")
        do {
            let central = bench.central(keeping: state)
            let (session, logger) = try await HeartRateLogger.restored(
                by: central, with: belt, Bench.hasty, write: write)
            if killed {
                let values = await session.subscribe(to: .heartRateMeasurement)
                _ = try await session.ready()
                try await send([0x00, 72], bench)
                try await central.saveState()
                write("bpm 72")
                _ = values
            } else {
                let group = bench.group(logger, session)
                async let end: Void = group.run()
                try await send([0x00, 72], bench)
                try await bench.lines.wait(for: "bpm 72")
                await group.triggerGracefulShutdown()
                try await end
            }
        }
        try await waited(for: "the link is gone") { await !bench.peripheral.isConnected }
        let central = bench.central(keeping: state)
        // A killed daemon has let go of its file when it is dead.
        let next = Mutex<(session: Session, logger: HeartRateLogger)?>(nil)
        try await waited(for: "the state is free") {
            do {
                let made = try await HeartRateLogger.restored(by: central, with: nil, write: write)
                next.withLock { $0 = made }
                return true
            } catch let error as BLEError {
                return error.code != .busy
            }
        }
        let (session, logger) = try #require(next.withLock { $0 })
        let group = bench.group(logger, session)
        async let end: Void = group.run()
        try await send([0x00, 73], bench)
        try await bench.lines.wait(for: "bpm 73")
        await group.triggerGracefulShutdown()
        try await end
        #expect(bench.lines.all == ["worn chest", "bpm 72", "worn chest", "bpm 73"])
    }

    /// Under a service manager that keeps descriptors the belt does not notice a restart.
    @Test func aStopLeavesTheLinkWithTheServiceManager() async throws {
        let (bench, folder) = (try await Bench(Self.belt), try Folder())
        guard case .address(let belt) = bench.peer else { return }
        let manager = try VirtualServiceManager()
        let notifier = try #require(ServiceNotifier(manager.environment()))
        let central = bench.central(keeping: StateStore(file: folder.path + "/belt.state"))
        let (session, logger) = try await HeartRateLogger.restored(
            by: central, with: belt, Bench.hasty, notifier: notifier
        ) { bench.lines.write($0) }
        let group = bench.group(logger, session)
        async let end: Void = group.run()
        try await send([0x00, 72], bench)
        try await bench.lines.wait(for: "bpm 72")
        await group.triggerGracefulShutdown()
        try await end
        #expect(session.state == .ended)
        #expect(await manager.storedNames.count == 2)
        #expect(await bench.peripheral.isConnected)
        #expect(await bench.peripheral.isSubscribed(to: 0x2A37))
        #expect(await bench.peripheral.connectionCount == 1)
    }

    @Test func aStateWithoutABeltSaysSo() async throws {
        let (bench, folder) = (try await Bench(Self.belt), try Folder())
        let central = bench.central(keeping: StateStore(file: folder.path + "/belt"))
        do {
            _ = try await HeartRateLogger.restored(by: central, with: nil) { bench.lines.write($0) }
            Issue.record("there is no belt")
        } catch let error as BLEError {
            #expect(error.code == .invalidArgument)
            #expect(error.hint != nil)
        }
    }

    @Test(arguments: [
        ("/var/lib/a/belt.state", "/var/lib/a", "belt"), ("belt", ".", "belt"), ("/belt.state", "/", "belt"),
    ])
    func aFileNamesAStore(path: String, directory: String, identifier: String) {
        #expect(StateStore(file: path) == StateStore(directory: directory, identifier: identifier))
    }

    @Test func aPeerThatIsNoBeltIsTriedAgain() async throws {
        let bench = try await Bench(.battery)
        let session = try await session(
            bench, Session.Options(reconnect: .backoff(initial: .milliseconds(1), jitter: 0, attempts: 2)))
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session)
        await #expect(throws: BLEError.self) { try await group.run() }
        #expect(await bench.peripheral.connectionCount == 2)
        #expect(bench.lines.all.isEmpty)
    }
}
