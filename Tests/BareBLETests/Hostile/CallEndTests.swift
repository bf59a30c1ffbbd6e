import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Faults that applications cause themselves, rows C of the catalogue; and those of their threads.
@Suite("Ends of calls", .timeLimit(.minutes(10)))
struct CallEndTests {
    @Test("calls, the end of the subscription and the end of the link from inside the loop over values", .row("C01"))
    func callsAndEndsWorkInsideTheLoopOverValues() async throws {
        let link = try await HostileLink(HostileLink.database())
        let values = try await link.device.subscribe(to: .handle(3))
        await link.peer.send([0x1B, 3, 0, 1])
        var seen: [[UInt8]] = []
        for try await value in values {
            seen.append(value.bytes)
            switch seen.count {
            case 1:
                #expect(try await link.device.read(.handle(3)) == [0x64])
                try await link.device.write([2], to: .handle(3))
                await link.peer.send([0x1B, 3, 0, 2])
            case 2:
                try await values.unsubscribe()
                await link.device.disconnect()
            default: Issue.record("a value after the end")
            }
        }
        #expect(seen == [[1], [2]])
        try await link.end()
    }

    @Test("a link that is closed twice at a time, with a call under way, ends once", .row("C02"))
    func closedTwice() async throws {
        let link = try await HostileLink { _ in [] }
        let (device, peer) = (link.device, link.peer)
        async let reading = HostileLink.code { () throws(BLEError) in _ = try await device.read(.handle(3)) }
        await link.wait(for: 1, of: 0x0A)
        async let first: Void = device.disconnect()
        async let second: Void = device.disconnect()
        _ = await (first, second)
        #expect(await reading == .disconnected)
        #expect(await device.disconnectReason == .requested)
        #expect(await device.disconnected() == .requested)
        #expect(await peer.received.count == 1)
        try await link.end()
    }

    @Test("a link that only a waiting call holds lives as long as the call", .row("C02"))
    func aWaitingCallKeepsItsLink() async throws {
        let peripheral = VirtualPeripheral(.battery)
        var device: Peripheral? = try await Central().attach(to: peripheral)
        weak let link = device
        await peripheral.stopResponding()
        let reading = Task { [device] in
            await HostileLink.code { () throws(BLEError) in _ = try await device?.read(.handle(3)) }
        }
        device = nil
        while await peripheral.receivedCount < 2, !Task.isCancelled { await Task.yield() }
        await peripheral.disconnect()
        #expect(await reading.value == .disconnected)
        while link != nil, !Task.isCancelled { await Task.yield() }
    }

    @Test(
        "five hundred calls, and the link ends: each call ends once, those for which there is no room at once",
        .row("C03"))
    func manyCalls() async throws {
        let link = try await HostileLink { _ in [] }
        let device = link.device
        let codes = await withTaskGroup(of: BLEError.Code?.self) { group in
            for _ in 0..<500 {
                group.addTask {
                    await HostileLink.code { () throws(BLEError) in _ = try await device.read(.handle(3)) }
                }
            }
            while await device.statistics.refusedByFullQueue < 500 - 64, !Task.isCancelled { await Task.yield() }
            // The peer has a thread of its own, and may read the request a little later.
            await link.wait(for: 1, of: ATTOpcode.readRequest.rawValue)
            await device.disconnect()
            return await group.reduce(into: [BLEError.Code?: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(codes == [.queueFull: 500 - 64, .disconnected: 64])
        #expect(await link.peer.received.count == 1)
        try await link.end()
    }

    /// With more time where the link's thread came to stand only when the time was over.
    @Test("a response that came while this process did not run counts, whatever the time", .row("O21"))
    func processWasStopped() async throws {
        for time in [Duration.seconds(1), .seconds(4), .seconds(16)] {
            guard try await !responseCounts(after: time) else { return }
        }
        Issue.record("the thread never stood in time")
    }

    /// Whether the thread of a link stood before the response time was over. It stands until then, and until the
    /// response is there, after more packets than one turn takes.
    private func responseCounts(after responseTime: Duration) async throws -> Bool {
        var configuration = Configuration()
        configuration.responseTime = responseTime
        let link = try await HostileLink(configuration: configuration) { $0.first == 0x0A ? [] : nil }
        let (device, peer) = (link.device, link.peer)
        let asked = ContinuousClock.now
        async let reading = device.read(.handle(3))
        await link.wait(for: 1, of: 0x0A)
        let hasResponse = Lock(false)
        async let standing = Central().run {
            let start = ContinuousClock.now
            Self.block(for: responseTime + .milliseconds(100)) { hasResponse.withLock { $0 } }
            return start
        }
        for _ in 0..<200 { await peer.send([0x1B, 9, 0, 1]) }
        await peer.send([0x0B, 7])
        hasResponse.withLock { $0 = true }
        guard await standing - asked < responseTime else {
            _ = try? await reading
            try? await link.end()
            return false
        }
        #expect(try await reading == [7])
        #expect(await device.isConnected)
        #expect(await device.statistics.notifications == 200)
        try await link.end()
        return true
    }

    @Test("an application that blocks its thread loses nothing that there is room for", .row("O29"))
    func consumerBlocks() async throws {
        let link = try await HostileLink(HostileLink.database())
        let count = 1_000
        let values = try await link.device.subscribe(to: .handle(3), SubscribeOptions(capacity: count))
        let goesOn = Lock(false)
        let consumer = Task.detached {
            var (seen, lost) = (0, 0)
            for try await value in values {
                if seen == 0 { Self.block { goesOn.withLock { $0 } } }
                (seen, lost) = (seen + 1, lost + value.droppedBefore)
                if seen + lost == count { break }
            }
            return (seen, lost)
        }
        for number in 0..<count { await link.peer.send([0x1B, 3, 0] + UInt16(number).wireBytes) }
        while await link.device.statistics.notifications < count, !Task.isCancelled { await Task.yield() }
        #expect(try await link.device.read(.handle(3)) == [0x64])
        goesOn.withLock { $0 = true }
        let (seen, lost) = try await consumer.value
        #expect(seen == count && lost == 0)
        try await link.end()
    }

    /// Keeps the thread until `isOver`, and for a time at least.
    private static func block(for time: Duration = .milliseconds(100), until isOver: () -> Bool) {
        let end = ContinuousClock.now + time
        while !isOver() && !Task.isCancelled || ContinuousClock.now < end {}
    }
}
