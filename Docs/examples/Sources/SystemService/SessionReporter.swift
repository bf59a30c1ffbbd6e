public import BareBLE
public import Logging
public import ServiceLifecycle

/// Reports the state of a session to the service manager and the log: a service to run in parallel with the one that
/// does the daemon's work.
///
/// - `READY=1` once, when the first link is ready. Until then systemd reports the unit as starting.
/// - `STATUS=` with each event, for `systemctl status`. The security of the links is only logged.
/// - `WATCHDOG=1` twice as often as the manager requires. The event loop of the links also times the wait between two:
///   if it hangs, the manager receives no more of them, and restarts the daemon.
/// - `STOPPING=1` at a graceful stop.
///
/// Without a manager, in a shell, it only logs.
public struct SessionReporter: Service, CustomStringConvertible {
    private let session: Session
    private let clock: CentralClock
    private let manager: ManagerReports
    private let logger: Logger

    /// Creates a reporter of this session; `clock` is its central's.
    public init(_ session: Session, clock: CentralClock, notifier: ServiceNotifier?, logger: Logger) {
        self.session = session
        self.clock = clock
        manager = ManagerReports(to: notifier, logger: logger)
        self.logger = logger
    }

    /// The service's name in the log.
    public var description: String { "reporter" }

    /// Reports until the daemon is stopped, or the session has ended.
    public func run() async throws {
        let changes = session.securityChanges
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await manager.feedWatchdog(by: clock) }
                group.addTask { try await logSecurity(changes) }
                try await followEvents()
                group.cancelAll()
            }
        }
        manager.send { notifier throws(BLEError) in try notifier.stopping() }
    }

    private func followEvents() async throws {
        var isReadyTold = false
        for try await event in session.events {
            let status = words(for: event)
            logger.info("\(status)")
            manager.send { notifier throws(BLEError) in try notifier.status(status) }
            if event == .ready, !isReadyTold {
                isReadyTold = true
                manager.send { notifier throws(BLEError) in try notifier.ready() }
            }
        }
    }

    private func logSecurity(_ changes: LinkSecuritySequence) async throws {
        for try await security in changes {
            logger.info("the link to \(session.name) is encrypted, level \(security.level)")
        }
    }

    private func words(for event: Session.Event) -> String {
        switch event {
        case .connecting(let attempt): "connecting to \(session.name), attempt \(attempt)"
        case .connected: "connected to \(session.name), getting ready"
        case .ready: "\(session.name) is ready"
        case .disconnected(let loss): "\(next(after: loss)): \(loss.error)"
        case .servicesChanged(let handles): "\(session.name) has changed its services at \(handles)"
        case .gaveUp(let error): "gave up: \(error)"
        case .ended: "ended"
        case .missed(let count): "\(count) events were missed"
        }
    }

    private func next(after loss: Session.Disconnection) -> String {
        switch loss.next {
        case .after(let pause): "connecting again in \(pause.formattedSeconds) s"
        case .whenAdapterReturns: "waiting for the adapter"
        case .never: "not connecting again"
        }
    }
}

extension Duration {
    /// The duration in seconds, with one decimal place.
    fileprivate var formattedSeconds: String {
        let tenths = Int64(self / .milliseconds(100))
        return "\(tenths / 10).\(tenths % 10)"
    }
}
