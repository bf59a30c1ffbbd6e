public import BareBLE
public import ServiceLifecycle

/// Takes the credentials of a wireless network from a central, has a program apply them, and reports the result.
///
/// It is there for a limited time, and ends as soon as the machine has a network. The credentials can be written but
/// not read, over an encrypted link alone. The status is indicated, so that the central has confirmed the last one
/// before the link ends.
public struct WiFiProvisioning: Service, CustomStringConvertible {
    /// The value of the status characteristic, one byte.
    public enum Status: UInt8, Sendable {
        /// Credentials may be written.
        case waiting
        /// A program applies them.
        case applying
        /// The program has succeeded.
        case applied
        /// The program has failed; credentials may be written again.
        case failed
    }

    /// The service.
    public static let service = BluetoothUUID("7a1e0001-2f6c-4d1b-8c55-0d9b3e6f4a10")
    /// The characteristic to which a central writes `WiFiCredentials`.
    public static let credentials = BluetoothUUID("7a1e0002-2f6c-4d1b-8c55-0d9b3e6f4a10")
    /// The characteristic with the `Status`.
    public static let status = BluetoothUUID("7a1e0003-2f6c-4d1b-8c55-0d9b3e6f4a10")
    /// What it advertises.
    public static let advertisement: Advertisement = [
        .flags([.generalDiscoverable, .classicNotSupported]), .services([service]), .localName("Set up"),
    ]

    /// Returns whether the machine has a network now.
    public typealias Apply = @Sendable (WiFiCredentials) async throws -> Bool

    private let peripheral: LocalPeripheral
    private let clock: CentralClock
    private let duration: Duration
    private let apply: Apply
    private let report: @Sendable (String) -> Void
    private let written: AsyncStream<WiFiCredentials>

    /// Creates the service, and publishes it.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral.
    ///   - duration: How long centrals may try.
    ///   - requirement: What a link needs for writing the credentials; tests without a radio need nothing.
    ///   - clock: The central's clock.
    ///   - apply: Applies credentials, one after the other. An error counts as a failure.
    ///   - report: Gets a line for each step; none has the passphrase.
    /// - Throws: `BLEError` with the errors of `LocalPeripheral.publish(_:)`.
    public init(
        _ peripheral: LocalPeripheral, for duration: Duration, requiring requirement: AccessRequirement = .encrypted,
        clock: CentralClock, apply: @escaping Apply, report: @escaping @Sendable (String) -> Void
    ) async throws(BLEError) {
        self.peripheral = peripheral
        self.duration = duration
        self.clock = clock
        self.apply = apply
        self.report = report
        // While credentials are tried others may wait; what comes then is refused.
        let (written, inbox) = AsyncStream.makeStream(of: WiFiCredentials.self, bufferingPolicy: .bufferingOldest(1))
        self.written = written
        try await peripheral.publish(
            LocalService(
                Self.service,
                [
                    LocalCharacteristic(
                        Self.credentials, .write,
                        value: .handled(write: { request in
                            guard request.offset == 0, let credentials = WiFiCredentials(request.value) else {
                                throw ATTRefusal(.valueNotAllowed)
                            }
                            guard case .enqueued = inbox.yield(credentials) else {
                                throw ATTRefusal(.procedureAlreadyInProgress)
                            }
                        }), access: AttributeAccess(write: requirement)),
                    LocalCharacteristic(
                        Self.status, [.read, .indicate], value: .stored([Status.waiting.rawValue], isFixedLength: true)),
                ]))
    }

    /// The service's name in the log.
    public var description: String { "Wi-Fi provisioning" }

    /// Serves until there is a network, the time is over, or the daemon is stopped; then the links end.
    public func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await serve() }
        } catch {
            await peripheral.stop()
            throw error
        }
        await peripheral.stop()
    }

    private func serve() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                guard (try? await clock.sleep(for: duration)) != nil else { return }
                report("the time is over")
            }
            group.addTask {
                for await credentials in written {
                    if try await isApplied(credentials) { return }
                }
            }
            defer { group.cancelAll() }
            _ = try await group.next()
        }
    }

    private func isApplied(_ credentials: WiFiCredentials) async throws -> Bool {
        report("applying \(credentials.name)")
        try await show(.applying)
        let isApplied: Bool
        do {
            isApplied = try await apply(credentials)
        } catch {
            report("\(error)")
            isApplied = false
        }
        report(isApplied ? "applied" : "failed")
        try await show(isApplied ? .applied : .failed)
        return isApplied
    }

    /// Sets the status, and waits until centrals that have asked for it have confirmed it.
    private func show(_ status: Status) async throws(BLEError) {
        try await peripheral.update([status.rawValue], of: .uuid(Self.status), timeout: .seconds(5))
    }
}
