import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// What programs rely on, rule by rule: the queue and the order of callbacks, the end of links, misuse.
@Suite(.timeLimit(.minutes(10))) struct ContractTests {
    private let belt = CBUUID(string: "180D")
    private let measurement = CBUUID(string: "2A37")
    private let location = CBUUID(string: "2A38")
    private let control = CBUUID(string: "2A39")
    private static let key = DispatchSpecificKey<Bool>()

    // MARK: S1 Queue

    @Test func s1CallbacksComeOnTheQueueAndNotWithinCalls() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            bench.queue.setSpecific(key: Self.key, value: true)
            let isCalling = Lock(false)
            let (manager, recorder) = try await bench.manager()
            recorder.react { line in
                if DispatchQueue.getSpecific(key: Self.key) != true { Issue.record("\(line) is on another queue") }
                if isCalling.withLock({ $0 }) { Issue.record("\(line) came within a call") }
            }
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let value = try #require(found[location])
            // The queue waits for the end of this block, so nothing can be reported before.
            bench.queue.sync {
                isCalling.withLock { $0 = true }
                peripheral.readValue(for: value)
                peripheral.readValue(for: value)
                manager.cancelPeripheralConnection(peripheral)
                isCalling.withLock { $0 = false }
            }
            try await recorder.wait(for: "didDisconnect")
        }
    }

    @Test func s1PropertiesChangeWithTheirCallbacks() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            bench.queue.sync { peripheral.discoverServices([belt]) }
            let seen = bench.queue.sync { peripheral.services }
            #expect(seen == nil)
            try await recorder.wait(for: "didDiscoverServices nil")
            #expect(peripheral.services?.map(\.uuid) == [belt])
        }
    }

    // MARK: S2 First callback

    @Test func s2TheStateIsReportedOnceAfterInit() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
            #expect(recorder.lines == [])
            try await recorder.wait(for: "state 5")
            #expect(manager.state == .poweredOn)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == ["state 5"])
        }
    }

    @Test func s2ADelegateThatIsSetLaterIsNotifiedOfTheState() async throws {
        try await Bench.run { bench in
            let manager = CBCentralManager(delegate: nil, queue: bench.queue)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(manager.state == .poweredOn)
            let recorder = CallbackRecorder(bench.time)
            manager.delegate = recorder
            try await recorder.wait(for: "state 5")
            // It is notified once.
            manager.delegate = recorder
            await bench.time.settle()
            #expect(recorder.lines == ["state 5"])
        }
    }

    // MARK: S3 Misuse

    @Test func s3CommandsBeforePoweredOnLogALine() async throws {
        try await Bench.run { bench in
            await bench.radio.powerOff()
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
            manager.scanForPeripherals(withServices: nil)
            #expect(!manager.isScanning)
            #expect(manager.retrievePeripherals(withIdentifiers: [UUID()]) == [])
            let misuse = "can only accept this command while in the powered on state"
            #expect(bench.log.all.count { $0.hasPrefix("API MISUSE: <CBCentralManager") && $0.hasSuffix(misuse) } == 2)
            try await recorder.wait(for: "state 4")
            #expect(recorder.lines == ["state 4"])
        }
    }

    @Test func s3CommandsOnADisconnectedPeripheralLogALine() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let value = try #require(found[location])
            // The program keeps the service beyond the link.
            let service = try #require(value.service)
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect")
            recorder.clear()
            peripheral.discoverServices(nil)
            peripheral.readValue(for: value)
            peripheral.readRSSI()
            peripheral.discoverCharacteristics(nil, for: service)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == [])
            let misuse = "can only accept commands while in the connected state"
            #expect(bench.log.all.count { $0.hasPrefix("API MISUSE: <CBPeripheral") && $0.hasSuffix(misuse) } == 4)
        }
    }

    // MARK: S4 Retention

    @Test func s4DroppingAPeripheralCancelsItsAttempt() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            await bench.radio.move(device, to: .outOfRange)
            let reference = WeakReference()
            reference.object = try recorder.peripheral()
            manager.connect(try recorder.peripheral())
            await bench.time.settle()
            recorder.forget()
            #expect(reference.object == nil)
            await bench.radio.move(device, to: .near)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.count(of: "didConnect") == 0)
            let misuse = bench.log.misuse
            #expect(misuse.count == 1)
            #expect(
                misuse.first?.hasPrefix("API MISUSE: Cancelling connection for unused peripheral <CBPeripheral: 0x")
                    == true)
            #expect(misuse.first?.hasSuffix("state = connecting>, Did you forget to keep a reference to it?") == true)
            #expect(await !device.isConnected)
        }
    }

    @Test func s4DroppingAPeripheralDisconnectsIt() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            do { _ = try await bench.connect(manager, recorder) }
            #expect(await device.isConnected)
            recorder.forget()
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await !device.isConnected)
            #expect(recorder.lines == [])
        }
    }

    // MARK: S5 Connect

    @Test func s5AnAttemptPendsUntilTheDeviceIsInRange() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            await bench.radio.move(device, to: .outOfRange)
            let peripheral = try recorder.peripheral()
            manager.connect(peripheral)
            try await bench.time.clock.sleep(for: .seconds(600))
            #expect(peripheral.state == .connecting)
            manager.cancelPeripheralConnection(peripheral)
            #expect(peripheral.state == .disconnecting)
            try await recorder.wait(for: "didDisconnect nil false 0")
            manager.connect(peripheral)
            try await bench.time.clock.sleep(for: .seconds(600))
            await bench.radio.move(device, to: .near)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.count(of: "didFail") == 0)
        }
    }

    @Test func s5AConnectionBeginsAfterItsDelay() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            recorder.clear()
            let peripheral = try recorder.peripheral()
            let options: [String: Any] = [CBConnectPeripheralOptionStartDelayKey: 30]
            manager.connect(peripheral, options: options)
            #expect(peripheral.state == .connecting)
            try await bench.time.clock.sleep(for: .seconds(29))
            #expect(recorder.linesWithoutDiscoveries == [])
            #expect(await !device.isConnected)
            try await recorder.wait(for: "didConnect 2")
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil false 0")
            recorder.clear()
            // A delay is cancelled as an attempt is.
            manager.connect(peripheral, options: options)
            try await bench.time.clock.sleep(for: .seconds(10))
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil false 0")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.linesWithoutDiscoveries == ["didDisconnect nil false 0"])
            #expect(await !device.isConnected)
        }
    }

    @Test(arguments: [
        (HCIStatus.remoteUserTerminated, 7), (.remotePowerOff, 7), (.remoteLowResources, 7), (.connectionTimeout, 6),
        (.keyMissing, 14), (.connectionFailedToBeEstablished, 10), (.linkResponseTimeout, 15),
    ]) func s5TheReasonOfALossIsReported(_ status: HCIStatus, _ code: Int) async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            await bench.radio.disconnect(device, because: status)
            try await recorder.wait(for: "didDisconnect CB \(code) false 0")
            #expect(peripheral.state == .disconnected)
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect")
        }
    }

    @Test func s5ConnectingTwiceIsReportedOnce() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            manager.connect(peripheral)
            manager.connect(peripheral)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.lines == [])
        }
    }

    @Test func s5CancellingAndConnectingAtOnceReportsBoth() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            manager.cancelPeripheralConnection(peripheral)
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.lines == ["didDisconnect nil false 1", "didConnect 2"])
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(peripheral.state == .connected)
        }
    }

    /// The host finds the calls at once, so that the attempt is cancelled before it begins.
    @Test func s5AnAttemptThatIsCancelledAtOnceIsReported() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            await bench.radio.move(device, to: .outOfRange)
            recorder.clear()
            let peripheral = try recorder.peripheral()
            await bench.central.makeCalls {
                manager.connect(peripheral)
                manager.cancelPeripheralConnection(peripheral)
            }
            try await recorder.wait(for: "didDisconnect nil false 0")
            #expect(peripheral.state == .disconnected)
            recorder.clear()
            await bench.central.makeCalls {
                manager.connect(peripheral)
                manager.cancelPeripheralConnection(peripheral)
                manager.connect(peripheral)
            }
            // The end of the first attempt does not wait for the second one.
            try await recorder.wait(for: "didDisconnect nil false 1")
            await bench.radio.move(device, to: .near)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.linesWithoutDiscoveries == ["didDisconnect nil false 1", "didConnect 2"])
        }
    }

    /// The queue of the first manager runs nothing while its attempt fails, so its program does not know.
    @Test func s5AFailedAttemptThatWasCancelledIsReportedAsCancelledAlsoIfTheNextOneHasBegun() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let other = CallbackRecorder(bench.time)
            let second = CBCentralManager(delegate: other, queue: DispatchQueue(label: "other"))
            try await other.wait(for: "state 5")
            first.scanForPeripherals(withServices: nil)
            try await one.wait(for: "didDiscover")
            first.stopScan()
            await bench.time.settle()
            one.clear()
            let mine = try one.peripheral()
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            await bench.radio.refuseConnections(to: device, with: [.connectionLimitExceeded])
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                // The host finds both at once, so that they share the attempt.
                await bench.central.makeCalls {
                    first.connect(mine)
                    second.connect(yours)
                }
                try await other.wait(for: "didFailToConnect CB 11")
                first.cancelPeripheralConnection(mine)
                first.connect(mine)
            }
            try await one.wait(for: "didConnect 2")
            #expect(one.lines == ["didDisconnect nil false 1", "didConnect 2"])
        }
    }

    /// No socket attaches to the link of the first attempt, which has failed, and ends with its link.
    @Test func s5AFailureOfACancelledAttemptIsNotThatOfTheNextOne() async throws {
        let calls = Lock<(@Sendable () -> Void)?>(nil)
        try await Bench.run(changing: { system in
            let connect = system.connect
            system.connect = { own, type, peer, timeout, level throws(SystemCallError) in
                guard let makeCalls = calls.withLock({ $0.take() }) else {
                    return try connect(own, type, peer, timeout, level)
                }
                makeCalls()
                throw SystemCallError(call: "connect", errno: EMFILE)
            }
        }) { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            await bench.time.settle()
            recorder.clear()
            let peripheral = try recorder.peripheral()
            calls.withLock { calls in
                calls = {
                    manager.cancelPeripheralConnection(peripheral)
                    manager.connect(peripheral)
                }
            }
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.linesWithoutDiscoveries == ["didDisconnect nil false 1", "didConnect 2"])
        }
    }

    // MARK: S6 After a disconnect

    @Test func s6NothingIsReportedAfterTheDisconnection() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let value = try #require(found[location])
            await device.stopResponding()
            for _ in 0..<40 { peripheral.readValue(for: value) }
            peripheral.discoverServices(nil)
            await bench.time.settle()
            await bench.radio.disconnect(device)
            try await recorder.wait(for: "didDisconnect CB 7")
            #expect(peripheral.services == nil)
            try await bench.time.clock.sleep(for: .seconds(120))
            #expect(recorder.lines == ["didDisconnect CB 7 false 0"])
        }
    }

    /// Handles may stand for something else on the next link.
    @Test(.row("G23")) func s6AttributesOfAnEndedLinkAreRefused() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[measurement])
            // The program keeps the service beyond the link.
            let service = try #require(value.service)
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor 2A37 true nil")
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil")
            #expect(!value.isNotifying)
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            recorder.clear()
            peripheral.readValue(for: value)
            peripheral.discoverCharacteristics(nil, for: service)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == [])
            #expect(bench.log.all.count { $0.contains("is not a valid attribute of") } == 2)
        }
    }

    // MARK: S7 Power-off

    @Test func s7PowerOffIsReportedByTheStateAlone() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            manager.scanForPeripherals(withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
            await bench.radio.powerOff()
            try await recorder.wait(for: "state 4")
            #expect(peripheral.state == .disconnected)
            #expect(peripheral.services == nil)
            #expect(!manager.isScanning)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines.filter { !$0.hasPrefix("didDiscover") } == ["state 4"])
            await bench.radio.powerOn()
            try await recorder.wait(for: "state 5")
            // What was asked for before is forgotten.
            recorder.clear()
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.linesWithoutDiscoveries == [])
            #expect(await !bench.radio.isScanning())
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            #expect(await device.isConnected)
        }
    }

    @Test(arguments: [true, false]) func s7TheAdapterIsSwitchedOnIfTheProgramAsksForIt(_ asks: Bool) async throws {
        try await Bench.run { bench in
            await bench.radio.powerOff()
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(
                delegate: recorder, queue: bench.queue, options: [CBCentralManagerOptionShowPowerAlertKey: asks])
            try await recorder.wait(for: asks ? "state 5" : "state 4")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(manager.state == (asks ? .poweredOn : .poweredOff))
            if asks {
                recorder.clear()
                await bench.radio.powerOff()
                try await recorder.wait(for: "state 4")
            }
            let other = CallbackRecorder(bench.time)
            let server = CBPeripheralManager(
                delegate: other, queue: bench.queue, options: [CBPeripheralManagerOptionShowPowerAlertKey: asks])
            try await other.wait(for: asks ? "state 5" : "state 4")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(server.state == (asks ? .poweredOn : .poweredOff))
            #expect(manager.state == server.state)
        }
    }

    @Test func s7APendingAttemptIsForgottenWithThePower() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            await bench.radio.move(device, to: .outOfRange)
            let peripheral = try recorder.peripheral()
            manager.connect(peripheral)
            try await bench.time.clock.sleep(for: .seconds(5))
            recorder.clear()
            await bench.radio.powerOff()
            try await recorder.wait(for: "state 4")
            #expect(peripheral.state == .disconnected)
            await bench.radio.powerOn()
            await bench.radio.move(device, to: .near)
            try await recorder.wait(for: "state 5")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.linesWithoutDiscoveries == ["state 4", "state 5"])
        }
    }

    /// The kernel announces changes of adapters, so nothing looks for them.
    @Test func s7AnIdleManagerWakesNothingUp() async throws {
        try await Bench.run { bench in
            await bench.radio.announceChanges()
            let (manager, recorder) = try await bench.manager()
            let adapter = await bench.central.adapter
            #expect(await !adapter.isWatched)
            await bench.radio.powerOff()
            await bench.time.settle()
            #expect(recorder.lines == ["state 4"])
            await bench.radio.powerOn()
            await bench.time.settle()
            #expect(recorder.lines == ["state 4", "state 5"])
            await bench.radio.unplug()
            await bench.time.settle()
            #expect(recorder.lines.last == "state 2")
            await bench.radio.plugIn(isUp: true)
            await bench.time.settle()
            #expect(recorder.lines.last == "state 5")
            #expect(await !adapter.isWatched)
            // A scan needs more than announcements.
            manager.scanForPeripherals(withServices: nil)
            await bench.time.settle()
            #expect(await adapter.isWatched)
            manager.stopScan()
            await bench.time.settle()
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await !adapter.isWatched)
        }
    }

    @Test func s7AResetIsResettingAndThenPoweredOn() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            await bench.radio.reset()
            try await recorder.wait(for: "state 5")
            #expect(recorder.lines == ["state 1", "state 5"])
            #expect(peripheral.state == .disconnected)
        }
    }

    @Test func s7AResetIsReportedOnceForSeveralLinks() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let (second, other) = try await bench.manager()
            // A connected device does not advertise, so the other manager finds the other device.
            let mine = try await bench.connect(first, one)
            _ = await bench.radio.add(.uart)
            let yours = try await bench.connect(second, other)
            #expect(mine.identifier != yours.identifier)
            await bench.radio.reset()
            try await one.wait(for: "state 5")
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(one.lines == ["state 1", "state 5"])
            #expect(other.lines == ["state 1", "state 5"])
            #expect([mine.state, yours.state] == [.disconnected, .disconnected])
        }
    }

    /// The queue runs nothing while the adapter goes and returns, so the program scans before it knows.
    @Test func s7AScanThatBeginsBeforeALossIsReportedEndsWithTheReport() async throws {
        try await Bench.run { bench in
            await bench.radio.announceChanges()
            let (manager, recorder) = try await bench.manager()
            try await bench.loseAdapterUnreported {
                manager.scanForPeripherals(withServices: nil)
                #expect(manager.isScanning)
            }
            try await recorder.wait(for: "state 5")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.lines == ["state 4", "state 5"])
            #expect(!manager.isScanning)
            #expect(await !bench.radio.isScanning())
        }
    }

    // MARK: S8 Scan

    @Test func s8WithoutDuplicatesADeviceIsReportedOnce() async throws {
        try await Bench.run { bench in
            let device = bench.radio.peripheral(.heartRate)
            let id = PeerID(address: BluetoothAddress(rawValue: 0xC0_0000_0000_01), type: .random)
            // Flags, service 180D, Tx power, manufacturer data; and a name in the scan response.
            let data: [UInt8] = [
                2, 1, 6, 3, 3, 0x0D, 0x18, 2, 0x0A, 0xFC, 5, 0xFF, 0x4C, 0x00, 1, 2, 4, 0x16, 0x0F, 0x18, 80,
            ]
            let advertisement = VirtualAdvertisement(data, scanResponse: [4, 9, 0x41, 0x42, 0x43])
            await bench.radio.place(device, as: id, advertising: advertisement)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: [belt], options: nil)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect((1...2).contains(recorder.lines.count))
            let last = try #require(recorder.advertisements.last)
            #expect(last[CBAdvertisementDataLocalNameKey] as? String == "ABC")
            #expect(last[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] == [belt])
            #expect(last[CBAdvertisementDataManufacturerDataKey] as? Data == Data([0x4C, 0, 1, 2]))
            #expect(last[CBAdvertisementDataServiceDataKey] as? [CBUUID: Data] == [CBUUID(string: "180F"): Data([80])])
            #expect(last[CBAdvertisementDataTxPowerLevelKey] as? NSNumber == -4)
            #expect(last[CBAdvertisementDataTxPowerLevelKey] as? Int == -4)
            #expect(last[CBAdvertisementDataIsConnectable] as? Bool == true)
            // Another scan reports it again, with the same object.
            manager.scanForPeripherals(withServices: [belt], options: nil)
            recorder.clear()
            try await recorder.wait(for: "didDiscover ABC")
            #expect(recorder.peripherals.count == 1)
            #expect(try recorder.peripheral().identifier.uuidString == "42415245-424C-8001-8045-C00000000001")
        }
    }

    /// A sensor that sends its values in its advertisement.
    @Test func s8ADeviceThatChangesItsDataIsReportedOnceTooWithoutDuplicates() async throws {
        try await Bench.run { bench in
            let device = bench.radio.peripheral(.battery)
            let id = PeerID(address: BluetoothAddress(rawValue: 0xC0_0000_0000_03), type: .random)
            await bench.radio.place(device, as: id, advertising: VirtualAdvertisement([4, 0xFF, 1, 0, 0]))
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            for number in 1..<20 as Range<UInt8> {
                try await bench.time.clock.sleep(for: .seconds(1))
                await bench.radio.advertise(device, VirtualAdvertisement([4, 0xFF, 1, 0, number]))
            }
            #expect((1...2).contains(recorder.count(of: "didDiscover")))
            manager.scanForPeripherals(withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
            recorder.clear()
            try await recorder.wait(for: "didDiscover", count: 5)
            let last = try #require(recorder.advertisements.last)
            #expect(last[CBAdvertisementDataManufacturerDataKey] as? Data == Data([1, 0, 19]))
        }
    }

    @Test func s8WithDuplicatesEachPacketIsReported() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(recorder.lines.count > 20)
            manager.stopScan()
            recorder.clear()
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(recorder.lines == [])
            #expect(await !bench.radio.isScanning())
        }
    }

    /// Spec: LE Advertising Report event, Core Vol 4 Part E, 7.7.65.2.
    @Test func s8AStrengthThatWasNotMeasuredIs127() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            await bench.radio.move(device, to: .heard(127))
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover Virtual HRM 127")
        }
    }

    @Test func s8OtherServicesAreLeftOut() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            _ = await bench.radio.add(.uart)
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: [belt])
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(recorder.peripherals.map(\.name) == ["Virtual HRM"])
            manager.scanForPeripherals(withServices: [])
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(Set(recorder.peripherals.map(\.name)) == ["Virtual HRM", "Virtual UART"])
        }
    }

    @Test func s8EachManagerHasAScanOfItsOwn() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            _ = await bench.radio.add(.uart)
            let (first, one) = try await bench.manager()
            let (second, other) = try await bench.manager()
            first.scanForPeripherals(
                withServices: [belt], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
            second.scanForPeripherals(withServices: nil)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(Set(one.peripherals.map(\.name)) == ["Virtual HRM"])
            #expect(Set(other.peripherals.map(\.name)) == ["Virtual HRM", "Virtual UART"])
            let mine = try one.peripheral()
            let yours = try #require(other.peripherals.first { $0.identifier == mine.identifier })
            #expect(mine !== yours)
            second.stopScan()
            #expect(first.isScanning && !second.isScanning)
            one.clear()
            other.clear()
            try await one.wait(for: "didDiscover Virtual HRM", count: 3)
            first.stopScan()
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(other.lines == [])
            #expect(await !bench.radio.isScanning())
        }
    }

    @Test func s8AScanWithoutPermissionEnds() async throws {
        try await Bench.run { bench in
            await bench.radio.setPermissions([])
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(!manager.isScanning)
            #expect(recorder.lines == [])
            #expect(bench.log.all.contains { $0.hasPrefix("the scan has ended") && $0.contains("CAP_NET_RAW") })
        }
    }

    // MARK: S9 Order

    /// The calls are made on the thread of the managers' host, which finds all of them at once, or on another one.
    @Test(arguments: [true, false]) func s9CallsAreReportedInTheirOrder(_ isOnThreadOfHost: Bool) async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let value = try #require(found[location])
            let point = try #require(found[control])
            let service = try #require(value.service)
            let makeCalls: @Sendable () -> Void = {
                for _ in 0..<30 {
                    peripheral.readValue(for: value)
                    peripheral.writeValue(Data([1]), for: point, type: .withResponse)
                    peripheral.discoverCharacteristics(nil, for: service)
                }
            }
            if isOnThreadOfHost {
                await bench.central.makeCalls(makeCalls)
            } else {
                await bench.onThreads(1) { _ in makeCalls() }
            }
            try await recorder.wait(for: "didDiscoverCharacteristicsFor", count: 30)
            let round = [
                "didUpdateValueFor 2A38 [1]", "didWriteValueFor 2A39 nil", "didDiscoverCharacteristicsFor 180D nil",
            ]
            #expect(recorder.lines == (0..<30).flatMap { _ in round })
        }
    }

    /// One of them takes no time, and another one does not ask the device.
    @Test func s9CallsThatDoNotAskTheDeviceKeepTheirPlace() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[location])
            await bench.central.makeCalls {
                peripheral.readValue(for: value)
                peripheral.startChannelSoundingSession(CBChannelSoundingSessionConfiguration(role: .initiator))
                peripheral.readValue(for: value)
                peripheral.readRSSI()
                peripheral.readValue(for: value)
            }
            try await recorder.wait(for: "didUpdateValueFor", count: 3)
            let names = recorder.lines.map { line in String(line.prefix { $0 != " " }) }
            #expect(
                names == [
                    "didUpdateValueFor", "didCompleteChannelSoundingSession", "didUpdateValueFor", "didReadRSSI",
                    "didUpdateValueFor",
                ])
            _ = manager
        }
    }

    /// The device sends a value right after its response to the first of two reads.
    @Test func s9AValueThatFollowsAResponseIsReportedAfterIt() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Sensor",
                    services: [
                        VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .notify], value: [7])])
                    ]), latency: .zero)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF1")])
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            recorder.clear()
            let reads = Lock(0)
            await device.behave { pdu, respond in
                var responses = respond(pdu)
                if pdu.first == 0x0A {
                    let isFirst = reads.withLock { reads in
                        reads += 1
                        return reads == 1
                    }
                    // ATT_HANDLE_VALUE_NTF
                    if isFirst { responses.append([0x1B, pdu[1], pdu[2], 9]) }
                }
                return withoutDelay(responses)
            }
            await bench.central.makeCalls {
                peripheral.readValue(for: value)
                peripheral.readValue(for: value)
            }
            try await recorder.wait(for: "didUpdateValueFor", count: 3)
            #expect(
                recorder.lines == [
                    "didUpdateValueFor FFF1 [7]", "didUpdateValueFor FFF1 [9]", "didUpdateValueFor FFF1 [7]",
                ])
            _ = manager
        }
    }

    /// All of them are sent before one is read.
    @Test func s9ValuesOfSeveralCharacteristicsKeepTheirOrder() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(deviceWithTwoSensors, latency: .zero)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            try await subscribe(peripheral, recorder, try await bench.discover(peripheral, recorder))
            try await device.atOnce { device in
                for number in 0..<40 { try device.notify(sensor(number), bytes(number)) }
            }
            try await recorder.wait(for: "didUpdateValueFor", count: 40)
            #expect(recorder.lines == (0..<40).map(report))
            _ = manager
        }
    }

    /// The queue of the first manager runs nothing meanwhile. The other manager shows what has arrived. A queue has
    /// room for 4,096 values of each sensor; the number of those that are dropped is logged with the next one.
    @Test(.row("T17"), arguments: [1_000, 10_000])
    func s9ABlockedQueueKeepsTheOrderOfValuesCallsAndTheEnd(_ count: Int) async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(deviceWithTwoSensors, latency: .zero)
            let (first, one) = try await bench.manager()
            let mine = try await bench.connect(first, one)
            let other = CallbackRecorder(bench.time)
            let second = CBCentralManager(delegate: other, queue: DispatchQueue(label: "other"))
            try await other.wait(for: "state 5")
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            yours.delegate = other
            second.connect(yours)
            try await other.wait(for: "didConnect")
            let found = try await bench.discover(mine, one)
            try await subscribe(mine, one, found)
            let others = try await bench.discover(yours, other)
            try await subscribe(yours, other, others)
            let constant = CBUUID(string: "FFF2")
            let (value, otherValue) = (try #require(found[constant]), try #require(others[constant]))
            let reported = min(count, 2 * 4_096)
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                for number in 0..<count {
                    if number == count / 2 {
                        // The device responds to one after the other.
                        mine.readValue(for: value)
                        yours.readValue(for: otherValue)
                        try await other.wait(for: "didUpdateValueFor FFF2 [7]")
                        other.clear()
                    }
                    try await device.notify(sensor(number), bytes(number))
                    // Sockets hold a few hundred packets.
                    if number % 100 == 99 {
                        try await other.wait(for: "didUpdateValueFor", count: 100)
                        other.clear()
                    }
                }
                if reported == count {
                    await bench.radio.disconnect(device)
                    try await other.wait(for: "didDisconnect CB 7")
                }
            }
            var expected: [String] = (0..<reported).map(report)
            expected.insert("didUpdateValueFor FFF2 [7]", at: count / 2)
            if reported < count {
                // Time stands still until all of them are reported.
                try await bench.time.clock.sleep(for: .seconds(1))
                for number in count..<count + 2 {
                    try await device.notify(sensor(number), bytes(number))
                    expected.append(report(number))
                }
                try await bench.time.clock.sleep(for: .seconds(1))
                let dropped = "\((count - reported) / 2)"
                #expect(bench.log.counts(of: "values were dropped") == [dropped, dropped])
                await bench.radio.disconnect(device)
            }
            try await one.wait(for: "didDisconnect CB 7")
            expected.append("didDisconnect CB 7 false 0")
            #expect(one.lines == expected)
            _ = (first, second)
        }
    }

    /// Each report of a read makes another one, so that some always wait.
    @Test func s9CallsThatHaveEndedAreReleasedWhileOthersWait() async throws {
        try await Bench.run { bench in
            var services: [VirtualService] = [
                .genericAccess(name: "Changing", appearance: 0), .genericAttribute(databaseHash: nil),
                .battery(level: 9),
                VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [1])]),
            ]
            let device = await bench.radio.add(VirtualDevice(name: "Changing", services: services))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let reference = WeakReference()
            do {
                let found = try await bench.discover(peripheral, recorder)
                let value = try #require(found[CBUUID(string: "FFF1")])
                let level = try #require(found[CBUUID(string: "2A19")])
                reference.object = value
                // The device is asked to announce changes by then.
                try await bench.time.clock.sleep(for: .seconds(5))
                recorder.react { line in
                    if line.hasPrefix("didUpdateValueFor 2A19") { peripheral.readValue(for: level) }
                }
                await bench.central.makeCalls {
                    for _ in 0..<40 { peripheral.readValue(for: level) }
                    peripheral.readValue(for: value)
                }
                try await recorder.wait(for: "didUpdateValueFor FFF1 [1]")
            }
            services[3] = VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, .read, value: [2])])
            await device.changeServices(to: VirtualDevice(name: "Changing", services: services))
            try await recorder.wait(for: "didModifyServices [\"FFF0\"]")
            let count = recorder.count(of: "didUpdateValueFor 2A19")
            try await recorder.wait(for: "didUpdateValueFor 2A19", count: count + 200)
            #expect(reference.object == nil)
            recorder.react { _ in }
        }
    }

    /// The device does not respond, so the channel fails after its time limit.
    @Test func s9NoCallWaitsForAChannel() async throws {
        // What keeps the far end of the channel open.
        let ends = Lock<[FarEndOfChannel]>([])
        try await Bench.run(openingChannels: { () throws(SystemCallError) in
            let (ours, theirs) = try LinkSocket.pair()
            var socket = LinkSocket(adopting: ours, isConnecting: true)
            // One that is full polls as one that connects does.
            while socket.send([UInt8](repeating: 0, count: 1000)) == .sent {}
            ends.withLock { $0.append(FarEndOfChannel(theirs)) }
            return socket
        }) { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[location])
            peripheral.openL2CAPChannel(0x80)
            peripheral.readValue(for: value)
            peripheral.discoverServices(nil)
            try await recorder.wait(for: "didOpen")
            #expect(recorder.lines == ["didUpdateValueFor 2A38 [1]", "didDiscoverServices nil", "didOpen 0 CB 6"])
        }
        #expect(ends.withLock { $0.count } == 1)
    }

    /// The device has agreed to the channel, and closes it before anything was sent.
    @Test func s9AChannelThatTheDeviceClosesAtOnceIsRefused() async throws {
        try await Bench.run(openingChannels: { () throws(SystemCallError) in
            let (ours, theirs) = try LinkSocket.pair()
            _ = LinkSocket(adopting: theirs)
            return LinkSocket(adopting: ours)
        }) { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            peripheral.openL2CAPChannel(0x80)
            try await recorder.wait(for: "didOpen")
            #expect(recorder.count(of: "didOpen 0 CB 0") == 1)
            let text = try #require(recorder.errors.first).localizedDescription
            #expect(text.contains("the peer closed it as soon as it was open"), "\(text)")
            #expect(recorder.channels.isEmpty)
            #expect(peripheral.state == .connected)
        }
    }

    /// The kernel has ended the channel alone: no other callback would come.
    @Test func s9AChannelThatEndsWithoutItsLinkIsReported() async throws {
        try await Bench.run(openingChannels: { () throws(SystemCallError) in
            // Connection reset by peer.
            throw SystemCallError(call: "connect", errno: 104)
        }) { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            peripheral.openL2CAPChannel(0x80)
            try await recorder.wait(for: "didOpen 0 CB 3")
        }
    }

    @Test func s9AWriteWithoutResponseWaitsForNoResponse() async throws {
        try await Bench.run { bench in
            let written = Lock(0)
            let device = await bench.radio.add(deviceThatCounts(written))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "FFF1")])
            // The response to a read takes its time.
            await device.behave { pdu, respond in
                let delay: Duration = pdu.first == 0x0A ? .seconds(10) : .zero
                return respond(pdu).map { (delay: delay, pdu: $0) }
            }
            peripheral.readValue(for: try #require(found[CBUUID(string: "FFF2")]))
            for _ in 0..<3 { peripheral.writeValue(Data([1]), for: target, type: .withoutResponse) }
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(written.withLock { $0 } == 3)
            #expect(recorder.lines == [])
            try await recorder.wait(for: "didUpdateValueFor FFF2 [7]")
            #expect(recorder.lines == ["didUpdateValueFor FFF2 [7]"])
        }
    }

    @Test func s9DescriptorsHaveTheirTypes() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(deviceWithDescriptors)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let value = try #require(found[CBUUID(string: "FFF1")])
            #expect(value.descriptors == nil)
            peripheral.discoverDescriptors(for: value)
            try await recorder.wait(for: "didDiscoverDescriptorsFor FFF1 nil")
            let descriptors = try #require(value.descriptors)
            for descriptor in descriptors { peripheral.readValue(for: descriptor) }
            try await recorder.wait(for: "didUpdateValueForDescriptor", count: descriptors.count)
            let values = Dictionary(uniqueKeysWithValues: descriptors.map { ($0.uuid.uuidString, $0.value) })
            #expect(values.count == 8)
            #expect(values["2900"] as? NSNumber == 1)
            #expect(values["2901"] as? String == "Level")
            #expect(values["2902"] as? NSNumber == 0)
            #expect(values["2903"] as? NSNumber == 256)
            #expect(values["2904"] as? Data == Data([4, 0, 0, 0x27, 1, 0, 0]))
            #expect(values["2905"] as? Data == Data([3, 0]))
            #expect(values["29F0"] as? Data == Data([5, 0]))
            #expect(values["6E400009-B5A3-F393-E0A9-E50E24DCCA9E"] as? Data == Data([6, 0]))
        }
    }

    /// The device refuses the first write, and takes the second one.
    @Test func s9AWriteOfADescriptorIsReported() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(deviceWithDescriptors)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF1")])
            peripheral.discoverDescriptors(for: value)
            try await recorder.wait(for: "didDiscoverDescriptorsFor FFF1 nil")
            let descriptors = try #require(value.descriptors)
            let name = try #require(descriptors.first { $0.uuid.uuidString == "2901" })
            peripheral.readValue(for: name)
            try await recorder.wait(for: "didUpdateValueForDescriptor 2901 nil")
            // What the system requests by itself comes before that.
            try await bench.time.clock.sleep(for: .seconds(5))
            recorder.clear()
            let bytes = Array("Rate".utf8)
            peripheral.writeValue(Data(bytes), for: name)
            try await recorder.wait(for: "didWriteValueForDescriptor 2901 ATT 3")
            let written = Lock<[[UInt8]]>([])
            await device.behave { pdu, respond in
                // ATT_WRITE_REQ
                guard pdu.first == 0x12 else { return withoutDelay(respond(pdu)) }
                written.withLock { $0.append(Array(pdu.dropFirst(3))) }
                return withoutDelay([[0x13]])
            }
            peripheral.writeValue(Data(bytes), for: name)
            try await recorder.wait(for: "didWriteValueForDescriptor 2901 nil")
            // The value is the one that was read.
            #expect(name.value as? String == "Level")
            #expect(bench.log.misuse == [])
            // The system configures the client.
            let configuration = try #require(descriptors.first { $0.uuid.uuidString == "2902" })
            peripheral.writeValue(Data([1, 0]), for: configuration)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(bench.log.misuse.count == 1)
            #expect(bench.log.misuse.first?.contains("setNotifyValue") == true)
            #expect(written.withLock { $0 } == [bytes])
            #expect(recorder.lines == ["didWriteValueForDescriptor 2901 ATT 3", "didWriteValueForDescriptor 2901 nil"])
            _ = manager
        }
    }

    @Test func s9WhatADeviceLacksIsNoError() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let lacking = CBUUID(string: "FFFE")
            #expect(peripheral.services == nil)
            peripheral.discoverServices([lacking])
            try await recorder.wait(for: "didDiscoverServices nil")
            #expect(peripheral.services == [])
            peripheral.discoverServices([belt, lacking])
            try await recorder.wait(for: "didDiscoverServices nil", count: 2)
            #expect(peripheral.services?.map(\.uuid) == [belt])
            let service = try #require(peripheral.services?.first)
            #expect(service.characteristics == nil)
            peripheral.discoverCharacteristics([lacking], for: service)
            try await recorder.wait(for: "didDiscoverCharacteristicsFor 180D nil")
            #expect(service.characteristics == [])
            #expect(service.includedServices == nil)
            peripheral.discoverIncludedServices(nil, for: service)
            try await recorder.wait(for: "didDiscoverIncludedServicesFor 180D nil")
            #expect(service.includedServices == [])
            peripheral.discoverCharacteristics([location], for: service)
            try await recorder.wait(for: "didDiscoverCharacteristicsFor 180D nil", count: 2)
            let value = try #require(service.characteristics?.first)
            #expect(value.descriptors == nil)
            peripheral.discoverDescriptors(for: value)
            try await recorder.wait(for: "didDiscoverDescriptorsFor 2A38 nil")
            #expect(value.descriptors == [])
            #expect(recorder.linesWithoutDiscoveries.count == 6)
            _ = manager
        }
    }

    @Test func s9SubscribingIsReportedEachTime() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let value = try #require(found[measurement])
            peripheral.setNotifyValue(true, for: value)
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor 2A37 true nil", count: 2)
            #expect(await device.isSubscribed(to: 0x2A37))
            try await recorder.wait(for: "didUpdateValueFor 2A37", count: 3)
            peripheral.setNotifyValue(false, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor 2A37 false nil")
            #expect(await !device.isSubscribed(to: 0x2A37))
            recorder.clear()
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(recorder.lines == [])
            // A characteristic that cannot send values.
            peripheral.setNotifyValue(true, for: try #require(found[location]))
            try await recorder.wait(for: "didUpdateNotificationStateFor 2A38 false ATT 6")
        }
    }

    /// A device that sends a value together with its response to the subscription.
    @Test(.row("G24")) func s9TheFirstValueIsReportedAfterTheSubscription() async throws {
        try await Bench.run { bench in
            let sensor = VirtualDevice(
                name: "Sensor", services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .notify)])])
            let device = await bench.radio.add(sensor)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF1")])
            await device.behave { pdu, respond in
                var sent = withoutDelay(respond(pdu))
                // ATT_WRITE_REQ with notifications enabled; the handle of the value is the one before.
                if pdu.count == 5, pdu[0] == 0x12, pdu[3...] == [1, 0] {
                    sent.append((delay: .zero, pdu: [0x1B, pdu[1] - 1, pdu[2], 0, 60]))
                }
                return sent
            }
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [0, 60]")
            #expect(
                recorder.lines == [
                    "didUpdateNotificationStateFor FFF1 true nil", "didUpdateValueFor FFF1 [0, 60]",
                ])
        }
    }

    // MARK: S10 Write without response

    @Test func s10WritesWithoutResponseKeepTheirOrder() async throws {
        try await Bench.run { bench in
            let (written, last) = (Lock<[UInt32]>([]), 10_000 as UInt32)
            _ = await bench.radio.add(deviceThatKeeps(written))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "FFF1")])
            #expect(peripheral.canSendWriteWithoutResponse)
            let next = Lock<UInt32>(1)
            let write: @Sendable () -> Void = {
                while peripheral.canSendWriteWithoutResponse {
                    let number = next.withLock { next in
                        defer { next += 1 }
                        return next
                    }
                    guard number <= last else { return }
                    peripheral.writeValue(data(number), for: target, type: .withoutResponse)
                }
            }
            recorder.react { if $0 == "isReady" { write() } }
            bench.queue.sync { write() }
            for _ in 0..<100_000 where next.withLock({ $0 }) <= last {
                try await bench.time.clock.sleep(for: .milliseconds(10))
            }
            // A read comes after all of them.
            peripheral.readValue(for: try #require(found[CBUUID(string: "FFF2")]))
            try await recorder.wait(for: "didUpdateValueFor FFF2 [7]")
            #expect(written.withLock { $0 } == Array(1...last))
            #expect(recorder.count(of: "isReady") > 0)
            #expect(bench.log.misuse == [])
            _ = manager
        }
    }

    /// The host finds 5,000 writes at once, and has room for the first 4,096 of them; and again when it has sent those.
    @Test func s10WritesThatIgnoreTheFlagKeepTheirOrder() async throws {
        try await Bench.run { bench in
            let written = Lock<[UInt32]>([])
            _ = await bench.radio.add(deviceThatKeeps(written))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "FFF1")])
            for (count, first) in [(1, 1), (2, 5_001)] as [(Int, UInt32)] {
                await bench.central.makeCalls {
                    for number in first..<first + 5_000 {
                        peripheral.writeValue(data(number), for: target, type: .withoutResponse)
                    }
                }
                #expect(bench.log.misuse.count == count * 904)
                try await recorder.wait(for: "isReady", count: count)
                // That comes before the last ones have been sent.
                try await bench.time.clock.sleep(for: .seconds(5))
            }
            peripheral.readValue(for: try #require(found[CBUUID(string: "FFF2")]))
            try await recorder.wait(for: "didUpdateValueFor FFF2 [7]")
            let accepted: [UInt32] = Array(1...4_096) + Array(5_001...9_096)
            #expect(written.withLock { $0 } == accepted)
            #expect(recorder.lines == ["isReady", "isReady", "didUpdateValueFor FFF2 [7]"])
            #expect(bench.log.misuse.allSatisfy { $0.contains("has too many calls waiting") })
            #expect(bench.log.misuse.count == 2 * 904)
            _ = manager
        }
    }

    /// The host finds all of them at once, so that they wait: by their number, and by their bytes.
    @Test(arguments: [(1, 4_096), (512, 2_048)])
    func s10AWriteForWhichThereIsNoRoomIsLogged(_ size: Int, _ count: Int) async throws {
        try await Bench.run { bench in
            let written = Lock(0)
            _ = await bench.radio.add(deviceThatCounts(written))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "FFF1")])
            await bench.central.makeCalls {
                for _ in 0...count { peripheral.writeValue(Data(count: size), for: target, type: .withoutResponse) }
            }
            let misuse = bench.log.misuse
            #expect(misuse.count == 1)
            #expect(misuse.first?.contains("has too many calls waiting") == true)
            try await recorder.wait(for: "isReady")
            peripheral.readValue(for: try #require(found[CBUUID(string: "FFF2")]))
            try await recorder.wait(for: "didUpdateValueFor FFF2 [7]")
            #expect(written.withLock { $0 } == count)
            #expect(bench.log.misuse.count == 1)
        }
    }

    /// The host finds the calls at once, so that the last writes wait while the link is being ended.
    @Test func s10WritesOfAConnectionThatIsCancelledAreNoMisuse() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(deviceThatCounts(Lock(0)))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "FFF1")])
            await bench.central.makeCalls {
                for _ in 0..<40 { peripheral.writeValue(Data([1]), for: target, type: .withoutResponse) }
                manager.cancelPeripheralConnection(peripheral)
            }
            try await recorder.wait(for: "didDisconnect nil")
            #expect(bench.log.misuse == [])
        }
    }

    @Test func s10AWriteThatDoesNotFitIsLogged() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.uart)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let target = try #require(found[CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")])
            let limit = peripheral.maximumWriteValueLength(for: .withoutResponse)
            #expect(limit == 514)
            #expect(peripheral.maximumWriteValueLength(for: .withResponse) == 512)
            peripheral.writeValue(Data(count: limit + 1), for: target, type: .withoutResponse)
            peripheral.readRSSI()
            try await recorder.wait(for: "didReadRSSI -60 nil")
            #expect(recorder.lines == ["didReadRSSI -60 nil"])
            #expect(bench.log.all.contains { $0.hasPrefix("API MISUSE: a write without response was not sent") })
        }
    }

    // MARK: S11 Changed services

    @Test func s11ChangedServicesAreNamedAndGone() async throws {
        try await Bench.run { bench in
            var before = VirtualDevice(
                name: "Changing",
                services: [
                    .genericAccess(name: "Changing", appearance: 0), .genericAttribute(databaseHash: nil),
                    .battery(level: 9),
                    VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [1])]),
                ])
            let device = await bench.radio.add(before)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            _ = try await bench.discover(peripheral, recorder)
            #expect(peripheral.services?.map(\.uuid.uuidString) == ["180F", "FFF0"])
            let battery = try #require(peripheral.services?.first)
            try await bench.time.clock.sleep(for: .seconds(5))
            before.services[3] = VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, .read, value: [2])])
            await device.changeServices(to: before)
            try await recorder.wait(for: "didModifyServices [\"FFF0\"]")
            #expect(peripheral.services?.map(\.uuid.uuidString) == ["180F"])
            let found = try await bench.discover(peripheral, recorder)
            #expect(peripheral.services?.first === battery)
            peripheral.readValue(for: try #require(found[CBUUID(string: "FFE1")]))
            try await recorder.wait(for: "didUpdateValueFor FFE1 [2]")
        }
    }

    /// The handle of the old characteristic is that of the new one.
    @Test(.row("G23")) func s11AttributesOfChangedServicesAreRefused() async throws {
        try await Bench.run { bench in
            var services: [VirtualService] = [
                .genericAccess(name: "Changing", appearance: 0), .genericAttribute(databaseHash: nil),
                VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .write, value: [1])]),
            ]
            let device = await bench.radio.add(VirtualDevice(name: "Changing", services: services))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let old = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF1")])
            // The program keeps the service.
            let service = try #require(old.service)
            try await bench.time.clock.sleep(for: .seconds(5))
            services[2] = VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, .write, value: [2])])
            await device.changeServices(to: VirtualDevice(name: "Changing", services: services))
            try await recorder.wait(for: "didModifyServices [\"FFF0\"]")
            recorder.clear()
            peripheral.writeValue(Data([9]), for: old, type: .withResponse)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == [])
            #expect(try await device.value(0xFFE1) == [2])
            #expect(bench.log.all.count { $0.contains("is not a valid attribute of") } == 1)
            #expect(service.characteristics?.first === old)
        }
    }

    /// The device announces a change of all services, and has changed none, before it responds to the subscription.
    @Test func s11ASubscriptionToAChangedServiceFailsAndLeavesNothing() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Changing",
                    services: [
                        .genericAccess(name: "Changing", appearance: 0), .genericAttribute(databaseHash: nil),
                        VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .notify)]),
                    ]))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF1")])
            // The device is asked to announce changes by then.
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await device.isSubscribed(to: 0x2A05))
            // Generic Access has five attributes; a service and a declaration come before the value of Service Changed.
            await device.behave { pdu, respond in respond(pdu).map { (delay: .seconds(1), pdu: $0) } }
            peripheral.setNotifyValue(true, for: value)
            await bench.time.settle()
            await device.send(raw: [0x1D, 8, 0, 1, 0, 0xFF, 0xFF])
            try await recorder.wait(for: "didUpdateNotificationStateFor")
            #expect(
                recorder.lines == ["didModifyServices [\"FFF0\"]", "didUpdateNotificationStateFor FFF1 false CB 2"])
            #expect(await !device.isSubscribed(to: 0xFFF1))
            // What the device has by now can be subscribed to.
            let again = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF1")])
            peripheral.setNotifyValue(true, for: again)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            #expect(try await device.notify(0xFFF1, [5]))
            try await recorder.wait(for: "didUpdateValueFor FFF1 [5]")
        }
    }

    /// The device refuses to announce changes, and announces one all the same.
    @Test func s11ChangesAreSeenAlsoIfThePeerRefusesToAnnounceThem() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Refusing",
                    services: [
                        .genericAccess(name: "Refusing", appearance: 0), .genericAttribute(databaseHash: nil),
                        VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .notify)]),
                    ]))
            let (announcer, enabled) = (Lock<UInt8?>(nil), Lock<[UInt8]>([]))
            await device.behave { pdu, respond in
                // ATT_WRITE_REQ; the handle of the value is the one before.
                if pdu.count == 5, pdu[0] == 0x12, pdu[3...] == [2, 0] {
                    announcer.withLock { $0 = pdu[1] - 1 }
                    return [(delay: .zero, pdu: [0x01, 0x12, pdu[1], pdu[2], 0x0E])]
                }
                if pdu.count == 5, pdu[0] == 0x12, pdu[3...] == [1, 0] { enabled.withLock { $0.append(pdu[1] - 1) } }
                return withoutDelay(respond(pdu))
            }
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let uuid = CBUUID(string: "FFF1")
            let value = try #require(try await bench.discover(peripheral, recorder)[uuid])
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            try await bench.time.clock.sleep(for: .seconds(60))
            let announced = try #require(announcer.withLock { $0 })
            // The service begins two handles before the value.
            let first = try #require(enabled.withLock { $0.first }) - 2
            await device.send(raw: [0x1D, announced, 0, first, 0, 0xFF, 0xFF])
            try await recorder.wait(for: "didModifyServices [\"FFF0\"]")
            let again = try #require(try await bench.discover(peripheral, recorder)[uuid])
            #expect(again !== value)
            peripheral.setNotifyValue(true, for: again)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            #expect(enabled.withLock { $0.count } == 2)
            #expect(try await device.notify(0xFFF1, [5]))
            try await recorder.wait(for: "didUpdateValueFor FFF1 [5]")
        }
    }

    @Test(arguments: [false, true])
    func s11AChangeIsLoggedIfTheDelegateDoesNotImplementIt(isImplemented: Bool) async throws {
        try await Bench.run { bench in
            var services: [VirtualService] = [
                .genericAccess(name: "Changing", appearance: 0), .genericAttribute(databaseHash: nil),
                VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [1])]),
            ]
            let device = await bench.radio.add(VirtualDevice(name: "Changing", services: services))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            _ = try await bench.discover(peripheral, recorder)
            let other = SilentDelegate()
            if !isImplemented { peripheral.delegate = other }
            // The device is asked to announce changes by then.
            try await bench.time.clock.sleep(for: .seconds(5))
            services[2] = VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, .read, value: [2])])
            await device.changeServices(to: VirtualDevice(name: "Changing", services: services))
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(peripheral.services == [])
            #expect(peripheral.state == .connected)
            #expect(recorder.linesWithoutDiscoveries == (isImplemented ? ["didModifyServices [\"FFF0\"]"] : []))
            let misuse = bench.log.misuse
            #expect(misuse.count == (isImplemented ? 0 : 1))
            #expect(misuse.allSatisfy { $0.hasSuffix("does not implement peripheral(_:didModifyServices:)") })
            withExtendedLifetime((manager, other)) {}
        }
    }

    // MARK: S13 Two managers

    @Test func s13TwoManagersShareOneLink() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let (second, other) = try await bench.manager()
            let mine = try await bench.connect(first, one)
            // A connected device does not advertise.
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            #expect(yours !== mine)
            #expect(yours.identifier == mine.identifier)
            #expect(second.retrieveConnectedPeripherals(withServices: [belt]) == [yours])
            #expect(second.retrieveConnectedPeripherals(withServices: [CBUUID(string: "FFF0")]) == [])
            yours.delegate = other
            second.connect(yours)
            try await other.wait(for: "didConnect 2")
            let here = try await bench.discover(mine, one)
            let there = try await bench.discover(yours, other)
            mine.setNotifyValue(true, for: try #require(here[measurement]))
            yours.setNotifyValue(true, for: try #require(there[measurement]))
            try await one.wait(for: "didUpdateValueFor 2A37", count: 2)
            try await other.wait(for: "didUpdateValueFor 2A37", count: 2)
            first.cancelPeripheralConnection(mine)
            try await one.wait(for: "didDisconnect nil")
            #expect(await device.isConnected)
            other.clear()
            try await other.wait(for: "didUpdateValueFor 2A37", count: 2)
            #expect(yours.state == .connected)
            second.cancelPeripheralConnection(yours)
            try await other.wait(for: "didDisconnect nil")
            #expect(await !device.isConnected)
        }
    }

    @Test func s13TheDelayOfOneManagerHoldsNoOther() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (one, other) = try await bench.sharers()
            let begin = bench.time.now
            one.manager.connect(one.peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 600])
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(await !device.isConnected)
            // A longer delay changes nothing, and a shorter one is kept.
            other.manager.connect(other.peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 1_000])
            try await bench.time.clock.sleep(for: .seconds(10))
            other.manager.cancelPeripheralConnection(other.peripheral)
            try await other.recorder.wait(for: "didDisconnect nil false 0")
            other.manager.connect(other.peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 30])
            try await bench.time.clock.sleep(for: .seconds(29))
            #expect(await !device.isConnected)
            try await other.recorder.wait(for: "didConnect 2")
            #expect(bench.time.now - begin < .seconds(60))
            // They share the link.
            try await one.recorder.wait(for: "didConnect 2")
        }
    }

    @Test func s13TheDelayOfAManagerThatHasLeftIsForgotten() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (one, other) = try await bench.sharers()
            let begin = bench.time.now
            one.manager.connect(one.peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 600])
            other.manager.connect(other.peripheral, options: [CBConnectPeripheralOptionStartDelayKey: 30])
            try await bench.time.clock.sleep(for: .seconds(10))
            other.manager.cancelPeripheralConnection(other.peripheral)
            try await other.recorder.wait(for: "didDisconnect nil false 0")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(await !device.isConnected)
            try await one.recorder.wait(for: "didConnect 2")
            #expect(bench.time.now - begin >= .seconds(600))
        }
    }

    @Test func s13ASubscriptionEndsWithItsLastManager() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let (second, other) = try await bench.manager()
            let mine = try await bench.connect(first, one)
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            yours.delegate = other
            second.connect(yours)
            try await other.wait(for: "didConnect 2")
            let here = try #require(try await bench.discover(mine, one)[measurement])
            let there = try #require(try await bench.discover(yours, other)[measurement])
            mine.setNotifyValue(true, for: here)
            yours.setNotifyValue(true, for: there)
            try await one.wait(for: "didUpdateNotificationStateFor 2A37 true nil")
            try await other.wait(for: "didUpdateNotificationStateFor 2A37 true nil")
            mine.setNotifyValue(false, for: here)
            try await one.wait(for: "didUpdateNotificationStateFor 2A37 false nil")
            #expect(await device.isSubscribed(to: 0x2A37))
            #expect(!here.isNotifying && there.isNotifying)
            one.clear()
            other.clear()
            try await other.wait(for: "didUpdateValueFor 2A37", count: 3)
            #expect(one.lines == [])
            yours.setNotifyValue(false, for: there)
            try await other.wait(for: "didUpdateNotificationStateFor 2A37 false nil")
            #expect(await !device.isSubscribed(to: 0x2A37))
        }
    }

    @Test func s13TheEndOfAConnectionIsReportedBeforeTheNextOne() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let (second, other) = try await bench.manager()
            let mine = try await bench.connect(first, one)
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            second.connect(yours)
            try await other.wait(for: "didConnect 2")
            let found = try await bench.discover(mine, one)
            mine.setNotifyValue(true, for: try #require(found[measurement]))
            try await one.wait(for: "didUpdateValueFor 2A37")
            one.clear()
            await bench.central.makeCalls {
                first.cancelPeripheralConnection(mine)
                first.connect(mine)
            }
            try await one.wait(for: "didConnect 2")
            try await one.wait(for: "didDisconnect")
            #expect(one.lines == ["didDisconnect nil false 1", "didConnect 2"])
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect([mine.state, yours.state] == [.connected, .connected])
            #expect(one.lines.count == 2)
        }
    }

    /// The queue of the first manager runs nothing while the values wait there.
    @Test func s13ABlockedQueueHoldsNoOtherManager() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.uart)
            let (first, one) = try await bench.manager()
            let mine = try await bench.connect(first, one)
            let other = CallbackRecorder(bench.time)
            let second = CBCentralManager(delegate: other, queue: DispatchQueue(label: "other"))
            try await other.wait(for: "state 5")
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            yours.delegate = other
            second.connect(yours)
            try await other.wait(for: "didConnect")
            let transmit = CBUUID(string: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E")
            mine.setNotifyValue(true, for: try #require(try await bench.discover(mine, one)[transmit]))
            try await one.wait(for: "didUpdateNotificationStateFor")
            let found = try await bench.discover(yours, other)
            yours.setNotifyValue(true, for: try #require(found[transmit]))
            try await other.wait(for: "didUpdateNotificationStateFor")
            let receive = try #require(found[CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")])
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                // More than wait comfortably on a queue.
                for number in 0..<600 {
                    yours.writeValue(Data([UInt8(number & 0xFF)]), for: receive, type: .withoutResponse)
                }
                try await other.wait(for: "didUpdateValueFor", count: 600)
                await bench.radio.disconnect(device)
                try await other.wait(for: "didDisconnect CB 7")
                #expect(mine.state == .connected)
            }
            try await one.wait(for: "didDisconnect CB 7")
            let values = one.lines.filter { $0.hasPrefix("didUpdateValueFor") }
            #expect(values.count == 600)
            #expect(one.lines.last?.hasPrefix("didDisconnect") == true)
        }
    }

    /// The queue of the first manager runs nothing while the link ends.
    @Test func s13TheTimeOfADisconnectionIsThatOfTheLinksEnd() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let mine = try await bench.connect(first, one)
            let other = CallbackRecorder(bench.time)
            let second = CBCentralManager(delegate: other, queue: DispatchQueue(label: "other"))
            try await other.wait(for: "state 5")
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            second.connect(yours)
            try await other.wait(for: "didConnect")
            let before = CFAbsoluteTimeGetCurrent()
            let after: CFAbsoluteTime
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                await bench.radio.disconnect(device)
                try await other.wait(for: "didDisconnect CB 7")
                after = CFAbsoluteTimeGetCurrent()
            }
            try await one.wait(for: "didDisconnect CB 7")
            let time = try #require(one.timestamps.first)
            #expect(before <= time && time <= after)
        }
    }

    @Test func s13AManagerThatIsDroppedEndsItsConnections() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let recorder = CallbackRecorder(bench.time)
            var kept: CBPeripheral?
            do {
                let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
                try await recorder.wait(for: "state 5")
                recorder.clear()
                kept = try await bench.connect(manager, recorder)
            }
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await !device.isConnected)
            #expect(recorder.lines == [])
            #expect(kept?.state == .disconnected)
        }
    }

    /// The queue runs nothing while the call ends and the manager goes.
    @Test func s13APeripheralWhoseManagerIsDroppedReportsNothing() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let recorder = CallbackRecorder(bench.time)
            var manager: CBCentralManager? = CBCentralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            recorder.clear()
            let peripheral = try await bench.connect(try #require(manager), recorder)
            let reference = WeakReference()
            reference.object = manager
            // A callback that is running keeps its manager until it returns.
            await bench.time.settle()
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                // A call that needs no time.
                peripheral.startChannelSoundingSession(CBChannelSoundingSessionConfiguration(role: .initiator))
                await bench.settleBesideOneReport()
                manager = nil
                #expect(reference.object == nil)
            }
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.lines == [])
            #expect(peripheral.state == .disconnected)
        }
    }

    // MARK: S14 Reconnecting

    @Test func s14AutoReconnectConnectsAgain() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let options = [CBConnectPeripheralOptionEnableAutoReconnect: true]
            let peripheral = try await bench.connect(manager, recorder, options: options)
            _ = try await bench.discover(peripheral, recorder)
            // The services stay until the next link is up.
            let known = Lock<[Bool]>([])
            recorder.react { _ in known.withLock { $0.append(peripheral.services != nil) } }
            await bench.radio.disconnect(device)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.lines == ["didDisconnect CB 7 true 1", "didConnect 2"])
            #expect(known.withLock { $0 } == [true, false])
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil false 0")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines.count == 3)
        }
    }

    /// The queue runs nothing while the link ends and the next one is established, so the program knows the old one.
    @Test func s14ACallThatWasMadeOnTheLinkBeforeIsNotMadeOnTheNextOne() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let options = [CBConnectPeripheralOptionEnableAutoReconnect: true]
            let mine = try await bench.connect(first, one, options: options)
            let value = try #require(try await bench.discover(mine, one)[location])
            let other = CallbackRecorder(bench.time)
            let second = CBCentralManager(delegate: other, queue: DispatchQueue(label: "other"))
            try await other.wait(for: "state 5")
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            second.connect(yours, options: options)
            try await other.wait(for: "didConnect 2")
            other.clear()
            bench.queue.suspend()
            // Time goes on although the report of the end waits.
            bench.time.loop.release()
            do {
                defer {
                    bench.time.loop.hold()
                    bench.queue.resume()
                }
                await bench.radio.disconnect(device)
                try await other.wait(for: "didConnect 2")
                #expect(mine.state == .connected)
                mine.readValue(for: value)
            }
            try await one.wait(for: "didConnect 2")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(one.lines == ["didDisconnect CB 7 true 1", "didConnect 2"])
            let again = try #require(try await bench.discover(mine, one)[location])
            mine.readValue(for: again)
            try await one.wait(for: "didUpdateValueFor 2A38 [1]")
            #expect(yours.state == .connected)
            _ = (first, second)
        }
    }

    /// The queue of the first manager runs nothing while its link is lost, so its program does not know.
    @Test(arguments: [true, false])
    func s14ALostLinkThatWasCancelledIsReportedAsCancelledAlsoIfTheNextOneIsAskedFor(_ reconnects: Bool) async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (first, one) = try await bench.manager()
            let options = [CBConnectPeripheralOptionEnableAutoReconnect: reconnects]
            let mine = try await bench.connect(first, one, options: options)
            let other = CallbackRecorder(bench.time)
            let second = CBCentralManager(delegate: other, queue: DispatchQueue(label: "other"))
            try await other.wait(for: "state 5")
            let yours = try #require(second.retrievePeripherals(withIdentifiers: [mine.identifier]).first)
            second.connect(yours)
            try await other.wait(for: "didConnect 2")
            _ = try await bench.discover(mine, one)
            await bench.time.settle()
            one.clear()
            let hadServices = Lock<[Bool]>([])
            one.react { _ in hadServices.withLock { $0.append(mine.services != nil) } }
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                await bench.radio.disconnect(device)
                try await other.wait(for: "didDisconnect CB 7")
                #expect(mine.state == .connected)
                first.cancelPeripheralConnection(mine)
                first.connect(mine, options: options)
            }
            try await one.wait(for: "didConnect 2")
            #expect(one.lines == ["didDisconnect nil false 1", "didConnect 2"])
            #expect(hadServices.withLock { $0 } == [false, false])
        }
    }

    /// At the edge of the range attempts fail one after the other; the first one of a program still fails at once.
    @Test func s14AutoReconnectOutlastsFailedAttempts() async throws {
        try await Bench.run { bench in
            let failures = { (count: Int) in [HCIStatus](repeating: .connectionFailedToBeEstablished, count: count) }
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let options = [CBConnectPeripheralOptionEnableAutoReconnect: true]
            let peripheral = try await bench.connect(manager, recorder, options: options)
            await bench.radio.refuseConnections(to: device, with: failures(20))
            await bench.radio.disconnect(device)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.lines == ["didDisconnect CB 7 true 1", "didConnect 2"])
            recorder.clear()
            await bench.radio.refuseConnections(to: device, with: failures(10_000))
            await bench.radio.disconnect(device)
            try await bench.time.clock.sleep(for: .seconds(600))
            #expect(recorder.lines == ["didDisconnect CB 7 true 1"])
            let begin = bench.time.now
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil false 0")
            #expect(bench.time.now - begin < .seconds(1))
            manager.connect(peripheral, options: options)
            try await recorder.wait(for: "didFailToConnect CB 10")
        }
    }

    /// Other links of the controller may take its last place meanwhile.
    @Test func s14AutoReconnectOutlastsAControllerWithoutAFreeLink() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let options = [CBConnectPeripheralOptionEnableAutoReconnect: true]
            let peripheral = try await bench.connect(manager, recorder, options: options)
            await bench.radio.refuseConnections(
                to: device, with: [HCIStatus](repeating: .connectionLimitExceeded, count: 3))
            await bench.radio.disconnect(device)
            try await recorder.wait(for: "didConnect 2")
            #expect(recorder.lines == ["didDisconnect CB 7 true 1", "didConnect 2"])
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil false 0")
            await bench.radio.refuseConnections(to: device, with: [.connectionLimitExceeded])
            manager.connect(peripheral, options: options)
            try await recorder.wait(for: "didFailToConnect CB 11")
        }
    }

    /// The controller is asked with the first scan.
    @Test func theFeaturesAreThoseOfTheController() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await bench.manager()
            #expect(!CBCentralManager.supports(.extendedScanAndConnect))
            #expect(CBCentralManager.supports([]))
            _ = await bench.radio.add(.heartRate)
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            #expect(CBCentralManager.supports(.extendedScanAndConnect))
            #expect(!CBCentralManager.supports(.channelSounding))
            #expect(!CBCentralManager.supports([.extendedScanAndConnect, .channelSounding]))
        }
        try await Bench.run { bench in
            await bench.radio.setPersonality(.bluetooth4)
            let (manager, recorder) = try await bench.manager()
            _ = await bench.radio.add(.heartRate)
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            #expect(!CBCentralManager.supports(.extendedScanAndConnect))
        }
    }

    // MARK: Errors, A6

    @Test(arguments: Array(0x01...0x11) + [0x80, 0xFF, 0x42] as [UInt8])
    func errorsOfThePeerAreReportedWithTheirNumber(_ number: UInt8) async throws {
        try await Bench.run { bench in
            let refusal = ATTErrorCode(rawValue: number)
            let device = VirtualDevice(
                name: "Refusing",
                services: [
                    VirtualService(
                        0xFFF0,
                        [
                            VirtualCharacteristic(
                                0xFFF1, [.read, .write, .notify], onRead: .refuse(refusal), onWrite: .refuse(refusal))
                        ])
                ])
            let peer = await bench.radio.add(device)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF1")])
            peripheral.readValue(for: value)
            peripheral.writeValue(Data([1]), for: value, type: .withResponse)
            try await recorder.wait(for: "didUpdateValueFor FFF1 ATT \(number)")
            try await recorder.wait(for: "didWriteValueFor FFF1 ATT \(number)")
            let error = try #require(recorder.errors.first)
            #expect((error as NSError).code == Int(number))
            #expect((error as NSError).domain == CBATTErrorDomain)
            #expect(error.localizedDescription.hasPrefix("Could not read"))
            // ATT_WRITE_REQ: the device refuses to be configured too.
            await peer.behave { pdu, respond in
                let responses = pdu.first == 0x12 ? [[0x01, 0x12, pdu[1], pdu[2], number]] : respond(pdu)
                return withoutDelay(responses)
            }
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 false ATT \(number)")
            #expect(!value.isNotifying)
        }
    }

    // MARK: Threads and life, A8 and A9

    /// Each thread has a device of its own to connect to, which is not in range.
    @Test func callsOfManyThreadsAreAllReported() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            bench.queue.setSpecific(key: Self.key, value: true)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let (value, point) = (try #require(found[location]), try #require(found[control]))
            let rate = try #require(found[measurement])
            let identifiers = (0..<8).compactMap { UUID(uuidString: "42415245-424C-8001-8045-C0000000010\($0)") }
            let absent = manager.retrievePeripherals(withIdentifiers: identifiers)
            try #require(absent.count == 8)
            // What is on its way of the scan that has found the device is reported before.
            try await bench.time.clock.sleep(for: .seconds(5))
            recorder.clear()
            recorder.react { line in
                if DispatchQueue.getSpecific(key: Self.key) != true { Issue.record("\(line) is on another queue") }
            }
            let others = [CBUUID(string: "FFF0")]
            await bench.onThreads(8) { thread in
                for number in 0..<25 {
                    peripheral.readValue(for: value)
                    manager.scanForPeripherals(withServices: others)
                    manager.connect(absent[thread])
                    peripheral.writeValue(Data([1]), for: point, type: .withResponse)
                    peripheral.setNotifyValue(number % 2 == 0, for: rate)
                    manager.cancelPeripheralConnection(absent[thread])
                    manager.stopScan()
                    _ = (peripheral.state, peripheral.services, value.value, rate.isNotifying, manager.isScanning)
                }
            }
            try await bench.time.clock.sleep(for: .seconds(600))
            #expect(recorder.count(of: "didUpdateValueFor 2A38 [1]") == 200)
            #expect(recorder.count(of: "didWriteValueFor 2A39 nil") == 200)
            #expect(recorder.count(of: "didUpdateNotificationStateFor 2A37 true nil") == 104)
            #expect(recorder.count(of: "didUpdateNotificationStateFor 2A37 false nil") == 96)
            #expect(recorder.count(of: "didDisconnect nil false") == 200)
            // The belt sends its values while it is to.
            #expect(recorder.lines.count { !$0.hasPrefix("didUpdateValueFor 2A37") } == 800)
            #expect(await device.isSubscribed(to: 0x2A37) == rate.isNotifying)
            #expect(absent.allSatisfy { $0.state == .disconnected })
            #expect(!manager.isScanning)
            #expect(await !bench.radio.isScanning())
            #expect(bench.log.misuse == [])
        }
    }

    @Test func managersAndPeripheralsComeAndGo() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let identifier = try await bench.connect(manager, recorder).identifier
            recorder.forget()
            var references: [WeakReference] = []
            for number in 0..<1_000 {
                let reference = WeakReference()
                do {
                    let recorder = CallbackRecorder(bench.time)
                    let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
                    reference.object = manager
                    try await recorder.wait(for: "state 5")
                    if number.isMultiple(of: 2) { manager.scanForPeripherals(withServices: nil) }
                    let peripheral = try #require(manager.retrievePeripherals(withIdentifiers: [identifier]).first)
                    manager.connect(peripheral)
                }
                references.append(reference)
            }
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(references.count { $0.object != nil } == 0)
            #expect(await !device.isConnected)
            #expect(await !bench.radio.isScanning())
        }
    }

    /// Each manager is dropped at another moment of its scan and its connection, and its delegate is not.
    @Test func aManagerThatWasDroppedReportsNothing() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let identifier = try await bench.connect(manager, recorder).identifier
            recorder.forget()
            var dropped: [(recorder: CallbackRecorder, count: Int)] = []
            var peripherals: [WeakReference] = []
            for number in 0..<1_000 {
                let recorder = CallbackRecorder(bench.time)
                let (reference, peripheralReference) = (WeakReference(), WeakReference())
                do {
                    let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
                    reference.object = manager
                    try await recorder.wait(for: "state 5")
                    manager.scanForPeripherals(
                        withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
                    let peripheral = try #require(manager.retrievePeripherals(withIdentifiers: [identifier]).first)
                    peripheralReference.object = peripheral
                    peripheral.delegate = recorder
                    manager.connect(peripheral)
                    try await bench.time.clock.sleep(for: .milliseconds(number))
                    _ = (manager, peripheral)
                }
                recorder.forget()
                // A callback that is running keeps its manager until it returns.
                bench.queue.sync {}
                #expect(reference.object == nil)
                dropped.append((recorder, recorder.lines.count))
                peripherals.append(peripheralReference)
            }
            try await bench.time.clock.sleep(for: .seconds(60))
            for (recorder, count) in dropped { #expect(recorder.lines.count == count, "\(recorder.lines)") }
            #expect(peripherals.count { $0.object != nil } == 0)
            #expect(await !device.isConnected)
        }
    }
}

