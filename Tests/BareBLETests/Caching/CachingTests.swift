import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Requests are counted by the peer. The first one of each link is the MTU exchange.
@Suite struct CachingTests {
    private let central = Central()

    static func device(_ services: VirtualService..., hash: [UInt8]? = nil) -> VirtualDevice {
        VirtualDevice(
            name: "Cached",
            services: [.genericAccess(name: "Cached", appearance: 0), .genericAttribute(databaseHash: hash)] + services)
    }

    private static let battery = device(.battery(level: 50))
    private static let moved = device(.deviceInformation(manufacturer: "M", model: "1"), .battery(level: 60))

    private func cache(
        of peripheral: VirtualPeripheral, _ level: DiscoveryLevel = .full, through other: Central? = nil
    ) async throws -> GATTCache {
        let device = try await (other ?? central).attach(to: peripheral)
        try await device.discover(level: level)
        let cache = try #require(try await device.cache())
        await device.disconnect()
        await peripheral.disconnect()
        return cache
    }

    /// Connects with `options` and waits no further: what a link has cost before the first request of the application.
    private func reconnect(
        to peripheral: VirtualPeripheral, _ options: ConnectOptions, through other: Central? = nil
    ) async throws -> (device: Peripheral, requests: Int) {
        let before = await peripheral.requestCount
        let device = try await (other ?? central).attach(to: peripheral, options)
        return (device, await peripheral.requestCount - before - 1)
    }

    @Test func anEqualHashCostsOneRequest() async throws {
        let peripheral = VirtualPeripheral(Self.battery)
        let cache = try await cache(of: peripheral)
        #expect(cache.databaseHash?.count == 16)
        #expect(cache.coverage == .whole(.full))
        let (device, requests) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        #expect(requests == 1)
        #expect(await device.database == cache.database)
        let before = await peripheral.transcript.requests.count
        #expect(try await device.read(0x2A19) == [50])
        #expect(try await device.discover(level: .full) == cache.database)
        try await isSettled(device, at: peripheral)
        // The read; after it, without a request: client features, and the configuration of Service Changed; and the
        // last read.
        #expect(await peripheral.transcript.requests.dropFirst(before) == ["0a", "12", "12", "0a"])
    }

    @Test func anotherHashLeadsToADiscovery() async throws {
        let peripheral = VirtualPeripheral(Self.battery)
        let cache = try await cache(of: peripheral)
        await peripheral.changeServices(to: Self.moved)
        let (device, requests) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        #expect(requests == 1)
        #expect(await device.database == nil)
        #expect(try await device.discover(level: .full) != cache.database)
        #expect(try await device.read(0x2A19) == [60])
        // The hash was read before the discovery, so the new cache has it without another request.
        #expect(try await device.cache()?.databaseHash != cache.databaseHash)
    }

    @Test(.row("G22")) func aHashOfAnotherSizeIsNone() async throws {
        let peripheral = VirtualPeripheral(Self.device(.battery(level: 1), hash: [1, 2, 3]))
        let device = try await central.attach(to: peripheral)
        try await device.discover(level: .full)
        var cache = try #require(try await device.cache())
        #expect(cache.databaseHash == nil)
        await device.disconnect()
        await peripheral.disconnect()
        cache.databaseHash = [UInt8](repeating: 0, count: 16)
        let (again, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        #expect(await again.database == nil)
    }

    @Test func aBondedLinkCostsNothing() async throws {
        let peripheral = VirtualPeripheral(Self.battery)
        let cache = try await cache(of: peripheral)
        let (device, requests) = try await reconnect(
            to: peripheral, ConnectOptions(cache: cache, validation: .skipped))
        #expect(requests == 0)
        let before = await peripheral.requestCount
        #expect(try await device.read(0x2A19) == [50])
        #expect(await peripheral.requestCount - before == 1)
    }

    @Test func aPeerWithoutHashIsDiscoveredAgainUnlessTrusted() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let cache = try await cache(of: peripheral)
        #expect(cache.databaseHash == nil)
        let (strict, nothing) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        #expect(nothing == 0)
        #expect(await strict.database == nil)
        await strict.disconnect()
        await peripheral.disconnect()
        let (trusting, requests) = try await reconnect(
            to: peripheral, ConnectOptions(cache: cache, validation: .whenPossible))
        #expect(requests == 1)
        #expect(await trusting.database == cache.database)
    }

