import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

@Suite(.virtualTime, .timeLimit(.minutes(10))) struct L2CAPChannelTests {
    // MARK: Packets

    @Test func packetsKeepTheirOrderAndBoundsBothWays() async throws {
        let bench = try await ChannelBench(L2CAPChannel.Options(mtu: 5000))
        let packets = [1, 2, 22, 23, 251, 672, 673, 5000].map { [UInt8](repeating: UInt8($0 & 0xFF), count: $0) }
        for packet in packets { try await bench.channel.send(packet) }
        for packet in packets {
            #expect(await bench.far.packet() == packet)
            #expect(await bench.far.send(packet))
        }
        var iterator = bench.channel.packets.makeAsyncIterator()
        for packet in packets { #expect(try await iterator.next() == packet) }
        #expect(bench.channel.psm == 0x80 && bench.channel.receiveMTU == 5000)
    }

    /// The peer has to wait when the consumer does, and loses nothing by it.
    @Test func aSlowConsumerHoldsThePeerBack() async throws {
        let bench = try await ChannelBench(L2CAPChannel.Options(capacity: 4))
        let total: UInt32 = 20_000
        let held = await bench.sendUntilHeld(total)
        #expect(held > 4 && held < total)
        let sender = testTask {
            var number = held
            while number < total, !Task.isCancelled {
                number = await bench.far.count(from: number, to: total)
                await Task.yield()
            }
        }
        var expected: UInt32 = 0
        for try await packet in bench.channel.packets {
            if packet != numbered(expected) {
                Issue.record("\(packet) instead of number \(expected)")
                break
            }
            expected += 1
            if expected == total { break }
        }
        #expect(expected == total)
        await sender.value
    }

    @Test func sendingWaitsForRoomAndKeepsItsOrder() async throws {
        let bench = try await ChannelBench()
        let progress = Lock<UInt32>(0)
        let total: UInt32 = 3000
        let sender = testTask {
            for number in 0..<total {
                try await bench.channel.send(numbered(number))
                progress.withLock { $0 = number + 1 }
            }
        }
        await bench.settle { progress.withLock { $0 } }
        #expect(progress.withLock { $0 } < total)
        for number in 0..<total {
            guard await bench.far.packet() == numbered(number) else {
                Issue.record("not packet \(number)")
                break
            }
        }
        try await sender.value
    }

    @Test func aSendThatTimesOutOrIsCancelledSendsNothing() async throws {
        let bench = try await ChannelBench()
        let sent = try await bench.fill()
        await #expect(throws: error(.timedOut)) {
            try await bench.channel.send([1], timeout: .milliseconds(20))
        }
        let cancelled = testTask { try await bench.channel.send([2]) }
        cancelled.cancel()
        await #expect(throws: error(.cancelled)) { try await cancelled.value }
        let patient = testTask { try await bench.channel.send([3]) }
        for _ in 0..<sent { _ = await bench.far.packet() }
        #expect(await bench.far.packet() == [3])
        try await patient.value
    }

    /// A peer that grants no credits does not make the queue longer than the calls that wait.
    @Test func packetsOfCallersThatGaveUpAreDiscarded() async throws {
        let bench = try await ChannelBench()
        let sent = try await bench.fill()
        #expect(await bench.channel.waitingPackets == 0)
        let first = testTask { try await bench.channel.send([1]) }
        await bench.time.settle()
        for _ in 0..<5 {
            await withTaskGroup(of: Void.self) { group in
                for number in 1...40 {
                    group.addTask {
                        await #expect(throws: error(.timedOut)) {
                            try await bench.channel.send([9], timeout: .milliseconds(number))
                        }
                    }
                }
            }
            #expect(await bench.channel.waitingPackets == 1)
        }
        let second = testTask { try await bench.channel.send([2]) }
        await bench.time.settle()
        let cancelled = testTask { try await bench.channel.send([9]) }
        await bench.time.settle()
        let third = testTask { try await bench.channel.send([3]) }
        await bench.time.settle()
        #expect(await bench.channel.waitingPackets == 4)
        cancelled.cancel()
        await #expect(throws: error(.cancelled)) { try await cancelled.value }
        #expect(await bench.channel.waitingPackets == 3)
        for _ in 0..<sent { #expect(await bench.far.packet() == [0]) }
        for number in 1...3 as ClosedRange<UInt8> { #expect(await bench.far.packet() == [number]) }
        for sender in [first, second, third] { try await sender.value }
        await bench.time.settle()
        #expect(await bench.far.receive() == nil)
        #expect(await bench.channel.waitingPackets == 0)
    }

    @Test func tooManyWaitingPacketsAreRefused() async throws {
        let bench = try await ChannelBench()
        _ = try await bench.fill()
        let codes = await withTaskGroup(of: BLEError.Code?.self) { group in
            for number in 0..<70 {
                group.addTask {
                    do throws(BLEError) {
                        try await bench.channel.send([UInt8(number)])
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            // Those beyond the limit come back at once, the others with the end.
            var codes: [BLEError.Code?] = []
            for await code in group {
                codes.append(code)
                if codes.count == 6 { await bench.channel.close() }
            }
            return codes
        }
        #expect(codes.count { $0 == .queueFull } == 6)
        #expect(codes.count { $0 == .disconnected } == 64)
    }

    @Test func packetsOfTheWrongSizeAreRefused() async throws {
        let (ours, theirs) = try LinkSocket.pair()
        var size: Int32 = 4096
        #expect(unsafe setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, 4) == 0)
        let bench = try await ChannelBench()
        let far = FarEnd(theirs)
        let channel = try await bench.link.attachChannel(descriptor: ours, psm: 0x81)
        await #expect(throws: error(.invalidArgument)) { try await channel.send([]) }
        // Over the peer's MTU, and over what the kernel takes (EMSGSIZE).
        for count in [70_000, 60_000] {
            await #expect(throws: error(.tooLong)) {
                try await channel.send([UInt8](repeating: 7, count: count))
            }
        }
        try await channel.send([9])
        #expect(await far.packet() == [9])
    }

    // MARK: Consumers

    @Test func aCancelledConsumerLosesNothing() async throws {
        let bench = try await ChannelBench()
        let waiting = testTask {
            var iterator = bench.channel.packets.makeAsyncIterator()
            return try await iterator.next()
        }
        waiting.cancel()
        #expect(try await waiting.value == nil)
        #expect(await bench.far.send([5]))
        var iterator = bench.channel.packets.makeAsyncIterator()
        #expect(try await iterator.next() == [5])
    }

    @Test func aSecondConsumerGetsAnError() async throws {
        let bench = try await ChannelBench()
        let codes = await withTaskGroup(of: BLEError.Code?.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var iterator = bench.channel.packets.makeAsyncIterator()
                    do throws(BLEError) {
                        _ = try await iterator.next()
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            let first = await group.next() ?? nil
            _ = await bench.far.send([1])
            let second = await group.next() ?? nil
            return [first, second]
        }
        #expect(codes == [.busy, nil])
    }
}

extension ChannelBench {
    /// Sends from the peer until this end takes no more.
    func sendUntilHeld(_ total: UInt32) async -> UInt32 {
        let progress = Lock<UInt32>(0)
        await settle {
            let next = await far.count(from: progress.withLock { $0 }, to: total)
            progress.withLock { $0 = next }
            return next
        }
        return progress.withLock { $0 }
    }

    /// Fills the way to the peer; returns how many packets it took.
    func fill() async throws -> Int {
        var sent = 0
        while true {
            do throws(BLEError) {
                try await channel.send([0], timeout: .milliseconds(100))
                sent += 1
            } catch {
                #expect(error.code == .timedOut)
                return sent
            }
        }
    }

    /// Waits until something stands still when nothing is left to run.
    func settle(_ measure: () async -> UInt32) async {
        var last = await measure()
        while true {
            await time.settle()
            let now = await measure()
            if now == last { return }
            last = now
        }
    }
}
