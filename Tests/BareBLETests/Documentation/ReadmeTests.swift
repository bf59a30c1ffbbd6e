import BareBLE
import BareBLECrypto
import BareBLETestKit
import Glibc
import Testing

/// The samples of the README and of the articles on single links.
@Suite struct ReadmeTests {
    // MARK: What needs a radio is compiled only

    private func scan() async throws {
        // in: README.md
        let central = Central()
        for try await case .found(let device) in central.scan() {
            print(device.rssi ?? 0, device.peer?.description ?? "anonymous", device.name ?? "")
        }
        // out
    }

    private func read(_ peer: PeerID) async throws {
        let central = Central()
        // in: README.md
        let level = try await central.withConnection(peer) { connection in
            try await connection.read(0x2A19)
        }
        print("battery: \(level.first ?? 0) %")
        // out
    }

    private func serve(_ central: Central) async throws {
        // in: README.md, Sources/BareBLE/BareBLE.docc/PeripheralRole.md
        let peripheral = LocalPeripheral(.init(name: "Lamp"), on: central)
        let lampService: BluetoothUUID = "9d5a0003-3c7e-4b1f-8a26-e4710c95b3d8"
        let switches = LocalCharacteristic(0xFFF1, [.read, .write, .notify], value: .stored([0]))
        try await peripheral.publish(LocalService(lampService, [switches]))
        let events = peripheral.events
        let advertising = try await peripheral.advertise([
            .flags([.generalDiscoverable, .classicNotSupported]), .services([lampService]), .localName("Lamp"),
        ])
        for try await case .written in events {
            try await peripheral.update(peripheral.value(of: 0xFFF1), of: 0xFFF1)
        }
        await advertising.stop()
        // out
    }

    private func typedValue(of peripheral: LocalPeripheral) async throws {
        // in: Sources/BareBLE/BareBLE.docc/PeripheralRole.md
        let battery = LocalCharacteristic(
            .batteryLevel, [.read, .notify], value: .stored(BatteryLevel(percentage: 80).valueBytes))
        try await peripheral.publish(LocalService(0x180F, [battery]))
        try await peripheral.update(BatteryLevel(percentage: 79), of: .batteryLevel)
        // out
    }

    private func serveOnASocket(_ central: Central) async throws {
        // in: Sources/BareBLE/BareBLE.docc/PeripheralRole.md
        let peripheral = LocalPeripheral(.init(name: "Lamp"), on: central)
        let lampService: BluetoothUUID = "9d5a0003-3c7e-4b1f-8a26-e4710c95b3d8"
        let switches = LocalCharacteristic(0xFFF1, [.read, .write, .notify], value: .stored([0]))
        try await peripheral.publish(LocalService(lampService, [switches]))
        let events = peripheral.events
        try await peripheral.acceptCentrals(atSocket: "/tmp/lamp")
        for try await case .written(let write) in events {
            print(write.central.name, "wrote", write.value)
        }
        // out
    }