/// A device with two values that it sends, 0xFFF1 and 0xFFF3, and one that can be read, 0xFFF2.
private let deviceWithTwoSensors = VirtualDevice(
    name: "Sensors",
    services: [
        VirtualService(
            0xFFF0,
            [
                VirtualCharacteristic(0xFFF1, .notify), VirtualCharacteristic(0xFFF2, .read, value: [7]),
                VirtualCharacteristic(0xFFF3, .notify),
            ])
    ])

/// A device with a value, 0xFFF1, that has descriptors of the types of the specification, of one that is not assigned,
/// and of one of its manufacturer.
private let deviceWithDescriptors = VirtualDevice(
    name: "Described",
    services: [
        VirtualService(
            0xFFF0,
            [
                VirtualCharacteristic(
                    0xFFF1, [.read, .notify], value: [1],
                    descriptors: [
                        VirtualDescriptor(0x2900, value: [1, 0]),
                        VirtualDescriptor(0x2901, value: Array("Level".utf8)),
                        VirtualDescriptor(0x2903, value: [0, 1]),
                        VirtualDescriptor(0x2904, value: [4, 0, 0, 0x27, 1, 0, 0]),
                        VirtualDescriptor(0x2905, value: [3, 0]),
                        VirtualDescriptor(0x29F0, value: [5, 0]),
                        VirtualDescriptor("6E400009-B5A3-F393-E0A9-E50E24DCCA9E", value: [6, 0]),
                    ])
            ])
    ])

