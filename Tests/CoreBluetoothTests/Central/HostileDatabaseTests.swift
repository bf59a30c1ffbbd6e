import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// Peers whose databases are wrong, change, or are like those of others: a program on CoreBluetooth uses what was
/// discovered on its link, and nothing else.
@Suite(.timeLimit(.minutes(10))) struct HostileDatabaseTests {
    private static let one = CBUUID(string: "FFF1")

    // MARK: Configurations

    /// A characteristic at the handle 3, with its configuration at the handle 4, and nine more of them. The program has
    /// discovered them, or not.
    @Test(.row("G14"), arguments: [false, true])
    func ofTenConfigurationsTheFirstIsWritten(_ areDiscovered: Bool) async throws {
        try await Bench.run { bench in
            let others = [VirtualDescriptor](repeating: VirtualDescriptor(0x2902, value: [0, 0]), count: 9)
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Sensor",
                    services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .notify, descriptors: others)])]))
            let writes = Lock<[[UInt8]]>([])
            await device.behave { pdu, respond in
                // ATT_WRITE_REQ
                if pdu.first == 0x12 { writes.withLock { $0.append(pdu) } }
                return withoutDelay(respond(pdu))
            }
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[Self.one])
            if areDiscovered {
                peripheral.discoverDescriptors(for: value)
                try await recorder.wait(for: "didDiscoverDescriptorsFor FFF1 nil")
                let uuids = value.descriptors?.map(\.uuid.uuidString)
                #expect(uuids == [String](repeating: "2902", count: 10))
                recorder.clear()
            }
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            #expect(try await device.notify(0xFFF1, [5]))
            try await recorder.wait(for: "didUpdateValueFor FFF1 [5]")
            peripheral.setNotifyValue(false, for: value)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(
                recorder.lines == [
                    "didUpdateNotificationStateFor FFF1 true nil", "didUpdateValueFor FFF1 [5]",
                    "didUpdateNotificationStateFor FFF1 false nil",
                ])
            #expect(writes.withLock { $0 } == [[0x12, 4, 0, 1, 0], [0x12, 4, 0, 0, 0]])
            _ = manager
        }
    }

    /// The device states that it notifies, and lists a format and a description.
    @Test(.row("G14"), arguments: [false, true])
    func withoutAConfigurationTheSubscriptionFails(_ areDiscovered: Bool) async throws {
        try await Bench.run { bench in
            let description = VirtualDescriptor(0x2901, value: [])
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Sensor",
                    services: [
                        VirtualService(
                            0xFFF0,
                            [
                                VirtualCharacteristic(
                                    0xFFF1, [.read, .notify], value: [7], descriptors: [description])
                            ])
                    ]))
            let writes = Lock(0)
            await device.behave { pdu, respond in
                if pdu.first == 0x12 { writes.withLock { $0 += 1 } }
                // ATT_FIND_INFORMATION_REQ
                let responses = pdu.first == 0x04 ? [[0x05, 1, 4, 0, 0x04, 0x29, 5, 0, 0x01, 0x29]] : respond(pdu)
                return withoutDelay(responses)
            }
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[Self.one])
            if areDiscovered {
                peripheral.discoverDescriptors(for: value)
                try await recorder.wait(for: "didDiscoverDescriptorsFor FFF1 nil")
                #expect(value.descriptors?.map(\.uuid.uuidString) == ["2904", "2901"])
                recorder.clear()
            }
            peripheral.setNotifyValue(true, for: value)
            peripheral.readValue(for: value)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(
                recorder.lines == ["didUpdateNotificationStateFor FFF1 false ATT 6", "didUpdateValueFor FFF1 [7]"])
            #expect(!value.isNotifying)
            #expect(writes.withLock { $0 } == 0)
            _ = manager
        }
    }

    // MARK: Changes

    /// A device whose first characteristic has its value at the handle 16: Generic Access has five attributes, Generic
    /// Attribute eight, and a service and a declaration come before it.
    private static func meter(_ characteristics: [VirtualCharacteristic]) -> VirtualDevice {
        VirtualDevice(
            name: "Meter",
            services: [
                .genericAccess(name: "Meter", appearance: 0), .genericAttribute(databaseHash: nil),
                VirtualService(0xFFF0, characteristics),
            ])
    }

    /// Discovers one characteristic of one service, each by its UUID.
    private func discoverByName(
        _ peripheral: CBPeripheral, _ recorder: CallbackRecorder
    ) async throws -> CBCharacteristic {
        peripheral.discoverServices([CBUUID(string: "FFF0")])
        try await recorder.wait(for: "didDiscoverServices nil")
        let service = try #require(peripheral.services?.first)
        peripheral.discoverCharacteristics([Self.one], for: service)
        try await recorder.wait(for: "didDiscoverCharacteristicsFor FFF0 nil")
        recorder.clear()
        return try #require(service.characteristics?.first)
    }

    /// The program has not discovered Generic Attribute, by which the device announces the change. The old handle is
    /// that of another value then, which the device sends.
    @Test(.row("G25")) func aChangeEndsTheUseOfAServiceThatWasDiscoveredByName() async throws {
        try await Bench.run { bench in
            let value = VirtualCharacteristic(0xFFF1, [.read, .notify], value: [1])
            let device = await bench.radio.add(Self.meter([value]))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let old = try await discoverByName(peripheral, recorder)
            peripheral.setNotifyValue(true, for: old)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await device.isSubscribed(to: 0x2A05))
            recorder.clear()
            await device.send(raw: [0x1B, 16, 0, 2])
            await device.changeServices(to: Self.meter([VirtualCharacteristic(0xFFF9, .notify), value]))
            await device.send(raw: [0x1B, 16, 0, 3])
            try await recorder.wait(for: "didModifyServices [\"FFF0\"]")
            #expect(peripheral.services?.isEmpty == true)
            #expect(!old.isNotifying)
            peripheral.readValue(for: old)
            peripheral.setNotifyValue(true, for: old)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == ["didUpdateValueFor FFF1 [2]", "didModifyServices [\"FFF0\"]"])
            #expect(bench.log.all.count { $0.contains("is not a valid attribute of") } == 2)
            recorder.clear()
            let new = try await discoverByName(peripheral, recorder)
            #expect(new !== old)
            peripheral.readValue(for: new)
            peripheral.setNotifyValue(true, for: new)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            #expect(try await device.notify(0xFFF1, [4]))
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(
                recorder.lines == [
                    "didUpdateValueFor FFF1 [1]", "didUpdateNotificationStateFor FFF1 true nil",
                    "didUpdateValueFor FFF1 [4]",
                ])
            _ = manager
        }
    }

    // MARK: Database Hashes

    /// A device that can be paired, with a value that can be read, 0xFFF1, and one that it sends, 0xFFF2; they come
    /// after a battery, or not. Whatever it has, its Database Hash is `hash`.
    private static func device(
        _ name: String, hash: [UInt8], value: UInt8, hasBattery: Bool, _ protection: VirtualProtection
    ) -> VirtualDevice {
        var services: [VirtualService] = [
            .genericAccess(name: name, appearance: 0), .genericAttribute(databaseHash: hash),
        ]
        if hasBattery { services.append(.battery(level: 9)) }
        let read = VirtualCharacteristic(0xFFF1, .read, value: [value], protection: protection)
        services.append(VirtualService(0xFFF0, [read, VirtualCharacteristic(0xFFF2, .notify)]))
        return VirtualDevice(name: name, services: services, security: VirtualSecurity())
    }

    /// A program that has found the devices of the radio.
    private struct Program {
        let bench: Bench
        let manager: CBCentralManager
        let recorder: CallbackRecorder
        let peripherals: [CBPeripheral]

        init(_ bench: Bench, findingDevices count: Int) async throws {
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            var reports = 0
            while recorder.peripherals.count < count {
                reports += 1
                try await recorder.wait(for: "didDiscover", count: reports)
            }
            manager.stopScan()
            for peripheral in recorder.peripherals { peripheral.delegate = recorder }
            self.bench = bench
            self.manager = manager
            self.recorder = recorder
            peripherals = recorder.peripherals
        }

        /// Uses both values of a device on a link of its own, on which the device sends `value`. Returns what is
        /// reported after the discovery.
        func use(
            _ peripheral: CBPeripheral, of device: VirtualPeripheral, notifying value: UInt8
        ) async throws -> [String] {
            recorder.clear()
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            let found = try await bench.discover(peripheral, recorder)
            peripheral.readValue(for: try #require(found[HostileDatabaseTests.one]))
            try await recorder.wait(for: "didUpdateValueFor FFF1")
            peripheral.setNotifyValue(true, for: try #require(found[CBUUID(string: "FFF2")]))
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF2")
            try await device.notify(0xFFF2, [value])
            try await recorder.wait(for: "didUpdateValueFor FFF2")
            // The device is asked to announce changes by then.
            try await bench.time.clock.sleep(for: .seconds(5))
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect")
            return recorder.lines
        }

        /// What is reported of a link on which all is well.
        static func reports(reading value: UInt8, notifying other: UInt8) -> [String] {
            [
                "didUpdateValueFor FFF1 [\(value)]", "didUpdateNotificationStateFor FFF2 true nil",
                "didUpdateValueFor FFF2 [\(other)]", "didDisconnect nil false 0",
            ]
        }
    }

    static let hashes: [[UInt8]] = [[1, 2, 3], [UInt8](repeating: 7, count: 16)]

    /// Two bonded devices with one hash, of the wrong size or of the right one, and with other handles. Of a device
    /// without a bond a program on CoreBluetooth keeps nothing.
    @Test(.row("G22"), arguments: hashes)
    func eachDeviceIsUsedByItsOwnHandlesWhateverItsHash(_ hash: [UInt8]) async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let first = await bench.radio.add(
                Self.device("First", hash: hash, value: 1, hasBattery: true, .encrypted))
            let second = await bench.radio.add(
                Self.device("Second", hash: hash, value: 2, hasBattery: false, .encrypted))
            let program = try await Program(bench, findingDevices: 2)
            // A device is paired on the first link. The second one is encrypted from its beginning, so what is found on
            // it is kept with the bond for the third. The hash does not prevent that, although it is that of neither
            // device: it is only compared with a database that was discovered as a whole, which these are not.
            for link in 1...3 as ClosedRange<UInt8> {
                for peripheral in program.peripherals {
                    let isFirst = peripheral.name == "First"
                    let lines = try await program.use(peripheral, of: isFirst ? first : second, notifying: link)
                    #expect(lines == Program.reports(reading: isFirst ? 1 : 2, notifying: link))
                }
            }
            for device in [first, second] {
                #expect(await device.connectionCount == 3)
                #expect(await device.pairingCount == 1)
            }
        }
    }

    /// Another device with the same address and the same hash, which is that of neither, is used before the one that is
    /// paired.
    @Test(.row("G26")) func whatWasFoundBeforeAPairingIsNotUsedAfterIt() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let hash = [UInt8](repeating: 7, count: 16)
            let device = await bench.radio.add(
                Self.device("Lock", hash: hash, value: 66, hasBattery: true, .none))
            let program = try await Program(bench, findingDevices: 1)
            let peripheral = try #require(program.peripherals.first)
            for link in 0..<4 as Range<UInt8> {
                if link == 1 {
                    await device.changeServices(
                        to: Self.device("Lock", hash: hash, value: 7, hasBattery: false, .encrypted),
                        isAnnounced: false)
                }
                let lines = try await program.use(peripheral, of: device, notifying: link)
                #expect(lines == Program.reports(reading: link == 0 ? 66 : 7, notifying: link))
                #expect(await device.pairingCount == (link == 0 ? 0 : 1))
            }
        }
    }
}
