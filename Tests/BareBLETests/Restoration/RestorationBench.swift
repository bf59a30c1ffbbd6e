import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// A daemon that is started again and again: each run is a central of its own, with the same store, and the same peers
/// on the air.
struct RestorationBench: Sendable {
    private let clock: CentralClock?
    let radio: VirtualRadio
    let folder: Folder
    let store: StateStore
    /// A manager that has nothing to hand over.
    let environment = ServiceEnvironment(variables: [:], processID: 1)

    /// In a virtual time, or in the real one.
    init(_ time: VirtualTime? = nil) throws {
        clock = time?.clock
        radio = time.map { VirtualRadio(time: $0) } ?? VirtualRadio()
        folder = try Folder()
        store = StateStore(directory: folder.path, identifier: "hub")
    }

    /// The central of the next run, before it has restored anything.
    func fresh() -> Central {
        var configuration = Configuration()
        configuration.stateStore = store
        return Central(configuration, radio: radio)
    }

    /// One run of the daemon: it is over when `body` is, without a goodbye, as if it were killed.
    func run<Value: Sendable>(
        holding: SubscribeOptions = SubscribeOptions(),
        handlers: @Sendable (RestorationState.Peer) -> Session.Handlers? = { _ in Session.Handlers() },
        _ body: (Central, Restoration) async throws -> Value
    ) async throws -> Value {
        let value: Value
        do {
            let central = fresh()
            let restoration = try await central.restore(from: environment, holding: holding, handlers: handlers)
            value = try await body(central, restoration)
            // Killed a little later: what has changed was written by then.
            try await clock?.sleep(for: .milliseconds(1))
        }
        // A link of a killed daemon ends with it, and the peers hear of that.
        while !isFree { try await clock?.sleep(for: .milliseconds(10)) }
        try await clock?.sleep(for: .seconds(5))
        return value
    }

    /// Whether no daemon has the store.
    var isFree: Bool {
        do throws(BLEError) {
            _ = try store.open()
            return true
        } catch {
            return false
        }
    }

    /// The present contents of the disk.
    func stored() throws -> RestorationState {
        try RestorationState(bytes: Array(Data(contentsOf: URL(filePath: store.path))))
    }

    /// A device on the air, and its address.
    func add(_ device: VirtualDevice) async throws -> (peripheral: VirtualPeripheral, peer: PeerID) {
        let peripheral = await radio.add(device)
        return (peripheral, try #require(await radio.id(of: peripheral)))
    }

    /// A device with a value that is sent when a test wants it to, and a hash of its services.
    static let sensor = VirtualDevice(
        name: "Sensor",
        services: [
            .genericAccess(name: "Sensor", appearance: 0), .genericAttribute(databaseHash: nil),
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, [.read, .write], value: [0]),
                    VirtualCharacteristic(0xFFF2, .notify), VirtualCharacteristic(0xFFF3, .notify),
                ]),
        ])
}

extension RestorationBench {
    /// A device with two characteristics of one kind.
    static let twins = VirtualDevice(
        name: "Twins",
        services: [
            VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF2, .notify)]),
            VirtualService(0xFFF1, [VirtualCharacteristic(0xFFF2, [.notify, .indicate])]),
        ])
}

extension SessionValueSequence.AsyncIterator where Value == UInt8 {
    /// The next `count` values, marks left out.
    mutating func values(_ count: Int) async throws -> [UInt8] {
        var values: [UInt8] = []
        while values.count < count, let element = try await next() {
            if case .value(let value) = element { values.append(value) }
        }
        return values
    }
}
