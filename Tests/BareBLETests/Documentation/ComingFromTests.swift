import BareBLE
import BareBLETestKit
import Testing

/// The samples of coming-from.md. All of them run on a simulated radio.
@Suite(.timeLimit(.minutes(10))) struct ComingFromTests {
    /// A device that responds at one characteristic to writes at another, and the keys for it.
    private static let echo = VirtualDevice(
        name: "Echo",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, .write, onWrite: .echo(0xFFF2)),
                    VirtualCharacteristic(0xFFF2, .notify),
                    VirtualCharacteristic(0xFFF3, [.read, .write], value: [0x28, 0x00, 0x01]),
                ])
        ])

    /// Runs `body` with a central in whose air there is one device.
    private func withAir(
        of device: VirtualDevice, _ body: @concurrent @Sendable @escaping (Central, PeerID) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let peer = try #require(await radio.id(of: radio.add(device)))
            try await body(Central(radio: radio), peer)
        }
    }

    // MARK: Bluejay

    @Test func bluejayScans() async throws {
        try await withAir(of: .heartRate) { central, _ in
            // in: Docs/users/coming-from.md
            // scan(duration:allowDuplicates:throttleRSSIDelta:serviceIdentifiers:discovery:expired:stopped:)
            let often = ScanSettings.balanced.duplicates(.all).rssiDelta(5)
            let scan = central.scan(.services(0x180D), often, lostAfter: .seconds(15), duration: .seconds(30))
            for try await event in scan {
                switch event {
                case .found(let sensor), .updated(let sensor):  // discovery
                    print(sensor.name ?? "-", sensor.rssi ?? 0)
                case .lost(let sensor):  // expired, and then the blacklist
                    if let peer = sensor.peer { scan.excluded.insert(peer) }
                case .dropped(let count): print("too slow for", count, "events")
                case .paused, .resumed: break
                }
            }
            // stopped: the time is over, you left the loop, or an error was thrown
            // out
        }
    }

    @Test func bluejayRunsInTheBackground() async throws {
        try await withAir(of: Self.echo) { central, peer in
            let device = try await central.connect(peer)
            let (control, reply): (CharacteristicReference, CharacteristicReference) = (0xFFF1, 0xFFF2)
            // in: Docs/users/coming-from.md
            // run(backgroundTask:completionOnMainThread:) and its SynchronizedPeripheral
            let log = try await device.exclusively { device in
                _ = try await device.drain(reply, quietFor: .seconds(1))  // flushListen
                _ = try await device.request([1], to: control, replyOn: reply, timeout: .seconds(3))  // writeAndListen
                // writeAndAssemble
                return try await device.request(
                    [2, 3, 4], to: control, assembling: reply, .length(3), idleTimeout: .seconds(2))
            }
            // out
            #expect(log == [2, 3, 4])
            await device.disconnect()
        }
    }

    @Test func bluejayListens() async throws {
        try await withAir(of: .heartRate) { central, peer in
            let device = try await central.connect(peer)
            // in: Docs/users/coming-from.md
            // listen(to:multipleListenOption:), isListening(to:), endListen(to:)
            let beats = try await device.subscribe(
                to: .heartRateMeasurement, SubscribeOptions(sharing: .replacing))
            for try await beat in beats {
                print(beat.beatsPerMinute, await device.subscriptions.count)
                break
            }
            try await beats.unsubscribe()
            // out
            #expect(await device.subscriptions.isEmpty)
            await device.disconnect()
        }
    }

    // MARK: LittleBlueTooth

    // in: Docs/users/coming-from.md
    struct TankLevel: GATTReadable, GATTWritable {  // Readable, Writable
        var litres: UInt16
        var alarm: Bool

        init(reading reader: inout ByteReader) throws(MalformedPacket) {
            litres = try reader.read()  // extract(start:length:), with the place kept for you
            alarm = try reader.read()
        }

        func write(to writer: inout ByteWriter) {
            writer.write(litres)
            writer.write(alarm)
        }
    }

    static let tankLevel = CharacteristicKey<TankLevel>(0xFFF3, in: 0xFFF0)
    // out

    @Test func littleBlueToothChains() async throws {
        try await withAir(of: Self.echo) { central, _ in
            let tankLevel = Self.tankLevel
            // in: Docs/users/coming-from.md
            // startDiscovery, connect, read, write, disconnect: one chain, whose end disconnects whatever comes of it
            let level = try await central.withConnection(
                toFirst: .services(0xFFF0), timeout: .seconds(10), where: { ($0.rssi ?? -127) > -70 }
            ) { device, _ in
                var level = try await device.read(tankLevel)
                level.alarm = false
                try await device.write(level, to: tankLevel)
                return level
            }
            // out
            #expect(level.litres == 40)
        }
    }

    @Test func littleBlueToothConnects() async throws {
        try await withAir(of: .heartRate) { central, peer in
            // in: Docs/users/coming-from.md
            // autoconnectionHandler, connectionTasks, connectionEventPublisher
            let session = try await central.session(
                with: peer, Session.Options(reconnect: .backoff(initial: .seconds(1), attempts: 10)),
                onReady: { device in _ = try await device.read(.batteryLevel) })
            events: for try await event in session.events {
                switch event {
                case .ready: break events
                case .disconnected(let loss): print(loss.error, "next in", loss.delay ?? .zero)
                default: continue
                }
            }
            await session.disconnect()
            // out
        }
    }

    // MARK: CoreBluetooth

    @Test func theCallsForUsersOfCoreBluetoothWork() async throws {
        try await withAir(of: .heartRate) { central, _ in
            // in: Docs/users/coming-from.md
            try await central.ready(powerOn: true)  // centralManagerDidUpdateState
            let found = try await central.first(.services(0x180D))  // scanForPeripherals, didDiscover
            guard let peer = found.peer else { return }
            let device = try await central.connect(peer)  // connect, didConnect, didFailToConnect
            for service in try await device.discoverServices([0x180D]) {  // discoverServices, didDiscoverServices
                let characteristics = try await device.discoverCharacteristics(of: service)
                print(service.uuid, characteristics.map(\.uuid))
            }
            let place = try await device.read(0x2A38)  // readValue, didUpdateValueFor
            try await device.write([1], to: 0x2A39)  // writeValue, didWriteValueFor
            let beats = try await device.subscribe(to: 0x2A37)  // setNotifyValue, didUpdateNotificationStateFor
            for try await beat in beats {  // didUpdateValueFor, never mixed up with a read
                print(place, beat.bytes)
                break
            }
            try await beats.unsubscribe()  // setNotifyValue(false)
            await device.disconnect()  // cancelPeripheralConnection, didDisconnectPeripheral
            // out
            #expect(await device.disconnectReason == .requested)
        }
    }

    // MARK: bleak and noble

    @Test func theCallsForUsersOfBleakWork() async throws {
        try await withAir(of: .heartRate) { central, _ in
            // in: Docs/users/coming-from.md
            let around = try await central.collect(for: .seconds(5))  // BleakScanner.discover(timeout=5)
            print(around.map { "\($0.name ?? "-") \($0.rssi ?? 0)" })
            let belt = try await central.first(.name("Virtual HRM"), timeout: .seconds(10))  // find_device_by_name
            guard let peer = belt.peer else { return }
            // async with BleakClient(device, timeout=10) as client
            try await central.withConnection(peer, ConnectOptions(timeout: .seconds(10))) { client in
                let level = try await client.read(0x2A19)  // read_gatt_char
                try await client.write([1], to: 0x2A39)  // write_gatt_char(…, response=True)
                let beats = try await client.subscribe(to: 0x2A37)  // start_notify
                for try await beat in beats {  // its callback
                    print(level, beat.bytes)
                    break
                }
                try await beats.unsubscribe()  // stop_notify
            }
            // out
        }
    }

    @Test func theCallsForUsersOfNobleWork() async throws {
        try await withAir(of: .heartRate) { central, _ in
            // in: Docs/users/coming-from.md
            try await central.ready()  // stateChange to poweredOn
            for try await case .found(let peripheral) in central.scan(.services(0x180D)) {  // discover
                guard peripheral.isConnectable, let peer = peripheral.peer else { continue }
                let device = try await central.connect(peer)  // connectAsync
                let database = try await device.discover()  // discoverAllServicesAndCharacteristicsAsync
                for characteristic in database.characteristics where characteristic.properties.contains(.read) {
                    print(characteristic.uuid, try await device.read(.characteristic(characteristic)))  // readAsync
                }
                await device.disconnect()  // disconnectAsync
                break  // stopScanningAsync
            }
            // out
        }
    }
}
