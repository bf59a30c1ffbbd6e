import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

@Suite(.timeLimit(.minutes(10))) struct LinkHandOverTests {
    private let central = Central()

    /// The link as another program would restore it.
    private func passed(_ link: DetachedLink) throws -> DetachedLink {
        let bytes = link.bytes
        return try DetachedLink(bytes: bytes, descriptor: try #require(link.release()))
    }

    @Test func theLinkContinues() async throws {
        let peripheral = VirtualPeripheral(.longValue)
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: 100))
        try await device.discover(level: .full)
        let database = await device.database
        let link = try await device.detach()
        #expect(await device.disconnected() == .detached)
        #expect(await device.isConnected == false)
        await #expect(throws: error(.disconnected)) { try await device.read(0xFFF1) }
        await #expect(throws: error(.disconnected)) { try await device.detach() }
        #expect(link.mtu == 100)
        #expect(!link.hasPendingRequest)
        let requests = await peripheral.requestCount
        let again = try await Central().adopt(passed(link))
        #expect(await again.mtu == 100)
        #expect(await again.database == database)
        #expect(again.name == device.name)
        #expect(await peripheral.requestCount == requests)
        #expect(try await again.read(0xFFF1).count == 512)
        #expect(await peripheral.connectionCount == 1)
        await again.disconnect()
        while await peripheral.isConnected, !Task.isCancelled { await Task.yield() }
    }

    @Test func valuesWaitForTheirConsumer() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let old = try await device.subscribe(to: 0x2A19)
        try await peripheral.notify(0x2A19, [1])
        _ = try await device.read(0x2A19)
        let link = try await device.detach()
        #expect(link.subscribedHandles == [old.handle])
        for level in 2...4 as ClosedRange<UInt8> { try await peripheral.notify(0x2A19, [level]) }
        // What was read before the hand-over is the old subscription's.
        var taken: [[UInt8]] = []
        for try await value in old { taken.append(value.bytes) }
        #expect(taken == [[1]])
        let requests = await peripheral.requestCount
        let again = try await central.adopt(passed(link))
        try await peripheral.notify(0x2A19, [5])
        let restored = try #require(await again.restoredSubscriptions.first)
        #expect(await again.restoredSubscriptions.count == 1)
        #expect(restored.uuid == 0x2A19)
        #expect(restored.handle == old.handle)
        var values = try await restored.adopt(as: UInt8.self).makeAsyncIterator()
        for level in 2...5 as ClosedRange<UInt8> { #expect(try await values.next() == level) }
        #expect(await peripheral.requestCount == requests)
        #expect(await again.restoredSubscriptions.isEmpty)
        await #expect(throws: error(.invalidArgument)) { try await restored.adopt() }
    }

    @Test func whatFindsNoRoomIsCounted() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        _ = try await device.discover()
        let beats = try await device.subscribe(to: 0x2A19)
        let link = try await device.detach()
        _ = beats
        for level in 1...6 as ClosedRange<UInt8> { try await peripheral.notify(0x2A19, [level]) }
        let again = try await central.adopt(link, holding: SubscribeOptions(capacity: 2))
        // Its response comes after the values.
        _ = try await again.read(0x2A19)
        // An ordinary subscription takes the held one on.
        let requests = await peripheral.requestCount
        var values = try await again.subscribe(to: 0x2A19).makeAsyncIterator()
        #expect(await peripheral.requestCount == requests)
        let first = try await values.next()
        #expect(first?.bytes == [5])
        #expect(first?.droppedBefore == 4)
        #expect(try await values.next()?.bytes == [6])
        #expect(await again.restoredSubscriptions.isEmpty)
    }

    @Test func anExclusiveSubscriptionThatTakesAHeldOneIsAlone() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let old = try await device.subscribe(to: 0x2A19)
        let again = try await central.adopt(try await device.detach())
        _ = old
        let values = try await again.subscribe(to: 0x2A19, SubscribeOptions(sharing: .exclusive))
        #expect(await again.restoredSubscriptions.isEmpty)
        await #expect(throws: error(.busy)) { _ = try await again.subscribe(to: 0x2A19) }
        try await values.unsubscribe()
        _ = try await again.subscribe(to: 0x2A19)
    }

    @Test func aStoppedSubscriptionIsSwitchedOff() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19)
        let again = try await central.adopt(try await device.detach())
        _ = values
        try await #require(await again.restoredSubscriptions.first).stop()
        #expect(try await peripheral.notify(0x2A19, [1]) == false)
    }

    @Test func aLateResponseToARequestBeforeTheHandOverIsDiscarded() async throws {
        try await VirtualTime.run { time in
            let service = VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, .read, value: [1]), VirtualCharacteristic(0xFFF2, .read, value: [2]),
                ])
            let peripheral = VirtualPeripheral(
                VirtualDevice(name: "Slow", services: [service]), latency: .milliseconds(100), time: time)
            let central = Central(time: time)
            let device = try await central.attach(to: peripheral)
            try await device.discover()
            let count = await peripheral.receivedCount
            let read = time.task { try await device.read(0xFFF1) }
            while await peripheral.receivedCount == count { try await time.clock.sleep(for: .milliseconds(1)) }
            let link = try await device.detach()
            #expect(link.hasPendingRequest)
            await #expect(throws: error(.disconnected)) { try await read.value }
            let again = try await central.adopt(passed(link))
            #expect(try await again.read(0xFFF2) == [2])
            #expect(await again.statistics.lateResponses == 1)
        }
    }

    @Test func aLinkThatEndedMeanwhileIsReported() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let link = try await central.attach(to: peripheral).detach()
        await peripheral.disconnect()
        await #expect(throws: error(.disconnected)) { try await central.adopt(link) }
        #expect(link.fileDescriptor == nil)
    }

    @Test func aDetachedLinkThatIsNotAdoptedIsClosed() async throws {
        let peripheral = VirtualPeripheral(.battery)
        _ = try await central.attach(to: peripheral).detach()
        while await peripheral.isConnected, !Task.isCancelled { await Task.yield() }
    }

    @Test func wrongDescriptorsAreRefused() async throws {
        let link = try await central.attach(to: VirtualPeripheral(.battery)).detach()
        let bytes = link.bytes
        _ = try await central.adopt(link)
        await #expect(throws: error(.invalidArgument)) { try await central.adopt(link) }
        #expect(throws: error(.invalidArgument)) {
            try DetachedLink(bytes: bytes, descriptor: 9_999)
        }
        let file = unsafe open("/dev/null", O_RDONLY)
        let notASocket = try DetachedLink(bytes: bytes, descriptor: file)
        await #expect(throws: error(.invalidArgument)) {
            try await central.adopt(notASocket)
        }
        let datagrams = try DetachedLink(
            bytes: bytes, descriptor: socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0))
        await #expect(throws: error(.invalidArgument)) {
            try await central.adopt(datagrams)
        }
        let unconnected = try DetachedLink(
            bytes: bytes, descriptor: socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0))
        await #expect(throws: error(.disconnected)) {
            try await central.adopt(unconnected)
        }
        #expect(throws: error(.unusableState)) {
            try DetachedLink(bytes: Array(bytes.dropLast()), descriptor: unsafe open("/dev/null", O_RDONLY))
        }
    }

    @Test func aTextNamesTheLinkAcrossExec() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let link = try await central.attach(to: peripheral).detach()
        let text = try link.passAcrossExec()
        #expect(link.fileDescriptor == nil)
        let again = try await central.adopt(DetachedLink(passedAcrossExec: text))
        #expect(try await again.read(0x2A19) == [64])
        // Taken: the descriptors are not open in a program that is executed now.
        for text in [text, "", "1", "1,x", "-1,-1", "3,3", "99999,99998"] {
            #expect(throws: error(.invalidArgument)) {
                try DetachedLink(passedAcrossExec: text)
            }
        }
    }

    /// The subscription of the library itself, to changes of the services, continues too.
    @Test func changesOfServicesAreObservedOn() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral)
        try await device.discover(level: .full)
        _ = try await device.serviceChanges()
        let again = try await central.adopt(passed(try await device.detach()))
        #expect(await again.restoredSubscriptions.isEmpty)
        let requests = await peripheral.requestCount
        var changes = try await again.serviceChanges().makeAsyncIterator()
        #expect(await peripheral.requestCount == requests)
        await peripheral.changeServices(
            to: VirtualDevice(
                name: "New",
                services: [
                    .genericAccess(name: "Virtual HRM", appearance: 0x0341), .genericAttribute, .battery(level: 64),
                ]))
        #expect(try await changes.next() != nil)
        #expect(try await again.read(0x2A19) == [64])
    }
}
