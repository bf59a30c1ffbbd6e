import BareBLE
import BareBLETestKit
import Glibc
import Synchronization
import SystemService
import Testing
import UARTBridging

/// The bridge with a peripheral on a virtual radio, and a program that opens the terminal.
@Suite(.timeLimit(.minutes(10))) struct UARTBridgeTests {
    /// 23 bytes a packet, so that a few lines are many pieces.
    private static let small = {
        var device = VirtualDevice.uart
        device.maximumMTU = 23
        return device
    }()

    private static func newLink() -> String { "/tmp/bareble-example-\(getpid())-\(UInt32.random(in: 0 ... .max))" }

    @Test func carriesBothWaysAndOverALostLink() async throws {
        let (bench, link) = (try await Bench(Self.small), Self.newLink())
        let session = try await bench.peer.session(of: bench.central, Bench.hasty)
        let group = bench.group(UARTBridge(session, linkedAt: link) { bench.lines.write($0) }, session)
        async let end: Void = group.run()
        try await bench.lines.wait(for: "began")
        let program = try Program(link)
        // Every byte value: a terminal that is not raw would change some.
        let text = (0..<600).map { UInt8(truncatingIfNeeded: $0) }
        program.write(text)
        #expect(try await program.read(text.count) == text)

        await bench.radio.disconnect(bench.peripheral)
        try await bench.lines.wait(for: "interrupted")
        program.write(Array("again".utf8))
        try await bench.lines.wait(for: "began", count: 2)
        try await waited(for: "an echo comes over the second link") {
            // What was written before the second subscription had its echo nowhere to go.
            program.write([0x2E])
            return try await program.readSome().contains(0x2E)
        }
        await group.triggerGracefulShutdown()
        try await end
        #expect(access(link, F_OK) != 0)
        #expect(session.state == .ended)
    }

    @Test func whatIsWrittenWhileThereIsNoLinkWaits() async throws {
        let received = Received()
        let (bench, link) = (try await Bench(Self.listener(received)), Self.newLink())
        await bench.radio.move(bench.peripheral, to: .outOfRange)
        let session = try await bench.peer.session(of: bench.central, Bench.hasty)
        let group = bench.group(UARTBridge(session, linkedAt: link) { bench.lines.write($0) }, session)
        async let end: Void = group.run()
        try await bench.lines.wait(for: "terminal")
        let program = try Program(link)
        let text = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
        program.write(text)
        await bench.radio.move(bench.peripheral, to: .near)
        try await waited(for: "all of it has arrived") { received.bytes.count >= text.count }
        #expect(received.bytes == text)
        await group.triggerGracefulShutdown()
        try await end
    }

    @Test func aPeerWithoutASerialPortEndsIt() async throws {
        let (bench, link) = (try await Bench(.battery), Self.newLink())
        let session = try await bench.peer.session(of: bench.central, Bench.hasty)
        let group = bench.group(UARTBridge(session, linkedAt: link) { bench.lines.write($0) }, session)
        let failure = await #expect(throws: BLEError.self) { try await group.run() }
        #expect(failure?.code == .attributeNotFound)
        #expect(access(link, F_OK) != 0)
    }

    @Test func aFileIsNotReplacedByTheLink() throws {
        let link = Self.newLink()
        close(open(link, O_CREAT | O_WRONLY, 0o600))
        defer { unlink(link) }
        let failure = #expect(throws: TerminalError.self) { try PseudoTerminal(linkedAt: link) }
        #expect(failure?.errorNumber == EEXIST)
        // A link that an earlier run has left is.
        unlink(link)
        symlink("/dev/pts/none", link)
        let terminal = try PseudoTerminal(linkedAt: link)
        #expect(access(link, R_OK) == 0)
        terminal.removeLink()
        #expect(access(link, F_OK) != 0)
    }

    /// A serial port that keeps what it is sent.
    private static func listener(_ received: Received) -> VirtualDevice {
        var device = small
        let place = device.services.count - 1
        device.services[place].characteristics[0].onWrite = .call { bytes in
            received.add(bytes)
            return nil
        }
        return device
    }
}

/// What a device was sent.
private final class Received: Sendable {
    private let content = Mutex<[UInt8]>([])

    var bytes: [UInt8] { content.withLock { $0 } }

    func add(_ bytes: [UInt8]) {
        content.withLock { $0 += bytes }
    }
}

/// A program that has opened the terminal as a serial port.
private final class Program: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { throw WaitTimeout(what: "\(path) opens", seen: []) }
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) {
        #expect(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
    }

    /// What comes within a moment.
    func readSome() async throws -> [UInt8] {
        try await Task.sleep(for: .milliseconds(5))
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }

    func read(_ count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        try await waited(for: "\(count) bytes come from the terminal") {
            let some = try await readSome()
            bytes += some
            return bytes.count >= count
        }
        return bytes
    }
}
