import BareBLE
import BareBLETestKit
import HeartRateLogging
import SystemService
import Testing

/// What the service manager hears.
@Suite(.timeLimit(.minutes(10))) struct SessionReporterTests {
    @Test func saysWhatSystemdWantsToKnow() async throws {
        let manager = try ServiceManager()
        let bench = try await Bench(.heartRate)
        let session = try await bench.peer.session(of: bench.central, Bench.hasty)
        let notifier = ServiceNotifier(manager.environment(watchdogMicroseconds: 40_000))
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session, notifier)
        async let end: Void = group.run()
        try await manager.wait(for: "READY=1")
        await bench.radio.disconnect(bench.peripheral)
        // Ready a second time is a status, and no second start.
        try await manager.wait(for: "it is ready again") { said in
            said.count { $0.hasPrefix("STATUS=") && $0.hasSuffix(" is ready") } >= 2
        }
        try await manager.wait(for: "watchdogs") { said in said.count { $0 == "WATCHDOG=1" } >= 3 }
        await group.triggerGracefulShutdown()
        try await end
        try await manager.wait(for: "STOPPING=1")
        let said = manager.assignments
        #expect(said.count { $0 == "READY=1" } == 1)
        #expect(said.contains { $0.hasPrefix("STATUS=connecting to ") })
        #expect(said.contains { $0.hasPrefix("STATUS=connecting again in 0.0 s: ") })
        #expect(said.last == "STOPPING=1")
    }

    @Test func aLoopThatHangsIsNotCalledWell() async throws {
        let manager = try ServiceManager()
        let bench = try await Bench(.heartRate)
        let session = try await bench.peer.session(of: bench.central, Bench.hasty)
        let notifier = ServiceNotifier(manager.environment(watchdogMicroseconds: 40_000))
        let group = bench.group(HeartRateLogger(session) { bench.lines.write($0) }, session, notifier)
        async let end: Void = group.run()
        try await manager.wait(for: "WATCHDOG=1")
        let isOver = Gate()
        async let hang: Void = bench.central.run { isOver.stop() }
        try await isOver.reached()
        let before = manager.assignments.count { $0 == "WATCHDOG=1" }
        // Several intervals long: what is waited for is that nothing comes.
        try await Task.sleep(for: .milliseconds(200))
        #expect(manager.assignments.count { $0 == "WATCHDOG=1" } <= before + 1)
        isOver.open()
        await hang
        try await manager.wait(for: "watchdogs") { said in said.count { $0 == "WATCHDOG=1" } > before + 1 }
        await group.triggerGracefulShutdown()
        try await end
    }

    @Test func peersAreReadFromArguments() {
        #expect(PeerArgument("unix:/run/belt.sock") == .socket("/run/belt.sock"))
        #expect(PeerArgument("C0:00:00:00:00:07/random") == PeerID("C0:00:00:00:00:07/random").map { .address($0) })
        #expect(PeerArgument("00:1A:7D:DA:71:13") == PeerID("00:1A:7D:DA:71:13/public").map { .address($0) })
        #expect(PeerArgument("belt") == nil)
    }
}
