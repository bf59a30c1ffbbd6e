public import BareBLE
public import Logging
public import ServiceLifecycle

/// Reports a daemon that listens to the service manager: `READY=1` at once, `WATCHDOG=1` and `STOPPING=1` as
/// `SessionReporter` does.
public struct ListeningReporter: Service, CustomStringConvertible {
    private let clock: CentralClock
    private let manager: ManagerReports

    /// Creates a reporter; `clock` is the central's.
    public init(_ clock: CentralClock, notifier: ServiceNotifier?, logger: Logger) {
        self.clock = clock
        manager = ManagerReports(to: notifier, logger: logger)
    }

    /// The service's name in the log.
    public var description: String { "reporter" }

    /// Reports until the daemon is stopped.
    public func run() async throws {
        manager.send { notifier throws(BLEError) in try notifier.ready(status: "listening") }
        await cancelWhenGracefulShutdown {
            await manager.feedWatchdog(by: clock)
            // Without a watchdog there is nothing to do until the end.
            try? await clock.sleep(until: BootInstant(nanoseconds: .max))
        }
        manager.send { notifier throws(BLEError) in try notifier.stopping() }
    }
}
