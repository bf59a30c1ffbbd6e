import BLECore
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// A bonded peer keeps its client configurations, and sends before a program that has just started has subscribed.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct EarlyValuesTests {
    /// A peer that was bonded and subscribed to by an earlier program, with its first link to the next one.
    private func restarted(
        _ time: VirtualTime, bonded: Bool = true
    ) async throws -> (bench: SecurityBench, central: Central, peripheral: Peripheral) {
        let bench = try await SecurityBench(time, protection: bonded ? .encrypted : .none) { device in
            device.services[0].characteristics.append(VirtualCharacteristic(0xFFF3, .write))
            device.services.insert(.genericAttribute(databaseHash: nil), at: 0)
        }
        if bonded { try await bench.pair() }
        let first = try await bench.central.connect(bench.id)
        let values = try await first.subscribe(to: 0xFFF1)
        await bench.radio.disconnect(bench.device)
        _ = await first.disconnected()
        _ = values
        let central = SecurityBench.central(bench.radio, bench.bonds)
        let peripheral = try await central.connect(bench.id)
        return (bench, central, peripheral)
    }

    /// Sends values before the peripheral has a subscription, and returns once they are there.
    private func sendEarly(
        _ values: [UInt8], _ bench: SecurityBench, to peripheral: Peripheral
    ) async throws {
        for value in values { #expect(try await bench.device.notify(0xFFF1, [value])) }
        // Its response comes after the values.
        #expect(try await peripheral.read(0xFFF2) == [8])
    }

    /// Subscribes, and returns as many of the first values as are asked for.
    private func firstValues(_ count: Int = 1, of peripheral: Peripheral) async throws -> [UInt8] {
        var iterator = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
        var values: [UInt8] = []
        while values.count < count, let value = try await iterator.next() { values += value.bytes }
        return values
    }

    private static func handle(of uuid: BluetoothUUID, in peripheral: Peripheral) async throws -> AttributeHandle {
        try #require(await peripheral.discover(level: .full).characteristics(uuid).first).valueHandle
    }

    private static func bytes(_ handle: AttributeHandle) -> [UInt8] {
        [UInt8(truncatingIfNeeded: handle), UInt8(handle >> 8)]
    }

    /// Has the peer refuse each write.
    private func refuseWrites(_ bench: SecurityBench) async {
        await bench.device.behave { request, respond in
            guard request.first == 0x12 else { return respond(request).map { (delay: .zero, pdu: $0) } }
            return [(delay: .zero, pdu: [0x01, 0x12, request[1], request[2], 0x11])]
        }
    }

    @Test func theFirstSubscriptionReceivesWhatCameBefore() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await sendEarly([1, 2], bench, to: peripheral)
            let first = try await peripheral.subscribe(to: 0xFFF1)
            let second = try await peripheral.subscribe(to: 0xFFF1)
            #expect(try await bench.device.notify(0xFFF1, [3]))
            var values: [UInt8] = []
            for try await value in first {
                values += value.bytes
                if values.count == 3 { break }
            }
            #expect(values == [1, 2, 3])
            var later = second.makeAsyncIterator()
            #expect(try await later.next()?.bytes == [3])
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
        }
    }

    @Test func aSubscriptionThatFailsLeavesThemToTheNextOne() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await sendEarly([1], bench, to: peripheral)
            await #expect(throws: error(.notSupported)) { _ = try await peripheral.subscribe(to: [0xFFF1, 0xFFF3]) }
            #expect(try await firstValues(of: peripheral) == [1])
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
        }
    }

    @Test func theOrderOfArrivalIsKeptAcrossASubscriptionThatFails() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await sendEarly([1], bench, to: peripheral)
            await refuseWrites(bench)
            await #expect(throws: error(.refusedByPeer)) { _ = try await peripheral.subscribe(to: 0xFFF1) }
            await bench.device.behave(nil)
            try await sendEarly([2], bench, to: peripheral)
            #expect(try await firstValues(2, of: peripheral) == [1, 2])
        }
    }

    @Test func aRetriedSubscriptionToSeveralReceivesThemOnce() async throws {
        try await VirtualTime.run { time in
            let (bench, _, former) = try await restarted(time)
            await former.disconnect()
            let device = bench.device
            // Whatever the program does to raise the security, the peer accepts the next write.
            let central = SecurityBench.central(
                bench.radio, bench.bonds,
                change: { configuration in
                    configuration.raiseSecurity = { _ in
                        await device.behave(nil)
                        return true
                    }
                })
            let peripheral = try await central.connect(bench.id)
            let database = try await peripheral.discover(level: .full)
            let characteristic = try #require(database.characteristics(0xFFF1).first)
            let descriptor = Self.bytes(try #require(database.cccd(of: characteristic)).handle)
            try await sendEarly([1, 2], bench, to: peripheral)
            await device.behave { request, respond in
                guard request.starts(with: [0x12] + descriptor) else {
                    return respond(request).map { (delay: .zero, pdu: $0) }
                }
                return [(delay: .zero, pdu: [0x01, 0x12] + descriptor + [0x05])]
            }
            let sequence = try await peripheral.subscribe(to: [0xFFF1, 0xFFF2])
            #expect(try await device.notify(0xFFF1, [3]))
            var values: [UInt8] = []
            for try await value in sequence {
                values += value.bytes
                if values.count == 3 { break }
            }
            #expect(values == [1, 2, 3])
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
        }
    }

    @Test func aValueAfterASubscriptionThatFailsIsForTheNextOne() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            await refuseWrites(bench)
            await #expect(throws: error(.refusedByPeer)) { _ = try await peripheral.subscribe(to: 0xFFF1) }
            await bench.device.behave(nil)
            try await sendEarly([1], bench, to: peripheral)
            var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
            #expect(try await bench.device.notify(0xFFF1, [2]))
            #expect(try await values.next()?.bytes == [1])
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
        }
    }

    @Test func twoSubscriptionsThatFailTogetherLeaveThemToTheNextOne() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await peripheral.discover(level: .full)
            try await sendEarly([1], bench, to: peripheral)
            await refuseWrites(bench)
            async let first = try? await peripheral.subscribe(to: 0xFFF1)
            async let second = try? await peripheral.subscribe(to: 0xFFF1)
            let sequences = await [first, second].compactMap(\.self)
            #expect(sequences.isEmpty)
            await bench.device.behave(nil)
            var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
            #expect(try await bench.device.notify(0xFFF1, [2]))
            #expect(try await values.next()?.bytes == [1])
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
        }
    }

    /// The first one times out before the peer refuses the write for both.
    @Test func theSecondOfTwoThatFailLeavesLaterOnesToTheNextOne() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await peripheral.discover(level: .full)
            try await sendEarly([1], bench, to: peripheral)
            await bench.device.behave { request, respond in
                guard request.first == 0x12 else { return respond(request).map { (delay: .zero, pdu: $0) } }
                return [(delay: .seconds(5), pdu: [0x01, 0x12, request[1], request[2], 0x11])]
            }
            let first = time.task {
                try await peripheral.subscribe(to: 0xFFF1, SubscribeOptions(timeout: .seconds(2)))
            }
            try await time.clock.sleep(for: .seconds(1))
            await #expect(throws: error(.refusedByPeer)) { _ = try await peripheral.subscribe(to: 0xFFF1) }
            await #expect(throws: error(.timedOut)) { _ = try await first.value }
            await bench.device.behave(nil)
            try await sendEarly([2], bench, to: peripheral)
            var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
            #expect(try await bench.device.notify(0xFFF1, [3]))
            #expect(try await values.next()?.bytes == [2])
            #expect(await peripheral.statistics.unsolicitedNotifications == 1)
        }
    }

    @Test func aPeerWithoutABondKeepsNothing() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time, bonded: false)
            let handle = try await Self.handle(of: 0xFFF1, in: peripheral)
            await bench.device.send(raw: [0x1B] + Self.bytes(handle) + [1])
            #expect(try await peripheral.read(0xFFF2) == [8])
            var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
            #expect(try await bench.device.notify(0xFFF1, [2]))
            #expect(try await values.next()?.bytes == [2])
            #expect(await peripheral.statistics.unsolicitedNotifications == 1)
        }
    }

    @Test func aRequestDoesNotTakeAnEarlyValueAsItsResponse() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await sendEarly([1], bench, to: peripheral)
            await #expect(throws: BLEError.self) {
                try await peripheral.request([9], to: 0xFFF3, replyOn: 0xFFF1, timeout: .seconds(2))
            }
            #expect(try await firstValues(of: peripheral) == [1])
        }
    }

    @Test func oldAndSurplusValuesAreDroppedAndCounted() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await sendEarly(Array(0..<70), bench, to: peripheral)
            #expect(await peripheral.statistics.unsolicitedNotifications == 6)
            // The peer keeps the configuration only if the subscription outlives the link.
            var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
            #expect(try await values.next()?.bytes == [6])
            await peripheral.disconnect()
            let next = try await SecurityBench.central(bench.radio, bench.bonds).connect(bench.id)
            #expect(try await bench.device.notify(0xFFF1, [1]))
            try await time.clock.sleep(for: .seconds(30))
            try await sendEarly([2], bench, to: next)
            #expect(try await firstValues(of: next) == [2])
            #expect(await next.statistics.unsolicitedNotifications == 1)
        }
    }

    @Test func valuesOfChangedServicesAreDropped() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            let changed = try await Self.handle(of: 0x2A05, in: peripheral)
            _ = try await peripheral.serviceChanges()
            #expect(try await bench.device.notify(0xFFF1, [1]))
            await bench.device.send(raw: [0x1D] + Self.bytes(changed) + [0x01, 0x00, 0xFF, 0xFF])
            #expect(try await peripheral.read(0xFFF2) == [8])
            var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
            #expect(try await bench.device.notify(0xFFF1, [2]))
            #expect(try await values.next()?.bytes == [2])
            #expect(await peripheral.statistics.unsolicitedNotifications == 1)
        }
    }

    @Test func valuesThatWereNotTakenAreCountedAtTheEnd() async throws {
        try await VirtualTime.run { time in
            let (bench, _, peripheral) = try await restarted(time)
            try await sendEarly([1], bench, to: peripheral)
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
            await peripheral.disconnect()
            #expect(await peripheral.statistics.unsolicitedNotifications == 1)
        }
    }
}
