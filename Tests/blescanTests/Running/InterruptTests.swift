import BLECore
import BareBLETestKit
import Foundation
import Glibc
import Testing

/// ^C, ^C again, and readers that close the pipe.
@Suite struct InterruptTests {
    private static let switchedOn: [UInt8] = [0x12, 0x0D, 0x00, 0x01, 0x00]
    private static let switchedOff: [UInt8] = switchedOff(0x0D)

    /// A Write Request of 0 to a Client Characteristic Configuration.
    private static func switchedOff(_ handle: UInt8) -> [UInt8] { [0x12, handle, 0x00, 0x00, 0x00] }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func listeningEndsInPeace(_ signal: Int32) async throws {
        let peer = try await SocketPeer(.heartRate)
        let program = try RunningProgram(["notify", "unix:\(peer.path)", "2a37", "--mtu", "23"])
        try await program.printed("bpm")
        #expect(peer.packets.last == Self.switchedOn)
        program.signal(signal)
        let outcome = try await program.outcome()
        #expect(outcome.status == 0)
        #expect(outcome.errors == "unix:\(peer.path): subscribed, waiting for values\nunsubscribed\n")
        #expect(peer.packets.last == Self.switchedOff, "the peer is told to stop")
    }

    /// The end of the terminal ends nothing then.
    @Test func nohupHasItGoOn() async throws {
        let peer = try await SocketPeer(.heartRate)
        let program = try RunningProgram(
            [BuiltProgram.url.path, "notify", "unix:\(peer.path)", "2a37", "--count", "3"],
            of: URL(filePath: "/usr/bin/nohup"))
        try await program.printed("bpm")
        program.signal(SIGHUP)
        let outcome = try await program.outcome()
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.split(separator: "\n").count == 3)
    }

    /// The link stays up while the output is not read, and the first ^C ends both.
    @Test func listeningNeedsNoReader() async throws {
        let folder = try TestFolder()
        try #require(unsafe mkfifo(folder["lines"], 0o600) == 0)
        // Held open by a reader that never reads.
        let pipe = unsafe open(folder["lines"], O_RDWR | O_CLOEXEC)
        defer { close(pipe) }
        let flood = NotifyPlan([[UInt8](repeating: 0xAA, count: 400)], every: .milliseconds(1))
        let peer = try await SocketPeer(
            VirtualDevice(
                name: "Flood",
                services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .indicate, plan: flood)])]))
        let program = try RunningProgram(
            ["notify", "unix:\(peer.path)", "fff1", "--json"], output: .file(folder["lines"]))
        try await waited(for: "the pipe is full") {
            var state = pollfd(fd: pipe, events: Int16(POLLOUT), revents: 0)
            return unsafe poll(&state, 1, 0) == 0
        }
        let confirmations = { peer.packets.count { $0 == [0x1E] } }
        let before = confirmations()
        try await waited(for: "indications are confirmed all the same") { confirmations() > before + 100 }
        program.signal(SIGINT)
        let outcome = try await program.outcome()
        #expect(outcome.status == 0)
        // A last confirmation may come after it.
        #expect(peer.packets.contains(Self.switchedOff(0x0004)))
    }

    @Test func listeningForMoreIsUnfinished() async throws {
        let peer = try await SocketPeer(.heartRate)
        let program = try RunningProgram(["notify", "unix:\(peer.path)", "2a37", "--count", "1000"])
        try await program.printed("bpm")
        program.signal(SIGINT)
        let outcome = try await program.outcome()
        #expect(outcome.status == 130)
        #expect(
            outcome.errors
                == "unix:\(peer.path): subscribed, waiting for values\nunsubscribed\nblescan: interrupted\n")
        #expect(peer.packets.last == Self.switchedOff)
    }

    @Test(arguments: UnrulyPeerTests.commands) func waitingIsUnfinished(_ command: [String]) async throws {
        let peer = try SocketPeer { _ in .silence }
        // Longer than the test may take to notice the request on a busy machine.
        let arguments = command.map { $0 == "PEER" ? "unix:\(peer.path)" : $0 } + ["--timeout", "5m"]
        let program = try RunningProgram(arguments)
        try await peer.received("the first request") { _ in true }
        program.signal(SIGINT)
        let outcome = try await program.outcome()
        #expect(outcome.status == 130)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors == "blescan: interrupted\n")
    }

    /// The peer does not even respond to the unsubscribe request: the second ^C does not wait for it.
    @Test func theSecondInterruptEndsAtOnce() async throws {
        let peer = try await SocketPeer(.heartRate)
        let program = try RunningProgram(["notify", "unix:\(peer.path)", "2a37"])
        try await program.printed("bpm")
        program.signal(SIGINT)
        program.signal(SIGINT)
        let outcome = try await program.outcome()
        #expect([0, 130].contains(outcome.status), "two signals at once may arrive as one")
    }

    @Test(arguments: [
        ["explore", "demo:heart-rate"], ["notify", "demo:heart-rate", "2a37", "--json"],
        ["read", "demo:battery", "2a19"], ["--help"], ["read", "demo:battery", "2a19", "--record", "-"],
    ])
    func aClosedPipeEndsQuietly(_ command: [String]) async throws {
        let outcome = try await BuiltProgram.run(command, output: .closedPipe)
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
    }

    /// Even if output cannot be written any more, the subscription is disabled in the peer.
    @Test(arguments: [(Sink.closedPipe, Int32(0)), (.file("/dev/full"), 74)])
    func listeningEndsWithItsReader(_ sink: Sink, _ status: Int32) async throws {
        let peer = try await SocketPeer(.heartRate)
        let command = ["notify", "unix:\(peer.path)", "2a37", "--mtu", "23"]
        let outcome = try await BuiltProgram.run(command, output: sink)
        #expect(outcome.status == status)
        #expect(!outcome.errors.contains("unsubscribed"))
        #expect(peer.packets.last == Self.switchedOff)
    }

    @Test func aFullDiskIsReported() async throws {
        let outcome = try await BuiltProgram.run(["read", "demo:battery", "2a19"], output: .file("/dev/full"))
        #expect(outcome.status == 74)
        #expect(outcome.errors.contains("could not write the results: No space left on device"))
        #expect(outcome.errors.contains("\nhint: Make room there, or write to another disk.\n"))
        let objects = try await BuiltProgram.run(
            ["read", "demo:battery", "2a19", "--json"], output: .file("/dev/full"))
        #expect(objects.status == 74)
        #expect(objects.errors.hasPrefix(#"{"v":1,"error":"could not write the results: No space left on device "#))
        #expect(objects.errors.hasSuffix(#""code":"notWritten","status":74}"# + "\n"), "\(objects.errors)")
    }
}
