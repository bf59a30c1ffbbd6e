import BareBLE
import BareBLETestKit
import Testing

/// A caller that names the service pays for that one: the peer counts the requests. The first is the MTU exchange.
@Suite struct LazyDiscoveryTests {
    private let central = Central()
    /// What the library asks by itself is counted in NamedServiceChangeTests.
    private let options = ConnectOptions(observesServiceChanges: false)

    @Test func findsJustTheServiceThatIsNamed() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral, options)
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F)) == [87])
        // Find By Type Value twice, Read By Type, and the read.
        #expect(await peripheral.transcript.requests == ["02", "06", "06", "08", "0a"])
        #expect(await device.database?.services.map(\.uuid) == [0x180F])
        // Known now.
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F)) == [87])
        #expect(try await device.read(0x2A19) == [87])
        #expect(await peripheral.requestCount == 7)
        // Another one costs another three.
        #expect(try await device.read(.uuid(0x2A29, service: 0x180A)) == Array("BareBLE".utf8))
        #expect(await peripheral.requestCount <= 7 + 4)
        #expect(await device.database?.services.map(\.uuid) == [0x180F, 0x180A])
    }

    @Test func subscribesAndWritesInTheServiceThatIsNamed() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral, options)
        let beats = try await device.subscribe(to: .uuid(0x2A37, service: 0x180D))
        // Two, one, and the configuration, whose place needs no asking.
        #expect(await peripheral.requestCount == 1 + 3 + 1)
        try await device.write([1], to: .uuid(0x2A39, service: 0x180D))
        #expect(await peripheral.requestCount == 6)
        var iterator = beats.makeAsyncIterator()
        #expect(try await iterator.next() != nil)
    }

    @Test func whatIsAbsentIsAskedForOnce() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral, options)
        for _ in 0..<3 {
            await #expect(throws: error(.attributeNotFound)) {
                try await device.read(.uuid(0x2A19, service: 0x1812))
            }
        }
        #expect(await peripheral.requestCount == 2)
    }

    @Test func withoutAServiceAReadStillAsksByType() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral, options)
        _ = try await device.read(.uuid(0x2A19, service: 0x180F))
        let before = await peripheral.requestCount
        #expect(try await device.read(0x2A38) == [1])
        #expect(await peripheral.requestCount == before + 1)
        // A write cannot, so everything is discovered.
        try await device.write([1], to: 0x2A39)
        #expect(await device.database?.services.count == 5)
    }

    /// The only one that is known need not be the only one.
    @Test func aWriteDoesNotGuess() async throws {
        let twin = VirtualCharacteristic(0xFFF1, [.read, .write, .notify], value: [7])
        let virtual = VirtualDevice(
            name: "Twins", services: [VirtualService(0xFFE0, [twin]), VirtualService(0xFFE1, [twin])])
        let device = try await central.attach(to: VirtualPeripheral(virtual))
        try await device.discover(services: [0xFFE1])
        let ambiguous = error(.ambiguous)
        await #expect(throws: ambiguous) { try await device.write([1], to: 0xFFF1) }
        await #expect(throws: ambiguous) { _ = try await device.subscribe(to: 0xFFF1) }
        try await device.write([1], to: .uuid(0xFFF1, service: 0xFFE1))
    }

    @Test func whatIsKnownCostsNothing() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral, options)
        let first = try await device.discover(services: [0x180F])
        let before = await peripheral.requestCount
        #expect(try await device.discover(services: [0x180F]) == first)
        #expect(await peripheral.requestCount == before)
        let all = try await device.discover(level: .full)
        let whole = await peripheral.requestCount
        #expect(try await device.discover() == all)
        #expect(try await device.discover(services: [0x180F, 0x1812]).services.map(\.uuid) == [0x180F])
        #expect(await peripheral.requestCount == whole)
        #expect(try await device.discover(level: .full, ignoringCache: true) == all)
        #expect(await peripheral.requestCount > whole)
    }

    /// The discoveries of a lazy caller are stored too.
    @Test func aPartIsCachedAsWell() async throws {
        let virtual = CachingTests.device(.battery(level: 50), .deviceInformation(manufacturer: "M", model: "1"))
        let peripheral = VirtualPeripheral(virtual)
        let device = try await central.attach(to: peripheral, options)
        _ = try await device.read(.uuid(0x2A19, service: 0x180F))
        let cache = try #require(try await device.cache())
        #expect(cache.coverage == .services([0x180F: .structure]))
        await device.disconnect()
        await peripheral.disconnect()
        let before = await peripheral.requestCount
        let again = try await central.attach(
            to: peripheral,
            ConnectOptions(cache: GATTCache(bytes: cache.bytes), observesServiceChanges: false))
        #expect(try await again.read(.uuid(0x2A19, service: 0x180F)) == [50])
        #expect(await peripheral.transcript.requests.dropFirst(before) == ["02", "08", "0a"])
    }
}
