internal import BLECore
internal import BLELinux
internal import Logging

/// The log of an adapter, which has its problems at most once a minute.
struct AdapterLog {
    let logger: Logger
    private var throttle = WarningThrottle()

    init(_ logger: Logger) {
        self.logger = logger
    }

    /// Logs the counts of what should not happen, if there is more than was logged and a line is due.
    mutating func report(_ counts: WarningThrottle.Counts, of adapter: String, at now: BootInstant) {
        guard throttle.isDue(counts: counts, at: now) else { return }
        let text = WarningThrottle.text(counts)
        logger.warning("problems with the adapter", metadata: ["adapter": "\(adapter)", "so far": "\(text)"])
    }
}
