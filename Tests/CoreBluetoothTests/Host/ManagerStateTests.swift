import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Foundation
import TestSupport
import Testing

/// The files of managers with restore identifiers: what is written to them, and when; and which manager has which.
@Suite(.timeLimit(.minutes(10))) struct ManagerStateTests {
    private static func settings(_ folder: Folder) -> CoreBluetoothHost.Settings {
        var settings = CoreBluetoothHost.Settings(environment: [:])
        settings.stateDirectory = folder.path
        return settings
    }

    private static func options(_ identifier: String = "sample") -> [String: Any] {
        [CBCentralManagerOptionRestoreIdentifierKey: identifier]
    }

    /// A file that is replaced has another number, or at least another time.
    private func version(_ folder: Folder) throws -> [String] {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/sample.central")
        return ["\(attributes[.systemFileNumber] ?? "")", "\(attributes[.modificationDate] ?? "")"]
    }

    private func contents(_ folder: Folder) throws -> String {
        try String(contentsOfFile: folder.path + "/sample.central", encoding: .utf8)
    }

    @Test func whatTheFileHasIsNotWrittenAgain() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let (manager, _) = try await bench.manager(options: Self.options())
            manager.scanForPeripherals(withServices: nil)
            await bench.time.settle()
            let first = try version(folder)
            for _ in 0..<5 {
                manager.scanForPeripherals(withServices: nil)
                await bench.time.settle()
            }
            #expect(try version(folder) == first)
            manager.stopScan()
            await bench.time.settle()
            #expect(try version(folder) != first)
        }
    }

    @Test func theFileHasTheNewestStateOfSeveralThreads() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let (manager, _) = try await bench.manager(options: Self.options())
            for round in 0..<5 {
                DispatchQueue.concurrentPerform(iterations: 4) { thread in
                    for _ in 0..<25 {
                        if thread % 2 == 0 {
                            manager.scanForPeripherals(withServices: nil)
                        } else {
                            manager.stopScan()
                        }
                    }
                }
                await bench.time.settle()
                let isScanning = manager.isScanning
                let rest = try Folder(copyOf: folder)
                try await bench.runAgain(Self.settings(rest)) { bench in
                    let recorder = CallbackRecorder(bench.time)
                    let again = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.options())
                    try await recorder.wait(for: "state 5")
                    let services = recorder.restored.first?[CBCentralManagerRestoredStateScanServicesKey]
                    #expect((services != nil) == isScanning, "round \(round)")
                    _ = again
                }
            }
        }
    }

    @Test func droppedPeripheralsDoNotBlockTheirManager() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            let (manager, recorder) = try await bench.manager(options: Self.options())
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                for number in 0..<150 {
                    let digits = String(1_000 * thread + number + 1)
                    let text = String(repeating: "0", count: 12 - digits.count) + digits
                    guard let identifier = UUID(uuidString: "42415245-424C-8000-8045-" + text) else { continue }
                    for peripheral in manager.retrievePeripherals(withIdentifiers: [identifier]) {
                        manager.connect(peripheral)
                    }
                }
            }
            _ = await bench.radio.add(.heartRate)
            _ = try await bench.connect(manager, recorder)
        }
    }

    @Test func aValueOfTheProgramIsNotRestoredAsAFixedOne() async throws {
        let folder = try Folder()
        let options = [CBPeripheralManagerOptionRestoreIdentifierKey: "sample"]
        try await Bench.run(Self.settings(folder)) { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: options)
            try await recorder.wait(for: "state 5")
            let offered = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
            let dynamic = CBMutableCharacteristic(
                type: CBUUID(string: "FFF1"), properties: .read, value: nil, permissions: .readable)
            offered.characteristics = [dynamic]
            manager.add(offered)
            try await recorder.wait(for: "didAdd FFF0 nil")
            dynamic.value = Data([7])
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            manager.removeAllServices()
            manager.stopAdvertising()
            await bench.time.settle()

            try await bench.runAgain(Self.settings(rest)) { bench in
                let recorder = CallbackRecorder(bench.time)
                let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue, options: options)
                try await recorder.wait(for: "state 5")
                recorder.react { line in
                    guard line.hasPrefix("didReceiveRead"), let request = recorder.requests.last else { return }
                    request.value = Data([8])
                    manager.respond(to: request, withResult: .success)
                }
                let phone = await bench.radio.addCentral()
                try await phone.connect()
                #expect(try await phone.read(0xFFF1) == [8])
            }
        }
    }

    @Test func oneManagerHasAnIdentifier() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            var (first, recorder): (CBCentralManager?, CallbackRecorder) = try await bench.manager(
                options: Self.options())
            first?.scanForPeripherals(withServices: nil)
            await bench.time.settle()
            let before = try version(folder)
            let (second, others) = try await bench.manager(options: Self.options())
            #expect(
                bench.log.all.contains {
                    $0.hasPrefix("another manager of this process has the restore identifier \"sample\"")
                })
            second.scanForPeripherals(withServices: [CBUUID(string: "180D")])
            await bench.time.settle()
            #expect(try version(folder) == before)
            #expect(first?.isScanning == true)
            first = nil
            await bench.time.settle()
            #expect(try contents(folder).contains("180D"))
            _ = (second, recorder, others)
        }
    }

    /// A program that replaces its manager creates the new one before the old one ends: here within a callback.
    @Test(arguments: [1, 3]) func aManagerThatReplacesAnotherTakesOverItsFile(_ replacements: Int) async throws {
        let folder = try Folder()
        let current = Lock<CBCentralManager?>(nil)
        let reports = Lock(0)
        try await Bench.run(Self.settings(folder)) { bench in
            let recorder = CallbackRecorder(bench.time)
            @Sendable func replace() {
                let new = CBCentralManager(delegate: recorder, queue: bench.queue, options: Self.options())
                let old = current.withLock { current in
                    defer { current = new }
                    return current
                }
                old?.scanForPeripherals(withServices: [CBUUID(string: "180A")])
            }
            let host = CoreBluetoothHost.scoped
            recorder.react { line in
                let number = reports.withLock { reports in
                    if line == "state 5" { reports += 1 }
                    return reports
                }
                guard line == "state 5", number <= replacements else { return }
                CoreBluetoothHost.$scoped.withValue(host) { replace() }
            }
            replace()
            try await recorder.wait(for: "state 5", count: replacements + 1)
            await bench.time.settle()
            #expect(!bench.log.all.contains { $0.contains("API MISUSE") })
            // What the old one did has ended with it.
            #expect(try !contents(folder).contains("180A"))
            current.withLock { $0 }?.scanForPeripherals(withServices: [CBUUID(string: "180D")])
            await bench.time.settle()
            #expect(try contents(folder).contains("180D"))
            current.withLock { $0.take() }?.stopScan()
            await bench.time.settle()
            #expect(try !contents(folder).contains("180D"))
        }
    }

    @Test func anIdentifierIsFreeOnceItsManagerWasDropped() async throws {
        let folder = try Folder()
        try await Bench.run(Self.settings(folder)) { bench in
            for round in 0..<20 {
                let recorder = CallbackRecorder(bench.time)
                var manager: CBCentralManager? = CBCentralManager(
                    delegate: recorder, queue: bench.queue, options: Self.options())
                try await recorder.wait(for: "state 5")
                manager?.scanForPeripherals(withServices: nil)
                await bench.time.settle()
                #expect(manager?.isScanning == true)
                manager = nil
                #expect(bench.log.all.isEmpty, "round \(round)")
            }
        }
    }

    @Test func eachIdentifierHasAFileOfItsOwn() async throws {
        let folder = try Folder()
        let identifiers = [
            "a", "a b", "a\u{1}2", "a\u{12}", "a_12", "ä", ".x", "x", "", "_", String(repeating: "x", count: 66),
            String(repeating: "x", count: 200),
        ]
        try await Bench.run(Self.settings(folder)) { bench in
            var managers: [CBCentralManager] = []
            for identifier in identifiers {
                let (manager, _) = try await bench.manager(options: Self.options(identifier))
                manager.scanForPeripherals(withServices: nil)
                managers.append(manager)
            }
            await bench.time.settle()
            #expect(bench.log.all == [])
            #expect(folder.names.count { $0.hasSuffix(".central") } == identifiers.count)
            let (tooLong, _) = try await bench.manager(options: Self.options(String(repeating: "y", count: 201)))
            #expect(bench.log.all.count == 1)
            #expect(bench.log.all.first?.contains("takes 201 bytes in the name of a file") == true)
            _ = (managers, tooLong)
        }
    }
}
