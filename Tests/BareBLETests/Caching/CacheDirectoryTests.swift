import BLELinux
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// Links to a peer with an address, whose cache is kept without anybody asking for it.
@Suite(.timeLimit(.minutes(10))) struct CacheDirectoryTests {
    private static let device = CachingTests.device(.battery(level: 50))

    private let folder: Folder
    private let central: Central
    private let peripheral = VirtualPeripheral(device)

    init() throws {
        folder = try Folder()
        var configuration = Configuration()
        configuration.cacheDirectory = folder.path
        central = Central(configuration)
    }

    private func connect(_ peer: String = "C0:00:00:00:00:07/random") async throws -> (Peripheral, requests: Int) {
        let before = await peripheral.requestCount
        let id = try #require(PeerID(peer))
        let device = try await central.peripheral(
            over: LinkSocket(adopting: try await peripheral.connect()), to: id, ConnectOptions(),
            until: BootInstant(nanoseconds: .max))
        return (device, await peripheral.requestCount - before - 1)
    }

    private func disconnect(_ device: Peripheral) async {
        await device.disconnect()
        await peripheral.disconnect()
    }

    @Test func isUsedByItself() async throws {
        let (first, asked) = try await connect()
        #expect(asked == 1, "the hash, so that it can be stored")
        let database = try await first.discover(level: .full)
        await disconnect(first)
        let (second, requests) = try await connect()
        #expect(requests == 1)
        #expect(await second.database == database)
        await disconnect(second)
        // Another peer with the same services has the same hash, and is another peer all the same.
        let (other, _) = try await connect("C0:00:00:00:00:08/random")
        #expect(await other.database == nil)
    }

    @Test func aDamagedFileIsReplaced() async throws {
        let (first, _) = try await connect()
        try await first.discover(level: .full)
        await disconnect(first)
        let file = URL(filePath: folder.path).appending(path: "C00000000007-random.gatt")
        var bytes = try Data(contentsOf: file)
        bytes[20] ^= 1
        try bytes.write(to: file)
        let (second, _) = try await connect()
        #expect(await second.database == nil)
        try await second.discover(level: .full)
        await disconnect(second)
        let (third, requests) = try await connect()
        #expect(requests == 1)
        #expect(await third.database != nil)
    }

    @Test func changesAreStored() async throws {
        let (first, _) = try await connect()
        try await first.discover(level: .full)
        var changes = try await first.serviceChanges().makeAsyncIterator()
        await peripheral.changeServices(
            to: CachingTests.device(.battery(level: 50), .deviceInformation(manufacturer: "M", model: "1")))
        _ = try await changes.next()
        let database = await first.database
        await disconnect(first)
        let (second, requests) = try await connect()
        #expect(requests == 1)
        #expect(await second.database == database)
    }

    // MARK: When it is stored

    /// A disk that takes its time.
    private actor SlowDisk {
        private(set) var stored: [GATTCache] = []
        private(set) var begun = 0
        private var isOpen = false
        private var waiting: [CheckedContinuation<Void, Never>] = []

        func store(_ cache: GATTCache) async {
            begun += 1
            if !isOpen { await withCheckedContinuation { waiting.append($0) } }
            stored.append(cache)
        }

        func open() {
            isOpen = true
            for waiter in waiting { waiter.resume() }
            waiting = []
        }
    }

    private func connect(storingOn disk: SlowDisk) async throws -> Peripheral {
        var policy = CachePolicy(ConnectOptions())
        policy.store = {
            await disk.store($0)
            return true
        }
        return try await central.peripheral(
            over: LinkSocket(adopting: try await peripheral.connect()),
            to: try #require(PeerID("C0:00:00:00:00:07/random")), ConnectOptions(), policy: policy,
            until: BootInstant(nanoseconds: .max))
    }

    @Test func ofTheCachesThatWaitTheNewestIsStored() async throws {
        let disk = SlowDisk()
        let device = try await connect(storingOn: disk)
        try await device.discover(services: [0x180F], level: .structure)
        while await disk.begun == 0, !Task.isCancelled { await Task.yield() }
        try await device.discover(services: [0x1800], level: .structure)
        try await device.discover(level: .structure)
        try await device.discover(level: .full)
        #expect(await disk.begun == 1)
        await disk.open()
        await disconnect(device)
        #expect(await disk.stored.map(\.coverage) == [.services([0x180F: .structure]), .whole(.full)])
    }

    @Test func disconnectWaitsForTheDiskAlsoAfterALostLink() async throws {
        let disk = SlowDisk()
        let device = try await connect(storingOn: disk)
        try await device.discover(level: .full)
        while await disk.begun == 0, !Task.isCancelled { await Task.yield() }
        await peripheral.disconnect()
        _ = await device.disconnected()
        async let end: Void = device.disconnect()
        await disk.open()
        await end
        #expect(await disk.stored.count == 1)
    }

    @Test func aDiskThatHangsIsNotWaitedForForever() async throws {
        let disk = SlowDisk()
        let device = try await connect(storingOn: disk)
        try await device.discover(level: .full)
        while await disk.begun == 0, !Task.isCancelled { await Task.yield() }
        await device.disconnect()
        #expect(await disk.stored.isEmpty)
        await disk.open()
    }

    @Test func aLinkDoesWithoutWhatAHangingDiskHas() async throws {
        try await VirtualTime.run { time in
            let disk = HangingDisk()
            let peripheral = VirtualPeripheral(Self.device, time: time)
            let socket = try await peripheral.connect()
            let link = time.task { try await Central(time: time).connected(socket, reading: disk) }
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            // Else time would stand as long as the disk works.
            time.loop.release()
            let device = try await link.value
            time.loop.hold()
            #expect(time.now == .zero + .seconds(5))
            #expect(try await device.read(0x2A19) == [50])
            disk.open()
            await device.disconnect()
        }
    }

    @Test func aCancelledTaskDoesNotWaitForADisk() async throws {
        let disk = HangingDisk()
        let socket = try await peripheral.connect()
        let link = Task { [central] in try await central.connected(socket, reading: disk) }
        while !disk.isAsked, !Task.isCancelled { await Task.yield() }
        link.cancel()
        await #expect(throws: error(.cancelled)) { try await link.value }
        disk.open()
    }

    /// Peers that come and go would make a thread each time, until there is room for none.
    @Test func aDiskThatHangsGetsNoMoreThreadsThanItHas() async {
        let loop = EventLoop()
        loop.start()
        defer { loop.stop() }
        let gate = DiskGate(limit: 2)
        let disks = [HangingDisk(), HangingDisk()]
        await Task(executorPreference: loop) {
            for disk in disks {
                // A caller that stops waiting leaves it there.
                await #expect(throws: WorkFailure.late) {
                    try await gate.run(on: loop, until: loop.now()) { disk.respond() }
                }
            }
            await #expect(throws: WorkFailure.noRoom) { try await gate.run(on: loop) { 1 } }
            disks[0].open()
            while (try? await gate.run(on: loop) { 1 }) == nil, !Task.isCancelled { await Task.yield() }
            disks[1].open()
        }.value
    }

    @Test func aPeerWhoseAddressChangesIsNotKept() async throws {
        let (device, requests) = try await connect("4A:00:00:00:00:07/random")
        #expect(requests == 0)
        try await device.discover()
        await disconnect(device)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
}

/// A disk that does not respond before a test has it do so.
final class HangingDisk: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    private let asked = Lock(false)

    var isAsked: Bool { asked.withLock(\.self) }

    /// Blocks the thread.
    func respond() {
        asked.withLock { $0 = true }
        gate.wait()
    }

    func open() { gate.signal() }
}

extension Central {
    /// A link whose cache is on a disk that hangs.
    fileprivate func connected(_ descriptor: Int32, reading disk: HangingDisk) async throws -> Peripheral {
        var policy = CachePolicy(ConnectOptions())
        policy.load = {
            disk.respond()
            return nil
        }
        policy.store = { _ in true }
        return try await peripheral(
            over: LinkSocket(adopting: descriptor), to: try #require(PeerID("C0:00:00:00:00:07/random")),
            ConnectOptions(), policy: policy, until: BootInstant(nanoseconds: .max))
    }
}