/// Subscribes to both sensors, and forgets the reports.
private func subscribe(
    _ peripheral: CBPeripheral, _ recorder: CallbackRecorder, _ found: [CBUUID: CBCharacteristic]
) async throws {
    for name in ["FFF1", "FFF3"] {
        peripheral.setNotifyValue(true, for: try #require(found[CBUUID(string: name)]))
        try await recorder.wait(for: "didUpdateNotificationStateFor \(name) true nil")
    }
    recorder.clear()
}

/// The sensor that sends the value with this number.
private func sensor(_ number: Int) -> BluetoothUUID { number.isMultiple(of: 2) ? 0xFFF1 : 0xFFF3 }

/// The value with this number.
private func bytes(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

/// The report of the value with this number.
private func report(_ number: Int) -> String {
    "didUpdateValueFor \(number.isMultiple(of: 2) ? "FFF1" : "FFF3") \(bytes(number))"
}

extension VirtualPeripheral {
    /// Does something on the loop, so that nothing is read meanwhile.
    fileprivate func atOnce(_ body: @Sendable (isolated VirtualPeripheral) throws -> Void) throws { try body(self) }
}

extension Bench {
    /// Runs `body` on other threads than that of the managers' host, on `count` of them at once.
    fileprivate func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
        await time.hold {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let rest = Lock(count)
                for number in 0..<count {
                    Thread.detachNewThread {
                        body(number)
                        let isLast = rest.withLock { rest in
                            rest -= 1
                            return rest == 0
                        }
                        if isLast { continuation.resume() }
                    }
                }
            }
        }
    }
}

