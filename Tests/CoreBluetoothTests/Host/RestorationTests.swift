import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// What managers with restore identifiers find after the end of the program: once after a process was killed, and
/// otherwise after a copy of their files, as it is then.
@Suite(.timeLimit(.minutes(10))) struct RestorationTests {
    private static let central = [CBCentralManagerOptionRestoreIdentifierKey: "com.example/central"]
    private static let peripheral = [CBPeripheralManagerOptionRestoreIdentifierKey: "sample"]

    private static func settings(_ folder: Folder?) -> CoreBluetoothHost.Settings {
        var settings = CoreBluetoothHost.Settings(environment: [:])
        settings.stateDirectory = folder?.path
        return settings
    }

    @Test func s15AConnectionAndAScanContinue() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager(options: Self.central)
            // There was no run before.
            #expect(recorder.restored.isEmpty)
            let peripheral = try await bench.connect(manager, recorder)
            let services = [CBUUID(string: "180F"), CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")]
            let solicited = [CBUUID(string: "1805")]
            manager.scanForPeripherals(
                withServices: services,
                options: [
                    CBCentralManagerScanOptionAllowDuplicatesKey: true,
                    CBCentralManagerScanOptionSolicitedServiceUUIDsKey: solicited,
                ])
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect")
            manager.stopScan()

            try await bench.runAgain(Self.settings(rest)) { bench in
                let recorder = CallbackRecorder(bench.time)
                let manager = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.central)
                try await recorder.wait(for: "didConnect 2")
                #expect(recorder.lines.prefix(2) == ["willRestoreState 0", "state 5"])
                let restored = try #require(recorder.restored.first)
                let belt = try #require(
                    (restored[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral])?.first)
                #expect(belt.identifier == peripheral.identifier)
                #expect(belt.name == "Virtual HRM")
                #expect(restored[CBCentralManagerRestoredStateScanServicesKey] as? [CBUUID] == services)
                let options = restored[CBCentralManagerRestoredStateScanOptionsKey] as? [String: Any]
                #expect(options?[CBCentralManagerScanOptionAllowDuplicatesKey] as? Bool == true)
                #expect(options?[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] as? [CBUUID] == solicited)
                #expect(manager.isScanning)
                #expect(await device.isConnected)
                _ = await bench.radio.add(.uart)
                try await recorder.wait(for: "didDiscover", count: 3)
                manager.cancelPeripheralConnection(belt)
                try await recorder.wait(for: "didDisconnect nil")
            }
        }
    }

    @Test func s15TheConnectionOfAKilledProcessContinues() async throws {
        let folder = try Folder()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
            var settings = CoreBluetoothHost.Settings(environment: [:])
            settings.stateDirectory = path
            try await Bench.run(settings) { bench in
                _ = await bench.radio.add(.heartRate)
                let (manager, recorder) = try await bench.manager(options: RestorationTests.central)
                let peripheral = try await bench.connect(manager, recorder)
                let found = try await bench.discover(peripheral, recorder)
                peripheral.setNotifyValue(true, for: try #require(found[CBUUID(string: "2A37")]))
                try await recorder.wait(for: "didUpdateValueFor 2A37")
                // The file is written by then.
                await bench.time.settle()
                kill(getpid(), SIGKILL)
            }
        }
        try await Bench.run(Self.settings(folder)) { bench in
            _ = await bench.radio.add(.heartRate)
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.central)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.lines == ["willRestoreState 0", "state 5", "didConnect 2"])
            let key = CBCentralManagerRestoredStatePeripheralsKey
            let belt = try #require((recorder.restored.first?[key] as? [CBPeripheral])?.first)
            belt.delegate = recorder
            let found = try await bench.discover(belt, recorder)
            belt.setNotifyValue(true, for: try #require(found[CBUUID(string: "2A37")]))
            try await recorder.wait(for: "didUpdateValueFor 2A37")
            manager.cancelPeripheralConnection(belt)
            try await recorder.wait(for: "didDisconnect nil")
        }
    }

    @Test func s15APendingConnectionIsResumed() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager(options: Self.central)
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            await bench.radio.move(device, to: .outOfRange)
            let peripheral = try recorder.peripheral()
            manager.connect(peripheral, options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect")

            try await bench.runAgain(Self.settings(rest)) { bench in
                let recorder = CallbackRecorder(bench.time)
                let manager = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.central)
                try await recorder.wait(for: "state 5")
                let restored = try #require(recorder.restored.first)
                let belt = try #require(
                    (restored[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral])?.first)
                #expect(belt.state == .connecting)
                #expect(restored[CBCentralManagerRestoredStateScanServicesKey] == nil)
                #expect(!manager.isScanning)
                await bench.radio.move(device, to: .near)
                try await recorder.wait(for: "didConnect 2")
                await bench.radio.disconnect(device)
                try await recorder.wait(for: "didDisconnect CB 7 true 1")
            }
        }
    }

    @Test func s15ADelegateThatTakesNothingIsNamedInTheLog() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager(options: Self.central)
            let peripheral = try await bench.connect(manager, recorder)
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect")
            try await bench.runAgain(Self.settings(rest)) { bench in
                let delegate = StateDelegate()
                let manager = CBCentralManager(delegate: delegate, queue: bench.queue, options: Self.central)
                try await bench.time.clock.sleep(for: .seconds(5))
                #expect(manager.state == .poweredOn)
                #expect(bench.log.all.count { $0.hasSuffix("its delegate does not implement willRestoreState") } == 1)
            }
        }
    }

    @Test func s15WhatThePowerHasEndedIsNotRestored() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager(options: Self.central)
            let peripheral = try await bench.connect(manager, recorder)
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            await bench.radio.powerOff()
            try await recorder.wait(for: "state 4")
            await bench.time.settle()
            let nothing = try Folder(copyOf: folder)

            for folder in [rest, nothing] {
                try await bench.runAgain(Self.settings(folder)) { bench in
                    let recorder = CallbackRecorder(bench.time)
                    let manager = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.central)
                    try await recorder.wait(for: "state 4")
                    let key = CBCentralManagerRestoredStatePeripheralsKey
                    let restored = try #require(recorder.restored.first?[key] as? [CBPeripheral])
                    #expect(restored.map(\.identifier) == (folder === rest ? [peripheral.identifier] : []))
                    // What another run has left waits for the adapter.
                    #expect(restored.allSatisfy { $0.state == .connecting })
                    #expect(recorder.lines == ["willRestoreState 0", "state 4"])
                    _ = manager
                }
            }
            #expect(await !device.isConnected)
        }
    }

    @Test func s15AManagerThatIsDroppedIsNotRestored() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let device = await bench.radio.add(.heartRate)
            do {
                let (manager, recorder) = try await bench.manager(options: Self.central)
                _ = try await bench.connect(manager, recorder)
                recorder.forget()
            }
            try await bench.time.clock.sleep(for: .seconds(5))
            try await bench.runAgain(Self.settings(folder)) { bench in
                let (manager, recorder) = try await bench.manager(options: Self.central)
                let key = CBCentralManagerRestoredStatePeripheralsKey
                #expect((recorder.restored.first?[key] as? [CBPeripheral])?.isEmpty == true)
                _ = manager
            }
            #expect(await !device.isConnected)
        }
    }

    @Test func s15ServicesAndAdvertisingContinue() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: Self.peripheral)
            try await recorder.wait(for: "state 5")
            #expect(recorder.lines == ["state 5"])
            let inner = CBMutableService(type: CBUUID(string: "FFE0"), primary: false)
            let offered = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
            offered.includedServices = [inner]
            let fixed = CBMutableCharacteristic(
                type: CBUUID(string: "FFF1"), properties: .read, value: Data([1, 2]), permissions: .readable)
            fixed.descriptors = [CBMutableDescriptor(type: CBUUID(string: "2901"), value: "Fixed")]
            let dynamic = CBMutableCharacteristic(
                type: CBUUID(string: "FFF2"), properties: [.read, .notify], value: nil, permissions: .readable)
            offered.characteristics = [fixed, dynamic]
            manager.add(inner)
            manager.add(offered)
            manager.startAdvertising([
                CBAdvertisementDataLocalNameKey: "Sample", CBAdvertisementDataServiceUUIDsKey: [offered.uuid],
            ])
            try await recorder.wait(for: "didStartAdvertising nil")
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.removeAllServices()
            manager.stopAdvertising()
            await bench.time.settle()
            #expect(await bench.radio.advertisements().isEmpty)

            try await bench.runAgain(Self.settings(rest)) { bench in
                let recorder = CallbackRecorder(bench.time)
                let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: Self.peripheral)
                try await recorder.wait(for: "state 5")
                recorder.react { line in
                    guard line.hasPrefix("didReceiveRead"), let request = recorder.requests.last else { return }
                    request.value = Data([9])
                    manager.respond(to: request, withResult: .success)
                }
                let restored = try #require(recorder.restored.first)
                let key = CBPeripheralManagerRestoredStateServicesKey
                let services = try #require(restored[key] as? [CBMutableService])
                #expect(services.map(\.uuid.uuidString) == ["FFE0", "FFF0"])
                #expect(services.last?.includedServices == Array(services.prefix(1)))
                let data = restored[CBPeripheralManagerRestoredStateAdvertisementDataKey] as? [String: Any]
                #expect(data?[CBAdvertisementDataLocalNameKey] as? String == "Sample")
                #expect(data?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] == [offered.uuid])
                let phone = await bench.radio.addCentral()
                try await phone.connect()
                #expect(try await phone.read(0xFFF1) == [1, 2])
                #expect(try await phone.read(0xFFF2) == [9])
                #expect(manager.isAdvertising)
                let value = try #require(services.last?.characteristics?.last as? CBMutableCharacteristic)
                try await phone.subscribe(to: 0xFFF2)
                try await recorder.wait(for: "didSubscribeTo FFF2")
                #expect(manager.updateValue(Data([4]), for: value, onSubscribedCentrals: nil))
                #expect(try await phone.nextValue().bytes == [4])
                #expect(
                    recorder.lines.filter { !$0.hasPrefix("didReceive") && !$0.hasPrefix("didSubscribe") } == [
                        "willRestoreState", "state 5",
                    ])
            }
        }
    }

    /// A disk that is mounted late is no reason to forget what the run before had.
    @Test func s15ADeviceIsKeptWhileTheBondsCannotBeOpened() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager(options: Self.central)
            let peripheral = try await bench.connect(manager, recorder)
            let identifier = peripheral.identifier.uuidString
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect")

            var settings = Self.settings(rest)
            settings.pairing = CoreBluetoothHost.Pairing(directory: rest.path + "/missing/bonds")
            try await bench.runAgain(settings) { bench in
                func kept() async throws -> Bool {
                    await bench.time.settle()
                    return try String(
                        contentsOfFile: rest.path + "/com.example_2fcentral.central", encoding: .utf8
                    ).contains(identifier)
                }
                let recorder = CallbackRecorder(bench.time)
                let manager = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.central)
                try await recorder.wait(for: "didFailToConnect")
                #expect(try await kept())
                let key = CBCentralManagerRestoredStatePeripheralsKey
                let belt = try #require((recorder.restored.first?[key] as? [CBPeripheral])?.first)
                // Nor is a retry a reason.
                manager.connect(belt)
                try await recorder.wait(for: "didFailToConnect", count: 2)
                #expect(try await kept())
                manager.scanForPeripherals(withServices: nil)
                #expect(try await kept())
                manager.cancelPeripheralConnection(belt)
                #expect(try await !kept())
            }
        }
    }

    @Test func s15AnAdvertisementThatFailsIsKept() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: Self.peripheral)
            try await recorder.wait(for: "state 5")
            manager.startAdvertising([CBAdvertisementDataLocalNameKey: "Sample"])
            try await recorder.wait(for: "didStartAdvertising nil")
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.stopAdvertising()
            await bench.time.settle()

            await bench.radio.limitLinks(to: 0)
            try await bench.runAgain(Self.settings(rest)) { bench in
                func kept() async throws -> Bool {
                    await bench.time.settle()
                    return try String(contentsOfFile: rest.path + "/sample.peripheral", encoding: .utf8)
                        .contains("Sample")
                }
                let recorder = CallbackRecorder(bench.time)
                let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: Self.peripheral)
                try await recorder.wait(for: "state 5")
                try await bench.time.clock.sleep(for: .seconds(60))
                #expect(
                    bench.log.all.contains { $0.hasPrefix("what the run before has advertised is not advertised") })
                #expect(!manager.isAdvertising)
                #expect(try await kept())
                manager.stopAdvertising()
                #expect(try await !kept())
            }
        }
    }

    @Test func s15WithoutADirectoryTheReasonIsLogged() async throws {
        try await Bench.run(Self.settings(nil)) { bench in
            let (manager, recorder) = try await bench.manager(options: Self.central)
            #expect(recorder.restored.isEmpty)
            #expect(bench.log.all.contains { $0.contains("is not restored: set BAREBLE_STATE") })
            _ = manager
        }
    }

    @Test func s15ADamagedStateIsMovedAside() async throws {
        let folder = try Folder()
        try "{\"devices\": 7".write(
            toFile: folder.path + "/com.example_2fcentral.central", atomically: true, encoding: .utf8)
        try await Bench.run(Self.settings(folder)) { bench in
            let (manager, recorder) = try await bench.manager(options: Self.central)
            #expect(recorder.restored.isEmpty)
            #expect(folder.names.contains("com.example_2fcentral.central.damaged"))
            #expect(bench.log.all.contains { $0.contains("nothing is restored") })
            _ = manager
        }
    }

    @Test(arguments: [("180F", true), ("18ZZ", false)])
    func s15AScanForWhatCannotBeReadIsNotRestored(service: String, isReadable: Bool) async throws {
        let folder = try Folder()
        try #"{"devices":[],"scan":{"services":["\#(service)"],"solicited":[],"allowsDuplicates":false}}"#.write(
            toFile: folder.path + "/com.example_2fcentral.central", atomically: true, encoding: .utf8)
        try await Bench.run(Self.settings(folder)) { bench in
            let (manager, recorder) = try await bench.manager(options: Self.central)
            #expect(manager.isScanning == isReadable)
            #expect(recorder.restored.isEmpty == !isReadable)
            #expect(folder.names.contains("com.example_2fcentral.central.damaged") == !isReadable)
        }
    }
}

/// A delegate that implements what it has to, and nothing else.
private final class StateDelegate: NSObject, CBCentralManagerDelegate {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {}
}
