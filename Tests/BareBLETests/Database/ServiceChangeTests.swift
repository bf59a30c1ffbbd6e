import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Peers that change their services while they are connected.
@Suite(.timeLimit(.minutes(10))) struct ServiceChangeTests {
    private let central = Central()
    private static let control = VirtualService(
        0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write, .notify], value: [7])])

    private static func device(_ services: VirtualService...) -> VirtualDevice {
        VirtualDevice(name: "Changing", services: [.genericAttribute(databaseHash: nil)] + services)
    }

    private static let small = device(.battery(level: 50), control)
    private static let large = device(
        VirtualService(
            0x180F,
            [
                VirtualCharacteristic(0x2A19, [.read, .notify], value: [60]),
                VirtualCharacteristic(0x2A1A, .read, value: [1]),
            ]), control)

    @Test func onlyTheRangeIsFoundAgain() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        try await device.discover(level: .full)
        var changes = try await device.serviceChanges().makeAsyncIterator()
        let before = await peripheral.requestCount
        let range = try #require(await peripheral.changeServices(to: Self.large))
        let change = try await changes.next()
        #expect(change?.handles == range)
        #expect(await device.database?.characteristics(0x2A1A).count == 1)
        #expect(try await device.read(0x2A1A) == [1])
        #expect(await device.statistics.confirmations == 1)
        let asked = await peripheral.transcript.requests.dropFirst(before)
        #expect(!asked.isEmpty && asked.count < 8)
        // All of it is as a discovery of everything finds it.
        let known = await device.database
        let found = try await device.discover(level: .full, ignoringCache: true)
        #expect(known?.services == found.services)
        #expect(known?.characteristics == found.characteristics)
        #expect(known?.descriptors.map(\.handle) == found.descriptors.map(\.handle))
    }

    @Test func subscriptionsInTheRangeEnd() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        try await device.discover(level: .full)
        let level = try await device.subscribe(to: 0x2A19)
        let other = try await device.subscribe(to: 0xFFF1)
        var changes = try await device.serviceChanges().makeAsyncIterator()
        await peripheral.changeServices(
            to: Self.device(
                VirtualService(
                    0x180F, [VirtualCharacteristic(0x2A1B, [.read, .notify], value: [1])]), Self.control))
        _ = try await changes.next()
        var ended = level.makeAsyncIterator()
        await #expect(throws: error(.servicesChanged)) { _ = try await ended.next() }
        try await peripheral.notify(0xFFF1, [9])
        var goesOn = other.makeAsyncIterator()
        #expect(try await goesOn.next()?.bytes == [9])
    }

    @Test(.row("G23")) func anOldCharacteristicIsRefused() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        let database = try await device.discover(level: .full)
        let old = try #require(database.characteristics(0xFFF1).first)
        let same = try #require(database.characteristics(0x2A05).first)
        var changes = try await device.serviceChanges().makeAsyncIterator()
        await peripheral.changeServices(to: Self.large)
        _ = try await changes.next()
        let error = await #expect(throws: BLEError.self) {
            try await device.write([1], to: .characteristic(old))
        }
        #expect(error?.code == .servicesChanged)
        let now = try #require(await device.database?.characteristics(0xFFF1).first)
        #expect(now.valueHandle != old.valueHandle)
        try await device.write([1], to: .characteristic(now))
        #expect(try await peripheral.value(0xFFF1) == [1])
        #expect(await device.database?.characteristic(valueHandle: same.valueHandle) == same)
    }

    /// The application's first request goes first; the library's own follow it, once.
    @Test func asksAfterTheFirstRequest() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        try await device.discover(level: .full)
        #expect(await !peripheral.isSubscribed(to: 0x2A05))
        let before = await peripheral.requestCount
        _ = try await device.read(0x2A19)
        while await !peripheral.isSubscribed(to: 0x2A05), !Task.isCancelled { await Task.yield() }
        _ = try await device.read(0x2A19)
        #expect(await peripheral.transcript.requests.dropFirst(before) == ["0a", "12", "0a"])
    }

    /// The first call is refused; the second one must not take it for granted that the peer agreed.
    @Test func eachCallHasThePeersConsent() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.small, time: time)
            let device = try await Central(time: time).attach(
                descriptor: peripheral.connect(), ConnectOptions(observesServiceChanges: false))
            let database = try await device.discover(level: .full)
            let changed = try #require(database.characteristics(0x2A05).first)
            let configuration = try #require(database.cccd(of: changed)?.handle)
            await peripheral.stopResponding()
            let first = time.task { _ = try await device.serviceChanges() }
            let second = time.task {
                _ = try await device.serviceChanges()
                return await peripheral.isSubscribed(to: 0x2A05)
            }
            // Time continues when both wait.
            try await time.clock.sleep(for: .seconds(1))
            await peripheral.resumeResponding()
            // Write Not Permitted.
            await peripheral.send(raw: [0x01, 0x12, UInt8(configuration), 0, 0x03])
            await #expect(throws: error(.notSupported)) { try await first.value }
            #expect(try await second.value)
            await device.disconnect()
        }
    }

    @Test func asksNothingWhenNotWanted() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral, ConnectOptions(observesServiceChanges: false))
        try await device.discover(level: .full)
        for _ in 0..<5 { _ = try await device.read(0x2A19) }
        #expect(await !peripheral.isSubscribed(to: 0x2A05))
    }

    @Test func aPeerThatAnnouncesNothingIsReported() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        await #expect(throws: error(.notSupported)) {
            _ = try await device.serviceChanges()
        }
    }

    /// Nonsense is confirmed and otherwise ignored; a flood leads to one rediscovery.
    @Test(.row("G19")) func malformedAndFrequentAnnouncementsDoNoHarm() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        let database = try await device.discover(level: .full)
        let handle = try #require(database.characteristics(0x2A05).first?.valueHandle)
        _ = try await device.serviceChanges()
        for value in ["0200 0100", "0000 0000", "", "01", "0100 ffff 00", "ffff 0000"] {
            await peripheral.send(raw: [0x1D, UInt8(handle), 0] + (try Hex.decode(value)))
        }
        #expect(try await device.read(0x2A19) == [50])
        #expect(await device.statistics.confirmations == 6)
        #expect(await device.database == database)
        let before = await peripheral.requestCount
        for number in 1...1_000 {
            await peripheral.send(raw: [0x1D, UInt8(handle), 0, 1, 0, 0xFF, 0xFF])
            // A peer that does not wait at all loses its link.
            while await device.statistics.confirmations < 6 + number, !Task.isCancelled { await Task.yield() }
        }
        #expect(try await device.read(.handle(database.characteristics(0x2A19)[0].valueHandle)) == [50])
        #expect(await device.statistics.confirmations == 1_006)
        // One look for all that come within one pause; how many pauses the flood takes is the machine's matter.
        #expect(await peripheral.requestCount - before < 100)
    }

    /// The pieces of a long write must not be written to something else.
    @Test(.row("G20")) func aLongWriteFails() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.small, latency: .milliseconds(20), time: time)
            let device = try await Central(time: time).attach(to: peripheral, ConnectOptions(mtu: 23))
            try await device.discover(level: .full)
            _ = try await device.serviceChanges()
            let writing = time.task { try await device.write([UInt8](repeating: 1, count: 200), to: 0xFFF1) }
            while await !peripheral.transcript.requests.contains("16") {
                try await time.clock.sleep(for: .milliseconds(1))
            }
            await peripheral.changeServices(to: Self.large)
            let error = await #expect(throws: BLEError.self) { try await writing.value }
            #expect(error?.code == .servicesChanged)
            #expect(try await device.read(0xFFF1) == [7])
        }
    }

    /// A change is found out about also when the discovery in its way is given up.
    @Test func aChangeDuringADiscoveryThatIsCancelledIsLookedAt() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.small, latency: .milliseconds(20), time: time)
            let device = try await Central(time: time).attach(to: peripheral)
            try await device.discover(level: .full)
            var changes = try await device.serviceChanges().makeAsyncIterator()
            let before = await peripheral.requestCount
            let discovery = time.task { try await device.discover(level: .full, ignoringCache: true) }
            while await peripheral.requestCount == before { try await time.clock.sleep(for: .milliseconds(1)) }
            await peripheral.changeServices(to: Self.large)
            while await device.statistics.confirmations == 0 { try await time.clock.sleep(for: .milliseconds(1)) }
            discovery.cancel()
            await #expect(throws: BLEError.self) { _ = try await discovery.value }
            #expect(try await changes.next() != nil)
            #expect(try await device.read(0x2A19) == [60])
        }
    }

    @Test func theSequenceEndsWithTheLink() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        let changes = try await device.serviceChanges()
        let lost = try await device.serviceChanges()
        await peripheral.disconnect()
        var iterator = lost.makeAsyncIterator()
        await #expect(throws: error(.disconnected)) { _ = try await iterator.next() }
        _ = changes
    }
}
