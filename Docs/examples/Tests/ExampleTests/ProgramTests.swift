import BLEProfiles
import BareBLE
import BareBLETestKit
import Glibc
import Provisioning
import Testing

/// The built programs, with a service manager of the test's own.
@Suite(.timeLimit(.minutes(10))) struct ProgramTests {
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

    @Test func theSensorRunsAsAService() async throws {
        let (manager, folder) = (try ServiceManager(), try Folder())
        let program = try BuiltProgram(
            "heart-rate-sensor", ["unix:\(folder.path)/sensor"],
            environment: ["NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "100000"])
        try await manager.wait(for: "READY=1")
        try await manager.wait(for: "WATCHDOG=1")
        let client = try await Central().connect(toSocket: folder.path + "/sensor")
        var count = 0
        for try await measurement in try await client.subscribe(to: .heartRateMeasurement) {
            #expect((60...80).contains(measurement.beatsPerMinute))
            count += 1
            if count == 2 { break }
        }
        try await manager.wait(for: "the central is counted") { $0.contains { $0.hasPrefix("STATUS=1 connected") } }
        program.stop()
        #expect(try await program.status() == 0)
        try await manager.wait(for: "STOPPING=1")
        _ = await client.disconnected()
    }

    /// Nothing is written without encryption, which a socket does not have.
    @Test func theProvisioningRunsAsAService() async throws {
        let (manager, folder, bonds) = (try ServiceManager(), try Folder(), try Folder())
        let program = try BuiltProgram(
            "wifi-provisioning", [bonds.path, "1", "/bin/true", "unix:\(folder.path)/setup"],
            environment: ["NOTIFY_SOCKET": manager.address])
        try await manager.wait(for: "READY=1")
        let client = try await Central().connect(toSocket: folder.path + "/setup")
        await #expect(throws: BLEError.self) {
            try await client.write([1, 0x61], to: .uuid(WiFiProvisioning.credentials))
        }
        program.stop()
        #expect(try await program.status() == 0)
        #expect(program.lines.isEmpty)
    }

    @Test func theLockReaderPrintsItsErrorAndEndsWithOne() async throws {
        let lock = "C0:00:00:00:00:08/random"
        let program = try BuiltProgram("lock-reader", ["/dev/null/bonds", lock, "fff1"])
        #expect(try await program.status() == 1)
        #expect(program.lines.contains { $0.contains("/dev/null/bonds") })
    }

    @Test func wrongUsageHasAStatusOfItsOwn() async throws {
        for arguments in [
            ["belt"], [], ["--state"], ["--state", "/tmp/s", "unix:/tmp/x"], ["--state", "/tmp/s", "belt"],
        ] {
            #expect(try await BuiltProgram("heart-rate-logger", arguments).status() == 64)
        }
        #expect(try await BuiltProgram("uart-peripheral", []).status() == 64)
        for program in ["uart-bridge", "weight-logger", "lock-reader", "heart-rate-sensor", "wifi-provisioning"] {
            #expect(try await BuiltProgram(program, ["/tmp/tty"]).status() == 64)
        }
    }
}
