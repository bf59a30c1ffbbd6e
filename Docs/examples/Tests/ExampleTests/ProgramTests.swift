import BareBLETestKit
import Glibc
import Testing

/// The built programs, with a service manager of the test's own.
@Suite(.timeLimit(.minutes(2))) struct ProgramTests {
    @Test func theHeartRateLoggerRunsAsAService() async throws {
        let (manager, peer) = (try ServiceManager(), try SocketPeer(.heartRate))
        let program = try BuiltProgram(
            "heart-rate-logger", ["unix:\(peer.path)"],
            environment: ["NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "100000"])
        try await manager.wait(for: "READY=1")
        try await program.printed("bpm 7", count: 2)
        try await manager.wait(for: "WATCHDOG=1")
        await peer.peripheral.disconnect()
        try await program.printed("worn chest", count: 2)
        try await program.printed("bpm 7", count: 3)
        program.stop()
        #expect(try await program.status() == 0)
        try await manager.wait(for: "STOPPING=1")
        #expect(manager.assignments.count { $0 == "READY=1" } == 1)
        #expect(program.lines.contains { $0.hasPrefix("interrupted ") })
        try await waited(for: "the belt is let go of") { await !peer.peripheral.isConnected }
    }

    @Test func theBridgeRunsAsAService() async throws {
        let (manager, peer) = (try ServiceManager(), try SocketPeer(.uart))
        let link = peer.path + ".tty"
        let program = try BuiltProgram(
            "uart-bridge", [link, "unix:\(peer.path)"], environment: ["NOTIFY_SOCKET": manager.address])
        try await manager.wait(for: "READY=1")
        try await program.printed("began")
        let port = open(link, O_RDWR | O_NOCTTY | O_NONBLOCK)
        defer { close(port) }
        #expect(write(port, "hello", 5) == 5)
        var answer = [UInt8](repeating: 0, count: 16)
        try await waited(for: "the echo comes") { read(port, &answer, answer.count) == 5 }
        #expect(answer.prefix(5) == Array("hello".utf8)[...])
        program.stop()
        #expect(try await program.status() == 0)
        #expect(access(link, F_OK) != 0)
    }

    @Test func wrongUsageHasAStatusOfItsOwn() async throws {
        for arguments in [
            ["belt"], [], ["--state"], ["--state", "/tmp/s", "unix:/tmp/x"], ["--state", "/tmp/s", "belt"],
        ] {
            #expect(try await BuiltProgram("heart-rate-logger", arguments).status() == 64)
        }
        for program in ["uart-bridge", "weight-logger", "lock-reader"] {
            #expect(try await BuiltProgram(program, ["/tmp/tty"]).status() == 64)
        }
    }
}
