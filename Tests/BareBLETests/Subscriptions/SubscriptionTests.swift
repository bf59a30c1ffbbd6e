import BareBLE
import BareBLETestKit
import TestSupport
import Testing

@Suite struct SubscriptionTests {
    private let central = Central()
    private let echo = CharacteristicReference.uuid(
        BluetoothUUID(high: 0x6E40_0003_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E))

    @Test(.row("G24")) func firstValueComesWithTheConsent() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        let beats = try await device.subscribe(to: 0x2A37)
        var iterator = beats.makeAsyncIterator()
        let first = try await iterator.next()
        #expect(first?.bytes.prefix(2) == [0x16, 72])
        #expect(first?.isIndication == false)
    }

    @Test func aSubscriptionToNothingIsRefused() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        let error = await #expect(throws: BLEError.self) { _ = try await device.subscribe(to: []) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.hint?.contains("notifications()") == true)
        await device.disconnect()
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

    @Test func theDescriptorIsLookedForWhereDiscoveryLeftItOpen() async throws {
        let peripheral = VirtualPeripheral(.uart)
        let device = try await central.attach(to: peripheral)
        try await device.discover(level: .structure)
        let requests = await peripheral.requestCount
        let values = try await device.subscribe(to: echo)
        // Find Information, and the write.
        #expect(await peripheral.requestCount == requests + 2)
        try await device.write([7], to: .handle(values.handle - 2))
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next()?.bytes == [7])
        // What was found is remembered.
        try await values.unsubscribe()
        _ = try await device.subscribe(to: echo)
        let database = try #require(await device.database)
        let characteristic = try #require(database.characteristic(valueHandle: values.handle))
        #expect(database.descriptors(of: characteristic).map(\.uuid) == [0x2902, 0x2901])
        #expect(await peripheral.requestCount <= requests + 6)
    }

    /// A user description where the configuration has to be, and nothing else.
    @Test func aWrongConclusionIsLookedAfterOnce() async throws {
        let script = try Dialogue(
            """
            < 10 0100 ffff 0028
            > 11 06 0100 0400 0f18
            < 10 0500 ffff 0028
            > 01 10 0500 0a
            < 08 0200 0400 0328
            > 09 07 0200 10 0300 192a
            < 12 0400 0100
            > 01 12 0400 03
            < 04 0400 0400
            > 05 01 0400 0129
            """)
        let peer = ScriptedPeripheral(script)
        let device = try await central.attach(descriptor: peer.connect(), ConnectOptions(mtu: 23))
        await #expect(throws: error(.notSupported)) {
            _ = try await device.subscribe(to: 0x2A19)
        }
        let report = await peer.report
        #expect(report.isComplete, "\(report)")
    }

    @Test(.timeLimit(.minutes(10))) func eachCallHasItsOwnDeadline() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        try await device.discover()
        await peripheral.stopResponding()
        let before = await peripheral.receivedCount
        let patient = Task { _ = try await device.subscribe(to: 0x2A19) }
        while await peripheral.receivedCount == before, !Task.isCancelled { await Task.yield() }
        await #expect(throws: error(.timedOut)) {
            _ = try await device.subscribe(to: 0x2A19, SubscribeOptions(timeout: .milliseconds(20)))
        }
        await peripheral.send(raw: [0x13])
        try await patient.value
        #expect(await device.isConnected)
    }

    @Test(.timeLimit(.minutes(10))) func aSecondConsumerGetsAnErrorAtOnce() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19)
        let failures = await withTaskGroup(of: BLEError?.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    do throws(BLEError) {
                        for try await _ in values {}
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            let first = await group.next()
            group.cancelAll()
            let second = await group.next()
            return [first, second]
        }
        #expect(failures.map { $0??.code } == [.busy, nil])
        #expect(failures[0]??.subject == device.name)
    }

    @Test func configurationIsSharedAndClearedAfterTheLast() async throws {
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

    /// Until the peer has responded it gets values, which others may demand for themselves by then.
    @Test(.timeLimit(.minutes(1))) func oneThatLeavesKeepsNoOtherOut() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral)
        let (requests, request) = AsyncStream.makeStream(of: Void.self)
        await peripheral.behave { pdu, respond in
            // ATT_WRITE_REQ with notifications disabled.
            let isStop = pdu.count == 5 && pdu[0] == 0x12 && pdu[3...] == [0, 0]
            if isStop { request.yield() }
            return respond(pdu).map { (delay: isStop ? .milliseconds(50) : .zero, pdu: $0) }
        }
        let options = SubscribeOptions(sharing: .exclusive)
        let values = try await device.subscribe(to: 0x2A37, options)
        let leaving = Task { try await values.unsubscribeAfterResponse() }
        for await _ in requests { break }
        let next = try await device.subscribe(to: 0x2A37, options)
        try await leaving.value
        #expect(await device.subscriptions.map(\.handle) == [next.handle])
        await device.disconnect()
    }

    @Test func droppingTheSequenceReportsThePeer() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        do {
            let values = try await device.subscribe(to: 0x2A19)
            #expect(values.handle > 0)
        }
        while await peripheral.isSubscribed(to: 0x2A19) { _ = try await device.read(0x2A19) }
        #expect(await device.isConnected)
    }

    @Test(.row("T17")) func lossIsCountedAndMarked() async throws {
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

    @Test(.row("T17")) func failingPolicyEndsTheSequence() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19, SubscribeOptions(capacity: 2, policy: .fail))
        for number in 0..<3 as Range<UInt8> { try await peripheral.notify(0x2A19, [number]) }
        _ = try await device.read(0x2A19)
        var received: [UInt8] = []
        let error = await #expect(throws: BLEError.self) {
            for try await value in values { received += value.bytes }
        }
        #expect(error?.code == .valuesLost)
        #expect(error?.subject == device.name)
        #expect(received == [0, 1])
    }

    /// A peer sends more than fits before it responds to the subscription, which it never does.
    @Test(.timeLimit(.minutes(5))) func aSequenceThatEndsBeforeItsSubscriptionHasBegunIsReturned() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let options = ConnectOptions(observesServiceChanges: false)
        let device = try await central.attach(to: peripheral, options)
        let database = try await device.discover(level: .subscribable)
        let handle = try #require(database.characteristics(0x2A19).first).valueHandle
        let head: [UInt8] = [0x1B, UInt8(truncatingIfNeeded: handle), UInt8(handle >> 8)]
        await peripheral.behave { request, respond in
            guard request.first == 0x12 else { return respond(request).map { (delay: Duration.zero, pdu: $0) } }
            return ([0, 1, 2] as [UInt8]).map { (delay: Duration.zero, pdu: head + [$0]) }
        }
        let values = try await device.subscribe(to: 0x2A19, SubscribeOptions(capacity: 2, policy: .fail))
        var received: [UInt8] = []
        let error = await #expect(throws: BLEError.self) {
            for try await value in values { received += value.bytes }
        }
        #expect(error?.code == .valuesLost)
        #expect(received == [0, 1])
        await device.disconnect()
        #expect(await device.outstanding == 0)
    }

    @Test func endsWithTheLink() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19)
        try await peripheral.notify(0x2A19, [9])
        await peripheral.disconnect()
        var received: [UInt8] = []
        await #expect(throws: error(.disconnected)) {
            for try await value in values { received += value.bytes }
        }
        #expect(received == [9])
        #expect(await device.disconnected() == .byPeer(nil))
    }

    @Test func refusesWhatCannotSend() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        await #expect(throws: error(.notSupported)) {
            _ = try await device.subscribe(to: 0x2A38)
        }
    }

    /// The consumer sleeps while all values come: reading the socket never waits for it.
    @Test func twentyThousandValuesArriveInOrder() async throws {
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
