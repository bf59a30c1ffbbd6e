import BareBLE
import BareBLETestKit
import HeartRateLogging
import SystemService
import Testing

/// The logger with a belt on a virtual radio.
@Suite(.timeLimit(.minutes(1))) struct HeartRateLoggerTests {
    /// A belt that sends when a test wants it to.
    private static let belt = VirtualDevice(
        name: "Belt",
        services: [
            .genericAccess(name: "Belt", appearance: 0x0341),
            VirtualService(
                0x180D,
                [VirtualCharacteristic(0x2A37, .notify), VirtualCharacteristic(0x2A38, .read, value: [0x01])]),
        ])

    private func session(_ bench: Bench, _ options: SessionOptions = Bench.hasty) async throws -> Session {
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
        await bench.radio.hangUp(bench.peripheral)
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
        // A write of 0000, and its answer, come last before the end of the link.
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
        let session = try await session(bench, SessionOptions(reconnect: .never))
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session)
        async let end: Void = group.run()
        try await send([0x00, 72], bench)
        await bench.radio.hangUp(bench.peripheral)
        do {
            try await end
            Issue.record("it should not end well")
        } catch let error as BLEError {
            #expect(error.code == .disconnected)
        }
        #expect(session.state == .ended)
    }

    @Test func aPeerThatIsNoBeltIsTriedAgain() async throws {
        let bench = try await Bench(.battery)
        let session = try await session(
            bench, SessionOptions(reconnect: .backoff(initial: .milliseconds(1), jitter: 0, attempts: 2)))
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session)
        await #expect(throws: BLEError.self) { try await group.run() }
        #expect(await bench.peripheral.connectionCount == 2)
        #expect(bench.lines.all.isEmpty)
    }
}