/// The number of a write, as its value.
private func data(_ number: UInt32) -> Data {
    let bytes = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    return Data(bytes)
}

/// A device that keeps the numbers of the writes to its value 0xFFF1, and has another one, 0xFFF2.
private func deviceThatKeeps(_ written: Lock<[UInt32]>) -> VirtualDevice {
    VirtualDevice(
        name: "Line",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(
                        0xFFF1, .writeWithoutResponse,
                        onWrite: .call { value in
                            written.withLock { $0.append(value.reduce(0) { $0 << 8 | UInt32($1) }) }
                            return nil
                        }),
                    VirtualCharacteristic(0xFFF2, .read, value: [7]),
                ])
        ])
}

/// A device that counts the writes to its value 0xFFF1, and has another one, 0xFFF2.
private func deviceThatCounts(_ written: Lock<Int>) -> VirtualDevice {
    VirtualDevice(
        name: "Line",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(
                        0xFFF1, .writeWithoutResponse,
                        onWrite: .call { _ in
                            written.withLock { $0 += 1 }
                            return nil
                        }),
                    VirtualCharacteristic(0xFFF2, .read, value: [7]),
                ])
        ])
}

/// The far end of a channel, closed with the last reference.
private final class FarEndOfChannel: Sendable {
    private let socket: LinkSocket

    init(_ descriptor: Int32) {
        socket = LinkSocket(adopting: descriptor)
    }
}

/// A delegate that implements nothing.
private final class SilentDelegate: NSObject, CBPeripheralDelegate {}
