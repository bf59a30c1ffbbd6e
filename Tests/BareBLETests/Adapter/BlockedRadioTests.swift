import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// The radio is blocked (rfkill) in the middle of something. The kernel switches the adapter off and ends links
/// with ECONNRESET.
@Suite(.timeLimit(.minutes(10))) struct BlockedRadioTests {
    private let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)
    private let absent = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0008), type: .random)

    private func bench(_ time: VirtualTime) async throws -> AdapterBench {
        let bench = try await AdapterBench(loop: time.loop)
        let peer = peer
        await bench.controller.set { $0.peers = [peer.address: 0x40] }
        return bench
    }

    private func block(_ bench: AdapterBench, _ isBlocked: Bool) async {
        bench.kernel.withLock {
            $0.isBlocked = isBlocked
            $0.controllers = $0.controllers.map {
                ControllerInfo(index: $0.index, name: $0.name, address: $0.address, isUp: !isBlocked)
            }
            $0.farEnds = []
        }
        await bench.controller.set { $0.reset() }
    }

    /// Nothing is sent in an hour of this.
    private func isQuiet(_ bench: AdapterBench, _ time: VirtualTime) async throws {
        let count = await bench.sent.count
        try await time.clock.sleep(for: .seconds(3_600))
        #expect(await bench.sent.count == count)
    }

    private func isTold(_ error: BLEError) {
        #expect(error.code == .blocked, "\(error)")
        #expect(error.subject == "hci0")
        #expect(error.hint?.contains("rfkill unblock bluetooth") == true)
    }

    @Test(.row("O05")) func aConnectFailsWhenTheRadioIsBlocked() async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time)
            let absent = absent
            let task = time.task { () async -> BLEError? in
                do throws(BLEError) {
                    _ = try await bench.adapter.connect(absent, parameters: nil, timeout: nil)
                    return nil
                } catch {
                    return error
                }
            }
            await bench.controller.commandsArrived(4)
            await block(bench, true)
            isTold(try #require(try await task.value))
            // A further attempt fails at once, without a command to the controller.
            let count = await bench.sent.count
            do throws(BLEError) {
                _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
                Issue.record("connected")
            } catch {
                isTold(error)
            }
            #expect(await bench.sent.count == count)
            try await isQuiet(bench, time)
            await block(bench, false)
            let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
            #expect(link.handle == 0x40)
        }
    }

    @Test(.row("O05")) func aScanContinuesWhenTheRadioIsUnblocked() async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time)
            let deliveries = Deliveries()
            let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
            await block(bench, true)
            await deliveries.wait { $0.contains(.notice(.adapterLost)) }
            try await isQuiet(bench, time)
            await block(bench, false)
            await deliveries.wait { $0.contains(.notice(.resumed)) }
            #expect(deliveries.all == [.notice(.adapterLost), .notice(.adapterBack), .notice(.resumed)])
            #expect(await bench.controller.isScanning)
            await bench.adapter.unsubscribe(scan)
        }
    }

    @Test(.row("O05")) func aSessionContinuesWhenTheRadioIsUnblocked() async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time)
            let central = Central(adapter: bench.adapter)
            let options = Session.Options(
                connect: ConnectOptions(mtu: 23, observesServiceChanges: false),
                reconnect: .backoff(initial: .seconds(1), jitter: 0, attempts: 2))
            let session = try await central.session(with: peer, options)
            let device = try await session.ready()
            async let readError = { () async -> BLEError? in
                do throws(BLEError) {
                    _ = try await device.read(.handle(3))
                    return nil
                } catch {
                    return error
                }
            }()
            try await time.clock.sleep(for: .seconds(1))
            await block(bench, true)
            #expect(await readError?.code == .disconnected)
            // However long that lasts, no attempt is used up by it.
            try await isQuiet(bench, time)
            guard case .waiting(let loss) = session.state else { throw error(.cancelled) }
            isTold(loss.error)
            #expect(loss.next == .whenAdapterReturns)
            await block(bench, false)
            #expect(try await session.ready().isConnected)
            await session.disconnect()
        }
    }
}
