public import BareBLE
public import Logging
public import ServiceLifecycle

/// Reports the centrals of a local peripheral to the service manager and the log: a service to run in parallel with the
/// one that does the daemon's work.
///
/// It sends `READY=1` at once, because the peripheral is on air by then, `STATUS=` with each central that comes and
/// goes, and `WATCHDOG=1` and `STOPPING=1` as `SessionReporter` does.
public struct PeripheralReporter: Service, CustomStringConvertible {
    private let peripheral: LocalPeripheral
    private let clock: CentralClock
    private let manager: ManagerReports
    private let logger: Logger

    /// Creates a reporter of this peripheral; `clock` is its central's.
    public init(_ peripheral: LocalPeripheral, clock: CentralClock, notifier: ServiceNotifier?, logger: Logger) {
        self.peripheral = peripheral
        self.clock = clock
        manager = ManagerReports(to: notifier, logger: logger)
        self.logger = logger
    }

    /// The service's name in the log.
    public var description: String { "reporter" }

    /// Reports until the daemon is stopped, or the peripheral has ended.
    public func run() async throws {
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await manager.feedWatchdog(by: clock) }
                try await followEvents()
                group.cancelAll()
            }
        }
        manager.send { notifier throws(BLEError) in try notifier.stopping() }
    }

    private func followEvents() async throws {
        var events = peripheral.events.makeAsyncIterator()
        manager.send { notifier throws(BLEError) in try notifier.ready(status: "no central is connected") }
        while let event = try await events.next() {
            guard let words = words(for: event) else { continue }
            logger.info("\(words)")
            let count = await peripheral.centrals.count
            manager.send { notifier throws(BLEError) in try notifier.status("\(count) connected; \(words)") }
        }
    }

    private func words(for event: LocalPeripheral.Event) -> String? {
        switch event {
        case .connected(let central): "\(central.name) has connected"
        case .disconnected(let central, let reason): "\(central.name) has disconnected: \(reason)"
        case .writeDropped(let central, _): "a write of \(central.name) was dropped"
        case .dropped(let count): "\(count) events were missed"
        default: nil
        }
    }
}
