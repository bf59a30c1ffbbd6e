import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

@Suite(.virtualTime, .timeLimit(.minutes(10))) struct ChannelEndTests {
    private let gone = error(.disconnected)

    @Test func closingEndsTheChannelOnceAndKeepsTheLink() async throws {
        let bench = try await ChannelBench()
        #expect(await bench.far.send([1]))
        let waiting = testTask { try await bench.rest() }
        await bench.channel.close()
        await bench.channel.close()
        // The packet may or may not come before the end; nothing comes after it.
        #expect([[], [[1]]].contains(try await waiting.value))
        await bench.far.ended()
        #expect(await !bench.channel.isOpen)
        await #expect(throws: gone) { try await bench.channel.send([2]) }
        #expect(try await bench.rest() == [])
        #expect(try await bench.link.read(0x2A19) == [64])
    }

    @Test(.row("C02")) func closingAtTheSameTimeIsOneEnd() async throws {
        let bench = try await ChannelBench()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { await bench.channel.close() } }
        }
        await bench.far.ended()
    }

    /// Packets that the kernel has taken arrive; waiting ones fail.
    @Test func closingWaitsForWhatWasSent() async throws {
        let bench = try await ChannelBench()
        let sent = try await bench.fill()
        let waiting = testTask { try await bench.channel.send([9]) }
        let closing = testTask { await bench.channel.close() }
        await #expect(throws: gone) { try await waiting.value }
        for _ in 0..<sent { #expect(await bench.far.packet() == [0]) }
        await closing.value
        await bench.far.ended()
    }

    @Test func aCancelledCloseDoesNotWait() async throws {
        let bench = try await ChannelBench()
        let sent = try await bench.fill()
        let closing = testTask { await bench.channel.close() }
        closing.cancel()
        await closing.value
        for _ in 0..<sent { _ = await bench.far.packet() }
        await bench.far.ended()
    }

    @Test(.row("C02")) func releasingAChannelClosesIt() async throws {
        let time = try #require(VirtualTimeTrait.time)
        let device = VirtualPeripheral(.battery, time: time)
        let link = try await Central(time: time).attach(descriptor: device.connect())
        let (ours, theirs) = try LinkSocket.pair()
        let far = FarEnd(theirs)
        do {
            let channel = try await link.attachChannel(descriptor: ours, psm: 0x80)
            try await channel.send([1])
        }
        #expect(await far.packet() == [1])
        await far.ended()
        #expect(await link.isConnected)
    }

    @Test func aChannelKeepsItsLink() async throws {
        let time = try #require(VirtualTimeTrait.time)
        let device = VirtualPeripheral(.battery, time: time)
        let (ours, theirs) = try LinkSocket.pair()
        let far = FarEnd(theirs)
        let channel = try await Central(time: time).attach(descriptor: device.connect()).attachChannel(
            descriptor: ours, psm: 0x80)
        #expect(await far.send([1]))
        var iterator = channel.packets.makeAsyncIterator()
        #expect(try await iterator.next() == [1])
        #expect(await channel.isOpen)
    }

    @Test func thePeerClosesAfterItsLastPacket() async throws {
        let bench = try await ChannelBench()
        for number in 0..<10 as Range<UInt8> { #expect(await bench.far.send([number])) }
        await bench.far.close()
        #expect(try await bench.rest() == (0..<10).map { [$0] })
        await #expect(throws: gone) { try await bench.channel.send([2]) }
        #expect(await !bench.channel.isOpen)
        #expect(await bench.link.isConnected)
    }

    /// Reading is paused, so only the one who sends can notice.
    @Test func aSenderLearnsOfTheEndBesideASlowConsumer() async throws {
        let bench = try await ChannelBench(L2CAPChannel.Options(capacity: 2))
        let count = await bench.sendUntilHeld(1000)
        _ = try await bench.fill()
        let waiting = testTask { try await bench.channel.send([9]) }
        await bench.far.close()
        await #expect(throws: gone) { try await waiting.value }
        #expect(try await bench.rest().count == Int(count))
    }

    @Test func theLinksEndComesAfterWhatArrived() async throws {
        let bench = try await ChannelBench(L2CAPChannel.Options(capacity: 2))
        let count = await bench.sendUntilHeld(1000)
        _ = try await bench.fill()
        let waiting = testTask { try await bench.channel.send([9]) }
        await bench.device.disconnect()
        await #expect(throws: gone) { try await waiting.value }
        #expect(await bench.link.disconnected() != nil)
        var iterator = bench.channel.packets.makeAsyncIterator()
        for number in 0..<count { #expect(try await iterator.next() == numbered(number)) }
        await #expect(throws: gone) { try await iterator.next() }
        #expect(try await iterator.next() == nil)
        while await bench.far.receive() != nil {}
        await bench.far.ended()
    }

    @Test func aLinkThatThisProgramEndsIsNoFailure() async throws {
        let bench = try await ChannelBench()
        let waiting = testTask { try await bench.rest() }
        await bench.link.disconnect()
        #expect(try await waiting.value == [])
        await #expect(throws: gone) { try await bench.channel.send([2]) }
        await bench.far.ended()
    }

    @Test func thereIsNoChannelWithoutARadioOrALink() async throws {
        let bench = try await ChannelBench()
        await #expect(throws: error(.notSupported)) {
            _ = try await bench.link.openChannel(psm: 0x80)
        }
        for psm in [0, 0x100, 0xFFFF] as [UInt16] {
            await #expect(throws: error(.invalidArgument)) {
                _ = try await bench.link.openChannel(psm: psm)
            }
        }
        for options in [
            L2CAPChannel.Options(mtu: 22), L2CAPChannel.Options(mtu: 65_536), L2CAPChannel.Options(capacity: 0),
        ] {
            await #expect(throws: error(.invalidArgument)) {
                _ = try await bench.link.openChannel(psm: 0x80, options)
            }
        }
        await bench.link.disconnect()
        let (ours, theirs) = try LinkSocket.pair()
        await #expect(throws: gone) { _ = try await bench.link.attachChannel(descriptor: ours, psm: 0x80) }
        await FarEnd(theirs).ended()
    }
}

extension ChannelBench {
    /// All packets up to the end.
    func rest() async throws -> [[UInt8]] {
        var packets: [[UInt8]] = []
        for try await packet in channel.packets { packets.append(packet) }
        return packets
    }
}
