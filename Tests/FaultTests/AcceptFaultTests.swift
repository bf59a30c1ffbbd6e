import BLECore
import BLELinux
import BareBLETestKit
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import BareBLE

/// A machine without descriptors for the links and channels that others make. What connects waits in the kernel's
/// queue, so that the listening socket stays readable.
@Suite(.serialized, .timeLimit(.minutes(10))) struct AcceptFaultTests {
    enum Listener: CaseIterable, Sendable {
        case unixSocket, adapter, channels
    }

    @Test(
        "nothing spins while no link can be accepted, and the next one is", .row("O12"), arguments: Listener.allCases,
        [EMFILE, ENFILE])
    func nothingSpinsWhileNoLinkCanBeAccepted(_ listener: Listener, errno: Int32) async throws {
        let folder = try Folder(inMemory: true)
        try await VirtualTime.run { time in
            let plan = try FaultPlan()
            await plan.join(time.loop)
            let log = Warnings()
            let path = folder.path + "/links"
            let bench = try AcceptBench(listener, at: path, time, log.logger)
            for round in 1...2 {
                // Without a pause they would all fail in no time.
                plan.set(SystemCalls(.accept), .fail(errno), times: 5_000)
                let before = plan.count(SystemCalls(.accept))
                var peer = try LinkSocket.connectedUnix(path: path)
                try await time.clock.sleep(for: .seconds(2))
                let count = plan.count(SystemCalls(.accept)) - before
                #expect(count >= 2 && count <= 22, "\(count) calls in 2 s")
                #expect(log.count == round, "one for each row of failures")
                #expect(await bench.accepted(&peer) == false)
                plan.clear()
                try await time.clock.sleep(for: .milliseconds(200))
                #expect(await bench.accepted(&peer))
                #expect(plan.count(SystemCalls(.accept)) - before <= count + 3)
            }
            // It ends while it pauses.
            plan.set(SystemCalls(.accept), .fail(errno), times: 5_000)
            let late = try LinkSocket.connectedUnix(path: path)
            try await time.clock.sleep(for: .milliseconds(150))
            await bench.end()
            let count = plan.count(SystemCalls(.accept))
            try await time.clock.sleep(for: .seconds(1))
            #expect(plan.count(SystemCalls(.accept)) == count)
            _ = consume late
            plan.clear()
            await plan.leave(time.loop)
        }
    }
}

/// Something that accepts on a Unix socket, on the loop of a virtual time.
private final class AcceptBench: Sendable {
    private let end: @Sendable () async -> Void
    /// The peripheral, where the links are served; elsewhere they are closed as soon as they are accepted.
    private let local: LocalPeripheral?

    init(_ listener: AcceptFaultTests.Listener, at path: String, _ time: VirtualTime, _ logger: Logger) throws {
        switch listener {
        case .unixSocket:
            var configuration = Configuration()
            configuration.logger = logger
            let local = LocalPeripheral(on: Central(configuration, time: time))
            try local.assumeIsolated { try $0.acceptCentrals(atSocket: path) }
            self.local = local
            end = { await local.stop() }
        case .adapter:
            let adapter = HeldAcceptor(LinkAcceptor(on: time.loop, logger: logger))
            try adapter.acceptor.begin(
                try ListeningSocket.unix(path: path), of: "hci0", for: ObjectIdentifier(adapter),
                readable: { adapter.acceptor.acceptAll() }
            ) { _, _, _ in }
            local = nil
            end = { adapter.acceptor.end() }
        case .channels:
            let acceptor = try ChannelAcceptor(
                try ListeningSocket.unix(path: path), ChannelListener.Options(), on: time.loop, logger: logger
            ) { _ in nil }
            local = nil
            end = { acceptor.end() }
        }
    }

    /// Whether the link of a peer was accepted.
    func accepted(_ peer: inout LinkSocket) async -> Bool {
        guard let local else { return peer.isHungUp }
        return await local.centrals.count == 1
    }

    func end() async { await end() }
}

/// The acceptor of an adapter.
// Unchecked: only the loop's thread uses it.
private final class HeldAcceptor: @unchecked Sendable {
    let acceptor: LinkAcceptor

    init(_ acceptor: LinkAcceptor) { self.acceptor = acceptor }
}

/// Counts the warnings of a logger.
private final class Warnings: Sendable {
    private struct Handler: LogHandler {
        let log: Warnings
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.warning

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { log.lines.withLock { $0 += 1 } }
    }

    private let lines = Mutex(0)

    var count: Int { lines.withLock { $0 } }
    var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }
}
