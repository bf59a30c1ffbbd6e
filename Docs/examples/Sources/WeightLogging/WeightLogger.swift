import BLEProfiles
public import BareBLE
public import ServiceLifecycle

/// Writes a line for each weight that a scale measures, for as long as the daemon runs: `72.5 kg`.
///
/// The scale is bonded on the first day, while it is in its pairing mode. It sleeps between two measurements, and may
/// change its address meanwhile; each time it wakes up the session connects, and the bond encrypts the link before the
/// first byte. It is never paired again by itself: a scale that has lost the bond ends the daemon with
/// `BLEError.Code.bondRejected`, and a person decides whether it is still the same scale.
public struct WeightLogger: Service, CustomStringConvertible {
    private let session: Session
    private let write: @Sendable (String) -> Void

    /// Creates a logger for the scale of this session, which `bond` has prepared; each line goes to `write`.
    public init(_ session: Session, write: @escaping @Sendable (String) -> Void) {
        self.session = session
        self.write = write
    }

    /// Prepares each link before other use, as `onReady` of the session: makes a bond, unless there is one.
    public static let bond: @Sendable (Peripheral) async throws -> Void = { scale in
        try await scale.pair(PairingOptions(name: "Scale"))
    }

    /// The service's name in the log.
    public var description: String { "weight logger" }

    /// Writes lines until the daemon is stopped.
    ///
    /// - Throws: `BLEError` with the session's final error.
    public func run() async throws {
        let weights = await session.subscribe(to: .weightMeasurement, SubscribeOptions(malformedValues: .skip))
        do {
            try await cancelWhenGracefulShutdown {
                for try await change in weights {
                    if case .value(let measurement) = change { write(line(measurement)) }
                }
            }
        } catch {
            await session.disconnect()
            throw error
        }
        await session.disconnect()
    }

    private func line(_ measurement: WeightMeasurement) -> String {
        // In steps of 5 g.
        guard let grams = measurement.kilograms.map({ Int(($0 * 1000).rounded()) }) else { return "no weight" }
        return "\(grams / 1000).\(grams % 1000 / 100) kg"
    }
}
