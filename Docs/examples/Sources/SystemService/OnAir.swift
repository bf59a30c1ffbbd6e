public import BareBLE
public import ServiceLifecycle

/// A service whose advertisement is on air for as long as it runs.
public struct OnAir: Service, CustomStringConvertible {
    private let advertising: Advertisement.Lease?
    private let service: any Service

    /// Creates the service; `nil` advertises nothing.
    public init(_ advertising: Advertisement.Lease?, _ service: any Service) {
        self.advertising = advertising
        self.service = service
    }

    /// The service's name in the log.
    public var description: String { "\(service)" }

    /// Runs the service, and takes the advertisement off air after it.
    public func run() async throws {
        do {
            try await service.run()
        } catch {
            await advertising?.stop()
            throw error
        }
        await advertising?.stop()
    }
}
