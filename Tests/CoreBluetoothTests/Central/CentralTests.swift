import BLECore
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Testing

/// The life of a connection: what the delegate receives, in which order.
@Suite(.timeLimit(.minutes(10))) struct CentralTests {
    private let measurement = CBUUID(string: "2A37")
    private let location = CBUUID(string: "2A38")

    /// The walk of a tutorial: find, connect, discover, read, subscribe, disconnect.
    @Test func aDeviceIsFoundReadAndDisconnected() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
            #expect(manager.state == .unknown)
            try await recorder.wait(for: "state 5")
            manager.scanForPeripherals(withServices: [CBUUID(string: "180D")])
            #expect(manager.isScanning)
            try await recorder.wait(for: "didDiscover Virtual HRM")
            manager.stopScan()
            #expect(!manager.isScanning)
            let belt = try recorder.peripheral()
            belt.delegate = recorder
            manager.connect(belt)
            #expect(belt.state == .connecting)
            try await recorder.wait(for: "didConnect 2")
            let found = try await bench.discover(belt, recorder)
            // Generic Access and Generic Attribute are the system's.
            #expect(belt.services?.map(\.uuid.uuidString) == ["180D", "180F", "180A"])
            belt.readValue(for: try #require(found[location]))
            try await recorder.wait(for: "didUpdateValueFor 2A38 [1]")
            belt.setNotifyValue(true, for: try #require(found[measurement]))
            try await recorder.wait(for: "didUpdateNotificationStateFor 2A37 true nil")
            try await recorder.wait(for: "didUpdateValueFor 2A37 [")
            manager.cancelPeripheralConnection(belt)
            #expect(belt.state == .disconnecting)
            try await recorder.wait(for: "didDisconnect nil false 0")
            #expect(belt.services == nil)
            #expect(bench.log.all.filter { $0.hasPrefix("API MISUSE") } == [])
        }
    }
}
