public import BareBLE
public import ServiceLifecycle

/// Writes a line for each device that is heard, once a minute at most: `C0:00:00:00:00:07/random -60 Belt`.
///
/// It listens for months. A controller that stops reporting is dealt with by `Configuration.recovery` of its central,
/// whose log has what was done; the scan itself goes on by itself.
public struct AdvertisementLogger: Service, CustomStringConvertible {
    private let central: Central
    private let write: @Sendable (String) -> Void

    /// Creates a logger of what this central hears; each line goes to `write`.
    public init(_ central: Central, write: @escaping @Sendable (String) -> Void) {
        self.central = central
        self.write = write
    }

    /// The service's name in the log.
    public var description: String { "advertisement logger" }

    /// Writes lines until the daemon is stopped.
    ///
    /// - Throws: `BLEError` where the scan cannot begin.
    public func run() async throws {
        try await cancelWhenGracefulShutdown {
            for try await event in central.scan(.any, .passive.duplicates(.every(.seconds(60)))) {
                switch event {
                case .found(let device), .updated(let device):
                    write(
                        "\(device.peer?.description ?? "unknown") \(device.rssi?.description ?? "-") \(device.name ?? "")"
                    )
                default: break
                }
            }
        }
    }
}
