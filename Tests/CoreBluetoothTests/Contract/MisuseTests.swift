import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Testing

/// Calls that have no effect: each logs one line in the form of Apple's systems, nothing is reported, and nothing
/// traps.
@Suite(.timeLimit(.minutes(10))) struct MisuseTests {
    private static let power = "can only accept this command while in the powered on state"
    private static let connection = "can only accept commands while in the connected state"

    /// Expects that each call logs one line of misuse, with this beginning and this end.
    private func expectMisuse(
        _ beginning: String, _ end: String, _ bench: Bench, of calls: KeyValuePairs<String, () -> Void>
    ) {
        for (name, call) in calls {
            let before = bench.log.misuse.count
            call()
            let lines = bench.log.misuse.dropFirst(before)
            #expect(lines.count == 1, "\(name): \(lines)")
            let isRight = lines.first.map { $0.hasPrefix("API MISUSE: <" + beginning) && $0.hasSuffix(end) }
            #expect(isRight == true, "\(name): \(lines)")
        }
    }

    @Test func s3EachCommandOfACentralManagerNeedsThePower() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            await bench.radio.powerOff()
            try await recorder.wait(for: "state 4")
            expectMisuse(
                "CBCentralManager", Self.power, bench,
                of: [
                    "scan": { manager.scanForPeripherals(withServices: nil) },
                    "stop": { manager.stopScan() },
                    "connect": { manager.connect(peripheral) },
                    "cancel": { manager.cancelPeripheralConnection(peripheral) },
                    "retrieve": { _ = manager.retrievePeripherals(withIdentifiers: [peripheral.identifier]) },
                    "retrieve connected": { _ = manager.retrieveConnectedPeripherals(withServices: []) },
                    "register": { manager.registerForConnectionEvents() },
                ])
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == ["state 4"])
            #expect(peripheral.state == .disconnected)
        }
    }

    @Test func s3EachCommandOfAPeripheralManagerNeedsThePower() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let service = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
            let value = CBMutableCharacteristic(
                type: CBUUID(string: "FFF1"), properties: .notify, value: nil, permissions: .readable)
            service.characteristics = [value]
            manager.add(service)
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            try await phone.subscribe(to: 0xFFF1)
            try await recorder.wait(for: "didSubscribeTo FFF1")
            let central = try #require(value.subscribedCentrals?.first)
            await bench.radio.powerOff()
            try await recorder.wait(for: "state 4")
            // The end of the link is reported by then.
            try await bench.time.clock.sleep(for: .seconds(10))
            recorder.clear()
            expectMisuse(
                "CBPeripheralManager", Self.power, bench,
                of: [
                    "start": { manager.startAdvertising(nil) },
                    "stop": { manager.stopAdvertising() },
                    "latency": { manager.setDesiredConnectionLatency(.low, for: central) },
                    "add": { manager.add(CBMutableService(type: CBUUID(string: "FFE0"), primary: true)) },
                    "remove": { manager.remove(service) },
                    "remove all": { manager.removeAllServices() },
                    "update": {
                        #expect(!manager.updateValue(Data([1]), for: value, onSubscribedCentrals: nil))
                    },
                    "publish": { manager.publishL2CAPChannel(withEncryption: false) },
                    "unpublish": { manager.unpublishL2CAPChannel(128) },
                ])
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == [])
        }
    }

    @Test(arguments: [CBPeripheralState.disconnected, .connecting])
    func s3EachCommandOfAPeripheralNeedsTheConnection(_ state: CBPeripheralState) async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "2A37")])
            peripheral.discoverDescriptors(for: value)
            try await recorder.wait(for: "didDiscoverDescriptorsFor 2A37 nil")
            // The program keeps them beyond the link.
            let service = try #require(value.service)
            let descriptor = try #require(value.descriptors?.first)
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil")
            await bench.radio.move(device, to: .outOfRange)
            if state == .connecting { manager.connect(peripheral) }
            #expect(peripheral.state == state)
            recorder.clear()
            let configuration = CBChannelSoundingSessionConfiguration(role: .initiator)
            expectMisuse(
                "CBPeripheral", Self.connection, bench,
                of: [
                    "services": { peripheral.discoverServices(nil) },
                    "includes": { peripheral.discoverIncludedServices(nil, for: service) },
                    "characteristics": { peripheral.discoverCharacteristics(nil, for: service) },
                    "descriptors": { peripheral.discoverDescriptors(for: value) },
                    "read": { peripheral.readValue(for: value) },
                    "read descriptor": { peripheral.readValue(for: descriptor) },
                    "write": { peripheral.writeValue(Data([1]), for: value, type: .withResponse) },
                    "command": { peripheral.writeValue(Data([1]), for: value, type: .withoutResponse) },
                    "write descriptor": { peripheral.writeValue(Data([1]), for: descriptor) },
                    "subscribe": { peripheral.setNotifyValue(true, for: value) },
                    "signal": { peripheral.readRSSI() },
                    "channel": { peripheral.openL2CAPChannel(128) },
                    "sounding": { peripheral.startChannelSoundingSession(configuration) },
                ])
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == [])
            #expect(peripheral.state == state)
        }
    }

    @Test func aPeripheralOfAnotherManagerIsNotConnected() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (finder, recorder) = try await bench.manager()
            let (other, others) = try await bench.manager()
            finder.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            finder.stopScan()
            let peripheral = try recorder.peripheral()
            expectMisuse(
                "CBPeripheral", "connect to it with the manager that found it", bench,
                of: [
                    "connect": { other.connect(peripheral) },
                    "cancel": { other.cancelPeripheralConnection(peripheral) },
                ])
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(others.lines == [])
            #expect(peripheral.state == .disconnected)
            #expect(await !device.isConnected)
        }
    }

    @Test func aValueOfACharacteristicThatWasNotAddedIsNotSent() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let value = CBMutableCharacteristic(
                type: CBUUID(string: "FFF1"), properties: .notify, value: nil, permissions: .readable)
            #expect(manager.updateValue(Data([1]), for: value, onSubscribedCentrals: nil))
            await bench.time.settle()
            #expect(bench.log.misuse.count == 1)
            #expect(bench.log.misuse.first?.hasSuffix("was not added, so its value is not sent") == true)
            // It takes no room either.
            for _ in 0..<100 {
                #expect(manager.updateValue(Data([1]), for: value, onSubscribedCentrals: nil))
                await bench.time.settle()
            }
            #expect(recorder.lines == ["state 5"])
        }
    }
}
