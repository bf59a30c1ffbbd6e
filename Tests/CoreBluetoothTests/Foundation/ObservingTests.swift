import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Testing

/// Observing by key paths, and what else programs for Apple's systems expect of the language.
@Suite(.timeLimit(.minutes(10))) struct ObservingTests {
    @Test func statesAreObserved() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
            let states = Lock<[String]>([])
            let observation = manager.observe(\.state, options: [.initial, .new, .old]) { manager, change in
                let text = "\(change.oldValue?.rawValue ?? -1) \(change.newValue?.rawValue ?? -1)"
                states.withLock { $0.append(text) }
            }
            let scanning = Lock<[Bool]>([])
            let second = manager.observe(\.isScanning, options: .new) { _, change in
                scanning.withLock { $0 += change.newValue.map { [$0] } ?? [] }
            }
            try await recorder.wait(for: "state 5")
            #expect(states.withLock { $0 } == ["-1 0", "0 5"])
            let peripheral = try await bench.connect(manager, recorder)
            #expect(scanning.withLock { $0 } == [true, false])
            let links = Lock<[CBPeripheralState]>([])
            let third = peripheral.observe(\.state, options: [.new]) { _, change in
                links.withLock { $0 += change.newValue.map { [$0] } ?? [] }
            }
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect")
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect")
            #expect(links.withLock { $0 } == [.disconnecting, .disconnected, .connecting, .connected])
            observation.invalidate()
            await bench.radio.powerOff()
            try await recorder.wait(for: "state 4")
            #expect(states.withLock { $0 }.count == 2)
            _ = (second, third)
        }
    }

    /// The observers make their calls within the call that they observe.
    @Test func callsOfObserversComeAfterTheObservedCall() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let restarts = Lock(0)
            let scanning = manager.observe(\.isScanning, options: .new) { manager, change in
                guard change.newValue == false, restarts.withLock({ $0 }) == 0 else { return }
                restarts.withLock { $0 += 1 }
                manager.scanForPeripherals(
                    withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
            }
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            #expect(manager.isScanning)
            try await bench.time.clock.sleep(for: .seconds(5))
            recorder.clear()
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            #expect(restarts.withLock { $0 } == 1)
            let peripheral = try recorder.peripheral()
            let states = peripheral.observe(\.state, options: .new) { peripheral, change in
                if change.newValue == .connecting { manager.cancelPeripheralConnection(peripheral) }
            }
            recorder.clear()
            manager.connect(peripheral)
            try await recorder.wait(for: "didDisconnect nil false 0")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.linesWithoutDiscoveries == ["didDisconnect nil false 0"])
            #expect(await !device.isConnected)
            states.invalidate()
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            scanning.invalidate()
        }
    }

    @Test func anObserverMayAdvertiseAgainWhenAdvertisingEnds() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let advertising = manager.observe(\.isAdvertising, options: .new) { manager, change in
                if change.newValue == false { manager.startAdvertising(nil) }
            }
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            manager.stopAdvertising()
            try await recorder.wait(for: "didStartAdvertising nil", count: 2)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(manager.isAdvertising)
            #expect(await bench.radio.advertisements().count == 1)
            advertising.invalidate()
        }
    }

    /// The services of the link before go while the connection is reported.
    @Test func aConnectionThatAnObserverOfTheServicesCancelsIsReportedAsCancelledAlone() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            let peripheral = try recorder.peripheral()
            let services = peripheral.observe(\.services) { peripheral, _ in
                if peripheral.state == .connecting { manager.cancelPeripheralConnection(peripheral) }
            }
            recorder.clear()
            manager.connect(peripheral)
            try await recorder.wait(for: "didDisconnect nil false 0")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.linesWithoutDiscoveries == ["didDisconnect nil false 0"])
            #expect(peripheral.state == .disconnected)
            #expect(await !device.isConnected)
            services.invalidate()
        }
    }

    @Test func theRoomForWritesWithoutResponseIsObserved() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.uart)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            let peripheral = try recorder.peripheral()
            peripheral.delegate = recorder
            let values = Lock<[Bool]>([])
            let observation = peripheral.observe(\.canSendWriteWithoutResponse, options: [.old, .new]) { _, change in
                #expect(change.oldValue == change.newValue.map { !$0 })
                values.withLock { $0 += change.newValue.map { [$0] } ?? [] }
            }
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            #expect(values.withLock { $0 } == [true])
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")])
            await bench.central.makeCalls {
                for number in 0..<20 as Range<UInt8> {
                    peripheral.writeValue(Data([number]), for: target, type: .withoutResponse)
                }
            }
            try await recorder.wait(for: "isReady")
            #expect(values.withLock { $0 } == [true, false, true])
            manager.cancelPeripheralConnection(peripheral)
            #expect(values.withLock { $0 } == [true, false, true, false])
            try await recorder.wait(for: "didDisconnect nil")
            #expect(values.withLock { $0.count } == 4)
            observation.invalidate()
        }
    }

    /// The queue runs nothing while there is room again, and the program cancels the connection meanwhile.
    @Test func theRoomForWritesWithoutResponseChangesWithItsReport() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.uart)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")])
            let values = Lock<[Bool]>([])
            let observation = peripheral.observe(\.canSendWriteWithoutResponse, options: .new) { _, change in
                values.withLock { $0 += change.newValue.map { [$0] } ?? [] }
            }
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                await bench.central.makeCalls {
                    for number in 0..<20 as Range<UInt8> {
                        peripheral.writeValue(Data([number]), for: target, type: .withoutResponse)
                    }
                }
                // The writes are on their way, and the report is on the queue.
                await bench.settleBesideOneReport()
                #expect(!peripheral.canSendWriteWithoutResponse)
                manager.cancelPeripheralConnection(peripheral)
            }
            try await recorder.wait(for: "didDisconnect nil")
            #expect(recorder.lines == ["didDisconnect nil false 0"])
            #expect(values.withLock { $0 } == [false])
            observation.invalidate()
        }
    }

    @Test func anObservationEndsWithItsLastReference() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
            let count = Lock(0)
            do { _ = manager.observe(\.state) { _, _ in count.withLock { $0 += 1 } } }
            try await recorder.wait(for: "state 5")
            #expect(count.withLock { $0 } == 0)
        }
    }

    @Test func anObservationThatAHandlerEndsReceivesNothing() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await bench.manager()
            let count = Lock(0)
            let ended = Lock<NSKeyValueObservation?>(nil)
            let first = manager.observe(\.isScanning) { _, _ in ended.withLock { $0 }?.invalidate() }
            let second = manager.observe(\.isScanning) { _, _ in count.withLock { $0 += 1 } }
            ended.withLock { $0 = second }
            manager.scanForPeripherals(withServices: nil)
            #expect(manager.isScanning)
            #expect(count.withLock { $0 } == 0)
            manager.stopScan()
            first.invalidate()
            _ = recorder
        }
    }

    @Test func aSubclassThatAddsDelegateMethodsIsWarnedOf() async throws {
        try await Bench.run { bench in
            let delegate = DerivedDelegate()
            let manager = CBCentralManager(delegate: delegate, queue: bench.queue)
            let again = CBCentralManager(delegate: delegate, queue: bench.queue)
            #expect(
                bench.log.all.count { $0.contains("DerivedDelegate inherits its conformance from BaseDelegate") } == 1)
            _ = (manager, again)
        }
    }

    @Test func connectionEventsAreReportedToRegisteredManagers() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let (other, watcher) = try await bench.manager()
            other.registerForConnectionEvents(options: [.serviceUUIDs: [CBUUID(string: "180D")]])
            let peripheral = try await bench.connect(manager, recorder)
            try await watcher.wait(for: "connectionEvent 1")
            manager.cancelPeripheralConnection(peripheral)
            try await watcher.wait(for: "connectionEvent 0")
            other.registerForConnectionEvents(options: [.serviceUUIDs: [CBUUID(string: "FFF0")]])
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(watcher.lines == ["connectionEvent 1", "connectionEvent 0"])
        }
    }

    @Test func channelSoundingIsNotSupported() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            peripheral.startChannelSoundingSession(CBChannelSoundingSessionConfiguration(role: .initiator))
            try await recorder.wait(for: "didCompleteChannelSoundingSession CB 13")
            #expect(!CBCentralManager.supports(.channelSounding))
            #expect(CBCentralManager.supports(.extendedScanAndConnect))
            // The device offers no channels.
            peripheral.openL2CAPChannel(0x80)
            try await recorder.wait(for: "didOpen 0 CB")
        }
    }

    @Test func identifiersAreThoseOfTheAddresses() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            let peripheral = try recorder.peripheral()
            let id = peripheral.identifier
            #expect(id.uuidString.hasSuffix("-C0FFEE000001"))
            #expect(manager.retrievePeripherals(withIdentifiers: [UUID(), id, id]) == [peripheral, peripheral])
            #expect(peripheral.copy() as? CBPeripheral === peripheral)
            recorder.forget()
        }
    }

    @Test func objectsAreArgumentsOfFormats() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            peripheral.discoverServices(nil)
            try await recorder.wait(for: "didDiscoverServices")
            let service = try #require(peripheral.services?.first)
            let objects: [any CVarArg] = [service.uuid, service, peripheral, manager]
            for object in objects { #expect(String(format: "<%@>", object) == "<\(object)>") }
            // More than are kept at once.
            for number in 0..<2_000 { #expect(String(format: "%d %@", number, service.uuid) == "\(number) 180D") }
        }
    }

    /// The name of a device that is not in its advertisement.
    @Test func theNameIsReadAfterConnecting() async throws {
        try await Bench.run { bench in
            await bench.placeBattery()
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover nil")
            let peripheral = try recorder.peripheral()
            peripheral.delegate = recorder
            manager.connect(peripheral)
            try await recorder.wait(for: "didUpdateName Virtual battery")
            #expect(peripheral.name == "Virtual battery")
        }
    }

    /// The name is not in the advertisement, and is read for the first manager.
    @Test func aNameThatAnotherManagerHasFoundIsThereWithTheConnection() async throws {
        try await Bench.run { bench in
            await bench.placeBattery()
            let (one, other) = try await bench.sharers()
            one.peripheral.delegate = one.recorder
            one.manager.connect(one.peripheral)
            try await one.recorder.wait(for: "didUpdateName Virtual battery")
            #expect(other.peripheral.name == nil)
            other.manager.connect(other.peripheral)
            try await other.recorder.wait(for: "didConnect 2")
            #expect(other.peripheral.name == "Virtual battery")
        }
    }

    /// The device gives its name to the first of two managers that read it.
    @Test func aNameThatIsReadForOneManagerAloneIsReportedToBoth() async throws {
        try await Bench.run { bench in
            let device = await bench.placeBattery()
            let reads = Lock(0)
            await device.behave { request, respond in
                let isOfName = request.first == 0x08 && request.suffix(2) == [0x00, 0x2A]
                let count = reads.withLock { reads in
                    if isOfName { reads += 1 }
                    return reads
                }
                guard isOfName, count > 1 else { return withoutDelay(respond(request)) }
                return [(delay: .zero, pdu: [0x01, 0x08, request[1], request[2], 0x0A])]
            }
            let (one, other) = try await bench.sharers()
            one.peripheral.delegate = one.recorder
            other.peripheral.delegate = other.recorder
            one.manager.connect(one.peripheral)
            other.manager.connect(other.peripheral)
            try await one.recorder.wait(for: "didConnect 2")
            try await other.recorder.wait(for: "didConnect 2")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(reads.withLock { $0 } == 2)
            #expect(one.recorder.lines.contains("didUpdateName Virtual battery"))
            #expect(other.recorder.lines.contains("didUpdateName Virtual battery"))
            #expect(other.peripheral.name == "Virtual battery")
        }
    }

    @Test func anObserverOfTheNameMayCancelTheConnection() async throws {
        try await Bench.run { bench in
            await bench.placeBattery()
            let (one, other) = try await bench.sharers()
            one.peripheral.delegate = one.recorder
            one.manager.connect(one.peripheral)
            try await one.recorder.wait(for: "didUpdateName Virtual battery")
            let observation = other.peripheral.observe(\.name) { peripheral, _ in
                other.manager.cancelPeripheralConnection(peripheral)
            }
            other.manager.connect(other.peripheral)
            try await other.recorder.wait(for: "didDisconnect nil false 0")
            #expect(other.recorder.lines == ["didDisconnect nil false 0"])
            observation.invalidate()
        }
    }
}

private class BaseDelegate: NSObject, CBCentralManagerDelegate {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {}
}

private final class DerivedDelegate: BaseDelegate {
    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {}
}

extension Bench {
    /// Places a battery that is not one of the bench's own devices.
    @discardableResult fileprivate func placeBattery() async -> VirtualPeripheral {
        let device = radio.peripheral(.battery)
        let id = PeerID(address: BluetoothAddress(rawValue: 0xC0_0000_0000_02), type: .random)
        await radio.place(device, as: id, advertising: VirtualAdvertisement([2, 1, 6]))
        return device
    }
}
