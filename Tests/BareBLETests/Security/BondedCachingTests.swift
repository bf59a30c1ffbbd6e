import BLECore
import BLELinux
import BareBLETestKit
import TestSupport
import Testing

@testable import BareBLE

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

    /// The peer announces it while the MTU is exchanged, before the database of the earlier link is used.
    @Test func aChangeThatIsAnnouncedAtTheBeginningOfALinkIsFollowed() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            #expect(try await visit(bench, bench.id) == 1)
            let earlier = try await bench.central.connect(bench.id, options)
            let database = try #require(await earlier.database)
            let announcer = try #require(database.characteristics(0x2A05).first).valueHandle
            let start = try #require(database.services(0xFFF0).first).handles.lowerBound
            await earlier.disconnect()
            var changed = SecurityBench.described(VirtualSecurity())
            changed.services =
                [.genericAccess(name: "Lock", appearance: 0), .genericAttribute(databaseHash: nil), .battery(level: 1)]
                + changed.services
            changed.security = await bench.device.security
            await bench.device.changeServices(to: changed, isAnnounced: false)
            let indication: [UInt8] = [
                0x1D, UInt8(truncatingIfNeeded: announcer), UInt8(announcer >> 8), UInt8(truncatingIfNeeded: start),
                UInt8(start >> 8), 0xFF, 0xFF,
            ]
            await bench.device.behave { request, respond in
                let responses = respond(request).map { (delay: Duration.zero, pdu: $0) }
                guard request.first == 0x02 else { return responses }
                return [(delay: Duration.zero, pdu: indication)] + responses
            }
            let peripheral = try await bench.central.connect(bench.id)
            await bench.device.behave(nil)
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
        }
    }

    /// The peer announces a change while the MTU is exchanged, and nothing is known of its services.
    @Test func aConfigurationThatAChangeMayHaveResetIsWritten() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            #expect(try await visit(bench, bench.id) == 1)
            let earlier = try await bench.central.connect(bench.id, options)
            let announcer = try #require(await earlier.database?.characteristics(0x2A05).first).valueHandle
            await earlier.disconnect()
            let indication: [UInt8] = [
                0x1D, UInt8(truncatingIfNeeded: announcer), UInt8(announcer >> 8), 0x01, 0x00, 0xFF, 0xFF,
            ]
            let writes = Lock(0)
            await bench.device.behave { request, respond in
                if request.first == 0x12 { writes.withLock { $0 += 1 } }
                let responses = respond(request).map { (delay: Duration.zero, pdu: $0) }
                guard request.first == 0x02 else { return responses }
                return [(delay: Duration.zero, pdu: indication)] + responses
            }
            // In place of what is remembered.
            let nothing = GATTCache(database: GATTDatabase(), coverage: .nothing)
            let peripheral = try await bench.central.connect(
                bench.id, ConnectOptions(cache: nothing, observesServiceChanges: false))
            let values = try await peripheral.subscribe(to: 0xFFF1)
            #expect(writes.withLock { $0 } == 1)
            await peripheral.disconnect()
            _ = values
        }
    }

    /// Pairs, and makes the first link, on which the protected value is subscribed to: the cache of it, and the handle
    /// of the configuration.
    private func prepareWithCache(_ bench: SecurityBench) async throws -> (GATTCache, AttributeHandle) {
        try await bench.pair()
        let first = try await bench.central.connect(bench.id, options)
        try await first.discover(level: .full)
        let cache = try #require(try await first.cache())
        let values = try await first.subscribe(to: 0xFFF1)
        await bench.radio.disconnect(bench.device)
        _ = await first.disconnected()
        _ = values
        let value = try #require(cache.database.characteristics(0xFFF1).first)
        return (cache, try #require(cache.database.cccd(of: value)).handle)
    }

    /// The peer announces a change while a configuration is read back.
    @Test func aConfigurationIsNotWrittenAtItsOldHandle() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            let (cache, configuration) = try await prepareWithCache(bench)
            let announcer = try #require(cache.database.characteristics(0x2A05).first).valueHandle
            let readBack: [UInt8] = [0x0A, UInt8(truncatingIfNeeded: configuration), UInt8(configuration >> 8)]
            let indication: [UInt8] = [
                0x1D, UInt8(truncatingIfNeeded: announcer), UInt8(announcer >> 8), 0x01, 0x00, 0xFF, 0xFF,
            ]
            let (reads, writes) = (Lock(0), Lock(0))
            await bench.device.behave { request, respond in
                if request.first == 0x12 { writes.withLock { $0 += 1 } }
                let responses = respond(request).map { (delay: Duration.zero, pdu: $0) }
                guard request == readBack else { return responses }
                reads.withLock { $0 += 1 }
                return [(delay: Duration.zero, pdu: indication), (delay: Duration.zero, pdu: [0x0B, 0x00, 0x00])]
            }
            // Its own cache is checked by the hash, so that nothing else is read back before.
            let peripheral = try await bench.central.connect(
                bench.id, ConnectOptions(mtu: 23, cache: cache, observesServiceChanges: false))
            await #expect(throws: error(.servicesChanged)) { _ = try await peripheral.subscribe(to: 0xFFF1) }
            // This waits until the services are known again.
            #expect(try await peripheral.read(0xFFF2) == [8])
            #expect(reads.withLock { $0 } == 1)
            #expect(writes.withLock { $0 } == 0)
            await peripheral.disconnect()
        }
    }

    /// The peer has changed its services, and reports it once, in its response to the read back.
    @Test func aConfigurationWhoseReadBackIsOutOfSyncIsNotWrittenBeforeTheServicesAreKnown() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            let (cache, configuration) = try await prepareWithCache(bench)
            let handle: [UInt8] = [UInt8(truncatingIfNeeded: configuration), UInt8(configuration >> 8)]
            let readBack: [UInt8] = [0x0A] + handle
            let refusal: [UInt8] = [0x01] + readBack + [0x12]
            let write: [UInt8] = [0x12] + handle + [0x01, 0x00]
            // Its own cache is checked by the hash, so that nothing else is read back before.
            let peripheral = try await bench.central.connect(
                bench.id, ConnectOptions(mtu: 23, cache: cache, observesServiceChanges: false))
            // From the first read back on.
            let requests = Lock<[[UInt8]]>([])
            await bench.device.behave { request, respond in
                let isRefused = requests.withLock { requests in
                    if requests.isEmpty, request != readBack { return false }
                    requests.append(request)
                    return requests.count == 1
                }
                guard !isRefused else { return [(delay: Duration.zero, pdu: refusal)] }
                return respond(request).map { (delay: Duration.zero, pdu: $0) }
            }
            let values = try await peripheral.subscribe(to: 0xFFF1)
            let sent = requests.withLock { $0 }
            #expect(sent.dropFirst().first?.first == 0x08, "the Database Hash is read by its type")
            #expect(sent.count { $0 == write } == 1)
            await peripheral.disconnect()
            _ = values
        }
    }

    // MARK: A peer that does not respond to the read back

    /// Has the device respond to no Read Request from now on; returns their number.
    private func silence(_ bench: SecurityBench) async -> Lock<Int> {
        let reads = Lock(0)
        await bench.device.behave { request, respond in
            guard request.first == 0x0A else { return respond(request).map { (delay: Duration.zero, pdu: $0) } }
            reads.withLock { $0 += 1 }
            return []
        }
        return reads
    }

    /// The peer is silent for as long as the protocol allows, which is half a minute.
    @Test(arguments: [false, true])
    func aConnectThatWaitsForTheReadBackIsCancelledAtOnce(isSession: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await prepare(bench)
            let reads = await silence(bench)
            let patient = ConnectOptions(timeout: .seconds(60), mtu: 23)
            let start: BootInstant
            if isSession {
                let session = try await bench.central.session(with: bench.id, Session.Options(connect: patient))
                try await time.clock.sleep(for: .seconds(5))
                #expect(reads.withLock { $0 } == 1)
                start = time.now
                await session.disconnect()
            } else {
                let connect = time.task { try await bench.central.connect(bench.id, patient) }
                try await time.clock.sleep(for: .seconds(5))
                #expect(reads.withLock { $0 } == 1)
                start = time.now
                connect.cancel()
                await #expect(throws: error(.cancelled)) { _ = try await connect.value }
            }
            #expect(time.now - start < .seconds(5))
            await bench.device.behave(nil)
            let next = try await bench.central.connect(bench.id, options)
            #expect(await next.database != nil)
            await next.disconnect()
        }
    }

    /// A link on which nothing has been read back yet, and the handle of a configuration that the peer has kept.
    private func unproven(_ bench: SecurityBench) async throws -> (Peripheral, AttributeHandle) {
        let (cache, configuration) = try await prepareWithCache(bench)
        // Its own cache is checked by the hash.
        let peripheral = try await bench.central.connect(
            bench.id, ConnectOptions(mtu: 23, cache: cache, observesServiceChanges: false))
        return (peripheral, configuration)
    }

    @Test func eachTaskWaitsForTheReadBackToItsOwnDeadline() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            let (peripheral, configuration) = try await unproven(bench)
            let reads = await silence(bench)
            let start = time.now
            async let patient = peripheral.isKept(configuration, [0x01, 0x00], until: start + .seconds(20))
            try await time.clock.sleep(for: .seconds(1))
            let hasty = await peripheral.isKept(configuration, [0x01, 0x00], until: start + .seconds(2))
            #expect(hasty == .failure(.timedOut))
            #expect(time.now - start == .seconds(2))
            let cancelled = time.task {
                await peripheral.isKept(configuration, [0x01, 0x00], until: start + .seconds(20))
            }
            try await time.clock.sleep(for: .seconds(1))
            cancelled.cancel()
            let interrupted = try await cancelled.value
            #expect(interrupted == .failure(.cancelled))
            #expect(time.now - start < .seconds(4))
            await bench.device.send(raw: [0x0B, 0x01, 0x00])
            let isKept = await patient
            #expect(isKept == .success(true))
            #expect(reads.withLock { $0 } == 1)
            await peripheral.disconnect()
        }
    }

    @Test func nothingIsReadBackOnceNoTaskWaits() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            let (peripheral, configuration) = try await unproven(bench)
            let reads = await silence(bench)
            let start = time.now
            let late = await peripheral.isKept(configuration, [0x01, 0x00], until: start + .seconds(1))
            #expect(late == .failure(.timedOut))
            try await time.clock.sleep(for: .seconds(1))
            #expect(await peripheral.statistics.cancelled == 1)
            // It is for no task, and the next one reads again.
            await bench.device.send(raw: [0x0B, 0x00, 0x00])
            await bench.device.behave(nil)
            let next = await peripheral.isKept(configuration, [0x01, 0x00], until: start + .seconds(20))
            #expect(next == .success(true))
            #expect(reads.withLock { $0 } == 1)
            await peripheral.disconnect()
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

    /// Any device could have filled it that had the peer's address, and a hash can be repeated.
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

    /// What was discovered on encrypted links costs one request on later ones, also in the next run.
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

    /// The disk takes its time, or the link of the former bond has ended late.
    @Test func aLateWriteForAFormerBondDoesNothing() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder)
            var bonds: [BondID] = []
            var caches: [GATTCache] = []
            for round in 1...2 {
                let paired = try await central.connect(bench.id, options)
                try await paired.pair()
                await paired.disconnect()
                bonds.append(try #require(await central.adapter.bond(with: bench.id)))
                let bonded = try await central.connect(bench.id, options)
                try await bonded.discover(level: .full)
                let cache = try await bonded.cache()
                caches.append(try #require(cache))
                await bonded.disconnect()
                guard round == 1 else { continue }
                try await central.forgetBond(with: bench.id)
                await bench.device.forgetBonds()
            }
            let former = try #require(bonds.first)
            let newer = try #require(bonds.last)
            let cache = try #require(caches.first)
            #expect(former != newer)
            let names = folder.names
            #expect(names.count == 1)
            // It has not begun.
            let formerPolicy = await central.cachePolicy(for: bench.id, former, options)
            let late = try #require(formerPolicy.store)
            let isLateStored = await late(cache)
            #expect(!isLateStored)
            #expect(folder.names == names)
            // It has begun before the pairing.
            let clients = BondedClients()
            clients.storing(for: former)
            #expect(!clients.isFormer(former))
            clients.storing(for: newer)
            #expect(clients.isFormer(former) && !clients.isFormer(newer))
            try GATTCacheDirectory(folder.path).save(cache, for: bench.id, former) { clients.isFormer(former) }
            #expect(folder.names == names)
            clients.remove(bench.id)
            #expect(clients.isFormer(newer))
            let policy = await central.cachePolicy(for: bench.id, newer, options)
            let current = try #require(policy.store)
            let isCurrentStored = await current(cache)
            #expect(isCurrentStored)
            #expect(folder.names == names)
        }
    }

    /// Also by a private address, and by a process that has not read the bonds.
    @Test(arguments: [false, true]) func theCacheOfABondIsForgottenWithIt(isPrivate: Bool) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            try folder.write("", to: "notes")
            let bench = try await Self.bench(time, isPrivate: isPrivate)
            let central = Self.central(bench, folder)
            let paired = try await central.connect(bench.id, options)
            try await paired.pair()
            await paired.disconnect()
            let bonded = try await central.connect(bench.id, options)
            try await bonded.discover(level: .full)
            await bonded.disconnect()
            #expect(folder.names.count == 2)
            let next = Self.central(bench, folder)
            try await next.forgetBond(with: bench.id)
            #expect(folder.names == ["notes"])
            #expect(try await next.bonds().isEmpty)
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

    // MARK: Caches that are wrong

    private static let announcer = VirtualService(0x1801, [VirtualCharacteristic(0x2A05, .indicate)])

    /// A device without a Database Hash, whose cache is believed on demand.
    private static func bench(_ time: VirtualTime, _ services: [VirtualService]) async throws -> SecurityBench {
        try await SecurityBench(time) { device in
            device.services = [.genericAccess(name: "Lock", appearance: 0)] + services + device.services
        }
    }

    /// The device has these services from now on, as another device at its address would.
    private func change(_ bench: SecurityBench, to services: [VirtualService]) async {
        let changed = SecurityBench.described(VirtualSecurity()) { device in
            device.services = [.genericAccess(name: "Lock", appearance: 0)] + services + device.services
        }
        await bench.device.changeServices(to: changed, isAnnounced: false)
    }

    private var trusting: ConnectOptions {
        var options = options
        options.validation = .whenPossible
        return options
    }

    /// The handle was looked up in the cache, and the value comes after that was dropped.
    @Test(.row("G26"), arguments: [false, true])
    func aReadThatIsUnderWayDuringAPairingIsRepeated(knowsOneService: Bool) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let eight = VirtualCharacteristic(0xFFE1, .read, value: [8])
            let nine = VirtualCharacteristic(0xFFE2, .read, value: [9])
            let bench = try await Self.bench(time, [VirtualService(0xFFE0, [eight, nine])])
            let central = Self.central(bench, folder)
            let first = try await central.connect(bench.id, options)
            let former = try await first.discover(services: knowsOneService ? [0xFFE0] : nil, level: .full)
            await first.disconnect()
            let stale = try #require(former.characteristics.first { $0.uuid == 0xFFE1 }).valueHandle
            await change(bench, to: [VirtualService(0xFFE0, [nine, eight])])
            let peripheral = try await central.connect(bench.id, trusting)
            let known = await peripheral.database
            #expect(known?.characteristics(0xFFE1).map(\.valueHandle) == [stale])
            let request: [UInt8] = [0x0A, UInt8(truncatingIfNeeded: stale), UInt8(truncatingIfNeeded: stale >> 8)]
            await bench.device.behave { pdu, respond in
                guard pdu != request else { return [] }
                return respond(pdu).map { (delay: .zero, pdu: $0) }
            }
            async let value = peripheral.read(0xFFE1)
            await time.settle()
            try await peripheral.pair()
            #expect(await peripheral.database == nil)
            // What is at the former handle now.
            await bench.device.send(raw: [0x0B, 9])
            #expect(try await value == [8])
            await peripheral.disconnect()
        }
    }

    /// With an observer they are enabled at once, because its task may send no further request.
    @Test(arguments: [false, true])
    func announcementsAreEnabledWhereTheyAreAfterAPairing(isObserved: Bool) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let other = VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, .indicate)])
            let bench = try await Self.bench(time, [Self.announcer, other])
            let central = Self.central(bench, folder)
            let first = try await central.connect(bench.id, options)
            let former = try await first.discover(level: .full)
            await first.disconnect()
            await change(bench, to: [other, Self.announcer])
            let peripheral = try await central.connect(bench.id, trusting)
            #expect(await peripheral.database == former)
            let changes = try await isObserved ? peripheral.serviceChanges() : nil
            #expect(try await peripheral.read(0xFFF2) == [8])
            try await time.clock.sleep(for: .seconds(1))
            #expect(await bench.device.isSubscribed(to: 0xFFE1), "the cache says so")
            try await peripheral.pair()
            if !isObserved {
                try await peripheral.discover(level: .full)
                #expect(try await peripheral.read(0xFFF2) == [8])
            }
            try await time.clock.sleep(for: .seconds(1))
            #expect(await bench.device.isSubscribed(to: 0x2A05))
            await peripheral.disconnect()
            withExtendedLifetime(changes) {}
        }
    }

    // MARK: Links that are encrypted later

    /// The cache of unencrypted links is no better on a link that was unencrypted before. What the program gives
    /// is its own decision.
    @Test(.row("G26"), arguments: [false, true])
    func aCacheOfLinksInClearIsDroppedWhenTheBondEncryptsTheLink(isGiven: Bool) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let central = Self.central(bench, folder)
            let stranger = try await central.connect(bench.id, options)
            let database = try await stranger.discover(level: .full)
            let cache = try await stranger.cache()
            await stranger.disconnect()
            let paired = try await central.connect(bench.id, options)
            try await paired.pair()
            await paired.disconnect()
            var inClear = options
            inClear.security = .none
            if isGiven { inClear.cache = cache }
            let peripheral = try await central.connect(bench.id, inClear)
            #expect(await peripheral.security == .none)
            #expect(await peripheral.database == database)
            await bench.device.requestSecurity()
            try await time.clock.sleep(for: .seconds(2))
            #expect(await peripheral.security.isEncrypted)
            #expect(await peripheral.database == (isGiven ? database : nil))
            try await peripheral.discover(level: .full)
            await peripheral.disconnect()
            let bonded = try await central.connect(bench.id, options)
            #expect(await bonded.database == (isGiven ? nil : database), "found on the encrypted link")
            await bonded.disconnect()
        }
    }

    @Test func aCallThatRaisesTheSecurityContinuesWithoutTheCache() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bench(time)
            let device = bench.device
            let link = Lock<Peripheral?>(nil)
            let central = SecurityBench.central(
                bench.radio, bench.bonds,
                change: { configuration in
                    configuration.cacheDirectory = folder.path
                    configuration.raiseSecurity = { _ in
                        await device.requestSecurity()
                        guard let peripheral = link.withLock({ $0 }) else { return false }
                        for _ in 0..<1_000 {
                            if await peripheral.security.isEncrypted { return true }
                            try? await time.clock.sleep(for: .milliseconds(1))
                        }
                        return false
                    }
                })
            let database = try await discoverInClear(central, bench)
            let paired = try await central.connect(bench.id, options)
            try await paired.pair()
            await paired.disconnect()
            var inClear = options
            inClear.security = .none
            let peripheral = try await central.connect(bench.id, inClear)
            link.withLock { $0 = peripheral }
            #expect(await peripheral.database == database)
            #expect(try await peripheral.read(0xFFF1) == [7])
            #expect(await peripheral.database == nil, "it was read by its type, without the cache")
            await peripheral.disconnect()
            link.withLock { $0 = nil }
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
