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

    // MARK: Caches from before a pairing

    /// A central with caches on the disk, as each run of a program makes it.
    private static func central(
        _ bench: SecurityBench, _ folder: Folder, onDemand: PairingOptions? = nil
    ) -> Central {
        SecurityBench.central(
            bench.radio, bench.bonds, { $0.onDemand = onDemand }, change: { $0.cacheDirectory = folder.path })
    }

    /// One link without a bond, on which everything is discovered and stored.
    private func discoverInClear(_ central: Central, _ bench: SecurityBench) async throws -> GATTDatabase {
        let stranger = try await central.connect(bench.id, options)
        let database = try await stranger.discover(level: .full)
        await stranger.disconnect()
        return database
    }

    /// G26: any device could have filled it that had the peer's address, and a hash can be repeated.
    @Test(.row("G26")) func aCacheFromBeforeAPairingIsNotUsedAfterIt() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder)
            let database = try await discoverInClear(central, bench)
            let paired = try await central.connect(bench.id, options)
            #expect(await paired.database == database, "without a bond an equal hash is enough")
            try await paired.pair()
            #expect(await paired.database == nil)
            await paired.disconnect()
            let bonded = try await central.connect(bench.id, options)
            #expect(await bonded.security.isEncrypted)
            #expect(await bonded.database == nil)
            await bonded.disconnect()
            // The next run has nothing but the disk.
            let next = Self.central(bench, folder)
            let later = try await next.connect(bench.id, options)
            #expect(await later.database == nil)
            await later.disconnect()
        }
    }

    /// G26: what was discovered on encrypted links costs one request on later ones, also in the next run.
    @Test(.row("G26")) func aCacheFromAfterThePairingIsUsed() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let first = Self.central(bench, folder)
            _ = try await discoverInClear(first, bench)
            let paired = try await first.connect(bench.id, options)
            try await paired.pair()
            let database = try await paired.discover(level: .full)
            await paired.disconnect()
            for central in [first, first, Self.central(bench, folder)] {
                let before = await bench.device.requestCount
                let bonded = try await central.connect(bench.id, options)
                #expect(await bench.device.requestCount - before <= 1)
                #expect(await bonded.database == database)
                await bonded.disconnect()
                #expect(folder.names.count == 1, "the cache from before the pairing is gone")
            }
        }
    }

    /// The program may have filled it on any link.
    @Test func aCacheOfTheProgramIsNotKeptForTheBond() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder)
            let stranger = try await central.connect(bench.id, options)
            try await stranger.discover(level: .full)
            let found = try await stranger.cache()
            let cache = try #require(found)
            await stranger.disconnect()
            let paired = try await central.connect(bench.id, options)
            try await paired.pair()
            await paired.disconnect()
            var given = options
            given.cache = cache
            let first = try await central.connect(bench.id, given)
            #expect(await first.database == cache.database)
            await first.disconnect()
            for central in [central, Self.central(bench, folder)] {
                let second = try await central.connect(bench.id, options)
                #expect(await second.database == nil)
                await second.disconnect()
            }
        }
    }

    @Test func anotherPairingBeginsWithoutTheCacheOfTheFormerBond() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder)
            for _ in 1...2 {
                let paired = try await central.connect(bench.id, options)
                try await paired.pair()
                await paired.disconnect()
                let bonded = try await central.connect(bench.id, options)
                #expect(await bonded.database == nil)
                try await bonded.discover(level: .full)
                await bonded.disconnect()
                try await central.forgetBond(with: bench.id)
                await bench.device.forgetBonds()
            }
        }
    }

    /// What the memory holds is written to the disk by the next link.
    @Test func aCacheThatCouldNotBeWrittenIsWrittenOnTheNextLink() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder)
            let paired = try await central.connect(bench.id, options)
            try await paired.pair()
            await paired.disconnect()
            try folder.remove()
            let first = try await central.connect(bench.id, options)
            let database = try await first.discover(level: .full)
            await first.disconnect()
            try folder.make()
            let second = try await central.connect(bench.id, options)
            #expect(await second.database == database)
            await second.disconnect()
            #expect(folder.names.count == 1)
            // Once is enough.
            try folder.remove()
            try folder.make()
            let third = try await central.connect(bench.id, options)
            #expect(await third.database == database)
            await third.disconnect()
            #expect(folder.names.isEmpty)
        }
    }

    @Test func whatWasDiscoveredBeforeThePairingIsKnownOnThatLinkAlone() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder)
            let paired = try await central.connect(bench.id, options)
            let database = try await paired.discover(level: .full)
            try await paired.pair()
            #expect(await paired.database == database)
            #expect(try await paired.read(0xFFF1) == [7])
            await paired.disconnect()
            let bonded = try await central.connect(bench.id, options)
            #expect(await bonded.database == nil)
            await bonded.disconnect()
        }
    }

    /// The read that has led to the pairing is repeated: its UUID is read by type, and a characteristic that the
    /// program holds is used.
    @Test(arguments: [false, true]) func aReadThatPairsContinuesWithoutTheCache(byItsHandle: Bool) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder, onDemand: PairingOptions())
            let database = try await discoverInClear(central, bench)
            let sealed = try #require(database.characteristics.first { $0.uuid == 0xFFF1 })
            let peripheral = try await central.connect(bench.id, options)
            #expect(await peripheral.database == database)
            if byItsHandle {
                #expect(try await peripheral.read(.characteristic(sealed)) == [7])
            } else {
                #expect(try await peripheral.read(0xFFF1) == [7])
                #expect(await peripheral.database == nil, "it was read by its type, without the cache")
            }
            #expect(await bench.device.pairingCount == 1)
            await peripheral.disconnect()
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
