import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// What a central may do at its link that no central should, and what that costs the others.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct HostileCentralTests {
    @Test(.row("P01")) func ofCommandsWithoutEndABoundedNumberWaits() async throws {
        try await ServerBench.run { bench in
            let clock = bench.central.clock
            let handled = Lock(0)
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(
                            0xFFF1, .writeWithoutResponse,
                            value: .handled(write: { _ in
                                try await clock.sleep(for: .milliseconds(100))
                                handled.withLock { $0 += 1 }
                            }))
                    ]))
            let device = try await bench.connect()
            let hostile = try await bench.raw()
            var events = bench.local.events.makeAsyncIterator()
            let command = [0x52] + (await bench.handle(0xFFF1)).bytes + [1]
            for _ in 0..<20 {
                for _ in 0..<50 { hostile.send(command) }
                #expect(await hostile.receive() == nil)
            }
            #expect(handled.withLock { $0 } == 0)
            #expect(try await device.read(0x2A00) == Array("Bench".utf8), "the other central is served meanwhile")
            try await clock.sleep(for: .seconds(10))
            #expect(handled.withLock { $0 } == 64)
            #expect(await bench.local.outstanding == 0)
            await bench.local.stop()
            var dropped = 0
            while let event = try await events.next() {
                switch event {
                case .writeDropped: dropped += 1
                case .dropped(let count): dropped += count
                default: break
                }
            }
            #expect(dropped == 1_000 - 64, "each is reported, or counted where the events were not consumed")
        }
    }

    @Test(.row("P08")) func aCentralMaySendNothingUnlessThereIsALimit() async throws {
        try await ServerBench.run { bench in
            let silent = try await bench.raw()
            try await bench.central.clock.sleep(for: .seconds(86_400))
            #expect(await bench.local.centrals.map(\.id) == [silent.id])
        }
    }

    @Test(.row("P08")) func centralsThatSendNothingAreDisconnectedAfterTheLimit() async throws {
        try await ServerBench.run(idleLimit: .seconds(30)) { bench in
            let clock = bench.central.clock
            try await bench.publishSlowValue(after: .seconds(15))
            let silent = try await bench.raw()
            let waiting = try await bench.raw()
            let polite = try await bench.raw()
            var events = bench.local.events.makeAsyncIterator()
            try await clock.sleep(for: .seconds(20))
            waiting.send([0x0A] + (await bench.handle(0xFFF1)).bytes)
            polite.send([0x52, 0xFF, 0xFF, 1])
            try await clock.sleep(for: .seconds(9))
            #expect(await bench.local.centrals.count == 3)
            try await clock.sleep(for: .seconds(2))
            let left = await bench.local.centrals.map(\.id)
            try #require(!left.contains(silent.id))
            guard case .disconnected(let gone, _)? = try await events.next() else {
                Issue.record("no event")
                return
            }
            #expect(gone.id == silent.id)
            // It had its response after 35 s; what `polite` has sent after 20 s had none.
            try await clock.sleep(for: .seconds(20))
            #expect(await bench.local.centrals.map(\.id).contains(waiting.id))
            #expect(await bench.local.centrals.map(\.id).contains(polite.id) == false)
            try await clock.sleep(for: .seconds(15))
            #expect(await bench.local.centrals.isEmpty)
        }
    }

    /// It may hold all buffers of the controller, which others need.
    @Test(.row("P08")) func aCentralThatTakesNothingIsDisconnectedAfterTheLimitToo() async throws {
        try await ServerBench.run(idleLimit: .seconds(30)) { bench in
            try await bench.local.publish(bench.sensor)
            let slow = try await bench.raw()
            let id = slow.id
            await slow.configure(bench.handle(0xFFF1), 1)
            // Until its socket is full.
            while try await bench.local.update([1], of: 0xFFF1, whenFull: .fail).outcomes[id] != .full {}
            let waiting = bench.time.task { try await bench.local.update([2], of: 0xFFF1).outcomes[id] }
            try await bench.central.clock.sleep(for: .seconds(32))
            #expect(await bench.local.centrals.isEmpty)
            #expect(try await waiting.value == .disconnected)
        }
    }

    @Test(.row("P07")) func aSecondRequestBeforeTheResponseClosesItsLinkAlone() async throws {
        try await ServerBench.run { bench in
            let clock = bench.central.clock
            try await bench.publishSlowValue(after: .seconds(1))
            let device = try await bench.connect()
            let hostile = try await bench.raw()
            var events = bench.local.events.makeAsyncIterator()
            hostile.send([0x0A] + (await bench.handle(0xFFF1)).bytes)
            #expect(await hostile.request([0x0A, 3, 0]) == nil)
            guard case .disconnected(let central, let reason)? = try await events.next() else {
                Issue.record("the link goes on")
                return
            }
            #expect(central.id == hostile.id)
            #expect(
                reason == .protocolViolation("the client sent requests without waiting for the responses"))
            try await clock.sleep(for: .seconds(2))
            #expect(await hostile.receive() == nil, "no response goes to another request")
            #expect(try await device.read(0xFFF1) == [1])
        }
    }

    @Test(.row("P08")) func theCentralThatIsSilentForLongestMakesRoomForANewOne() async throws {
        try await ServerBench.run { bench in
            var settings = LocalPeripheral.Settings()
            settings.maximumCentrals = 2
            let local = LocalPeripheral(settings, on: bench.central)
            func connect() async throws -> RawCentral {
                let (ours, theirs) = try LinkSocket.pair()
                return RawCentral(
                    id: try await local.attach(descriptor: ours), socket: LinkSocket(adopting: theirs),
                    time: bench.time)
            }
            let first = try await connect()
            try await bench.central.clock.sleep(for: .seconds(1))
            let silent = try await connect()
            try await bench.central.clock.sleep(for: .seconds(3_600))
            #expect(await local.centrals.count == 2, "a silent one may stay")
            #expect(await first.request([0x0A, 3, 0])?.first == 0x0B)
            let newcomer = try await connect()
            #expect(await newcomer.request([0x0A, 3, 0])?.first == 0x0B)
            #expect(await local.centrals.map(\.id) == [first.id, newcomer.id])
            #expect(await silent.receive() == nil)
            await local.stop()
        }
    }

    @Test(.row("P16")) func nothingIsKeptOfACentralWithoutABond() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            for _ in 0..<50 {
                let central = try await bench.raw()
                await central.configure(bench.handle(0xFFF1), 1)
                #expect(try await bench.local.update([1], of: 0xFFF1).sentCount == 1, "not the one before")
                await bench.local.disconnect(central.id)
            }
            #expect(try await bench.local.update([1], of: 0xFFF1).outcomes.isEmpty)
            #expect(await bench.local.centrals.isEmpty)
            #expect(await bench.local.outstanding == 0)
        }
    }

    @Test(.row("P35")) func aPacketOfNoBytesIsNotTheEnd() async throws {
        try await ServerBench.run { bench in
            let hostile = try await bench.raw()
            for _ in 0..<100 { hostile.send([]) }
            #expect(await hostile.request([0x0A, 3, 0]) == [0x0B] + Array("Bench".utf8))
            #expect(await bench.local.centrals.map(\.id) == [hostile.id])
        }
    }
}
