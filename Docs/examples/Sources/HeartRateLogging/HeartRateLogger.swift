public import BareBLE
public import ServiceLifecycle

/// Follows one heart-rate belt for as long as the daemon runs, and writes a line for each measurement.
///
///     worn chest
///     bpm 72 contact yes rr 833 828
///     interrupted could not go on with a subscription (C0:00:00:00:00:07/random): …
///
/// The session does what lasts: it connects anew, does the handshake first each time, and subscribes again.
public struct HeartRateLogger: Service, CustomStringConvertible {
    private let session: Session
    private let write: @Sendable (String) -> Void

    /// A logger for the belt of this session; each line goes to `write`.
    public init(_ session: Session, write: @escaping @Sendable (String) -> Void) {
        self.session = session
        self.write = write
    }

    /// What comes before everything else on each link, for `onReady` of the session: the belt says where it is worn.
    ///
    /// A peer that cannot say so is no belt; the session ends the link then and tries again later.
    public static func handshake(
        _ write: @escaping @Sendable (String) -> Void
    ) -> @Sendable (Peripheral) async throws -> Void {
        { belt in
            let location = try await belt.read(.bodySensorLocation)
            write("worn \(location.name ?? "at place \(location.rawValue)")")
        }
    }

    /// What the log calls the service.
    public var description: String { "heart-rate logger" }

    /// Writes lines until the daemon is told to stop; then the belt is told to be quiet, and the link ends.
    ///
    /// - Throws: `BLEError` with what the session gave up with.
    public func run() async throws {
        let measurements = await session.values(of: .heartRateMeasurement)
        do {
            try await cancelWhenGracefulShutdown { try await follow(measurements) }
        } catch {
            await session.disconnect()
            throw error
        }
        await measurements.unsubscribe()
        await session.disconnect()
    }

    private func follow(_ measurements: SessionValues<HeartRateMeasurement>) async throws {
        var changes = measurements.makeAsyncIterator()
        while true {
            do {
                guard let change = try await changes.next() else { return }
                if changes.droppedBefore > 0 { write("lost \(changes.droppedBefore)") }
                write(change)
            } catch {
                // One value was nonsense; the subscription goes on behind it.
                guard error.code == .malformedValue else { throw error }
                write("malformed \(error)")
            }
        }
    }

    private func write(_ change: SessionValues<HeartRateMeasurement>.Element) {
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
