import BLECore
import BLELinux
import BareBLE

/// Makes the links that a screen requests, one at a time.
///
/// Each link ends before the next one begins, and before `serve` returns.
actor LinkDriver {
    /// Connects to a peer, calls `found` when the connection attempt begins, runs `body` and disconnects.
    typealias Connect =
        @Sendable (
            _ peer: PeerArgument, _ found: @escaping @Sendable () -> Void,
            _ body: @escaping @Sendable (Peripheral) async throws -> Void
        ) async throws -> Void

    private let timeout: Duration
    private let connect: Connect
    private let report: @Sendable (LinkEvent) -> Void
    /// The link, and whether its events are still of interest.
    private var link: (task: Task<Void, Never>, isWanted: Lock<Bool>)?
    private var session: LinkSession?

    init(timeout: Duration, connect: @escaping Connect, report: @escaping @Sendable (LinkEvent) -> Void) {
        self.timeout = timeout
        self.connect = connect
        self.report = report
    }

    /// Carries out the requests until there are no more, or the task is cancelled.
    func serve(_ requests: AsyncStream<LinkRequest>) async {
        for await request in requests {
            switch request {
            case .connect(let peer):
                await disconnect()
                begin(peer)
            case .disconnect: await disconnect()
            case .read, .write, .subscribe, .unsubscribe: await session?.perform(request)
            }
        }
        await disconnect()
    }

    private func begin(_ peer: PeerArgument) {
        let (connect, everything) = (connect, report)
        let isWanted = Lock(true)
        // The screen may be that of another peer by now.
        let report: @Sendable (LinkEvent) -> Void = { event in
            if isWanted.withLock(\.self) { everything(event) }
        }
        let task = Task {
            var failure: Failure?
            do {
                try await connect(peer, { report(.found) }) { [weak self] peripheral in
                    try await self?.run(peripheral, of: peer, report)
                }
            } catch let error as BLEError {
                failure = error.code == .cancelled ? nil : Failure(error)
            } catch let error as Failure {
                failure = error
            } catch is CancellationError {
                failure = nil
            } catch {
                failure = Failure(message: "\(error)", status: .linkLost)
            }
            report(.ended(failure))
        }
        link = (task, isWanted)
    }

    private func run(
        _ peripheral: Peripheral, of peer: PeerArgument, _ report: @escaping @Sendable (LinkEvent) -> Void
    ) async throws {
        let session = LinkSession(peripheral, of: peer, timeout: timeout, report: report)
        self.session = session
        defer { self.session = nil }
        do {
            try await session.run()
        } catch {
            await session.end()
            throw error
        }
        await session.end()
    }

    private func disconnect() async {
        guard let link else { return }
        self.link = nil
        link.isWanted.withLock { $0 = false }
        link.task.cancel()
        await link.task.value
    }
}
