import BLECore
import BLELinux
import BareBLE
import TestSupport
import Testing

@testable import BareBLETestKit

@Suite("Virtual radio", .timeLimit(.minutes(10)))
struct VirtualRadioTests {
    @Test("A device is found, connected to, read and disconnected", arguments: [true, false])
    func wholeWay(isExtended: Bool) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let adapter = await radio.addAdapter(isExtended: isExtended)
            let belt = await radio.add(.heartRate)
            var configuration = Configuration()
            configuration.adapter = .named(adapter)
            let central = Central(configuration, radio: radio)
            let (device, scanResult) = try await central.connect(toFirst: .services(0x180D))
            #expect(scanResult.name == "Virtual HRM")
            #expect(scanResult.rssi == -60)
            #expect(await device.id == radio.id(of: belt))
            #expect(try await device.read(0x2A38) == [1])
            #expect(try await device.rssi() == -60)
            await radio.move(belt, to: .immediate)
            #expect(try await device.rssi() == -35)
            #expect(try await device.connectionParameters().supervisionTimeout == .seconds(5))
            try await device.requestConnectionParameters(.lowPower)
            #expect(try await device.connectionParameters().latency == 2)
            if isExtended {
                try await device.requestPHY(.le2M)
                #expect(try await device.phy().transmit == .le2M)
            }
            await device.disconnect()
            #expect(await !belt.isConnected)
            // It advertises again, and can be connected to again.
            let again = try await central.connect(try #require(device.id))
            await again.disconnect()
        }
    }

    @Test("Every connection parameter and name comes from real HCI bytes: names in scan responses, long advertisements")
    func parametersAndNamesComeFromRealHCIBytes() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let wordy = VirtualDevice(
                name: "A device with a long name", services: [VirtualService(0x180F, []), .battery(level: 1)])
            await radio.add(wordy)
            let long = radio.peripheral(.battery)
            let data: [UInt8] = [3, 0x09, 0x4C, 0x47] + [250, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 7, count: 247)
            let id = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_5566), type: .public)
            await radio.place(long, as: id, advertising: VirtualAdvertisement(data, isConnectable: false))
            let central = Central(radio: radio)
            let found = try await central.collect(for: .seconds(1))
            #expect(found.count == 2)
            #expect(found.contains { $0.name == "A device with a long name" })
            let heard = try #require(found.first { $0.peer == id })
            #expect(heard.name == "LG")
            #expect(heard.advertisement?.data == data)
            #expect(heard.isConnectable == false)
        }
    }

    @Test("A controller does not become deaf by advertisements that it does not receive")
    func whatIsNotReceivedMakesNothingDeaf() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(.rtl8723bu)
            let long = VirtualAdvertisement([UInt8](repeating: 0, count: 32))
            let id = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_5566), type: .public)
            // It advertises before the other one, so a controller that reports one device would have done that.
            await radio.place(radio.peripheral(.battery), as: id, advertising: long)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let found = try await central.collect(for: .seconds(1))
            #expect(await found.map(\.peer) == [radio.id(of: belt)])
        }
    }

    @Test("Out of range a link dies after its supervision time, unless the device comes back before")
    func outOfRange() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let device = try await central.connect(toFirst: .any).peripheral
            await radio.move(belt, to: .outOfRange)
            let left = time.now
            async let level = device.read(0x2A19)
            try await time.clock.sleep(for: .seconds(4))
            await radio.move(belt, to: .far)
            #expect(try await level == [87])
            #expect(time.now - left < .seconds(5))
            await radio.move(belt, to: .outOfRange)
            let gone = time.now
            await #expect(throws: BLEError(.disconnected, during: "", because: "")) { try await device.read(0x2A19) }
            #expect(time.now - gone == .seconds(5))
            #expect(await device.disconnectReason == .supervisionTimeout)
            // Nobody hears it: the connect ends with its time.
            let options = ConnectOptions(timeout: .seconds(20))
            await #expect(throws: BLEError(.timedOut, during: "", because: "")) {
                try await central.connect(device.id!, options)
            }
            #expect(time.now - gone == .seconds(25))
            // One for deadlines that were met goes off without success.
            try await time.clock.sleep(for: .seconds(60))
            #expect(time.loop.timerCount == 0)
        }
    }

    @Test("A device that is reset forgets, advertises again at once, and the old link dies by itself")
    func peerReset() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let line = await radio.add(.longValue)
            let central = Central(radio: radio)
            let device = try await central.connect(toFirst: .any).peripheral
            await radio.reset(line)
            let ended = await device.disconnected()
            #expect(ended == .supervisionTimeout)
            let again = try await central.connect(toFirst: .any).peripheral
            #expect(again.id == device.id)
            #expect(await line.connectionCount == 2)
            await radio.disconnect(line, because: .remotePowerOff)
            #expect(await again.disconnected() == .byPeer(.remotePowerOff))
            let third = try await central.connect(toFirst: .any).peripheral
            await line.disconnect()
            #expect(await third.disconnected() == .byPeer(.remoteUserTerminated))
        }
    }

    @Test("Connects are refused, delayed, and miss a device that has another address by now")
    func connectsAreRefusedDelayedAndMissAnOldAddress() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let id = try #require(await radio.id(of: belt))
            await radio.refuseConnections(to: belt, with: [.connectionLimitExceeded])
            await #expect(throws: BLEError(.busy, during: "", because: "")) { try await central.connect(id) }
            await radio.delayConnections(to: belt, by: .seconds(3))
            let start = time.now
            let device = try await central.connect(id)
            #expect(time.now - start > .seconds(3))
            #expect(time.now - start < .seconds(4))
            let new = PeerID(address: BluetoothAddress(rawValue: 0x4000_0000_0001), type: .random)
            await radio.changeAddress(of: belt, to: new)
            // The link does not mind.
            #expect(try await device.read(0x2A19) == [87])
            await device.disconnect()
            await #expect(throws: BLEError(.timedOut, during: "", because: "")) {
                try await central.connect(id, ConnectOptions(timeout: .seconds(5)))
            }
            await radio.delayConnections(to: belt, by: .zero)
            #expect(try await central.connect(toFirst: .services(0x180D)).peripheral.id == new)
        }
    }

    @Test("Without permission for commands the kernel connects, and nothing scans")
    func kernelConnects() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPermissions([])
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let id = try #require(await radio.id(of: belt))
            let device = try await central.connect(id)
            #expect(try await device.read(0x2A19) == [87])
            await radio.move(belt, to: .outOfRange)
            #expect(await device.disconnected() == .supervisionTimeout)
            await #expect(throws: BLEError(.timedOut, during: "", because: "")) {
                try await central.connect(id, ConnectOptions(timeout: .seconds(5)))
            }
            await #expect(throws: BLEError(.notPermitted, during: "", because: "")) {
                try await central.first(.services(0x180D))
            }
            await radio.setLowEnergy(false)
            await #expect(throws: BLEError(.lowEnergyOff, during: "", because: "")) { try await central.connect(id) }
        }
    }

    @Test("A program that begins without permission for commands receives no LE events")
    func lowEnergyEventsNeedThePermission() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.heartRate)
            let trusted = try await radio.open(0).get()
            await radio.setPermissions([.administration])
            let restricted = try await radio.open(0).get()
            await radio.setPermissions([.commands, .administration])
            let sockets = [trusted.commands, trusted.reports, restricted.commands, restricted.reports].map {
                RawSocket($0)
            }
            let device = try await Central(radio: radio).connect(toFirst: .services(0x180D)).peripheral
            await device.disconnect()
            await time.settle()
            // Events, without their parameters.
            let events = sockets.map { socket in
                Set(socket.received().filter { $0.hasPrefix("04") }.map { String($0.prefix(4)) })
            }
            #expect(events[0].contains("0405") && events[1] == ["043e"])
            #expect(events[2].contains("0405") && events[3].isEmpty)
        }
    }

    @Test("The adapter is switched off and on, reset, and comes back under another number", .row("O02"))
    func adapterLoss() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.heartRate)
            await radio.add(.battery)
            let central = Central(radio: radio)
            var device = try await central.connect(toFirst: .services(0x180D)).peripheral
            await radio.powerOff()
            #expect(await device.disconnected() == .adapterLost)
            await #expect(throws: BLEError(.adapterDown, during: "", because: "")) {
                try await central.ready(timeout: .zero)
            }
            try await central.ready(powerOn: true)
            device = try await central.connect(toFirst: .services(0x180D)).peripheral
            await radio.reset()
            #expect(await device.disconnected() == .adapterLost)
            device = try await central.connect(toFirst: .services(0x180D)).peripheral
            // A scan lives through it all.
            var events: [String] = []
            for try await event in central.scan(.services(0x180F), duration: .seconds(60)) {
                switch event {
                case .found:
                    events.append("found")
                    await radio.unplug()
                    #expect(await device.disconnected() == .adapterLost)
                    time.task {
                        try await time.clock.sleep(for: .seconds(10))
                        await radio.plugIn(as: "hci3", isUp: true)
                    }
                case .paused: events.append("paused")
                case .resumed: events.append("resumed")
                case .updated, .lost, .dropped: continue
                }
                if events.count == 3 { break }
            }
            #expect(events == ["found", "paused", "resumed"])
            #expect(await central.adapterName == "hci3")
            _ = try await central.first(.services(0x180F))
        }
    }

    @Test("An adapter keeps its address under each new number", .row("O03"))
    func adapterMoves() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            try await central.ready()
            let address = await central.adapterAddress
            for (old, new) in [("hci0", "hci1"), ("hci1", "hci1"), ("hci1", "hci5")] {
                await radio.unplug(old)
                await #expect(throws: BLEError.self) { try await central.ready(timeout: .zero) }
                await radio.plugIn(old, as: new, isUp: true)
                try await central.ready()
                #expect(await central.adapterName == new)
                #expect(await central.adapterAddress == address)
            }
            await radio.unplug("hci5")
            // A number that another one comes back to is not given away.
            #expect(await radio.addAdapter() == "hci6")
        }
    }

    @Test("Two centrals share the peripherals, on one adapter or on two")
    func twoCentrals() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.addAdapter()
            let belt = await radio.add(.heartRate)
            let line = await radio.add(.uart)
            var second = Configuration()
            second.adapter = .named("hci1")
            let centrals = [Central(radio: radio), Central(second, radio: radio), Central(radio: radio)]
            let ids = try #require(await [radio.id(of: belt), radio.id(of: line)] as? [PeerID])
            async let one = centrals[0].connect(ids[0])
            async let two = centrals[1].connect(ids[1])
            let devices = try await [one, two]
            // What is connected is heard no more, by none of them.
            for central in centrals {
                #expect(try await central.collect(for: .seconds(1)).isEmpty)
                await #expect(throws: BLEError.self) {
                    try await central.connect(ids[0], ConnectOptions(timeout: .seconds(2)))
                }
            }
            for device in devices { await device.disconnect() }
            #expect(try await centrals[2].collect(for: .seconds(1)).count == 2)
        }
    }

    @Test("A controller that loses each so many packets ends its links by the time-out of the protocol", .row("T06"))
    func lostResponses() async throws {
        try await Self.run(losing: .receivedEvery(5)) { _, _, central in
            let device = try await central.connect(toFirst: .any).peripheral
            var failure: BLEError?
            var reads = 0
            while failure == nil, reads < 10 {
                do throws(BLEError) {
                    let value = try await device.read(0x2A19, timeout: .seconds(60))
                    #expect(value == [64])
                    reads += 1
                } catch {
                    failure = error
                }
            }
            #expect((1..<10).contains(reads))
            #expect(failure?.code == .disconnected)
            #expect(failure?.hint?.contains("blescan doctor") == false, "something has come")
            #expect(await device.disconnected() == .attTimeout)
        }
    }

    @Test("What a controller reorders is passed on as it comes, and is no violation of the protocol")
    func reorderedValues() async throws {
        let sent: [[UInt8]] = [[1], [2], [3], [4], [5], [6], [7], [8]]
        let plan = NotifyPlan(sent, every: .milliseconds(5), count: sent.count)
        let device = VirtualDevice(
            name: "Counter", services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .notify, plan: plan)])])
        try await Self.run(device, losing: .reordersEvery(3)) { _, _, central in
            let device = try await central.connect(toFirst: .any).peripheral
            var received: [[UInt8]] = []
            for try await value in try await device.subscribe(to: 0xFFF1) {
                received.append(value.bytes)
                if received.count == sent.count { break }
            }
            #expect(Set(received) == Set(sent))
            #expect(received != sent)
            #expect(await device.isConnected)
            #expect(await device.statistics.unexplainedResponses == 0)
        }
    }

    @Test("A controller that announces more buffers than it has loses what this side sends beyond them")
    func lostWrites() async throws {
        let sink = VirtualDevice(
            name: "Sink",
            services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.write, .writeWithoutResponse])])])
        try await Self.run(sink, losing: .sentBeyond(4)) { time, peripheral, central in
            let device = try await central.connect(toFirst: .any).peripheral
            try await device.write([0], to: 0xFFF1)
            for _ in 1...3 {
                try await time.clock.sleep(for: .seconds(1))
                let before = await peripheral.receivedCount
                for number: UInt8 in 1...10 { try await device.write([number], to: 0xFFF1, .withoutResponse) }
                try await time.clock.sleep(for: .seconds(1))
                #expect(await peripheral.receivedCount - before == 4)
                // With a pause between them all arrive.
                for number: UInt8 in 1...10 {
                    try await device.write([number], to: 0xFFF1, .withoutResponse)
                    try await time.clock.sleep(for: .milliseconds(10))
                }
                #expect(await peripheral.receivedCount - before == 14)
            }
        }
    }

    private static func run(
        _ device: VirtualDevice = .battery, losing loss: VirtualPersonality.DataLoss,
        _ body: @escaping @Sendable (VirtualTime, VirtualPeripheral, Central) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var personality = VirtualPersonality.bluetooth5
            personality.losesData = loss
            await radio.setPersonality(personality)
            let peripheral = await radio.add(device)
            try await body(time, peripheral, Central(radio: radio))
        }
    }

    @Test("Ten idle links cost no wake-up in an hour")
    func idleLinks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            for _ in 0..<10 { await radio.add(.battery) }
            let central = Central(radio: radio)
            var devices: [Peripheral] = []
            for _ in 0..<10 { devices.append(try await central.connect(toFirst: .any).peripheral) }
            try await time.clock.sleep(for: .seconds(60))
            let before = time.loop.wakeUps
            try await time.clock.sleep(for: .seconds(3600))
            // The one that ends the sleep.
            #expect(time.loop.wakeUps - before == 1)
            #expect(time.loop.timerCount == 0)
            for device in devices { await device.disconnect() }
        }
    }

    @Test("A radio that is made without a time inside a virtual time is in that time")
    func currentTime() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio()
            #expect(radio.loop === time.loop)
            await radio.add(.battery)
            let device = try await Central(radio: radio).connect(toFirst: .any).peripheral
            try await time.clock.sleep(for: .seconds(3600))
            #expect(try await device.read(0x2A19) == [64])
            let made = try await time.task { VirtualRadio() }.value
            #expect(made.loop === time.loop)
            await device.disconnect()
        }
    }
}

/// A controller's commands have two seconds in real time: not beside hundreds of tests on the same thread.
@Suite("Virtual radio in real time", .timeLimit(.minutes(10)))
struct RealTimeRadioTests {
    @Test("It works on the library's own thread")
    func realTime() async throws {
        let radio = VirtualRadio()
        let belt = await radio.add(.battery, latency: .zero)
        let device = try await Central(radio: radio).connect(toFirst: .any).peripheral
        #expect(try await device.read(0x2A19) == [64])
        await device.disconnect()
        await radio.remove(belt)
    }
}
