public import BareBLE
import Glibc
public import Logging
public import ServiceLifecycle

/// What every daemon of one session has around its own work.
public enum Daemon {
    /// Runs a daemon to its end, and ends the process: with 0 after SIGTERM or SIGINT, with 1 when something failed.
    ///
    /// What peers offer is kept beside the state, or in `$STATE_DIRECTORY`, which systemd sets with `StateDirectory=`, so that a restart costs
    /// one request instead of a discovery. The log goes to standard error; standard output belongs to the daemon.
    ///
    /// - Parameters:
    ///   - state: What is wanted is kept there; `nil` for nowhere.
    ///   - begin: Makes the session, and the service that works with it. That service disconnects the session when it ends.
    public static func run(
        _ name: String, keeping state: StateStore? = nil,
        _ begin: @Sendable (Central) async throws -> (Session, any Service)
    ) async -> Never {
        let logger = Logger(label: name) { StreamLogHandler.standardError(label: $0) }
        var configuration = Configuration()
        configuration.stateStore = state
        if state == nil { configuration.cacheDirectory = getenv("STATE_DIRECTORY").map { String(cString: $0) } }
        let central = Central(configuration)
        do {
            let (session, service) = try await begin(central)
            let reporter = SessionReporter(
                session, clock: central.clock, notifier: ServiceNotifier(), logger: logger)
            try await group(service, reporter, logger).run()
        } catch {
            logger.error("\(error)")
            exit(1)
        }
        exit(0)
    }

    /// The work and the reports about it, which end together, the reports first: they say that the end has begun.
    public static func group(
        _ service: any Service, _ reporter: SessionReporter, _ logger: Logger
    ) -> ServiceGroup {
        var quiet = logger
        quiet.logLevel = .warning
        return ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(
                        service: service, successTerminationBehavior: .gracefullyShutdownGroup,
                        failureTerminationBehavior: .gracefullyShutdownGroup),
                    .init(service: reporter, successTerminationBehavior: .ignore),
                ],
                gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet))
    }

    /// Ends the process with the status for wrong usage.
    public static func refuse(_ usage: String) -> Never {
        let text = Array("usage: \(usage)\n".utf8)
        write(STDERR_FILENO, text, text.count)
        exit(64)
    }
}

extension StateStore {
    /// The store in a file, as it is written at the command line: `/var/lib/logger/belt.state`, or without the `.state`, which its name has in
    /// any case.
    public init(file path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let name = parts.last ?? ""
        let directory = parts.dropLast().joined(separator: "/")
        self.init(
            directory: parts.count < 2 ? "." : directory.isEmpty ? "/" : directory,
            identifier: String(name.hasSuffix(".state") ? name.dropLast(6) : name))
    }
}
