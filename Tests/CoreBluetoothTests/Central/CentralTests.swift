import BLECore
import BLELinux
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

    /// Services that are advertised are one condition together with services that are solicited.
    @Test func aScanForSolicitedServicesReportsTheDevicesThatSolicitThem() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let watch = await bench.radio.add(VirtualDevice(name: "Watch", services: []))
            let flags: [UInt8] = [0x02, 0x01, 0x06]
            let solicited: [UInt8] = [0x05, 0x14, 0x05, 0x18, 0x0F, 0x18]
            let name: [UInt8] = [0x06, 0x09] + Array("Watch".utf8)
            await bench.radio.advertise(watch, VirtualAdvertisement(flags + solicited + name))
            let (manager, recorder) = try await bench.manager()
            let (clock, battery) = (CBUUID(string: "1805"), CBUUID(string: "180F"))
            let options: [String: Any] = [CBCentralManagerScanOptionSolicitedServiceUUIDsKey: [clock]]
            manager.scanForPeripherals(withServices: nil, options: options)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.peripherals.map(\.name) == ["Watch"])
            let found = try #require(recorder.advertisements.first)
            #expect(found[CBAdvertisementDataSolicitedServiceUUIDsKey] as? [CBUUID] == [clock, battery])
            #expect(found[CBAdvertisementDataServiceUUIDsKey] == nil)
            manager.stopScan()
            recorder.clear()
            manager.scanForPeripherals(withServices: [CBUUID(string: "180D")], options: options)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.count(of: "didDiscover") == 2)
            manager.stopScan()
        }
    }

    @Test func theConnectionsOfOtherDevicesThanTheIdentifiedOnesAreNotReported() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            _ = await bench.radio.add(.uart)
            let (manager, recorder) = try await bench.manager()
            let (other, watcher) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await bench.time.clock.sleep(for: .seconds(5))
            manager.stopScan()
            try #require(recorder.peripherals.count == 2)
            let (first, second) = (recorder.peripherals[0], recorder.peripherals[1])
            other.registerForConnectionEvents(options: [.peripheralUUIDs: [second.identifier]])
            manager.connect(first)
            try await recorder.wait(for: "didConnect")
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(watcher.lines == [])
            manager.connect(second)
            try await watcher.wait(for: "connectionEvent 1")
            manager.cancelPeripheralConnection(first)
            try await recorder.wait(for: "didDisconnect")
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(watcher.lines == ["connectionEvent 1"])
            manager.cancelPeripheralConnection(second)
            try await watcher.wait(for: "connectionEvent 0")
            #expect(watcher.lines == ["connectionEvent 1", "connectionEvent 0"])
        }
    }
}
