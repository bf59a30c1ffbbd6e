import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// The controller does not respond to the command that cancels a connection attempt.
@Suite(.timeLimit(.minutes(10))) struct PendingCancelTests {
    private let absent = BluetoothAddress(rawValue: 0xC000_0000_0007)
    private let present = BluetoothAddress(rawValue: 0xC000_0000_0008)

    /// An adapter whose controller initiates to `absent`, was sent a cancel, and has not responded.
    private func deafBench(_ time: VirtualTime) async throws -> AdapterBench {
        let bench = try await AdapterBench(loop: time.loop)
        let present = present
        await bench.controller.set {
            $0.peers = [present: 0x41]
            $0.ignored = [.leCreateConnectionCancel]
        }
        await fails(bench, absent)
        #expect(
            await bench.sent.suffix(3) == [.leCreateConnection, .leCreateConnectionCancel, .leCreateConnectionCancel])
        return bench
    }

    private func connect(_ bench: AdapterBench, _ address: BluetoothAddress) async throws(BLEError) -> ConnectionHandle?
    {
        let peer = PeerID(address: address, type: .random)
        return try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).handle
    }

    private func fails(_ bench: AdapterBench, _ address: BluetoothAddress) async {
        do throws(BLEError) {
            _ = try await connect(bench, address)
            Issue.record("connected")
        } catch {
            #expect(error.code == .timedOut, "\(error)")
            #expect(error.subject == "hci0")
            #expect(error.hint?.contains("hciconfig hci0 down && hciconfig hci0 up") == true)
        }
    }

    @Test(.row("L07", "W30")) func connectsSendItAgainAndContinueOnceTheControllerResponds() async throws {
        try await VirtualTime.run { time in
            let bench = try await deafBench(time)
            let count = await bench.sent.count
            await fails(bench, present)
            #expect(await bench.sent.dropFirst(count) == [.leCreateConnectionCancel])
            await bench.controller.set { $0.ignored = [] }
            #expect(try await connect(bench, present) == 0x41)
            #expect(await bench.sent.suffix(2) == [.leCreateConnectionCancel, .leCreateConnection])
        }
    }

    @Test(.row("L07")) func anyResponseHasTheCancelSentAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try await deafBench(time)
            await bench.controller.set { $0.ignored = [] }
            let count = await bench.sent.count
            let scan = try await bench.adapter.subscribe(.balanced, Deliveries().receive)
            await bench.adapter.unsubscribe(scan)
            #expect(await bench.sent.dropFirst(count).filter { $0 == .leCreateConnectionCancel }.count == 1)
            #expect(await !bench.controller.isInitiating)
            let before = await bench.sent.count
            #expect(try await connect(bench, present) == 0x41)
            #expect(await bench.sent.dropFirst(before) == [.leCreateConnection])
        }
    }

    @Test(.row("L07")) func aLinkThatIsNoLongerWantedIsDisconnected() async throws {
        try await VirtualTime.run { time in
            let bench = try await deafBench(time)
            let (absent, count) = (absent, await bench.sent.count)
            await bench.controller.set {
                $0.peers[absent] = 0x40
                $0.completeAttempt()
            }
            await bench.controller.commandsArrived(count + 1)
            #expect(await bench.sent.last == .disconnect)
            #expect(try await connect(bench, present) == 0x41)
            #expect(await bench.sent.last == .leCreateConnection)
        }
    }

    @Test(.row("L07")) func aConnectToThatPeerGetsItsLink() async throws {
        try await VirtualTime.run { time in
            let bench = try await deafBench(time)
            let absent = absent
            // The response comes too late for the peer.
            await bench.controller.set {
                $0.ignored = []
                $0.peers[absent] = 0x40
                $0.respondsToCancelsWithLinks = true
            }
            bench.kernel.withLock { $0.isLinked = true }
            _ = try await connect(bench, absent)
            #expect(await bench.sent.last == .leCreateConnectionCancel)
        }
    }

    @Test(.row("L07")) func aResetEndsItToo() async throws {
        try await VirtualTime.run { time in
            let bench = try await deafBench(time)
            await bench.controller.set { $0.reset() }
            await bench.controller.foreign(.reset)
            await time.settle()
            let count = await bench.sent.count
            #expect(try await connect(bench, present) == 0x41)
            #expect(await !bench.sent.dropFirst(count).contains(.leCreateConnectionCancel))
        }
    }

    @Test(.row("L07")) func anAttemptThatWaitedAfterASilentCommandIsNeverSent() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let (absent, present) = (absent, present)
            await bench.controller.set {
                $0.peers = [present: 0x41]
                $0.ignored = [.readRSSI]
            }
            let peer = PeerID(address: present, type: .random)
            let controls = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).controls
            let count = await bench.sent.count
            let askers = (1...6).map { _ in time.task { _ = try await controls.rssi() } }
            await bench.controller.commandsArrived(count + 1)
            let start = time.now
            do throws(BLEError) {
                _ = try await connect(bench, absent)
                Issue.record("connected")
            } catch {
                #expect(error.code == .timedOut && error.subject == "hci0")
                #expect(error.reason == "the controller did not respond to LE Create Connection (0x200d)")
            }
            #expect(time.now == start + .seconds(5))
            for asker in askers { await #expect(throws: error(.timedOut)) { try await asker.value } }
            #expect(await bench.sent.dropFirst(count).allSatisfy { $0 == .readRSSI })
            await bench.controller.set { $0.peers[absent] = 0x42 }
            #expect(try await connect(bench, absent) == 0x42)
            #expect(await bench.sent.last == .leCreateConnection)
        }
    }

    /// A command without a response counts for recovery, also where its caller waits no longer.
    @Test func aCommandWithoutAResponseCountsAlsoWhereItsCallerHasStoppedWaiting() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let present = present
            await bench.controller.set {
                $0.peers = [present: 0x41]
                $0.ignored = [.readRSSI]
            }
            let central = Central(adapter: bench.adapter)
            let peer = PeerID(address: present, type: .random)
            let controls = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).controls
            let count = await bench.sent.count
            let asker = time.task { _ = try await controls.rssi() }
            await bench.controller.commandsArrived(count + 1)
            asker.cancel()
            await #expect(throws: BLEError.self) { try await asker.value }
            #expect(await central.statistics.commandTimeouts == 0)
            try await time.clock.sleep(for: .seconds(3))
            #expect(await central.statistics.commandTimeouts == 1)
        }
    }

    @Test(.row("L07")) func aCancelledConnectEndsAsCancelled() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await bench.controller.set { $0.ignored = [.leCreateConnectionCancel] }
            let absent = absent
            let task = time.task { try await connect(bench, absent) }
            await bench.controller.commandsArrived(4)
            task.cancel()
            await #expect(throws: error(.cancelled)) { try await task.value }
            await fails(bench, present)
        }
    }
}
