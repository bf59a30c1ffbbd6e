import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Logging
import TestSupport
import Testing

/// A virtual radio with the managers' host on it, in virtual time, and a queue for delegates.
struct Bench: Sendable {
    let time: VirtualTime
    let radio: VirtualRadio
    let central: Central
    let queue = DispatchQueue(label: "delegate")
    let log: KeptMessages

    /// Runs `body` with a bench, whose host the managers of `body` use.
    static func run(
        _ settings: CoreBluetoothHost.Settings = CoreBluetoothHost.Settings(environment: [:]),
        _ body: @escaping @Sendable (Bench) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            try await Bench(time, VirtualRadio(time: time), settings).use(settings, body)
        }
    }

    /// Runs `body` with a bench whose channels `open` opens, in place of the radio, which refuses all.
    static func run(
        openingChannels open: @escaping @Sendable () throws(SystemCallError) -> LinkSocket,
        _ body: @escaping @Sendable (Bench) async throws -> Void
    ) async throws {
        try await run(
            changing: { system in system.openChannel = { _, _, _, _ throws(SystemCallError) in try open() } }, body)
    }

    /// Runs `body` with a bench whose system is that of the radio, with a change.
    static func run(
        changing change: @escaping @Sendable (inout AdapterSystem) -> Void,
        _ body: @escaping @Sendable (Bench) async throws -> Void
    ) async throws {
        let settings = CoreBluetoothHost.Settings(environment: [:])
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var system = radio.system
            change(&system)
            let log = KeptMessages()
            let configuration = CoreBluetoothHost.configuration(settings, logger: log.logger)
            let adapter = Adapter(.first, loop: radio.loop, logger: log.logger, system: system)
            let central = Central(configuration, adapter: adapter)
            try await Bench(time, radio, central, log).use(settings, body)
        }
    }

    private init(_ time: VirtualTime, _ radio: VirtualRadio, _ settings: CoreBluetoothHost.Settings) {
        let log = KeptMessages()
        let central = Central(CoreBluetoothHost.configuration(settings, logger: log.logger), radio: radio)
        self.init(time, radio, central, log)
    }

    private init(_ time: VirtualTime, _ radio: VirtualRadio, _ central: Central, _ log: KeptMessages) {
        self.time = time
        self.radio = radio
        self.central = central
        self.log = log
    }

    private func use(
        _ settings: CoreBluetoothHost.Settings, _ body: @Sendable (Bench) async throws -> Void
    ) async throws {
        try await CoreBluetoothHost.$scoped.withValue(CoreBluetoothHost(central, settings)) { try await body(self) }
    }

    /// Runs `body` with a program that begins on the same radio, beside the one before.
    func runAgain(
        _ settings: CoreBluetoothHost.Settings, _ body: @Sendable (Bench) async throws -> Void
    ) async throws {
        try await Bench(time, radio, settings).use(settings, body)
    }

    /// Settings of a program that pairs, and keeps its bonds in a folder.
    static func settings(
        pairingIn folder: Folder, _ change: (inout CoreBluetoothHost.Pairing) -> Void = { _ in }
    ) -> CoreBluetoothHost.Settings {
        var pairing = CoreBluetoothHost.Pairing(directory: folder.path)
        change(&pairing)
        var settings = CoreBluetoothHost.Settings(environment: [:])
        settings.pairing = pairing
        return settings
    }

    /// Waits until one report, of a call that has just been made, is on the suspended queue, and nothing else is left to
    /// run.
    func settleBesideOneReport() async {
        // Time stands still until there is one, and while there are more.
        time.loop.release()
        defer { time.loop.hold() }
        await time.settle()
    }

    /// Creates a manager with a recorder, and waits until it is powered on.
    func manager(options: [String: Any]? = nil) async throws -> (CBCentralManager, CallbackRecorder) {
        let recorder = CallbackRecorder(time)
        let manager = CBCentralManager(delegate: recorder, queue: queue, options: options)
        try await recorder.wait(for: "state 5")
        recorder.clear()
        return (manager, recorder)
    }

    /// Finds and connects a device.
    func connect(
        _ manager: CBCentralManager, _ recorder: CallbackRecorder, services: [CBUUID]? = nil,
        options: [String: Any]? = nil
    ) async throws -> CBPeripheral {
        manager.scanForPeripherals(withServices: services)
        try await recorder.wait(for: "didDiscover")
        manager.stopScan()
        let peripheral = try recorder.peripheral()
        peripheral.delegate = recorder
        manager.connect(peripheral, options: options)
        try await recorder.wait(for: "didConnect")
        recorder.clear()
        return peripheral
    }

    /// Switches the adapter off and on, or unplugs it and plugs it in, while the queue of delegates runs nothing, and
    /// runs `act` before that is reported there.
    func loseAdapterUnreported(byUnplugging isUnplugged: Bool = false, _ act: () -> Void) async throws {
        // Another queue shows when the managers know.
        let other = CallbackRecorder(time)
        let manager = CBCentralManager(delegate: other, queue: DispatchQueue(label: "other"))
        try await other.wait(for: "state 5")
        other.clear()
        queue.suspend()
        defer { queue.resume() }
        if isUnplugged { await radio.unplug() } else { await radio.powerOff() }
        try await other.wait(for: isUnplugged ? "state 2" : "state 4")
        // Time goes on although the report waits.
        time.loop.release()
        defer { time.loop.hold() }
        if isUnplugged { await radio.plugIn(isUp: true) } else { await radio.powerOn() }
        try await other.wait(for: "state 5")
        act()
        _ = manager
    }

    /// A manager with its recorder, and with its object for the device that two managers know.
    struct Sharer {
        let manager: CBCentralManager
        let recorder: CallbackRecorder
        let peripheral: CBPeripheral
    }

    /// Creates two managers that know the device of the radio: the first one has found it, the other one has it by its
    /// identifier.
    func sharers() async throws -> (Sharer, Sharer) {
        let (first, one) = try await manager()
        let (second, other) = try await manager()
        first.scanForPeripherals(withServices: nil)
        try await one.wait(for: "didDiscover")
        first.stopScan()
        let mine = try one.peripheral()
        let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
        return (
            Sharer(manager: first, recorder: one, peripheral: mine),
            Sharer(manager: second, recorder: other, peripheral: yours)
        )
    }

    /// A link to a device, whose characteristics are known.
    struct Link {
        let device: VirtualPeripheral
        let manager: CBCentralManager
        let recorder: CallbackRecorder
        let peripheral: CBPeripheral
        let found: [CBUUID: CBCharacteristic]

        func characteristic(_ uuid: CBUUID) throws -> CBCharacteristic { try #require(found[uuid]) }
    }

    /// Discovers everything of a device that `sharer` has connected.
    func link(to device: VirtualPeripheral, of sharer: Sharer) async throws -> Link {
        let found = try await discover(sharer.peripheral, sharer.recorder)
        // What the system requests by itself after that.
        try await time.clock.sleep(for: .seconds(5))
        sharer.recorder.clear()
        return Link(
            device: device, manager: sharer.manager, recorder: sharer.recorder, peripheral: sharer.peripheral,
            found: found)
    }

    /// Discovers everything of a device, and returns its characteristics by their UUIDs.
    func discover(_ peripheral: CBPeripheral, _ recorder: CallbackRecorder) async throws -> [CBUUID: CBCharacteristic] {
        peripheral.discoverServices(nil)
        try await recorder.wait(for: "didDiscoverServices nil")
        var found: [CBUUID: CBCharacteristic] = [:]
        for service in peripheral.services ?? [] {
            peripheral.discoverCharacteristics(nil, for: service)
            try await recorder.wait(for: "didDiscoverCharacteristicsFor \(service.uuid) nil")
            for characteristic in service.characteristics ?? [] { found[characteristic.uuid] = characteristic }
        }
        recorder.clear()
        return found
    }
}

