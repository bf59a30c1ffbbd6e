import BareBLE
import Logging

/// The messages of a daemon to its service manager.
struct ManagerReports: Sendable {
    private let notifier: ServiceNotifier?
    private let logger: Logger

    /// Creates reports to a manager; `nil` for none.
    init(to notifier: ServiceNotifier?, logger: Logger) {
        self.notifier = notifier
        self.logger = logger
    }

    /// Sends a message. One that cannot be sent is no reason to end.
    func send(_ message: (ServiceNotifier) throws(BLEError) -> Void) {
        guard let notifier else { return }
        do {
            try message(notifier)
        } catch {
            logger.warning("\(error)")
        }
    }

    /// Sends `WATCHDOG=1` twice as often as the manager requires, until the task is cancelled.
    func feedWatchdog(by clock: CentralClock) async {
        guard let interval = notifier?.watchdogInterval else { return }
        while (try? await clock.sleep(for: interval / 2)) != nil {
            send { notifier throws(BLEError) in try notifier.watchdog() }
        }
    }
}
