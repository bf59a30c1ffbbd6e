import BLECore
import BareBLE
import BareBLETestKit
import Testing

/// Delivery of values: several listeners of one characteristic, and several characteristics for one listener.
@Suite(.timeLimit(.minutes(10))) struct SharingTests {
    private static let panel = VirtualDevice(
        name: "Panel",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, [.read, .notify], value: [0]),
                    VirtualCharacteristic(0xFFF2, .indicate),
                    VirtualCharacteristic(0xFFF3, .read, value: [3]),
                ])
        ])

    private func attach() async throws -> (Peripheral, VirtualPeripheral) {
        let peripheral = VirtualPeripheral(Self.panel)
        return (try await Central().attach(to: peripheral), peripheral)
    }

    private func expect(_ code: BLEError.Code, _ call: () async throws -> Void) async {
        await #expect(throws: error(code)) { try await call() }
    }

    @Test func anExclusiveOneIsAlone() async throws {
        let (device, peripheral) = try await attach()
        let values = try await device.subscribe(to: 0xFFF1, SubscribeOptions(sharing: .exclusive))
        await expect(.busy) { _ = try await device.subscribe(to: 0xFFF1) }
        await expect(.busy) { _ = try await device.subscribe(to: 0xFFF1, SubscribeOptions(sharing: .exclusive)) }
        let other = try await device.subscribe(to: 0xFFF2)
        try await values.unsubscribe()
        let shared = try await device.subscribe(to: 0xFFF1)
        await expect(.busy) { _ = try await device.subscribe(to: 0xFFF1, SubscribeOptions(sharing: .exclusive)) }
        #expect(await peripheral.isSubscribed(to: 0xFFF1))
        #expect(shared.handle != other.handle)
    }

    @Test func aReplacingOneEndsTheOthers() async throws {
        let (device, peripheral) = try await attach()
        let one = try await device.subscribe(to: 0xFFF1)
        let two = try await device.subscribe(to: 0xFFF1)
        try await peripheral.notify(0xFFF1, [1])
        _ = try await device.read(0xFFF3)
        let requests = await peripheral.requestCount
        let last = try await device.subscribe(to: 0xFFF1, SubscribeOptions(sharing: .replacing))
        // Nothing was sent to the peer.
        #expect(await peripheral.requestCount == requests)
        try await peripheral.notify(0xFFF1, [2])
        for values in [one, two] {
            var iterator = values.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == [1])
            await expect(.replaced) { _ = try await iterator.next() }
            try await values.unsubscribe()
        }
        var iterator = last.makeAsyncIterator()
        #expect(try await iterator.next()?.bytes == [2])
        #expect(await device.subscriptions.map(\.listenerCount) == [1])
    }

    @Test func oneThatIsBeingMadeIsReplacedToo() async throws {
        let (device, peripheral) = try await attach()
        try await device.discover()
        await peripheral.stopResponding()
        let before = await peripheral.receivedCount
        let first = Task { try await device.subscribe(to: 0xFFF1, SubscribeOptions(sharing: .exclusive)) }
        while await peripheral.receivedCount == before, !Task.isCancelled { await Task.yield() }
        let second = Task { try await device.subscribe(to: 0xFFF1, SubscribeOptions(sharing: .replacing)) }
        await expect(.replaced) { _ = try await first.value }
        await peripheral.send(raw: [0x13])
        let values = try await second.value
        #expect(await device.subscriptions.map(\.handle) == [values.handle])
    }

    @Test func theListHasTheActiveSubscriptions() async throws {
        let (device, _) = try await attach()
        #expect(await device.subscriptions == [])
        let indicated = try await device.subscribe(to: 0xFFF2)
        let one = try await device.subscribe(to: 0xFFF1)
        let two = try await device.subscribe(to: 0xFFF1)
        let active = await device.subscriptions
        #expect(active.map(\.handle) == [one.handle, indicated.handle])
        #expect(active.map(\.kind) == [.notifications, .indications])
        #expect(active.map(\.listenerCount) == [2, 1])
        #expect(active.map { $0.characteristic?.uuid } == [0xFFF1, 0xFFF2])
        for values in [one, two, indicated] { try await values.unsubscribe() }
        #expect(await device.subscriptions == [])
    }

    // MARK: Many in one

    @Test func oneSequenceHasSeveralCharacteristics() async throws {
        let (device, peripheral) = try await attach()
        let values = try await device.subscribe(to: [0xFFF2, 0xFFF1], SubscribeOptions(capacity: 2))
        #expect(values.handles.count == 2)
        for number in 0..<2 as Range<UInt8> {
            try await peripheral.notify(0xFFF1, [number])
            try await peripheral.notify(0xFFF2, [number])
            // An indication is confirmed before the next may come.
            _ = try await device.read(0xFFF3)
        }
        var iterator = values.makeAsyncIterator()
        let first = try await iterator.next()
        #expect(first?.bytes == [1] && first?.droppedBefore == 2)
        #expect(first?.handle == values.handles.last)
        let second = try await iterator.next()
        #expect(second?.handle == values.handles.first && second?.isIndication == true)
        #expect(values.droppedInTotal == 2)
        try await values.unsubscribe()
        #expect(await !peripheral.isSubscribed(to: 0xFFF1))
        #expect(await !peripheral.isSubscribed(to: 0xFFF2))
        #expect(try await iterator.next() == nil)
    }

    @Test(arguments: [SubscribeOptions.Sharing.shared, .exclusive, .replacing])
    func aCharacteristicThatIsNamedTwiceHasEachValueOnce(_ sharing: SubscribeOptions.Sharing) async throws {
        let (device, peripheral) = try await attach()
        let values = try await device.subscribe(
            to: [0xFFF1, 0xFFF2, .uuid(0xFFF1, service: 0xFFF0)], SubscribeOptions(sharing: sharing))
        #expect(values.handles.count == 3 && values.handles.first == values.handles.last)
        #expect(await device.subscriptions.map(\.listenerCount) == [1, 1])
        for number in 1...2 as ClosedRange<UInt8> { try await peripheral.notify(0xFFF1, [number]) }
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next()?.bytes == [1])
        #expect(try await iterator.next()?.bytes == [2])
        try await values.unsubscribe()
        #expect(await device.subscriptions == [])
    }

    @Test func whereOneFailsTheOthersAreCancelled() async throws {
        let (device, peripheral) = try await attach()
        await expect(.notSupported) { _ = try await device.subscribe(to: [0xFFF1, 0xFFF3]) }
        while await peripheral.isSubscribed(to: 0xFFF1) { _ = try await device.read(0xFFF3) }
        #expect(await device.subscriptions == [])
    }

    @Test func notificationsHaveTheValuesOfSubscriptionsAndAllOthers() async throws {
        let (device, peripheral) = try await attach()
        let all = await device.notifications()
        let some = try await device.subscribe(to: 0xFFF1)
        try await peripheral.notify(0xFFF1, [1])
        await peripheral.send(raw: [0x1B, 0x77, 0x00, 0x09])
        _ = try await device.read(0xFFF3)
        var iterator = all.makeAsyncIterator()
        #expect(try await iterator.next()?.handle == some.handle)
        let stray = try await iterator.next()
        #expect(stray?.handle == 0x77 && stray?.bytes == [9])
        await peripheral.disconnect()
        await expect(.disconnected) { _ = try await iterator.next() }
        var late = await device.notifications().makeAsyncIterator()
        await expect(.disconnected) { _ = try await late.next() }
    }
}
