public import BareBLE
import BareBLECrypto
import Glibc
public import Logging
public import ServiceLifecycle

/// The common frame of a daemon with one session, or with a local peripheral.
public enum Daemon {
    /// Runs a daemon to its end, and ends the process: with 0 after SIGTERM or SIGINT, with 1 after a failure.
    ///
    /// The peers' databases are cached in the directory of the state, or in `$STATE_DIRECTORY`, which systemd sets with
    /// `StateDirectory=`, so that a restart costs one request instead of a discovery. The log goes to standard error;
    /// standard output belongs to the daemon.
    ///
    /// - Parameters:
    ///   - state: The store of the restoration state; `nil` for none.
    ///   - bonds: The directory of bonds, which is created; `nil` for a daemon that pairs with nobody.
    ///   - begin: Creates the session, and the service that works with it. That service disconnects the session when it
    ///     ends.
    public static func run(
        _ name: String, keeping state: StateStore? = nil, bonds: String? = nil,
        _ begin: @Sendable (Central) async throws -> (Session, any Service)
    ) async -> Never {
        await run(name, keeping: state, bonds: bonds) { central, logger in
            let (session, service) = try await begin(central)
            let reporter = SessionReporter(session, clock: central.clock, notifier: ServiceNotifier(), logger: logger)
            return group(service, reporter, logger)
        }
    }

    /// Runs a daemon that serves centrals to its end, and ends the process as
    /// `run(_:keeping:bonds:_:)` does.
    ///
    /// - Parameters:
    ///   - name: The label of the log.
    ///   - bonds: The directory of bonds, which is created; `nil` for a daemon that pairs with nobody.
    ///   - begin: Publishes the services and has them on air, and returns the peripheral and the service that works
    ///     with it. That service stops the peripheral when it ends.
    public static func serve(
        _ name: String, bonds: String? = nil,
        _ begin: @Sendable (Central) async throws -> (LocalPeripheral, any Service)
    ) async -> Never {
        await run(name, keeping: nil, bonds: bonds) { central, logger in
            let (peripheral, service) = try await begin(central)
            let reporter = PeripheralReporter(
                peripheral, clock: central.clock, notifier: ServiceNotifier(), logger: logger)
            return group(service, reporter, logger)
        }
    }

    /// Runs a daemon that listens to its end, and ends the process as `run(_:keeping:bonds:_:)` does.
    ///
    /// - Parameters:
    ///   - name: The label of the log.
    ///   - recovery: What may be done when the adapter has stopped reporting.
    ///   - begin: Returns the service that listens.
    public static func listen(
        _ name: String, recovery: RecoveryPolicy, _ begin: @Sendable (Central) async throws -> any Service
    ) async -> Never {
        await run(name, keeping: nil, bonds: nil, recovery: recovery) { central, logger in
            let service = try await begin(central)
            return group(service, ListeningReporter(central.clock, notifier: ServiceNotifier(), logger: logger), logger)
        }
    }

    private static func run(
        _ name: String, keeping state: StateStore?, bonds: String?, recovery: RecoveryPolicy? = nil,
        _ begin: (Central, Logger) async throws -> ServiceGroup
    ) async -> Never {
        let logger = Logger(label: name) { StreamLogHandler.standardError(label: $0) }
        var configuration = Configuration()
        configuration.stateStore = state
        if let recovery {
            // What was done about the adapter is in the library's log.
            configuration.logger = logger
            configuration.recovery = recovery
        }
        if state == nil { configuration.cacheDirectory = getenv("STATE_DIRECTORY").map { String(cString: $0) } }
        do {
            // A cache is believed if it fits the peer's hash, and bonded peers are recognized by their private
            // addresses.
            configuration.databaseHash = { $0.hash }
            configuration.addressHash = { $0.hash }
            if let bonds { configuration.security = SecurityConfiguration(bonds: try BondStore(directory: bonds)) }
            try await begin(Central(configuration), logger).run()
        } catch {
            logger.error("\(error)")
            exit(1)
        }
        exit(0)
    }

    /// Returns the group of the work and its reporter, which end together. The reporter ends first, because it reports
    /// that the end has begun.
    public static func group(
        _ service: any Service, _ reporter: any Service, _ logger: Logger
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
    /// Creates the store in a file, in the notation of the command line: `/var/lib/logger/belt.state`, or without
    /// `.state`, which its name always has.
    public init(file path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let name = parts.last ?? ""
        let directory = parts.dropLast().joined(separator: "/")
        self.init(
            directory: parts.count < 2 ? "." : directory.isEmpty ? "/" : directory,
            identifier: String(name.hasSuffix(".state") ? name.dropLast(6) : name))
    }
}
