import BLECore
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// What a bonded peer keeps is not written or read again.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct BondedCachingTests {
    /// No MTU exchange, so that requests can be counted.
    private let options = ConnectOptions(mtu: 23)

    private static func bench(
        _ time: VirtualTime, isPrivate: Bool = false, keeps: Bool = true
    ) async throws -> SecurityBench {
        try await SecurityBench(time, isPrivate: isPrivate) { device in
            device.services =
                [.genericAccess(name: "Lock", appearance: 0), .genericAttribute(databaseHash: nil)] + device.services
            device.security?.keepsConfigurations = keeps
        }
    }

    /// One link on which the protected value is subscribed to: the requests that it took, and whether a value came.
    private func visit(
        _ bench: SecurityBench, _ peer: PeerID, value: UInt8 = 5, end: ((SecurityBench) async -> Void)? = nil
    ) async throws -> Int {
        let before = await bench.device.requestCount
        let peripheral = try await bench.central.connect(peer, options)
        var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
        let requests = await bench.device.requestCount - before
        #expect(try await bench.device.notify(0xFFF1, [value]))
        #expect(try await values.next()?.bytes == [value])
        if let end {
            await end(bench)
            _ = await peripheral.disconnected()
        } else {
            await peripheral.disconnect()
        }
        return requests
    }

    /// Pairs, and makes the first link, on which everything is discovered and written.
    private func prepare(_ bench: SecurityBench) async throws {
        try await bench.pair()
        let peripheral = try await bench.central.connect(bench.id, options)
        try await peripheral.discover(level: .full)
        _ = try await peripheral.serviceChanges()
        let values = try await peripheral.subscribe(to: 0xFFF1)
        await bench.radio.disconnect(bench.device)
        _ = await peripheral.disconnected()
        _ = values
    }

    @Test(arguments: [false, true]) func anArmedSubscriptionCostsNoRequest(isPrivate: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time, isPrivate: isPrivate)
            try await prepare(bench)
            let peer = isPrivate ? SecurityBench.identity : bench.id
            for round in 1...4 {
                if isPrivate { await bench.radio.rotateAddress(of: bench.device) }
                let requests = try await visit(bench, peer, value: UInt8(round)) {
                    await $0.radio.disconnect($0.device)
                }
                // One configuration is read back, once: then the peer is known to keep them.
                #expect(requests == (round == 1 ? 1 : 0), "\(round)")
            }
        }
    }

    @Test func aPeerThatKeepsNothingIsConfiguredOnEachLink() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time, keeps: false)
            try await prepare(bench)
            // `visit` expects the value each time.
            for round in 1...3 {
                let requests = try await visit(bench, bench.id) { await $0.radio.disconnect($0.device) }
                #expect(requests > 0, "\(round)")
            }
        }
    }

    @Test func itIsReadBackAgainAfterALossOfPower() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            let lost: (SecurityBench) async -> Void = {
                await $0.radio.disconnect($0.device, because: .connectionTimeout)
            }
            #expect(try await visit(bench, bench.id) == 1)
            #expect(try await visit(bench, bench.id, end: lost) == 0)
            #expect(try await visit(bench, bench.id) == 1)
            #expect(try await visit(bench, bench.id) == 0)
        }
    }

    @Test func aSubscriptionThatWasEndedIsMadeAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            #expect(try await visit(bench, bench.id) == 1)
            let peripheral = try await bench.central.connect(bench.id, options)
            let before = await bench.device.requestCount
            let first = try await peripheral.subscribe(to: 0xFFF1)
            #expect(await bench.device.requestCount == before)
            try await first.unsubscribe()
            let second = try await peripheral.subscribe(to: 0xFFF1)
            #expect(await bench.device.requestCount == before + 2, "switched off and on")
            try await second.unsubscribe()
            await peripheral.disconnect()
            #expect(try await visit(bench, bench.id) == 1, "it was off at the end")
        }
    }

    @Test func anotherPairingForgetsWhatWasKept() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            #expect(try await visit(bench, bench.id) == 1)
            try await bench.central.forgetBond(with: bench.id)
            await bench.device.forgetBonds()
            try await bench.pair()
            #expect(try await visit(bench, bench.id) > 1)
        }
    }

    @Test func aChangeThatIsAnnouncedIsFollowed() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            #expect(try await visit(bench, bench.id) == 1)
            let peripheral = try await bench.central.connect(bench.id, options)
            #expect(await peripheral.database != nil)
            var changes = try await peripheral.serviceChanges().makeAsyncIterator()
            var changed = SecurityBench.described(VirtualSecurity())
            changed.services =
                [.genericAccess(name: "Lock", appearance: 0), .genericAttribute(databaseHash: nil), .battery(level: 1)]
                + changed.services
            changed.security = await bench.device.security
            await bench.device.changeServices(to: changed)
            _ = try await changes.next()
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
            #expect(try await visit(bench, bench.id) > 0)
        }
    }

    @Test func whatWasDiscardedMayHaveBeenAnAnnouncement() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            #expect(try await visit(bench, bench.id) == 1)
            var security = VirtualSecurity()
            security.earlyPackets = [[0x1D, 0x03, 0x00, 0x01, 0x00, 0xFF, 0xFF]]
            await bench.device.setSecurity(security)
            let peripheral = try await bench.central.connect(bench.id, options)
            #expect(await peripheral.database == nil, "the peer's hash is not known")
            await peripheral.disconnect()
        }
    }
}
