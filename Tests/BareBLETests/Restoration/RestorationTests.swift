import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct RestorationTests {
    private let limit = Duration.seconds(20)

    @Test func nothingIsRestoredAtFirst() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            try await bench.run { central, restoration in
                #expect(restoration.peers.isEmpty && restoration.links.isEmpty && restoration.lostLinks.isEmpty)
                #expect(restoration.scan == nil && restoration.damage == nil && restoration.adapter == nil)
                await #expect(throws: error(.busy)) { try await central.restore() }
                #expect(await central.stateStatus?.writes == 0)
            }
            #expect(bench.folder.names == ["hub.lock"], "what has not changed is not written")
        }
    }

    @Test(arguments: [1, 3]) func sessionsComeBack(count: Int) async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            var devices: [(peripheral: VirtualPeripheral, peer: PeerID)] = []
            for _ in 0..<count { devices.append(try await bench.add(RestorationBench.sensor)) }
            let known = devices
            var options = Session.Options(reconnect: .backoff(initial: .seconds(2), max: .seconds(9), attempts: 4))
            options.connect = ConnectOptions(timeout: nil, mtu: 99, observesServiceChanges: false)
            let wanted = options
            try await bench.run { central, _ in
                for (_, peer) in known {
                    let session = try await central.session(with: peer, wanted)
                    let values = await session.subscribe(to: 0xFFF2)
                    let device = try await session.ready(within: limit)
                    try await device.discover(level: .full)
                    _ = values
                }
            }
            let state = try bench.stored()
            #expect(state.peers.map(\.peer) == known.map(\.peer))
            #expect(state.adapter == BluetoothAddress(rawValue: 0x00AA_0100_0042))
            var before: [Int] = []
            for (peripheral, _) in known { before.append(await peripheral.requestCount) }
            let requests = before
            try await bench.run { central, restoration in
                #expect(restoration.sessions.map(\.id) == known.map(\.peer))
                #expect(restoration.adapter == state.adapter)
                for (number, device) in known.enumerated() {
                    let restored = try #require(restoration.peer(device.peer))
                    guard case .connecting(let session) = restored.outcome else {
                        Issue.record("\(restored.outcome)")
                        continue
                    }
                    #expect(session.options == wanted)
                    #expect(await central.session(of: device.peer) === session)
                    let link = try await session.ready(within: limit)
                    #expect(await link.mtu == 99)
                    var values = try #require(restored.subscriptions.first).adopt(as: UInt8.self).makeAsyncIterator()
                    guard case .began = try await values.next() else {
                        Issue.record("no beginning")
                        continue
                    }
                    // The MTU, the hash of the services, and the subscription.
                    #expect(await device.peripheral.requestCount - requests[number] == 3)
                    try await device.peripheral.notify(0xFFF2, [7])
                    #expect(try await values.values(1) == [7])
                }
            }
        }
    }

    /// The policy and the handshake are code: they are given again, for each peer, before anything is connected.
    @Test func codeIsGivenAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (first, a) = try await bench.add(RestorationBench.sensor)
            let (_, b) = try await bench.add(RestorationBench.sensor)
            let (_, c) = try await bench.add(RestorationBench.sensor)
            let asked = Lock<[PeerID]>([])
            try await bench.run { central, _ in
                for peer in [a, b] { _ = try await central.session(with: peer, reconnect: { _, _ in .seconds(1) }) }
                _ = try await central.session(with: c)
            }
            try await bench.run(handlers: { wanted in
                asked.withLock { $0.append(wanted.peer) }
                if wanted.peer == c { return nil }
                if wanted.peer == b { return Session.Handlers() }
                return Session.Handlers(
                    onReady: { try await $0.write([9], to: 0xFFF1) }, reconnect: { _, _ in .seconds(3) })
            }) { central, restoration in
                #expect(asked.withLock(\.self) == [a, b, c])
                let session = try #require(restoration.peer(a)?.session)
                #expect(session.options.reconnect == .custom)
                _ = try await session.ready(within: limit)
                #expect(try await first.value(0xFFF1) == [9])
                let failed = try #require(restoration.peer(b))
                #expect(failed.failure?.code == .invalidArgument)
                #expect(failed.failure?.hint != nil)
                #expect(failed.session == nil && failed.subscriptions.isEmpty)
                #expect(restoration.peer(c) == nil)
                #expect(await central.session(of: c) == nil)
            }
            // What has failed may be the fault of this version of the program. What is not wanted any more is
            // forgotten.
            #expect(try bench.stored().peers.map(\.peer) == [a, b])
            #expect(await first.connectionCount >= 1)
        }
    }

    @Test func whatEndedForGoodStaysAway() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, kept) = try await bench.add(RestorationBench.sensor)
            let (_, ended) = try await bench.add(RestorationBench.sensor)
            try await bench.run { central, _ in
                let first = try await central.session(with: kept)
                let second = try await central.session(with: ended)
                _ = try await second.ready(within: limit)
                await second.disconnect()
                let (one, other) = (await first.subscribe(to: 0xFFF2), await first.subscribe(to: 0xFFF2))
                let third = await first.subscribe(to: 0xFFF3)
                await one.unsubscribe()
                _ = (other, third)
            }
            try await bench.run { _, restoration in
                #expect(restoration.sessions.map(\.id) == [kept])
                #expect(restoration.subscriptions.map(\.characteristic) == [0xFFF2, 0xFFF3])
                await restoration.subscriptions.first?.stop()
            }
            try await bench.run { central, restoration in
                #expect(restoration.subscriptions.map(\.characteristic) == [0xFFF3])
                await central.forget(kept)
            }
            #expect(try bench.stored().peers.isEmpty)
        }
    }

    @Test func valuesWaitForTheirConsumer() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (sensor, peer) = try await bench.add(RestorationBench.sensor)
            try await bench.run { central, _ in
                let session = try await central.session(with: peer)
                for uuid in [0xFFF2, 0xFFF3] as [BluetoothUUID] { _ = await session.subscribe(to: .uuid(uuid)) }
            }
            try await bench.run(holding: SubscribeOptions(capacity: 3)) { _, restoration in
                let subscriptions = restoration.subscriptions
                try #require(subscriptions.count == 2)
                _ = try await subscriptions[0].session.ready(within: limit)
                while await !sensor.isSubscribed(to: 0xFFF3) { try await time.clock.sleep(for: .milliseconds(10)) }
                for value in 1...6 as ClosedRange<UInt8> { try await sensor.notify(0xFFF2, [value]) }
                try await sensor.notify(0xFFF3, [1])
                await time.settle()
                var values = subscriptions[0].adopt(as: UInt8.self).makeAsyncIterator()
                #expect(try await values.values(1) == [4])
                // The mark of the beginning has made room as well.
                #expect(values.droppedBefore == 4)
                #expect(try await values.values(2) == [5, 6])
                #expect(values.droppedBefore == 0)
                try await sensor.notify(0xFFF2, [7])
                #expect(try await values.values(1) == [7])
                var others = subscriptions[1].adopt(as: UInt8.self).makeAsyncIterator()
                #expect(try await others.values(1) == [1])
            }
        }
    }

    @Test func theScanContinues() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(.battery)
            let filter = ScanFilter.services(0x180F)
            try await bench.run { central, _ in
                let task = time.task {
                    for try await _ in central.scan(filter, .passive, lostAfter: .seconds(9)).lasting() {}
                }
                try await time.clock.sleep(for: .seconds(2))
                task.cancel()
                try await task.value
            }
            #expect(
                try bench.stored().scan
                    == RestorationState.Scan(ScanSettings.passive.matching(filter), lostAfter: .seconds(9)))
            try await bench.run { _, restoration in
                let scan = try #require(restoration.scan)
                #expect(scan.failure == nil)
                // It scans before anybody takes it on.
                try await time.clock.sleep(for: .seconds(2))
                let began = time.now
                for try await event in scan.adopt() {
                    guard case .found(let scanResult) = event else { continue }
                    #expect(scanResult.peer == peer)
                    #expect(scanResult.lastSeen < began)
                    break
                }
            }
            #expect(try bench.stored().scan != nil, "a loop that was left is no reason to forget")
        }
    }

    @Test func aScanThatCannotBeginIsReportedAndBeginsLater() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(.battery)
            let scan = RestorationState.Scan(ScanSettings.passive.matching(.services(0x180F)))
            try StateStore(directory: bench.folder.path, identifier: "hub").open().save(RestorationState(scan: scan))
            await bench.radio.powerOff()
            try await bench.run { _, restoration in
                let restored = try #require(restoration.scan)
                #expect(restored.persisted == scan)
                #expect(restored.failure?.code == .adapterDown)
                await bench.radio.powerOn()
                let found = Lock<[PeerID?]>([])
                let task = time.task {
                    for try await event in restored.adopt() {
                        if case .found(let scanResult) = event { found.withLock { $0.append(scanResult.peer) } }
                    }
                }
                try await time.clock.sleep(for: .seconds(2))
                task.cancel()
                try await task.value
                #expect(found.withLock(\.self) == [peer])
            }
            #expect(try bench.stored().scan == scan)
            try await bench.run { _, restoration in
                #expect(restoration.scan?.failure == nil)
                await restoration.scan?.stop()
            }
            #expect(try bench.stored().scan == nil)
        }
    }

    /// Two characteristics of one kind: the one that was found and subscribed to is known by its place. A mere handle
    /// is not kept.
    @Test func aCharacteristicIsKnownByItsPlace() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(RestorationBench.twins)
            try await bench.run { central, _ in
                let session = try await central.session(with: peer)
                let found = try await session.ready(within: limit).discover(level: .full).characteristics(0xFFF2)
                let second = try #require(found.last)
                let options = SubscribeOptions(preferred: .indications)
                let values = [
                    await session.subscribe(to: .characteristic(second), options),
                    await session.subscribe(to: .handle(found[0].valueHandle)),
                ]
                try await time.clock.sleep(for: .seconds(1))
                withExtendedLifetime(values) {}
            }
            let wanted = RestorationState.Subscription(0xFFF2, index: 1, prefersIndications: true)
            #expect(try bench.stored().peers.map(\.subscriptions) == [[wanted]])
            try await bench.run { _, restoration in
                let restored = try #require(restoration.subscriptions.first)
                #expect(restored.persisted == wanted)
                var values = restored.adopt().makeAsyncIterator()
                guard case .began = try await values.next() else { throw error(.system) }
            }
        }
    }
}
