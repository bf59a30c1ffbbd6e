import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// What managers with restore identifiers do while the adapter is not there yet, and before they were notified of it.
@Suite(.timeLimit(.minutes(10))) struct LateAdapterTests {
    private static let central = [CBCentralManagerOptionRestoreIdentifierKey: "late"]
    private static let peripheral = [CBPeripheralManagerOptionRestoreIdentifierKey: "late"]

    private static func settings(_ folder: Folder) -> CoreBluetoothHost.Settings {
        var settings = CoreBluetoothHost.Settings(environment: [:])
        settings.stateDirectory = folder.path
        return settings
    }

    /// An adapter that is not there, or off, and comes later.
    enum Absence: CaseIterable {
        case unplugged, off

        var state: Int { self == .unplugged ? 2 : 4 }

        func begin(_ radio: VirtualRadio) async {
            switch self {
            case .unplugged: await radio.unplug()
            case .off: await radio.powerOff()
            }
        }

        func end(_ radio: VirtualRadio) async {
            switch self {
            case .unplugged: await radio.plugIn(isUp: true)
            case .off: await radio.powerOn()
            }
        }
    }

    /// A folder with what a program has left that scanned and was connected.
    private func leaveAConnection(_ bench: Bench, _ folder: Folder) async throws -> Folder {
        _ = await bench.radio.add(.heartRate)
        let (manager, recorder) = try await bench.manager(options: Self.central)
        let peripheral = try await bench.connect(manager, recorder)
        manager.scanForPeripherals(withServices: nil)
        await bench.time.settle()
        let rest = try Folder(copyOf: folder)
        manager.cancelPeripheralConnection(peripheral)
        try await recorder.wait(for: "didDisconnect")
        manager.stopScan()
        return rest
    }

    @Test(arguments: Absence.allCases) func s15AConnectionAndAScanWaitForTheAdapter(_ absence: Absence) async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let rest = try await leaveAConnection(bench, folder)
            let copies = Lock<[Folder]>([])
            await absence.begin(bench.radio)
            try await bench.runAgain(Self.settings(rest)) { bench in
                let recorder = CallbackRecorder(bench.time)
                let manager = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.central)
                try await recorder.wait(for: "state \(absence.state)")
                try await bench.time.clock.sleep(for: .seconds(60))
                let key = CBCentralManagerRestoredStatePeripheralsKey
                let belt = try #require((recorder.restored.first?[key] as? [CBPeripheral])?.first)
                #expect(belt.state == .connecting)
                #expect(manager.isScanning)
                let copy = try Folder(copyOf: rest)
                copies.withLock { $0.append(copy) }
                await absence.end(bench.radio)
                try await recorder.wait(for: "didConnect 2")
                #expect(
                    recorder.lines.filter { !$0.hasPrefix("didDiscover") } == [
                        "willRestoreState 0", "state \(absence.state)", "state 5", "didConnect 2",
                    ])
                _ = await bench.radio.add(.uart)
                try await recorder.wait(for: "didDiscover")
                manager.cancelPeripheralConnection(belt)
                try await recorder.wait(for: "didDisconnect")
            }
            // A program that ended while it waited has left all of it to the next one.
            let copy = try #require(copies.withLock { $0.first })
            try await bench.runAgain(Self.settings(copy)) { bench in
                let (manager, recorder) = try await bench.manager(options: Self.central)
                try await recorder.wait(for: "didConnect 2")
                #expect(manager.isScanning)
            }
        }
    }

    @Test(arguments: Absence.allCases) func s15ServicesAndAdvertisingWaitForTheAdapter(_ absence: Absence) async throws
    {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: Self.peripheral)
            try await recorder.wait(for: "state 5")
            let inner = CBMutableService(type: CBUUID(string: "FFE0"), primary: false)
            let offered = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
            offered.includedServices = [inner]
            offered.characteristics = [
                CBMutableCharacteristic(
                    type: CBUUID(string: "FFF1"), properties: .read, value: Data([1, 2]), permissions: .readable)
            ]
            manager.add(inner)
            manager.add(offered)
            manager.startAdvertising([CBAdvertisementDataLocalNameKey: "Sample"])
            try await recorder.wait(for: "didStartAdvertising nil")
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.removeAllServices()
            manager.stopAdvertising()
            await bench.time.settle()

            let copies = Lock<[Folder]>([])
            await absence.begin(bench.radio)
            try await bench.runAgain(Self.settings(rest)) { bench in
                let recorder = CallbackRecorder(bench.time)
                let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: Self.peripheral)
                try await recorder.wait(for: "state \(absence.state)")
                try await bench.time.clock.sleep(for: .seconds(60))
                let copy = try Folder(copyOf: rest)
                copies.withLock { $0.append(copy) }
                await absence.end(bench.radio)
                try await recorder.wait(for: "state 5")
                let phone = await bench.radio.addCentral()
                try await phone.connect()
                #expect(try await phone.read(0xFFF1) == [1, 2])
                #expect(manager.isAdvertising)
                #expect(recorder.lines == ["willRestoreState", "state \(absence.state)", "state 5"])
            }
            let copy = try #require(copies.withLock { $0.first })
            try await bench.runAgain(Self.settings(copy)) { bench in
                let recorder = CallbackRecorder(bench.time)
                let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: Self.peripheral)
                try await recorder.wait(for: "state 5")
                let restored = try #require(recorder.restored.first)
                let services = restored[CBPeripheralManagerRestoredStateServicesKey] as? [CBMutableService]
                #expect(services?.map(\.uuid.uuidString) == ["FFE0", "FFF0"])
                #expect(services?.last?.includedServices?.count == 1)
                let data = restored[CBPeripheralManagerRestoredStateAdvertisementDataKey] as? [String: Any]
                #expect(data?[CBAdvertisementDataLocalNameKey] as? String == "Sample")
                _ = manager
            }
        }
    }

    @Test func s15AConnectionFollowsTheStateWhereTheLinkIsUpAlready() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let rest = try await leaveAConnection(bench, folder)
            try await bench.runAgain(Self.settings(rest)) { bench in
                let (other, others) = try await bench.manager()
                let used = try await bench.connect(other, others)
                let recorder = CallbackRecorder(bench.time)
                let manager = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.central)
                try await recorder.wait(for: "didConnect")
                #expect(
                    recorder.lines.filter { !$0.hasPrefix("didDiscover") } == [
                        "willRestoreState 0", "state 5", "didConnect 2",
                    ])
                _ = (manager, used)
            }
        }
    }
}
