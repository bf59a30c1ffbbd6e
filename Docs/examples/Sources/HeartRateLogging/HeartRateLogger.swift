public import BLEProfiles
public import BareBLE
public import ServiceLifecycle

/// Follows one heart-rate belt for as long as the daemon runs, and writes a line for each measurement.
///
///     worn chest
///     bpm 72 contact yes rr 833 828
///     interrupted could not keep the link (C0:00:00:00:00:07/random): …
///
/// The session keeps the connection: it reconnects, prepares each link first, and subscribes again. With a `StateStore`
/// it also outlives the daemon: see `restored(by:with:write:)`.
public struct HeartRateLogger: Service, CustomStringConvertible {
    private let session: Session
    private let restored: SessionValueSequence<HeartRateMeasurement>?
    private let suspend: (@Sendable () async -> Void)?
    private let write: @Sendable (String) -> Void

    /// Creates a logger for the belt of this session; each line goes to `write`.
    ///
    /// - Parameters:
    ///   - restored: The subscription of the previous daemon; `nil` to make one.
    ///   - suspend: Ends the daemon so that the next one continues; `nil` to end the session for good.
    public init(
        _ session: Session, goingOnWith restored: SessionValueSequence<HeartRateMeasurement>? = nil,
        suspend: (@Sendable () async -> Void)? = nil, write: @escaping @Sendable (String) -> Void
    ) {
        self.session = session
        self.restored = restored
        self.suspend = suspend
        self.write = write
    }

    /// Returns the session and the logger of the previous daemon, or those of a first start.
    ///
    /// A logger that is stopped passes its link to the service manager, if there is one that keeps it until the next
    /// start.
    ///
    /// - Parameters:
    ///   - peer: The belt of a first start. A different belt in the restoration state is forgotten.
    ///   - notifier: The connection to the service manager; `nil` if there is none.
    /// - Throws: `BLEError` with the errors of `restore`, and with `.invalidArgument` if no belt is known.
    public static func restored(
        by central: Central, with peer: PeerID?, _ options: Session.Options = Session.Options(),
        notifier: ServiceNotifier? = ServiceNotifier(), write: @escaping @Sendable (String) -> Void
    ) async throws -> (session: Session, logger: HeartRateLogger) {
        let before = try await central.restore { wanted in
            peer == nil || wanted.peer == peer ? Session.Handlers(onReady: handshake(write)) : nil
        }
        if let damage = before.damage { write("damaged \(damage)") }
        let suspend: @Sendable () async -> Void = {
            if let notifier {
                await central.suspend(handingOverTo: DescriptorStore(notifier))
            } else {
                await central.suspend()
            }
        }
        if let belt = before.peers.first, let session = belt.session {
            let measurements = belt.subscriptions.first { $0.characteristic == 0x2A37 }
            let logger = HeartRateLogger(
                session, goingOnWith: measurements?.adopt(as: HeartRateMeasurement.self, malformedValues: .skip),
                suspend: suspend, write: write
            )
            return (session, logger)
        }
        guard let peer else {
            throw BLEError(
                .invalidArgument, during: "begin", because: "the state names no belt",
                hint: "Give its address with the first start.")
        }
        let session = try await central.session(with: peer, options, onReady: handshake(write))
        return (session, HeartRateLogger(session, suspend: suspend, write: write))
    }

    /// Prepares each link before other use, as `onReady` of the session: reads the belt's body sensor location.
    ///
    /// A peer that cannot return it is not a belt; the session then ends the link and retries later.
    public static func handshake(
        _ write: @escaping @Sendable (String) -> Void
    ) -> @Sendable (Peripheral) async throws -> Void {
        { belt in
            let location = try await belt.read(.bodySensorLocation)
            write("worn \(location.name ?? "at place \(location.rawValue)")")
        }
    }

    /// The service's name in the log.
    public var description: String { "heart-rate logger" }

    /// Writes lines until the daemon is stopped. Then the subscription and the link end; with a state the
    /// link is left to the next start.
    ///
    /// - Throws: `BLEError` with the session's final error.
    public func run() async throws {
        let measurements: SessionValueSequence<HeartRateMeasurement>
        if let restored {
            measurements = restored
        } else {
            measurements = await session.subscribe(to: .heartRateMeasurement, SubscribeOptions(malformedValues: .skip))
        }
        do {
            try await cancelWhenGracefulShutdown { try await follow(measurements) }
        } catch {
            await end()
            throw error
        }
        // With `suspend` the next start continues the subscription: the end of the link ends it, and its restoration
        // state stays.
        if suspend == nil { await measurements.unsubscribe() }
        await end()
    }

    private func end() async {
        await suspend?()
        await session.disconnect()
    }

    private func follow(_ measurements: SessionValueSequence<HeartRateMeasurement>) async throws {
        var changes = measurements.makeAsyncIterator()
        while let change = try await changes.next() {
            if changes.droppedBefore > 0 { write("lost \(changes.droppedBefore)") }
            if changes.malformedBefore > 0 { write("malformed \(changes.malformedBefore)") }
            write(change)
        }
    }

    private func write(_ change: SessionValueSequence<HeartRateMeasurement>.Element) {
        switch change {
        case .began: break
        case .value(let measurement): write(line(measurement))
        case .interrupted(let error): write("interrupted \(error)")
        }
    }

    private func line(_ measurement: HeartRateMeasurement) -> String {
        var words = ["bpm \(measurement.beatsPerMinute)"]
        if let hasContact = measurement.hasSkinContact { words.append("contact \(hasContact ? "yes" : "no")") }
        if !measurement.rrIntervals.isEmpty {
            words.append("rr " + measurement.rrIntervals.map { "\(Int($0 / .milliseconds(1)))" }.joined(separator: " "))
        }
        return words.joined(separator: " ")
    }
}