    // MARK: Contradictions

    /// Trust ends where a handle is not there any more: the database is discovered, and a read by UUID made again.
    @Test(.row("G21")) func anInvalidHandleOfACachePurgesIt() async throws {
        let old = VirtualDevice(
            name: "Old", services: [.deviceInformation(manufacturer: "M", model: "1"), .battery(level: 1)])
        let new = VirtualDevice(name: "New", services: [.battery(level: 2)])
        let cache = try await cache(of: VirtualPeripheral(old))
        let peripheral = VirtualPeripheral(new)
        let options = ConnectOptions(cache: cache, validation: .whenPossible)
        let (device, _) = try await reconnect(to: peripheral, options)
        #expect(try await device.read(0x2A19) == [2])
        #expect(await device.database?.services.map(\.uuid) == [0x180F])
        // Now it is no cache any more: an invalid handle is an error like any other.
        let error = await #expect(throws: BLEError.self) { try await device.read(.handle(99)) }
        #expect(error?.attError == .invalidHandle)
    }

    @Test(.row("G21")) func aWriteIsNotMadeAgain() async throws {
        let control = VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write], value: [7])])
        let old = VirtualDevice(name: "Old", services: [.deviceInformation(manufacturer: "M", model: "1"), control])
        let cache = try await cache(of: VirtualPeripheral(old))
        let peripheral = VirtualPeripheral(VirtualDevice(name: "New", services: [control]))
        let (device, _) = try await reconnect(
            to: peripheral, ConnectOptions(cache: cache, validation: .whenPossible))
        let error = await #expect(throws: BLEError.self) { try await device.write([1], to: 0xFFF1) }
        #expect(error?.code == .servicesChanged)
        #expect(try await peripheral.value(0xFFF1) == [7])
        // The services are known again.
        try await device.write([1], to: 0xFFF1)
        #expect(try await peripheral.value(0xFFF1) == [1])
    }

    /// Error 0x12 after a change that was not announced: the hash is read and has changed.
    @Test(.row("G21")) func outOfSyncLeadsToADiscovery() async throws {
        let peripheral = VirtualPeripheral(Self.battery)
        let cache = try await cache(of: peripheral)
        let (device, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        let old = try #require(await device.database?.characteristics(0x2A19).first)
        #expect(try await device.read(0x2A19) == [50])
        try await isSettled(device, at: peripheral)
        await peripheral.changeServices(to: Self.moved, isAnnounced: false)
        #expect(try await device.read(0x2A19) == [60])
        let refused = await #expect(throws: BLEError.self) { try await device.read(.characteristic(old)) }
        #expect(refused?.code == .servicesChanged)
    }

    @Test func outOfSyncWithTheSameHashIsOnlyRepeated() async throws {
        let peripheral = VirtualPeripheral(Self.battery)
        let cache = try await cache(of: peripheral)
        let (device, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        #expect(try await device.read(0x2A19) == [50])
        try await isSettled(device, at: peripheral)
        await peripheral.becomeUnaware()
        let before = await peripheral.requestCount
        #expect(try await device.read(0x2A19) == [50])
        // Refused, the hash, and again.
        #expect(await peripheral.requestCount - before == 3)
        #expect(await device.database == cache.database)
    }

    /// What was listed by hand is not discovered again: the type of the handle is requested.
    @Test(.row("G21")) func aReadOfAListedHandleThatIsOutOfSyncIsRepeated() async throws {
        let peripheral = VirtualPeripheral(VirtualDevice(name: "Listed", services: [.battery(level: 50)]))
        let device = try await central.attach(to: peripheral, ConnectOptions(observesServiceChanges: false))
        let service = try #require(try await device.discoverServices([0x180F]).first)
        let level = try #require(try await device.discoverCharacteristics(of: service).first)
        let isRefused = Lock(false)
        await peripheral.behave { pdu, respond in
            let isFirst =
                pdu.first == 0x0A
                && isRefused.withLock { isRefused in
                    defer { isRefused = true }
                    return !isRefused
                }
            // Error Response: Read Request, Database Out Of Sync.
            let responses = isFirst ? [[0x01, 0x0A, pdu[1], pdu[2], 0x12]] : respond(pdu)
            return responses.map { (delay: .zero, pdu: $0) }
        }
        let before = await peripheral.transcript.requests.count
        #expect(try await device.read(.handle(level.valueHandle)) == [50])
        // Refused; the hash, which the peer lacks; the type of the handle; and again.
        #expect(await peripheral.transcript.requests.dropFirst(before) == ["0a", "08", "04", "0a"])
    }

    @Test func aWriteByHandleIsNotMadeAgainAfterAChange() async throws {
        let peripheral = VirtualPeripheral(Self.battery)
        let cache = try await cache(of: peripheral)
        let (device, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        #expect(try await device.read(0x2A19) == [50])
        try await isSettled(device, at: peripheral)
        await peripheral.changeServices(to: Self.moved, isAnnounced: false)
        let error = await #expect(throws: BLEError.self) { try await device.write([1, 0], to: .handle(16)) }
        #expect(error?.code == .servicesChanged)
    }

    /// Connects to a device whose services are known, and has two of them change their places, which the device
    /// reports in its next response alone.
    private func exchangedServices(
        of central: Central, _ time: VirtualTime
    ) async throws -> (Peripheral, VirtualPeripheral) {
        let one = VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write], value: [1])])
        let other = VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, [.read, .write], value: [2])])
        let level = VirtualService.battery(level: 50)
        let peripheral = VirtualPeripheral(Self.device(level, one, other), latency: .milliseconds(20), time: time)
        let cache = try await cache(of: peripheral, through: central)
        let (device, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache), through: central)
        #expect(try await device.read(0x2A19) == [50])
        while await !peripheral.isSubscribed(to: 0x2A05) { try await time.clock.sleep(for: .milliseconds(1)) }
        try await isSettled(device, at: peripheral)
        await peripheral.changeServices(to: Self.device(level, other, one), isAnnounced: false)
        return (device, peripheral)
    }

    /// Calls that overlap: the peer would carry the second one out, on what its handle means now.
    @Test func aCallAfterOneThatIsOutOfSyncIsNotCarriedOut() async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let (device, peripheral) = try await exchangedServices(of: central, time)
            async let value = device.read(0xFFF1)
            let writing = time.task { try await device.write([9], to: 0xFFF1) }
            let error = await #expect(throws: BLEError.self) { try await writing.value }
            #expect(error?.code == .servicesChanged)
            #expect(try await value == [1])
            #expect(try await peripheral.value(0xFFF1) == [1])
            #expect(try await peripheral.value(0xFFE1) == [2])
        }
    }

    /// The peer reports the change once, in a response that comes after its caller has given up.
    @Test(.row("G21")) func aCallAfterALateOneThatIsOutOfSyncIsNotCarriedOut() async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let (device, peripheral) = try await exchangedServices(of: central, time)
            let late = await #expect(throws: BLEError.self) {
                try await device.read(0xFFF1, timeout: .milliseconds(10))
            }
            #expect(late?.code == .timedOut)
            try await time.clock.sleep(for: .milliseconds(100))
            let error = await #expect(throws: BLEError.self) { try await device.write([9], to: 0xFFF1) }
            #expect(error?.code == .servicesChanged)
            #expect(try await peripheral.value(0xFFE1) == [2])
            // The services are known again.
            try await device.write([9], to: 0xFFF1)
            #expect(try await peripheral.value(0xFFF1) == [9])
        }
    }

    /// A request without a waiting caller can be refused as well; what is known does not stay wrong.
    @Test func aRefusedUnsubscribeLeadsToARediscovery() async throws {
        let peripheral = VirtualPeripheral(Self.battery)
        let cache = try await cache(of: peripheral)
        let (device, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache))
        let level = try await device.subscribe(to: 0x2A19)
        try await isSettled(device, at: peripheral)
        await peripheral.changeServices(to: Self.moved, isAnnounced: false)
        await #expect(throws: BLEError.self) { try await level.unsubscribe() }
        while await device.database?.characteristics(0x2A29).isEmpty ?? true, !Task.isCancelled { await Task.yield() }
        #expect(try await device.read(0x2A19) == [60])
    }

    /// So can one whose caller has stopped waiting.
    @Test func aRefusedSubscriptionWithoutACallerLeadsToARediscovery() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.battery, latency: .milliseconds(20), time: time)
            let central = Central(time: time)
            let cache = try await cache(of: peripheral, through: central)
            let (device, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache), through: central)
            #expect(try await device.read(0x2A19) == [50])
            while await !peripheral.isSubscribed(to: 0x2A05) { try await time.clock.sleep(for: .milliseconds(1)) }
            try await isSettled(device, at: peripheral)
            await peripheral.changeServices(to: Self.moved, isAnnounced: false)
            let late = await #expect(throws: BLEError.self) {
                try await device.subscribe(to: 0x2A19, SubscribeOptions(timeout: .milliseconds(10)))
            }
            #expect(late?.code == .timedOut)
            try await time.clock.sleep(for: .seconds(10))
            #expect(await device.database?.characteristics(0x2A29).isEmpty == false)
            #expect(try await device.read(0x2A19) == [60])
        }
    }

    /// An announcement has ended the subscription, and leads to a rediscovery already.
    @Test func aRefusedSubscriptionThatAnAnnouncementHasEndedLeadsToNoFurtherRequest() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.battery, time: time)
            let central = Central(time: time)
            let cache = try await cache(of: peripheral, through: central)
            let (device, _) = try await reconnect(to: peripheral, ConnectOptions(cache: cache), through: central)
            #expect(try await device.read(0x2A19) == [50])
            while await !peripheral.isSubscribed(to: 0x2A05) { try await time.clock.sleep(for: .milliseconds(1)) }
            try await isSettled(device, at: peripheral)
            let database = try #require(await device.database)
            let announcing = try #require(database.characteristics(0x2A05).first?.valueHandle)
            let level = try #require(database.characteristics(0x2A19).first)
            let configuration = try #require(database.cccd(of: level)?.handle)
            await peripheral.stopResponding()
            let subscribing = time.task { _ = try await device.subscribe(to: 0x2A19) }
            // Time continues when the response is awaited.
            try await time.clock.sleep(for: .seconds(1))
            let (first, last) = (UInt8(level.valueHandle), UInt8(configuration))
            await peripheral.send(raw: [0x1D, UInt8(announcing), 0, first, 0, last, 0])
            await #expect(throws: BLEError.self) { try await subscribing.value }
            try await time.clock.sleep(for: .seconds(1))
            await peripheral.resumeResponding()
            let before = await peripheral.transcript.steps.count
            // Error Response: Write Request, Database Out Of Sync.
            await peripheral.send(raw: [0x01, 0x12, UInt8(configuration), 0, 0x12])
            try await time.clock.sleep(for: .seconds(10))
            let hashReadings = await peripheral.transcript.steps.dropFirst(before).count { step in
                guard case .sent(let pdu) = step.event else { return false }
                return pdu.first == 0x08 && pdu.suffix(2) == [0x2A, 0x2B]
            }
            #expect(hashReadings == 0)
            #expect(try await device.read(0x2A19) == [50])
        }
    }

    /// A peer that is out of sync forever does not keep a call going.
    @Test func outOfSyncForeverEnds() async throws {
        let refusing = VirtualService(
            0xFFF0, [VirtualCharacteristic(0xFFF1, .read, onRead: .refuse(.databaseOutOfSync))])
        let peripheral = VirtualPeripheral(Self.device(refusing))
        let device = try await central.attach(to: peripheral)
        try await device.discover()
        for _ in 0..<3 {
            await #expect(throws: BLEError.self) { try await device.read(.uuid(0xFFF1, service: 0xFFF0)) }
        }
        #expect(await device.isConnected)
        #expect(await peripheral.requestCount < 40)
    }

    /// Waits until what the library writes after the first request has been written, the last of it too.
    private func isSettled(_ device: Peripheral, at peripheral: VirtualPeripheral) async throws {
        while await !peripheral.isSubscribed(to: 0x2A05), !Task.isCancelled { await Task.yield() }
        #expect(try await peripheral.value(0x2B29) == [5])
        #expect(try await device.read(0x2A19) == [50])
    }
}

extension Dialogue {
    /// The opcodes of what the client has asked, in order.
    var requests: [String] {
        steps.compactMap { step in
            guard case .sent(let pdu) = step.event, let first = pdu.first else { return nil }
            return ATTOpcode(rawValue: first).isRequest ? Hex.encode([first]) : nil
        }
    }
}
