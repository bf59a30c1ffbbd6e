import BareBLE
import BareBLETestKit
import Testing

/// The samples of the test kit's article on whole daemons.
@Suite struct VirtualRadioSamples {
    @Test func theSampleOfAWholeDaemonWorks() async throws {
        // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let device = try await central.connect(toFirst: .services(0x180D)).peripheral
            await radio.move(belt, to: .outOfRange)
            #expect(await device.disconnected() == .supervisionTimeout)
            #expect(time.now < .zero + .seconds(6))
        }
        // out
    }

    // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
    func watch(_ device: Peripheral, _ central: Central) async throws -> [UInt8] {
        var levels: [UInt8] = []
        while levels.count < 24 {
            levels += try await device.read(0x2A19)
            try await central.clock.sleep(for: .seconds(3600))
        }
        return levels
    }
    // out

    @Test func theSampleOfADayWorks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.battery)
            let central = Central(radio: radio)
            let device = try await central.connect(toFirst: .any).peripheral
            #expect(try await watch(device, central) == [UInt8](repeating: 64, count: 24))
            #expect(time.now > .zero + .seconds(86_400))
            await device.disconnect()
        }
    }

    @Test func theSampleOfChannelsWorks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let device = try await Central(radio: radio).connect(toFirst: .any).peripheral
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            await belt.setReaction(toChannels: 0x80, .accept)
            let channel = try await device.openChannel(psm: 0x80)
            let far = try #require(await belt.nextChannel())
            try await channel.send([1, 2])
            #expect(await far.nextPacket() == [1, 2])
            // out
            await device.disconnect()
        }
    }

    @Test func theSampleOfPairingWorks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            let bolt = VirtualCharacteristic(0xFFF1, .read, value: [1], protection: .authenticated)
            var lock = VirtualDevice(name: "Lock", services: [VirtualService(0xFFF0, [bolt])])
            lock.security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
            let door = await radio.add(lock)
            // out
            let device = try await Central(radio: radio).connect(toFirst: .any).peripheral
            await #expect(throws: error(.insufficientSecurity)) {
                try await device.read(0xFFF1)
            }
            await #expect(throws: error(.notSupported)) { try await device.pair() }
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            await door.forgetBonds()
            await door.replaceBondKeys()
            await door.requestSecurity()
            await radio.rotateAddress(of: door)
            // out
            #expect(await !door.isBonded)
            await device.disconnect()
        }
    }

    @Test func theSampleOfACentralThatPairsWorks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let bolt = VirtualCharacteristic(0xFFF1, .read, value: [1], protection: .authenticated)
            var lock = VirtualDevice(name: "Lock", services: [VirtualService(0xFFF0, [bolt])])
            lock.security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
            await radio.add(lock)
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: .inMemory)
            let central = Central(configuration, radio: radio)
            let device = try await central.connect(toFirst: .any).peripheral
            let agent = PairingAgent(enter: { _ in Passkey(123_456) })
            try await device.pair(PairingOptions(agent: agent, require: .authenticated))
            #expect(try await device.read(0xFFF1) == [1])
            // out
            await device.disconnect()
        }
    }

    @Test func whatBecomesOfAPeripheral() async {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let new = BluetoothAddress(rawValue: 0x4000_0000_0001)
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            await radio.move(belt, to: .far)
            await radio.advertise(belt, VirtualAdvertisement(.heartRate, interval: .seconds(1)))
            await radio.delayConnections(to: belt, by: .seconds(2))
            await radio.refuseConnections(to: belt, with: [.connectionLimitExceeded])
            await radio.reset(belt)
            await radio.disconnect(belt, because: .remotePowerOff)
            await radio.changeAddress(of: belt, to: PeerID(address: new, type: .random))
            await belt.changeServices(to: .battery)
            // out
            #expect(await radio.id(of: belt)?.address == new)
        }
    }

    @Test func theSampleOfInterruptionsWorks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let device = try await Central(radio: radio).connect(toFirst: .any).peripheral
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            await radio.interrupt(belt, afterPDU: 3, by: .outOfRange)
            await #expect(throws: BLEError.self) { try await device.discover() }
            // out
            #expect(await device.disconnectReason == .supervisionTimeout)
        }
    }

    @Test func theSampleOfAPeripheralWorks() async throws {
        // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(.init(name: "Belt"), on: Central(radio: radio))
            try await local.publish(LocalService(0x180D, [LocalCharacteristic(0x2A37, .notify)]))
            let advertising = try await local.advertise([
                .flags([.generalDiscoverable, .classicNotSupported]), .localName("Belt"), .services([0x180D]),
            ])
            let phone = await radio.addCentral()
            try await phone.connect { $0.data.localName?.text == "Belt" }
            try await phone.subscribe(to: 0x2A37)
            try await local.update([0, 62], of: 0x2A37)
            #expect(try await phone.nextValue().bytes == [0, 62])
            await radio.move(phone, to: .outOfRange)
            #expect(await phone.disconnected() == .connectionTimeout)
            await advertising.stop()
            await local.stop()
        }
        // out
    }

    @Test func theSampleOfAHostileCentralWorks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            let advertising = try await local.advertise([.localName("A")])
            let phone = await radio.addCentral()
            try await phone.connect()
            let other = BluetoothAddress(rawValue: 0x4000_0000_0001)
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            await phone.confirmIndications(false)
            await phone.send(raw: [0x0A, 0x03, 0x00])
            await phone.pause()
            await phone.resume()
            await radio.encrypt(phone)
            await radio.pair(phone)
            await radio.reset(phone)
            await radio.changeAddress(of: phone, to: PeerID(address: other, type: .random))
            await radio.limitLinks(to: 1)
            // out
            #expect(await phone.peer?.address == other)
            await advertising.stop()
            await local.stop()
        }
    }

    @Test func theSampleOfAdaptersWorks() async {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            // in: Sources/BareBLETestKit/BareBLETestKit.docc/TestingAWholeDaemon.md
            await radio.powerOff()
            await radio.powerOn()
            await radio.reset()
            await radio.unplug()
            await radio.plugIn(as: "hci1", isUp: true)
            await radio.setPermissions([])
            let old = await radio.addAdapter(isExtended: false)
            await radio.addAdapter(.rtl8761bOnKernel72)
            // out
            #expect(old == "hci2")
        }
    }
}
