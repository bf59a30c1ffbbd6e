import BLECore
import BLELinux
import BareBLETestKit
import TestSupport
import Testing

@testable import BareBLE

/// Channels that centrals open, over socket pairs. What the kernel does is in `KernelChannelListenerTests`.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct ChannelListenerTests {
    @Test func thePSMIsPublishedWhereCentralsLookForIt() async throws {
        try await ServerBench.run { bench in
            let (first, second) = (
                try await bench.local.listenForChannels(), try await bench.local.listenForChannels()
            )
            #expect(first.psm == 0x80)
            #expect(second.psm == 0x81)
            #expect(CharacteristicKey.l2capPSM.uuid == "ABDD3056-28FA-441D-A470-55A75A52553A")
            try await bench.local.publish(
                LocalService(0xFFF0, [LocalCharacteristic(.l2capPSM, .read, value: .fixed(second.psm))]))
            let client = try await bench.connect()
            #expect(try await client.read(.l2capPSM) == 0x81)
        }
    }

    @Test func aChannelComesWithItsCentralAndCarriesPacketsBothWays() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels(
                ChannelListener.Options(mtu: 100))
            let (one, other) = (try await bench.raw(), try await bench.raw())
            let (far, second) = (
                try await bench.open(listener, other), try await bench.open(listener, one)
            )
            var channels = listener.channels.makeAsyncIterator()
            let incoming = try #require(try await channels.next())
            #expect(incoming.central.id == other.id)
            #expect(try await channels.next()?.central.id == one.id)
            #expect(incoming.channel.psm == listener.psm)
            #expect(incoming.channel.receiveMTU == 100)
            #expect(await far.send([1, 2, 3]))
            var packets = incoming.channel.packets.makeAsyncIterator()
            #expect(try await packets.next() == [1, 2, 3])
            try await incoming.channel.send([4])
            #expect(await far.receive() == [4])
            #expect(await second.receive() == nil)
        }
    }

    @Test(.row("P27")) func aCentralHasEightChannelsAndTheNinthIsRefused() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels(ChannelListener.Options(backlog: 100))
            let (greedy, modest) = (try await bench.raw(), try await bench.raw())
            var far: [FarEnd] = []
            for _ in 0..<8 { far.append(try await bench.open(listener, greedy)) }
            let (ours, theirs) = try LinkSocket.pair()
            let ninth = FarEnd(theirs)
            let error = await #expect(throws: BLEError.self) {
                try await bench.local.attach(channel: ours, to: listener, of: greedy.id)
            }
            #expect(error?.code == .queueFull)
            await ninth.ended()
            #expect(listener.refusedChannels == 1)
            _ = try await bench.open(listener, modest)

            var channels = listener.channels.makeAsyncIterator()
            try await channels.next()?.channel.close()
            await far[0].ended()
            far.append(try await bench.open(listener, greedy))
            #expect(await bench.local.centrals.count == 2, "the links stay up")
        }
    }

    @Test func eightChannelsCarryAMebibyteEachWay() async throws {
        let (size, count) = (2_048, 512)
        @Sendable func packet(_ index: Int, _ number: Int) -> [UInt8] {
            [UInt8(truncatingIfNeeded: index), UInt8(truncatingIfNeeded: index >> 8)]
                + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size - 2)
        }
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels(ChannelListener.Options(mtu: size))
            let central = try await bench.raw()
            var channels = listener.channels.makeAsyncIterator()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    let far = try await bench.open(listener, central)
                    let near = try #require(try await channels.next()).channel
                    group.addTask {
                        for index in 0..<count { try await near.send(packet(index, number)) }
                    }
                    group.addTask {
                        for index in 0..<count {
                            while await !far.send(packet(index, number)) { await Task.yield() }
                        }
                    }
                    group.addTask {
                        var packets = near.packets.makeAsyncIterator()
                        for index in 0..<count {
                            let isAsSent = try await packets.next() == packet(index, number)
                            #expect(isAsSent, "packet \(index) to channel \(number)")
                        }
                    }
                    group.addTask {
                        for index in 0..<count {
                            let isAsSent = await far.packet() == packet(index, number)
                            #expect(isAsSent, "packet \(index) of channel \(number)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(listener.refusedChannels == 0)
        }
    }

    @Test(.row("P27")) func whatTheApplicationDoesNotTakeIsBounded() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels(ChannelListener.Options(backlog: 2))
            let central = try await bench.raw()
            let far = [try await bench.open(listener, central), try await bench.open(listener, central)]
            let error = await #expect(throws: BLEError.self) { _ = try await bench.open(listener, central) }
            #expect(error?.code == .queueFull)
            var channels = listener.channels.makeAsyncIterator()
            let taken = [try await channels.next(), try await channels.next()]
            for (channel, end) in zip(taken, far) {
                #expect(await end.send([7]))
                var packets = try #require(channel).channel.packets.makeAsyncIterator()
                #expect(try await packets.next() == [7])
            }
            _ = try await bench.open(listener, central)
        }
    }

    /// Without credits the kernel takes packets until its buffer is full, as a socket whose peer does not read.
    @Test(.row("P27")) func aCentralThatGrantsNoCreditsDelaysNoOther() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels()
            let (stingy, generous) = (try await bench.raw(), try await bench.raw())
            let far = [try await bench.open(listener, stingy), try await bench.open(listener, generous)]
            var channels = listener.channels.makeAsyncIterator()
            let held = try #require(try await channels.next()).channel
            let free = try #require(try await channels.next()).channel
            var code: BLEError.Code?
            for _ in 0..<10_000 where code == nil {
                do throws(BLEError) {
                    try await held.send([0], timeout: .milliseconds(100))
                } catch {
                    code = error.code
                }
            }
            try #require(code == .timedOut, "its credits do not end")
            let waiting = bench.time.task { try await held.send([1]) }
            await bench.time.settle()
            try await free.send([2])
            #expect(await far[1].receive() == [2], "the other channel goes on")
            #expect(await far[0].send([3]))
            var packets = held.packets.makeAsyncIterator()
            #expect(try await packets.next() == [3], "the other direction goes on")
            #expect(await bench.local.centrals.count == 2, "the links stay up")

            let start = bench.time.now
            await held.close()
            #expect(bench.time.now <= start + .seconds(2))
            await #expect(throws: error(.disconnected)) { try await waiting.value }
            await far[0].ended()
            _ = try await bench.open(listener, stingy)
        }
    }

    @Test func aStoppedListenerEndsAndFreesItsPSM() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels(psm: 0x90)
            let central = try await bench.raw()
            let far = try await bench.open(listener, central)
            await listener.stop()
            var channels = listener.channels.makeAsyncIterator()
            let channel = try #require(try await channels.next(), "what waited is still delivered").channel
            #expect(try await channels.next() == nil)
            try await channel.send([1])
            #expect(await far.receive() == [1], "the channel stays open")
            let error = await #expect(throws: BLEError.self) { _ = try await bench.open(listener, central) }
            #expect(error?.code == .invalidArgument && error?.subject != nil)
            #expect(try await bench.local.listenForChannels(psm: 0x90).psm == 0x90)
        }
    }

    @Test func eachCallOfStopReturnsWhenThePSMIsFree() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels(psm: 0x90)
            let calls = (0..<2).map { _ in
                bench.time.task {
                    await listener.stop()
                    return listener.acceptor.isListening
                }
            }
            for call in calls { #expect(try await !call.value) }
        }
    }

    @Test func whatAListenerCannotHaveIsRefusedForTheAdapter() async throws {
        try await ServerBench.run { bench in
            for (psm, options) in [(0x0100, ChannelListener.Options()), (0x80, ChannelListener.Options(mtu: 22))] {
                let error = await #expect(throws: BLEError.self) {
                    _ = try await bench.local.listenForChannels(psm: UInt16(psm), options)
                }
                #expect(
                    error?.code == .invalidArgument && error?.subject == "the first adapter" && error?.hint != nil,
                    "\(psm) \(error as Any)")
            }
        }
    }

    @Test func aListenerEndsWithItsLastReference() async throws {
        try await ServerBench.run { bench in
            var channels = try await bench.local.listenForChannels(psm: 0x90).channels.makeAsyncIterator()
            await bench.time.settle()
            let error = await #expect(throws: BLEError.self) { _ = try await bench.local.listenForChannels(psm: 0x90) }
            #expect(error?.code == .busy, "the iterator keeps it")
            channels = try await bench.local.listenForChannels(psm: 0x91).channels.makeAsyncIterator()
            await bench.time.settle()
            #expect(try await bench.local.listenForChannels(psm: 0x90).psm == 0x90)
            _ = channels
        }
    }

    @Test func theEndOfTheLocalPeripheralEndsItsListeners() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels()
            let far = try await bench.open(listener, try await bench.raw())
            var channels = listener.channels.makeAsyncIterator()
            let channel = try #require(try await channels.next()).channel
            await bench.local.stop()
            #expect(try await channels.next() == nil)
            await far.ended()
            #expect(await !channel.isOpen)
            let error = await #expect(throws: BLEError.self) { _ = try await bench.local.listenForChannels() }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func theEndOfALinkEndsItsChannels() async throws {
        try await ServerBench.run { bench in
            let listener = try await bench.local.listenForChannels()
            let (leaving, staying) = (try await bench.raw(), try await bench.raw())
            let far = [try await bench.open(listener, leaving), try await bench.open(listener, staying)]
            var channels = listener.channels.makeAsyncIterator()
            let ends = try #require(try await channels.next()).channel
            let goesOn = try #require(try await channels.next()).channel
            await bench.local.disconnect(leaving.id)
            await far[0].ended()
            await #expect(throws: error(.disconnected)) { try await ends.send([1]) }
            try await goesOn.send([1])
            #expect(await far[1].receive() == [1])
            let error = await #expect(throws: BLEError.self) { _ = try await bench.open(listener, leaving) }
            #expect(error?.code == .disconnected)
        }
    }

    @Test(
        arguments: [
            (0x00FF, nil), (0x0080, nil), (0x0100, .invalidArgument), (0, .invalidArgument), (0xFFFF, .invalidArgument),
            (0x007F, .notPermitted), (0x0025, .notPermitted), (0x00A0, .busy),
        ] as [(UInt16, BLEError.Code?)])
    func aPSMThatCannotBeListenedToIsNamed(psm: UInt16, code: BLEError.Code?) async throws {
        try await ServerBench.run { bench in
            let taken = try await bench.local.listenForChannels(psm: 0x00A0)
            do {
                #expect(try await bench.local.listenForChannels(psm: psm).psm == psm)
                #expect(code == nil)
            } catch let error as BLEError {
                #expect(error.code == code)
                #expect(error.hint != nil)
                #expect(error.operation.hasSuffix("PSM 0x" + String(Int(psm) + 0x10000, radix: 16).dropFirst()))
            }
            await taken.stop()
        }
    }

    @Test func thereAreAsManyListenersAsPSMs() async throws {
        try await ServerBench.run { bench in
            var listeners: [ChannelListener] = []
            for psm in 0x80...0xFF as ClosedRange<UInt16> {
                listeners.append(try await bench.local.listenForChannels())
                #expect(listeners.last?.psm == psm)
            }
            let error = await #expect(throws: BLEError.self) { _ = try await bench.local.listenForChannels() }
            #expect(error?.code == .busy)
            await listeners[5].stop()
            #expect(try await bench.local.listenForChannels().psm == 0x85)
        }
    }

    @Test(arguments: [
        ChannelListener.Options(mtu: 22), ChannelListener.Options(mtu: 65_536), ChannelListener.Options(capacity: 0),
        ChannelListener.Options(maximumChannels: 0), ChannelListener.Options(backlog: 0),
    ])
    func impossibleOptionsAreRefused(_ options: ChannelListener.Options) async throws {
        try await ServerBench.run { bench in
            let error = await #expect(throws: BLEError.self) { _ = try await bench.local.listenForChannels(options) }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func aLinkWithoutARadioHasNoConnectionParameters() async throws {
        try await ServerBench.run { bench in
            let central = try await bench.raw()
            let parameters = try ConnectionParameters(
                interval: .milliseconds(30)...(.milliseconds(50)), supervisionTimeout: .seconds(4))
            for _ in 0..<2 {
                let isConnected = await !bench.local.centrals.isEmpty
                let expected: BLEError.Code = isConnected ? .notSupported : .disconnected
                await #expect(throws: error(expected)) {
                    try await bench.local.requestConnectionParameters(parameters, of: central.id)
                }
                await #expect(throws: error(expected)) {
                    _ = try await bench.local.connectionParameters(of: central.id)
                }
                await bench.local.disconnect(central.id)
            }
        }
    }
}

extension ServerBench {
    /// Opens a channel of a central.
    fileprivate func open(_ listener: ChannelListener, _ central: RawCentral) async throws -> FarEnd {
        let (ours, theirs) = try LinkSocket.pair()
        let far = FarEnd(theirs)
        try await local.attach(channel: ours, to: listener, of: central.id)
        return far
    }
}
