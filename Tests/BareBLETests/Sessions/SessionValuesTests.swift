import BLECore
import BareBLE
import BareBLETestKit
import Testing

/// Subscriptions that outlive their links.
@Suite(.timeLimit(.minutes(1))) struct SessionValuesTests {
    @Test func goesOnOverLinksAndMarksInterruptions() async throws {
        let bench = SessionBench()
        let session = try await bench.session()
        var values = await session.values(of: 0x2A19).makeAsyncIterator()
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

    @Test func typedValuesAreDecoded() async throws {
        let bench = SessionBench()
        let session = try await bench.session()
        _ = try await session.ready()
        var values = await session.values(of: .batteryLevel).makeAsyncIterator()
        guard case .began? = try await values.next() else { throw error(.cancelled) }
        try await bench.peripheral.notify(0x2A19, [])
        try await bench.peripheral.notify(0x2A19, [42])
        await #expect(throws: error(.malformedValue)) { try await values.next() }
        guard case .value(let level)? = try await values.next() else { throw error(.cancelled) }
        #expect(level.percentage == 42)
        await session.disconnect()
    }

    @Test func whatThePeerDoesNotHaveEndsTheSequence() async throws {
        let bench = SessionBench()
        let session = try await bench.session()
        var values = await session.values(of: 0x2AAA).makeAsyncIterator()
        await #expect(throws: error(.attributeNotFound)) { try await values.next() }
        #expect(try await values.word() == nil)
        // The session goes on.
        #expect(session.state == .ready)
        await session.disconnect()
    }

    @Test func givingUpEndsTheSequenceWithItsError() async throws {
        let bench = SessionBench()
        let session = try await bench.session(SessionOptions(reconnect: .never))
        var values = await session.values(of: 0x2A19).makeAsyncIterator()
        #expect(try await values.word() == "began")
        await bench.peripheral.disconnect()
        await #expect(throws: error(.disconnected)) {
            while try await values.next() != nil {}
        }
        await session.disconnect()
        var late = await session.values(of: 0x2A19).makeAsyncIterator()
        #expect(try await late.word() == nil)
    }

    @Test func thePeerIsToldToStopWhenNobodyListens() async throws {
        let bench = SessionBench()
        let session = try await bench.session()
        var values: SessionValues<ReceivedValue>.AsyncIterator? = await session.values(of: 0x2A19).makeAsyncIterator()
        #expect(try await values?.word() == "began")
        #expect(await bench.peripheral.isSubscribed(to: 0x2A19))
        values = nil
        while await bench.peripheral.isSubscribed(to: 0x2A19) { await Task.yield() }
        await session.disconnect()
    }

    @Test func aLostMarkIsMadeUpFor() async throws {
        let bench = SessionBench()
        let session = try await bench.session()
        var events = session.events.makeAsyncIterator()
        var values = await session.values(of: 0x2A19, SubscribeOptions(capacity: 1)).makeAsyncIterator()
        _ = try await events.words(upTo: "ready")
        while await !bench.peripheral.isSubscribed(to: 0x2A19) { await Task.yield() }
        #expect(try await values.word() == "began")
        await bench.peripheral.disconnect()
        _ = try await events.words(upTo: "ready")
        while await !bench.peripheral.isSubscribed(to: 0x2A19) { await Task.yield() }
        try await bench.peripheral.notify(0x2A19, [7])
        _ = try await session.withPeripheral { try await $0.read(.batteryLevel) }
        // Only one thing fits, and what went is seen all the same.
        #expect(try await values.word() == "interrupted disconnected")
        while let word = try await values.word(), word != "[7]" {}
        await session.disconnect()
    }
}

extension SessionValues.AsyncIterator where Value == ReceivedValue {
    fileprivate mutating func word() async throws -> String? {
        switch try await next() {
        case .began?: "began"
        case .value(let value)?: "\(value.bytes)"
        case .interrupted(let error)?: "interrupted \(error.code)"
        case nil: nil
        }
    }
}
