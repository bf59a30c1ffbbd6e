import BLECore
import BareBLE
import BareBLETestKit
import Testing

/// Subscriptions that outlive their links.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct SessionValueSequenceTests {
    @Test func goesOnOverLinksAndMarksInterruptions() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var values = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        for round in 1...3 as ClosedRange<UInt8> {
            #expect(try await values.word() == "began")
            try await bench.peripheral.notify(0x2A19, [round])
            try await bench.peripheral.notify(0x2A19, [round + 10])
            #expect(try await values.word() == "[\(round)]")
            #expect(try await values.word() == "[\(round + 10)]")
            await bench.peripheral.disconnect()
            #expect(try await values.word() == "interrupted disconnected")
        }
        #expect(try await values.word() == "began")
        await session.disconnect()
        while let word = try await values.word() { #expect(word.hasPrefix("interrupted")) }
    }

    @Test func theHintOfAnInterruptionAsksForNoConnect() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var values = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        #expect(try await values.word() == "began")
        await bench.peripheral.disconnect()
        guard case .interrupted(let failure)? = try await values.next() else { throw error(.cancelled) }
        #expect(failure.code == .disconnected)
        #expect(failure.hint?.contains("onnect") == false, "the session connects")
        await session.disconnect()
    }

    @Test func typedValuesAreDecoded() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        _ = try await session.ready()
        var values = await session.subscribe(to: .batteryLevel).makeAsyncIterator()
        guard case .began? = try await values.next() else { throw error(.cancelled) }
        try await bench.peripheral.notify(0x2A19, [])
        try await bench.peripheral.notify(0x2A19, [42])
        await #expect(throws: error(.malformedValue)) { try await values.next() }
        guard case .value(let level)? = try await values.next() else { throw error(.cancelled) }
        #expect(level.percentage == 42)
        await session.disconnect()
    }

    @Test func valuesThatDoNotFitAreSkippedWhereTheOptionsAllowIt() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let values = await session.subscribe(to: .batteryLevel, SubscribeOptions(malformedValues: .skip))
        var levels: [UInt8] = []
        for try await change in values {
            switch change {
            case .began:
                try await bench.peripheral.notify(0x2A19, [])
                try await bench.peripheral.notify(0x2A19, [42])
            case .value(let level):
                levels.append(level.percentage)
                if levels.count < 2 { await bench.peripheral.disconnect() }
            case .interrupted:
                break
            }
            if levels.count == 2 { break }
        }
        #expect(levels == [42, 42])
        #expect(values.malformedInTotal == 2)
        await session.disconnect()
    }

    @Test func whatThePeerDoesNotHaveEndsTheSequence() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var values = await session.subscribe(to: 0x2AAA).makeAsyncIterator()
        await #expect(throws: error(.attributeNotFound)) { try await values.next() }
        #expect(try await values.word() == nil)
        // The session continues.
        #expect(session.state == .ready)
        await session.disconnect()
    }

    @Test func givingUpEndsTheSequenceWithItsError() async throws {
        let bench = try SessionBench()
        let session = try await bench.session(Session.Options(reconnect: .never))
        var values = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        #expect(try await values.word() == "began")
        await bench.peripheral.disconnect()
        await #expect(throws: error(.disconnected)) {
            while try await values.next() != nil {}
        }
        await session.disconnect()
        var late = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        #expect(try await late.word() == nil)
    }

    @Test func thePeerIsUnsubscribedWithoutConsumers() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var values: SessionValueSequence<ReceivedValue>.AsyncIterator? = await session.subscribe(to: 0x2A19)
            .makeAsyncIterator()
        #expect(try await values?.word() == "began")
        #expect(await bench.peripheral.isSubscribed(to: 0x2A19))
        values = nil
        while await bench.peripheral.isSubscribed(to: 0x2A19), !Task.isCancelled { await Task.yield() }
        await session.disconnect()
    }

    @Test func aLostMarkIsMadeUpFor() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var events = session.events.makeAsyncIterator()
        var values = await session.subscribe(to: 0x2A19, SubscribeOptions(capacity: 1)).makeAsyncIterator()
        _ = try await events.words(upTo: "ready")
        while await !bench.peripheral.isSubscribed(to: 0x2A19), !Task.isCancelled { await Task.yield() }
        #expect(try await values.word() == "began")
        await bench.peripheral.disconnect()
        _ = try await events.words(upTo: "ready")
        while await !bench.peripheral.isSubscribed(to: 0x2A19), !Task.isCancelled { await Task.yield() }
        try await bench.peripheral.notify(0x2A19, [7])
        _ = try await session.withPeripheral { try await $0.read(.batteryLevel) }
        // Only one thing fits, and what went is seen all the same.
        #expect(try await values.word() == "interrupted disconnected")
        while let word = try await values.word(), word != "[7]" {}
        await session.disconnect()
    }

    /// Dropped values are counted also if a mark follows.
    @Test func lossesBeforeMarksAreCounted() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var values = await session.subscribe(to: 0x2A19, SubscribeOptions(capacity: 2)).makeAsyncIterator()
        var witness = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        #expect(try await values.word() == "began")
        #expect(try await witness.word() == "began")
        for number in 0..<10 as Range<UInt8> { try await bench.peripheral.notify(0x2A19, [number]) }
        while try await witness.word() != "[9]" {}
        await bench.peripheral.disconnect()
        while try await witness.word() != "began" {}
        try await bench.peripheral.notify(0x2A19, [99])
        while try await witness.word() != "[99]" {}
        #expect(try await values.word() == "interrupted disconnected")
        #expect(try await values.word() == "began")
        #expect(try await values.word() == "[99]")
        // Ten values, and the mark after them, unless the next link came before it could be made.
        #expect([10, 11].contains(values.droppedBefore))
        await session.disconnect()
    }

    /// Nothing comes after them that could report it.
    @Test func lossesAtTheEndAreCounted() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let values = await session.subscribe(to: 0x2A19, SubscribeOptions(capacity: 1, policy: .dropNewest))
        while await !bench.peripheral.isSubscribed(to: 0x2A19), !Task.isCancelled { await Task.yield() }
        _ = try await session.withPeripheral { try await $0.read(.batteryLevel) }
        await bench.door.close()
        for number in 0..<10 as Range<UInt8> { try await bench.peripheral.notify(0x2A19, [number]) }
        await bench.peripheral.disconnect()
        // The ten values, wherever on their way, and the mark of the interruption.
        while values.droppedInTotal < 11, !Task.isCancelled { await Task.yield() }
        await session.disconnect()
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.word() == "began")
        #expect(try await iterator.word() == nil)
        #expect(values.droppedInTotal == 11)
    }

    /// A temporary failure does not end it.
    @Test func aSubscriptionThatWasCancelledIsMadeAgain() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let link = try await session.ready()
        try await link.discover()
        await bench.peripheral.stopResponding()
        let before = await bench.peripheral.receivedCount
        var values = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        while await bench.peripheral.receivedCount == before, !Task.isCancelled { await Task.yield() }
        await link.cancelAll()
        // Success, the response to the cancelled write.
        await bench.peripheral.send(raw: [0x13])
        await bench.peripheral.resumeResponding()
        #expect(try await values.word() == "began")
        await session.disconnect()
    }

    /// A characteristic of a replaced database cannot be found again; searching for it forever would be useless.
    @Test func aCharacteristicThatHasChangedEndsTheSequence() async throws {
        let gatt = VirtualService.genericAttribute(databaseHash: nil)
        let bench = try SessionBench(VirtualDevice(name: "Changing", services: [gatt, .battery(level: 50)]))
        let session = try await bench.session()
        let link = try await session.ready()
        let database = try await link.discover()
        _ = try await link.serviceChanges()
        let level = try #require(database.characteristics(0x2A19).first)
        var values = await session.subscribe(to: .characteristic(level)).makeAsyncIterator()
        #expect(try await values.word() == "began")
        let other = VirtualService(0x180F, [VirtualCharacteristic(0x2A1B, [.read, .notify], value: [1])])
        await bench.peripheral.changeServices(to: VirtualDevice(name: "Changing", services: [gatt, other]))
        await #expect(throws: error(.servicesChanged)) { try await values.next() }
        #expect(session.state == .ready)
        await session.disconnect()
    }

    /// A link may be up for months, and other services change meanwhile: that counts as no search.
    @Test func aCharacteristicThatGoesAfterManyOtherChangesIsWaitedFor() async throws {
        let time = try #require(VirtualTimeTrait.time)
        let gatt = VirtualService.genericAttribute(databaseHash: nil)
        let battery = VirtualService.battery(level: 50)
        let others = [0xFFF0, 0xFFE0].map { (number: UInt16) in
            VirtualService(BluetoothUUID(number), [VirtualCharacteristic(0xFFF1, .read, value: [1])])
        }
        let devices = others.map { VirtualDevice(name: "Changing", services: [gatt, battery, $0]) }
        let bench = try SessionBench(devices[0])
        let session = try await bench.session()
        var values = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        #expect(try await values.word() == "began")
        await bench.peripheral.disconnect()
        #expect(try await values.word() == "interrupted disconnected")
        #expect(try await values.word() == "began")
        let link = try await session.ready()
        var changes = try await link.serviceChanges().makeAsyncIterator()
        for round in 1...ResubscribeMachine.missLimit + 2 {
            await bench.peripheral.changeServices(to: devices[round % 2])
            _ = try await changes.next()
        }
        await bench.peripheral.changeServices(to: VirtualDevice(name: "Changing", services: [gatt]))
        #expect(try await values.word() == "interrupted servicesChanged")
        _ = try await changes.next()
        // It has been searched for by then.
        try await time.clock.sleep(for: .seconds(1))
        await bench.peripheral.changeServices(to: devices[0])
        #expect(try await values.word() == "began")
        await session.disconnect()
    }
}

extension SessionValueSequence.AsyncIterator where Value == ReceivedValue {
    fileprivate mutating func word() async throws -> String? {
        switch try await next() {
        case .began?: "began"
        case .value(let value)?: "\(value.bytes)"
        case .interrupted(let error)?: "interrupted \(error.code)"
        case nil: nil
        }
    }
}
