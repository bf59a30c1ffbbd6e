import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// The code of the article about restarts.
@Suite struct RestorationSampleTests {
    @Test func aStoreIsNamed() {
        // in: Sources/BareBLE/BareBLE.docc/Restarting.md
        let central = Central(store: StateStore(directory: "/var/lib/hub", identifier: "hub"))
        // out
        #expect(central.configuration.stateStore?.path == "/var/lib/hub/hub.state")
    }

    private func restart(_ central: Central, received: @escaping @Sendable (UInt8) -> Void) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Restarting.md
        // What is code cannot be stored. Each peer gets it again, before anything is connected.
        let before = try await central.restore { peer in
            Session.Handlers(onReady: { device in try await device.write([1], to: 0xFFF1) })
        }
        for peer in before.peers {
            if let failure = peer.failure { print(peer.peer, failure) }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for subscription in before.subscriptions where subscription.characteristic == 0xFFF2 {
                group.addTask {
                    // What came since the restart comes first.
                    for try await element in subscription.adopt(as: UInt8.self) {
                        if case .value(let value) = element { received(value) }
                    }
                }
            }
            try await group.waitForAll()
        }
        // A session that nobody holds ends.
        withExtendedLifetime(before) {}
        // out
    }

    @Test func theSampleOfResumingWorks() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (sensor, peer) = try await bench.add(RestorationBench.sensor)
            try await bench.run { central, _ in
                let session = try await central.session(with: peer)
                _ = await session.subscribe(to: 0xFFF2)
            }
            let values = Lock<[UInt8]>([])
            let central = bench.fresh()
            let daemon = time.task { try await restart(central) { value in values.withLock { $0.append(value) } } }
            while await !sensor.isSubscribed(to: 0xFFF2) { try await time.clock.sleep(for: .milliseconds(10)) }
            try await sensor.notify(0xFFF2, [7])
            await time.settle()
            daemon.cancel()
            try await daemon.value
            #expect(values.withLock(\.self) == [7])
            #expect(try await sensor.value(0xFFF1) == [1])
            await central.suspend()
        }
    }
}
