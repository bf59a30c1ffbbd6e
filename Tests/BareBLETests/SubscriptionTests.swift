import BareBLE
import BareBLETestKit
import Testing

@Suite struct SubscriptionTests {
    private let central = Central()

    @Test func firstValueComesWithTheConsent() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        let beats = try await device.subscribe(to: 0x2A37)
        var iterator = beats.makeAsyncIterator()
        let first = try await iterator.next()
        #expect(first?.bytes.prefix(2) == [0x16, 72])
        #expect(first?.isIndication == false)
    }

    @Test func indicationsAreConfirmed() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.longValue))
        let values = try await device.subscribe(to: 0xFFF4)
        var iterator = values.makeAsyncIterator()
        for number in 0..<20 as Range<UInt8> {
            try await device.write([number], to: 0xFFF4)
            let value = try await iterator.next()
            #expect(value?.bytes == [number])
            #expect(value?.isIndication == true)
        }
        #expect(await device.statistics.confirmations == 20)
    }

    @Test func configurationIsSharedAndClearedBehindTheLast() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let one = try await device.subscribe(to: 0x2A19)
        let requests = await peripheral.requestCount
        let two = try await device.subscribe(to: 0x2A19)
        #expect(await peripheral.requestCount == requests)
        try await peripheral.notify(0x2A19, [50])
        for values in [one, two] {
            var iterator = values.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == [50])
        }
        try await one.unsubscribe()
        #expect(await peripheral.isSubscribed(to: 0x2A19))
        try await two.unsubscribe()
        #expect(await !peripheral.isSubscribed(to: 0x2A19))
    }

    @Test func droppingTheSequenceTellsThePeer() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        do {
            let values = try await device.subscribe(to: 0x2A19)
            #expect(values.handle > 0)
        }
        while await peripheral.isSubscribed(to: 0x2A19) { _ = try await device.read(0x2A19) }
        #expect(await device.isConnected)
    }

    @Test func lossIsCountedAndMarked() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19, SubscribeOptions(capacity: 4))
        for number in 0..<10 as Range<UInt8> { try await peripheral.notify(0x2A19, [number]) }
        _ = try await device.read(0x2A19)
        var iterator = values.makeAsyncIterator()
        let first = try await iterator.next()
        #expect(first?.bytes == [6])
        #expect(first?.droppedBefore == 6)
        #expect(values.droppedInTotal == 6)
        #expect(try await iterator.next()?.droppedBefore == 0)
    }

    @Test func failingPolicyEndsTheSequence() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19, SubscribeOptions(capacity: 2, policy: .fail))
        for number in 0..<3 as Range<UInt8> { try await peripheral.notify(0x2A19, [number]) }
        _ = try await device.read(0x2A19)
        var received: [UInt8] = []
        await #expect(throws: BLEError(.valuesLost, during: "", because: "")) {
            for try await value in values { received += value.bytes }
        }
        #expect(received == [0, 1])
    }

    @Test func endsWithTheLink() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19)
        try await peripheral.notify(0x2A19, [9])
        await peripheral.disconnect()
        var received: [UInt8] = []
        await #expect(throws: BLEError(.disconnected, during: "", because: "")) {
            for try await value in values { received += value.bytes }
        }
        #expect(received == [9])
        #expect(await device.disconnected() == .byPeer(nil))
    }

    @Test func refusesWhatCannotSend() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        await #expect(throws: BLEError(.notSupported, during: "", because: "")) {
            _ = try await device.subscribe(to: 0x2A38)
        }
    }

    /// The consumer sleeps while all values come: reading the socket never waits for it.
    @Test func twentyThousandValuesInOrder() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19, SubscribeOptions(capacity: 30_000))
        Task {
            for number in 0..<20_000 {
                try await peripheral.notify(0x2A19, [UInt8(number >> 8), UInt8(number & 0xFF)])
            }
        }
        var next = 0
        for try await value in values {
            if value.bytes != [UInt8(next >> 8), UInt8(next & 0xFF)] {
                Issue.record("value \(next) is \(value.bytes)")
            }
            next += 1
            if next == 20_000 { break }
        }
        #expect(values.droppedInTotal == 0)
    }
}
