internal import BareBLE
public import BareBLETestKit
public import CoreBluetooth
internal import Logging

extension CoreBluetoothHost {
    /// Runs a closure whose managers use a virtual radio.
    ///
    /// Managers that the closure creates, also in tasks that it begins with `async let`, in groups or by `Task { }`,
    /// use the radio, and keep it for their lives. It takes precedence over the system of the process, so tests with
    /// radios of their own run in parallel. A manager that is created in a block of a queue, on another thread or in a
    /// detached task is not among them: `use(radio:settings:)` is for those.
    ///
    ///     await VirtualTime.run { time in
    ///         let radio = VirtualRadio(time: time)
    ///         await radio.add(.heartRate)
    ///         await CoreBluetoothHost.withRadio(radio) {
    ///             let manager = CBCentralManager(delegate: delegate, queue: queue)
    ///             …
    ///         }
    ///     }
    ///
    /// In virtual time, time stands still while a callback waits for its queue or runs.
    ///
    /// - Parameters:
    ///   - radio: The radio.
    ///   - settings: The settings of the managers.
    ///   - body: The closure.
    /// - Returns: The result of `body`.
    /// - Throws: Rethrows the error of `body`.
    public static func withRadio<Value>(
        _ radio: VirtualRadio, settings: Settings = .withoutEnvironment, _ body: () async throws -> Value
    ) async rethrows -> Value {
        let host = CoreBluetoothHost(central(on: radio, settings), settings)
        return try await CoreBluetoothHost.$scoped.withValue(host) { try await body() }
    }

    /// Has all managers of the process that are created later, on whatever thread, use a virtual radio.
    ///
    /// Managers that exist keep what they use. Another call replaces the radio for managers that are created after it;
    /// `withRadio(_:settings:_:)` takes precedence. Use it for programs that create their managers on queues of their
    /// own, in tests that run one after the other. The radio lives as long as the process, so it needs real time:
    /// `VirtualRadio()`.
    ///
    /// - Parameters:
    ///   - radio: The radio.
    ///   - settings: The settings of the managers.
    public static func use(radio: VirtualRadio, settings: Settings = .withoutEnvironment) {
        use(central(on: radio, settings), settings)
    }

    private static func central(on radio: VirtualRadio, _ settings: Settings) -> Central {
        Central(configuration(settings, logger: Logger(label: "CoreBluetooth")), radio: radio)
    }
}

extension CoreBluetoothHost.Settings {
    /// Settings that do not depend on the environment: the first adapter, no pairing, and nothing is kept.
    public static var withoutEnvironment: Self { Self(environment: [:]) }
}