extension Central {
    /// Makes calls on the loop, so that the managers' host finds all of them at once.
    func makeCalls(_ body: @Sendable () -> Void) { body() }
}

/// Returns the error with which an attribute was refused to a central; `nil` if it was not.
func refusal(_ body: () async throws(VirtualCentralError) -> Void) async -> ATTErrorCode? {
    do throws(VirtualCentralError) {
        try await body()
    } catch {
        if case .refused(_, _, let code) = error { return code }
        Issue.record(error)
    }
    return nil
}

/// Returns PDUs that a device sends without delay, for `VirtualPeripheral.behave(_:)`.
func withoutDelay(_ pdus: [[UInt8]]) -> [(delay: Duration, pdu: [UInt8])] { pdus.map { (delay: .zero, pdu: $0) } }

/// Keeps what is logged.
final class KeptMessages: Sendable {
    private struct Handler: LogHandler {
        let log: KeptMessages
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.notice

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let count = event.metadata?["count"].map { "\($0)" }
            log.lines.withLock { $0.append((text: "\(event.message)", count: count)) }
        }
    }

    private let lines = Lock<[(text: String, count: String?)]>([])

    var all: [String] { lines.withLock { $0.map { $0.text } } }

    /// The counts that are logged with the lines that begin with `text`.
    func counts(of text: String) -> [String] {
        lines.withLock { lines in lines.filter { $0.text.hasPrefix(text) }.compactMap { $0.count } }
    }

    /// The lines about calls that have no effect.
    var misuse: [String] { all.filter { $0.hasPrefix("API MISUSE") } }

    var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }
}
