import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// Changes that a peer announces before, or after, this side knows where it does.
@Suite(.timeLimit(.minutes(10))) struct MissedChangeTests {
    private let central = Central()
    private static let control = VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write], value: [7])])
    private static let small = VirtualDevice(
        name: "Small", services: [.genericAttribute(databaseHash: nil), .battery(level: 50), control])
    private static let large = VirtualDevice(
        name: "Large",
        services: [
            .genericAttribute(databaseHash: nil), .deviceInformation(manufacturer: "M", model: "1"),
            .battery(level: 60), control,
        ])

    /// Changes the services, and announces it as to a bonded client, which need not ask again on each link.
    private func change(_ peripheral: VirtualPeripheral, to device: VirtualDevice) async throws {
        let range = try #require(await peripheral.changeServices(to: device, isAnnounced: false))
        let handles = [range.lowerBound, range.upperBound].flatMap {
            [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
        }
        await peripheral.send(raw: [0x1D, 3, 0] + handles)
    }

    /// A bonded peer announces a change, at its handle 3, while it is asked for its services for the first time: a
    /// battery is no battery any more. Bytes by hand, from Core Vol 3 Part F, 3.4 and Part G, 7.1.
    @Test func aChangeDuringTheVeryFirstDiscoveryIsLookedAt() async throws {
        let peer = ScriptedPeripheral(
            try Dialogue(
                """
                < 10 0100 ffff 0028
                > 11 06 0100 0400 0118 0500 0700 0f18
                < 10 0800 ffff 0028
                > 1d 0300 0500 0700
                < 1e
                > 01 10 0800 0a
                < 08 0200 0700 0328
                > 09 07 0200 20 0300 052a 0600 02 0700 192a
                < 10 0500 0700 0028
                > 11 06 0500 0700 0a18
                < 08 0500 0700 0328
                > 09 07 0600 02 0700 292a
                < 0a 0700
                > 0b 4d
                """))
        let options = ConnectOptions(mtu: 23, observesServiceChanges: false)
        let device = try await central.attach(descriptor: peer.connect(), options)
        let found = try? await device.discover(level: .structure)
        let value = try? await device.read(0x2A29)
        #expect(found?.services.map(\.uuid) == [0x1801, 0x180A])
        #expect(value == [0x4D])
        let report = await peer.report
        #expect(report.isComplete, "\(report)")
    }

    /// The peer contradicts all that is known, and with that it is unknown where changes are announced, while the
    /// subscription to them stays.
    @Test func aChangeDuringTheDiscoveryAfterAContradictionIsLookedAt() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        let database = try await device.discover(level: .full)
        _ = try await device.serviceChanges()
        let announcer = try #require(database.characteristics(0x2A05).first).valueHandle
        let indication: [UInt8] = [
            0x1D, UInt8(truncatingIfNeeded: announcer), UInt8(announcer >> 8), 0x01, 0x00, 0xFF, 0xFF,
        ]
        let (reads, searches) = (Lock(0), Lock(0))
        await peripheral.behave { request, respond in
            let responses = respond(request).map { (delay: Duration.zero, pdu: $0) }
            if request.first == 0x0A, Self.next(reads) == 1 {
                // Database Out Of Sync.
                return [(delay: Duration.zero, pdu: [0x01, 0x0A, request[1], request[2], 0x12])]
            }
            if request == [0x10, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28], Self.next(searches) == 1 {
                return [(delay: Duration.zero, pdu: indication)] + responses
            }
            return responses
        }
        #expect(try await device.read(0x2A19) == [50])
        #expect(searches.withLock { $0 } == 2, "once more after the announcement")
        await device.disconnect()
    }

    private static func next(_ counter: Lock<Int>) -> Int {
        counter.withLock { count in
            count += 1
            return count
        }
    }

    /// The handle of announcements is discovered when one seems to arrive.
    @Test func aChangeIsNoticedAfterALazyRead() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F)) == [50])
        try await change(peripheral, to: Self.large)
        while await !peripheral.isSubscribed(to: 0x2A05), !Task.isCancelled { await Task.yield() }
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F)) == [60])
    }

    /// Values of other characteristics may look like announcements.
    @Test func othersIndicationsAreNoAnnouncements() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F)) == [50])
        let known = await device.database
        for _ in 0..<100 { await peripheral.send(raw: [0x1D, 0x77, 0, 1, 0, 0xFF, 0xFF]) }
        while await !peripheral.isSubscribed(to: 0x2A05), !Task.isCancelled { await Task.yield() }
        #expect(await device.database?.services.last == known?.services.last)
        let before = await peripheral.requestCount
        for _ in 0..<100 { await peripheral.send(raw: [0x1D, 0x77, 0, 1, 0, 0xFF, 0xFF]) }
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F)) == [50])
        #expect(await peripheral.requestCount == before + 1)
    }

    /// An observer that found no more than where to listen hears of the next change as well.
    @Test(arguments: [true, false]) func anObserverStaysOne(isLazy: Bool) async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        if !isLazy { try await device.discover() }
        var changes = try await device.serviceChanges().makeAsyncIterator()
        let writes = await peripheral.transcript.requests.count { $0 == "12" }
        await peripheral.send(raw: [0x1D, 3, 0, 1, 0, 0xFF, 0xFF])
        #expect(try await changes.next()?.handles.upperBound == 0xFFFF)
        // The application asks for nothing meanwhile.
        while await peripheral.transcript.requests.count(where: { $0 == "12" }) == writes, !Task.isCancelled {
            await Task.yield()
        }
        while await device.database?.characteristics(0x2A05).isEmpty ?? true, !Task.isCancelled { await Task.yield() }
        let range = try #require(await peripheral.changeServices(to: Self.large))
        #expect(try await changes.next()?.handles == range)
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F)) == [60])
    }

    /// A flood of single changes becomes a few of many, and none is lost.
    @Test func manyChangesAreReportedTogether() async throws {
        try await VirtualTime.run { time in
            let services = (0..<80).map { VirtualService(BluetoothUUID(0xFF00 + $0 as UInt16), []) }
            let peripheral = VirtualPeripheral(
                VirtualDevice(name: "Many", services: [.genericAttribute] + services), latency: .milliseconds(20),
                time: time)
            let device = try await Central(time: time).attach(to: peripheral)
            let database = try await device.discover(level: .full)
            var changes = try await device.serviceChanges().makeAsyncIterator()
            let before = await peripheral.receivedCount
            let discovery = time.task { try await device.discover(level: .full, ignoringCache: true) }
            while await peripheral.receivedCount == before { try await time.clock.sleep(for: .milliseconds(1)) }
            let handles = database.services.dropFirst().map { UInt8(truncatingIfNeeded: $0.handles.lowerBound) }
            let changed = stride(from: 0, to: handles.count, by: 2).map { handles[$0] }
            for handle in changed { await peripheral.send(raw: [0x1D, 3, 0, handle, 0, handle, 0]) }
            _ = try await discovery.value
            var reported: [ClosedRange<AttributeHandle>] = []
            let last = AttributeHandle(try #require(changed.last))
            while reported.last?.contains(last) != true {
                reported.append(try #require(try await changes.next()).handles)
            }
            #expect(reported.count < changed.count)
            for handle in changed { #expect(reported.contains { $0.contains(AttributeHandle(handle)) }) }
        }
    }

    /// A subscriber to announcements gets the one that ends the subscription.
    @Test func theAnnouncementIsDeliveredBeforeItIsObeyed() async throws {
        let peripheral = VirtualPeripheral(Self.small)
        let device = try await central.attach(to: peripheral)
        try await device.discover()
        let values = try await device.subscribe(to: 0x2A05)
        await peripheral.send(raw: [0x1D, 3, 0, 1, 0, 0xFF, 0xFF])
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next()?.bytes == [1, 0, 0xFF, 0xFF])
        await #expect(throws: error(.servicesChanged)) { _ = try await iterator.next() }
    }
}
