import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Changes of services where a program names its characteristics with their service: Generic Attribute is looked for
/// all the same, after the program's first request.
@Suite(.timeLimit(.minutes(10))) struct NamedServiceChangeTests {
    private let central = Central()

    private static func device(hasExtra: Bool, isAnnouncing: Bool = true) -> VirtualDevice {
        VirtualDevice(
            name: "Meter",
            services: [.genericAccess(name: "Meter", appearance: 0)]
                + (isAnnouncing ? [.genericAttribute(databaseHash: nil)] : [])
                + [
                    VirtualService(
                        0xFFF0,
                        (hasExtra ? [VirtualCharacteristic(0xFFF9, .read, value: [99])] : [])
                            + [VirtualCharacteristic(0xFFF1, [.read, .notify], value: [1])])
                ])
    }

    /// By the old handle the new characteristic would be read.
    @Test(.row("G25")) func aReadByKeyInAServiceIsNotOfAnotherCharacteristic() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.device(hasExtra: false), time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            let key = CharacteristicKey<UInt8>(0xFFF1, in: 0xFFF0)
            #expect(try await device.read(key) == 1)
            try await time.clock.sleep(for: .seconds(2))
            #expect(await peripheral.isSubscribed(to: 0x2A05))
            var changes = try await device.serviceChanges().makeAsyncIterator()
            let old = await device.services.filter { $0.uuid == 0xFFF0 }
            let range = try #require(await peripheral.changeServices(to: Self.device(hasExtra: true)))
            let change = try await changes.next()
            #expect(change?.handles == range)
            #expect(change?.formerServices == old && old.count == 1)
            // Single services are rediscovered when a call needs them.
            #expect(change?.services == [])
            #expect(try await device.read(key) == 1)
            await device.disconnect()
        }
    }

    /// Single services are known, so a change is followed by no rediscovery that could contradict the characteristic.
    @Test(.row("G25")) func anOldCharacteristicOfANamedServiceIsNotUsed() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.device(hasExtra: false), time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            let database = try await device.discover(services: [0xFFF0])
            let old = try #require(database.characteristics(0xFFF1).first)
            #expect(try await device.read(.characteristic(old)) == [1])
            try await time.clock.sleep(for: .seconds(2))
            #expect(await peripheral.isSubscribed(to: 0x2A05))
            var changes = try await device.serviceChanges().makeAsyncIterator()
            await peripheral.changeServices(to: Self.device(hasExtra: true))
            _ = try await changes.next()
            await #expect(throws: error(.servicesChanged)) { try await device.read(.characteristic(old)) }
            await #expect(throws: error(.servicesChanged)) { try await device.write([2], to: .characteristic(old)) }
            // Once its service is known again, the new one can be used.
            #expect(try await device.read(.uuid(0xFFF1, service: 0xFFF0)) == [1])
            await #expect(throws: error(.servicesChanged)) { try await device.read(.characteristic(old)) }
            await device.disconnect()
        }
    }

    @Test(.row("G25")) func valuesInANamedServiceAreInterruptedAndContinue() async throws {
        try await VirtualTime.run { time in
            let gatt = VirtualService.genericAttribute(databaseHash: nil)
            let chirp = VirtualService(
                0xFFC0,
                [VirtualCharacteristic(0xFFC1, [.notify, .read], plan: NotifyPlan([[1]], every: .seconds(1)))])
            let peripheral = VirtualPeripheral(VirtualDevice(name: "Bird", services: [gatt, chirp]), time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            let values = try await device.subscribe(to: .uuid(0xFFC1, service: 0xFFC0))
            try await time.clock.sleep(for: .seconds(3))
            #expect(await peripheral.isSubscribed(to: 0x2A05))
            await peripheral.changeServices(to: VirtualDevice(name: "Bird", services: [gatt]))
            await #expect(throws: error(.servicesChanged)) { for try await _ in values {} }
            await device.disconnect()
        }
    }

    /// One request for the service, one for what is in it, and the configuration, which needs no asking: each once a
    /// link.
    @Test(.row("G25")) func costsThreeRequests() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.device(hasExtra: false), time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            let reference = CharacteristicReference.uuid(0xFFF1, service: 0xFFF0)
            _ = try await device.read(reference)
            try await time.clock.sleep(for: .seconds(2))
            #expect(await peripheral.transcript.requests == ["02", "06", "06", "08", "0a"] + ["06", "08", "12"])
            _ = try await device.read(reference)
            try await time.clock.sleep(for: .seconds(2))
            #expect(await peripheral.transcript.requests.dropFirst(8) == ["0a"])
            // The next link knows.
            let cache = try #require(try await device.cache())
            #expect(cache.coverage == .services([0xFFF0: .structure, 0x1801: .subscribable]))
            await device.disconnect()
            await peripheral.disconnect()
            let before = await peripheral.requestCount
            let again = try await Central(time: time).attach(
                descriptor: peripheral.connect(), ConnectOptions(cache: cache))
            _ = try await again.read(reference)
            try await time.clock.sleep(for: .seconds(2))
            // The hash, and after the read the client's features and the configuration.
            #expect(await peripheral.transcript.requests.dropFirst(before) == ["02", "08", "0a", "12", "12"])
            await again.disconnect()
        }
    }

    @Test(.row("G25")) func aPeerWithoutGenericAttributeIsAskedOnce() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.device(hasExtra: false, isAnnouncing: false), time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            for _ in 0..<3 {
                _ = try await device.read(.uuid(0xFFF1, service: 0xFFF0))
                try await time.clock.sleep(for: .seconds(2))
            }
            #expect(await peripheral.transcript.requests == ["02", "06", "06", "08", "0a", "06", "0a", "0a"])
            await device.disconnect()
        }
    }

    /// No handle is known that a change could make wrong.
    @Test func aReadByTypeIsNotFollowedByAnything() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.device(hasExtra: false), time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            for _ in 0..<3 {
                #expect(try await device.read(0xFFF1) == [1])
                try await time.clock.sleep(for: .seconds(2))
            }
            #expect(await peripheral.transcript.requests == ["02", "08", "08", "08"])
            await device.disconnect()
        }
    }

    /// The services of a change, if all of them are known.
    @Test func aChangeNamesTheServices() async throws {
        let gatt = VirtualService.genericAttribute(databaseHash: nil)
        func device(_ services: VirtualService...) -> VirtualDevice {
            VirtualDevice(name: "Changing", services: [gatt] + services)
        }
        let peripheral = VirtualPeripheral(
            device(.battery(level: 1), VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [1])])))
        let link = try await central.attach(to: peripheral)
        #expect(await link.services.isEmpty)
        let before = try await link.discover(level: .full)
        #expect(await link.services == before.services)
        var changes = try await link.serviceChanges().makeAsyncIterator()
        await peripheral.changeServices(
            to: device(
                .battery(level: 1), VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, .read, value: [1])])))
        let change = try #require(try await changes.next())
        #expect(change.formerServices.map(\.uuid) == [0xFFF0])
        #expect(change.services.map(\.uuid) == [0xFFE0])
        #expect(await link.services.map(\.uuid) == [0x1801, 0x180F, 0xFFE0])
    }
}