    @Test func theSampleOfAStoredValueServesACentral() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let program = time.task { try await serve(Central(radio: radio)) }
            let phone = await radio.addCentral()
            try await phone.connect()
            #expect(try await phone.read(0xFFF1) == [0])
            try await phone.subscribe(to: 0xFFF1)
            try await phone.write([7], to: 0xFFF1)
            #expect(try await phone.nextValue(within: .seconds(1)).bytes == [7])
            #expect(try await phone.read(0xFFF1) == [7])
            program.cancel()
            try? await program.value
        }
    }

    @Test func theSampleOfATypedValueUpdatesIt() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            try await typedValue(of: local)
            let advertising = try await local.advertise([.localName("A")])
            let phone = await radio.addCentral()
            try await phone.connect()
            #expect(try await phone.read(0x2A19) == [79])
            await advertising.stop()
            await local.stop()
        }
    }

    @Test func theSampleOfTheThermometerIndicatesItsValues() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let program = time.task { try await thermometer(Central(radio: radio)) }
            let phone = await radio.addCentral()
            try await phone.connect()
            #expect(try await phone.read(0x2A1D) == [2])
            try await phone.subscribe(to: 0x2A1C, isIndicated: true)
            for _ in 0..<3 {
                let value = try await phone.nextValue(within: .seconds(6))
                #expect(value.isIndication && value.bytes == [0x00, 0x6A, 0x01, 0x00, 0xFF])
            }
            program.cancel()
            try? await program.value
            await time.settle()
        }
    }

    private func channel(_ device: Peripheral) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Channels.md
        let channel = try await device.openChannel(psm: 0x0080)
        try await channel.send([0x01])
        for try await packet in channel.packets {
            print(packet.count, "of at most", channel.receiveMTU, "bytes")
        }
        await channel.close()
        // out
    }

    private func oneThread() {
        // in: Sources/BareBLE/BareBLE.docc/GettingStarted.md
        do {
            try Central.serve { central in
                try await central.ready(powerOn: true)
                let belt = try await central.first(.services(0x180D), timeout: .seconds(30))
                guard let peer = belt.peer else { return }
                try await central.withConnection(peer) { device in
                    for try await beat in try await device.subscribe(to: 0x2A37) {
                        print(beat.bytes)
                    }
                }
            }
        } catch {
            print(error)
            exit(1)
        }
        // out
    }

    private func withoutRadio() async throws {
        // in: Sources/BareBLE/BareBLE.docc/GettingStarted.md
        let radio = VirtualRadio()
        await radio.add(.heartRate)
        let central = Central(radio: radio)
        let belt = try await central.connect(toFirst: .services(0x180D)).peripheral
        for try await beat in try await belt.subscribe(to: .heartRateMeasurement) {
            print(beat.beatsPerMinute)
        }
        // out
    }

    @Test func theSampleWithoutARadioRuns() async throws {
        try await VirtualTime.run { time in
            let program = time.task { try await withoutRadio() }
            try await time.clock.sleep(for: .seconds(10))
            program.cancel()
            // Only its cancellation ends it, without an error.
            try await program.value
        }
    }

    private func addressAlone(_ central: Central) async throws -> UInt8 {
        // in: Sources/BareBLE/BareBLE.docc/GettingStarted.md
        let level = try await central.withConnection("C0:DE:00:00:00:01") { device in
            try await device.read(.batteryLevel)
        }
        // out
        return level.percentage
    }

    private func adapters() throws -> Configuration {
        // in: Sources/BareBLE/BareBLE.docc/GettingStarted.md
        for adapter in try Central.adapters() { print(adapter) }
        var configuration = Configuration()
        configuration.adapter = try Central.adapters().first { $0.bus == .usb }?.selector ?? .first
        // out
        return configuration
    }

    private func redaction(_ central: Central) async throws {
        // in: Sources/BLEProfiles/BLEProfiles.docc/DecodedAdvertisements.md
        var redaction = AdvertisementRedaction()
        for try await case .found(let device) in central.scan() {
            let shown = redaction.redacted(device)
            print(shown.peer?.description ?? "-", shown.name ?? "-", shown.advertisement?.data ?? [])
        }
        // out
    }

    private func meanings(_ central: Central) async throws {
        // in: Sources/BLEProfiles/BLEProfiles.docc/DecodedAdvertisements.md
        for try await case .found(let device) in central.scan() {
            for decoded in device.decoded {
                if let temperature = decoded["temperature"]?.number { print(decoded.title, temperature, "°C") }
                print(decoded)
            }
        }
        // out
    }

    private func filteredScan(_ central: Central) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Scanning.md
        var filter = ScanFilter.services(0x181A)
        filter.minimumRSSI = -80
        let settings = try ScanSettings(isActive: false, interval: .seconds(1), window: .milliseconds(100))
        for try await event in central.scan(filter, settings, lostAfter: .seconds(30)) {
            switch event {
            case .found(let device), .updated(let device):
                print(device.name ?? "-", device.averageRSSI ?? 0, device.serviceData)
            case .lost(let device): print("gone:", device.name ?? "-")
            case .dropped(let count): print("too slow for", count, "events")
            case .paused, .resumed: continue
            }
        }
        // out
    }

    private func filters() -> [ScanFilter] {
        // in: Sources/BareBLE/BareBLE.docc/Scanning.md
        var tags = ScanFilter.company(0x0499, startingWith: [5])
        tags.minimumRSSI = -85
        let named = ScanFilter.name(startingWith: "Ruuvi")
        // out
        return [tags, named]
    }

    private func exclusions(_ central: Central) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Scanning.md
        let scan = central.scan(.services(0x180D))
        for try await case .found(let device) in scan {
            guard let peer = device.peer, device.name != "My belt" else { break }
            scan.excluded.insert(peer)
        }
        // out
    }

    private func privateAddresses() -> Configuration {
        // in: Sources/BareBLE/BareBLE.docc/Scanning.md
        var configuration = Configuration()
        configuration.addressHash = { $0.hash }  // import BareBLECrypto
        // out
        return configuration
    }

    private func repetitions() -> [ScanSettings] {
        // in: Sources/BareBLE/BareBLE.docc/Scanning.md
        let seldom = ScanSettings.passive.duplicates(.every(.seconds(10)))
        let moving = ScanSettings.passive.duplicates(.all).rssiDelta(5)
        // out
        return [seldom, moving]
    }

    private func finding(_ central: Central) async throws -> [UInt8] {
        // in: Sources/BareBLE/BareBLE.docc/Scanning.md
        let around = try await central.collect(for: .seconds(5))
        print(around.count, "devices")
        let level = try await central.withConnection(toFirst: .services(0x180F)) { device, scanResult in
            print("connected to", scanResult.name ?? "-", "at", scanResult.rssi ?? 0, "dBm")
            return try await device.read(0x2A19)
        }
        // out
        return level
    }

    private func monitoring(_ central: Central, _ keys: PeerID) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Scanning.md
        let monitor = try await central.monitor(.services(0xFEAA), lostAfter: .seconds(20))
        monitor.pin(keys)
        for try await change in monitor.changes {
            for device in change.arrived { print("here:", device.scanResult.name ?? "-") }
            for device in change.moved where device.proximity.level == .immediate { print("at the door") }
            for device in change.left { print("left:", device.peer == keys ? "the keys!" : "somebody") }
            if monitor.devices.isEmpty { break }
        }
        await monitor.stop()
        // out
    }

    // MARK: What needs none runs

    @Test func theSampleOfWritingWorks() async throws {
        let tank = VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write], value: [])])
        let peripheral = VirtualPeripheral(VirtualDevice(name: "Tank", services: [tank]))
        let device = try await Central().attach(descriptor: peripheral.connect())
        // in: Sources/BareBLE/BareBLE.docc/ReadingAndWriting.md
        let database = try await device.discover()
        for characteristic in database.characteristics {
            print(characteristic.valueHandle, characteristic.uuid, characteristic.properties)
        }
        try await device.write([0x05, 0xA0], to: 0xFFF1)
        let value = try await device.read(.uuid(0xFFF1, service: 0xFFF0), timeout: .seconds(5))
        // out
        #expect(value == [0x05, 0xA0])
        // in: Sources/BareBLE/BareBLE.docc/ReadingAndWriting.md
        let litres = CharacteristicKey<UInt16>(0xFFF1, in: 0xFFF0)
        try await device.write(40_965, to: litres)
        let level = try await device.read(litres)
        // out
        #expect(level == 40_965)
    }

    @Test func listsOneProcedureAtATime() async throws {
        let device = try await Central().attach(descriptor: VirtualPeripheral(.battery).connect())
        // in: Sources/BareBLE/BareBLE.docc/ReadingAndWriting.md
        for service in try await device.discoverServices([0x180F]) {
            for characteristic in try await device.discoverCharacteristics(of: service) {
                let descriptors = try await device.discoverDescriptors(of: characteristic)
                print(characteristic.uuid, descriptors.map(\.uuid))
            }
        }
        // out
    }

    @Test func theSampleOfSubscribingWorks() async throws {
        let belt = VirtualPeripheral(.heartRate)
        let device = try await Central().attach(descriptor: belt.connect())
        // in: Sources/BareBLE/BareBLE.docc/Notifications.md
        let beats = try await device.subscribe(to: 0x2A37, SubscribeOptions(capacity: 16, policy: .dropOldest))
        for try await beat in beats {
            if beat.droppedBefore > 0 { print("missed", beat.droppedBefore) }
            print(beat.bytes)
            break
        }
        try await beats.unsubscribe()
        // out
        #expect(await !belt.isSubscribed(to: 0x2A37))
    }

    @Test func distinguishesFailures() async throws {
        let device = try await Central().attach(descriptor: VirtualPeripheral(.longValue).connect())
        // in: Sources/BareBLE/BareBLE.docc/Errors.md
        do {
            _ = try await device.read(0xFFF2)
        } catch {
            switch error.code {
            case .disconnected, .timedOut: print("try again:", error)
            case .refusedByPeer, .insufficientSecurity: print("the peer says", error.attError?.name ?? "no")
            default: throw error
            }
        }
        // out
        // in: Sources/BareBLE/BareBLE.docc/Errors.md
        Task {
            do throws(BLEError) {
                print(try await device.read(.batteryLevel).percentage)
            } catch {
                print(error.code)
            }
        }
        // out
    }

    // in: Sources/BareBLE/BareBLE.docc/TestingYourDaemon.md
    @Test func readsTheBattery() async throws {
        let belt = VirtualPeripheral(.heartRate)
        let device = try await Central().attach(descriptor: belt.connect())
        #expect(try await device.read(0x2A19) == [87])

        let levels = try await device.subscribe(to: 0x2A19)
        try await belt.notify(0x2A19, [12])
        for try await level in levels {
            #expect(level.bytes == [12])
            break
        }

        await belt.disconnect()
        #expect(await device.disconnected() != nil)
    }
    // out

    @Test func playsADialogue() async throws {
        // in: Sources/BareBLETestKit/BareBLETestKit.docc/BareBLETestKit.md
        let dialogue = try Dialogue(
            """
            # Reads a value
            < 0a 0300            # Read Request
            > 0b 010203          # Read Response
            """)
        let peer = ScriptedPeripheral(dialogue)
        let device = try await Central().attach(
            descriptor: peer.connect(), name: "script", ConnectOptions(mtu: 23))
        #expect(try await device.read(.handle(0x0003)) == [1, 2, 3])
        #expect(await peer.finish().isComplete)
        // out
    }

    // MARK: Caching

    private func cached() -> Central {
        // in: Sources/BareBLE/BareBLE.docc/Caching.md
        var configuration = Configuration()
        configuration.cacheDirectory = "/var/lib/lamp-daemon"
        let central = Central(configuration)
        // out
        return central
    }

    private func cachedByHand(_ central: Central, _ peer: PeerID) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Caching.md
        let file = GATTCacheFile("lamp.gatt")
        let device = try await central.connect(peer, ConnectOptions(cache: try? file.load()))
        try await device.discover()
        if let cache = try await device.cache() { try file.save(cache) }
        // out
    }

    @Test func theSampleOfReadingInOneServiceWorks() async throws {
        let device = try await Central().attach(to: VirtualPeripheral(.heartRate))
        // in: Sources/BareBLE/BareBLE.docc/Caching.md
        let level = try await device.read(.uuid(0x2A19, service: 0x180F))
        // out
        #expect(level == [87])
    }

    private func changes(of device: Peripheral) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Caching.md
        for try await change in try await device.serviceChanges() {
            print("look again at", change.handles, change.formerServices, change.services)
        }
        // out
    }

    private func acceptChannels(_ peripheral: LocalPeripheral) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Channels.md
        let welcome: BluetoothUUID = "9d5a0004-3c7e-4b1f-8a26-e4710c95b3d8"
        let listener = try await peripheral.listenForChannels()
        try await peripheral.publish(
            LocalService(welcome, [LocalCharacteristic(.l2capPSM, .read, value: .fixed(listener.psm))]))
        for try await incoming in listener.channels {
            try await incoming.channel.send(Array("welcome, \(incoming.central.name)".utf8))
        }
        // out
    }

    private func thermometer(_ central: Central) async throws {
        // in: Sources/BareBLE/BareBLE.docc/PeripheralRole.md
        let peripheral = LocalPeripheral(.init(name: "Thermometer"), on: central)
        try await peripheral.publish(
            LocalService(
                0x1809,
                [LocalCharacteristic(0x2A1C, .indicate), LocalCharacteristic(0x2A1D, .read, value: .fixed([2]))]))
        let advertising = try await peripheral.advertise([
            .flags([.generalDiscoverable, .classicNotSupported]), .services([0x1809]), .localName("Thermometer"),
        ])
        while await advertising.state != .stopped {
            try await peripheral.update([0x00, 0x6A, 0x01, 0x00, 0xFF], of: 0x2A1C)
            try await central.clock.sleep(for: .seconds(5))
        }
        // out
    }

    private func restarting(_ central: Central) async throws {
        let settings = LocalPeripheral.Settings(name: "Thermometer")
        let thermometer = LocalService(0x1809, [LocalCharacteristic(0x2A1C, .indicate)])
        // in: Sources/BareBLE/BareBLE.docc/Restarting.md
        let peripheral = LocalPeripheral(settings, on: central)
        let before = try await peripheral.restore()
        if let damage = before.damage { print(damage) }
        try await peripheral.publish(thermometer)
        let advertising = try await peripheral.advertise([
            .flags([.generalDiscoverable, .classicNotSupported]), .services([0x1809]),
        ])
        // out
        // in: Sources/BareBLE/BareBLE.docc/Restarting.md
        if let notifier = ServiceNotifier() {
            await peripheral.suspend(handingOverTo: DescriptorStore(notifier))
        }
        // out
        await advertising.stop()
    }

    private actor Lamp {
        private var value: [UInt8] = [0]

        func state() -> [UInt8] { value }

        func set(_ level: UInt8) { value = [level] }
    }

    private func switches() -> LocalCharacteristic {
        let lamp = Lamp()
        // in: Sources/BareBLE/BareBLE.docc/PeripheralRole.md
        let switches = LocalCharacteristic(
            0xFFF1, [.read, .write],
            value: .handled { request in
                await lamp.state()
            } write: { request in
                guard request.value.count == 1 else { throw ATTRefusal(.invalidAttributeValueLength) }
                await lamp.set(request.value[0])
            })
        // out
        return switches
    }
}
