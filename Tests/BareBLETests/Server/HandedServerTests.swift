import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Restarts in which the links of centrals stay up. The service manager has a thread of its own; a program that waits
/// for it has no deadline under way.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct HandedServerTests {
    private let folder: Folder
    private let time: VirtualTime
    private let manager: VirtualServiceManager
    private let store: DescriptorStore
    /// The device that uses the services.
    private let user: Central

    private let sensor = LocalService(
        0xFFF0,
        [LocalCharacteristic(0xFFF1, [.read, .notify]), LocalCharacteristic(0xFFF2, [.read, .indicate])])

    init() throws {
        folder = try Folder()
        time = try #require(VirtualTimeTrait.time)
        manager = try VirtualServiceManager()
        store = DescriptorStore(try #require(ServiceNotifier(manager.environment())))
        user = Central(radio: VirtualRadio(time: time))
    }

    private var path: String { folder.path + "/socket" }

    /// A run of the program, before it accepts centrals.
    private func start(
        _ services: [LocalService]
    ) async throws -> (LocalPeripheral, LocalPeripheral.RestorationResult) {
        let local = LocalPeripheral(.init(name: "Bench"), on: Central(radio: VirtualRadio(time: time)))
        let environment = ServiceEnvironment(
            descriptors: await manager.takeStored(), variables: manager.environment().variables)
        let restoration = try await local.restore(from: environment)
        for service in services { try await local.publish(service) }
        return (local, restoration)
    }

    /// Hands over what is not busy. No time passes while the service manager works.
    private func suspend(_ local: LocalPeripheral) async {
        await time.settle()
        #expect(await time.hold { await local.suspend(handingOverTo: store) }.isEmpty)
    }

    private func connect() async throws -> Peripheral {
        try await user.connect(toSocket: path, ConnectOptions(mtu: 185))
    }

    @Test func linksAndSubscriptionsLiveOnAndNewcomersWait() async throws {
        let (first, nothing) = try await start([sensor])
        #expect(nothing.links.isEmpty && nothing.lost.isEmpty && nothing.knownCentrals == 0)
        try await first.acceptCentrals(atSocket: path)
        let device = try await connect()
        var values = try await device.subscribe(to: 0xFFF1).makeAsyncIterator()
        try await first.update([1], of: 0xFFF1)
        await suspend(first)
        #expect(await manager.storedNames.count == 3)
        #expect(await device.isConnected)

        // A newcomer, before the next run is there.
        var newcomer = try LinkSocket.connectedUnix(path: path)
        #expect(newcomer.send([0x0A, 3, 0]) == .sent)

        let (second, restoration) = try await start([sensor])
        #expect(restoration.links.count == 1 && restoration.lost.isEmpty)
        var events = second.events.makeAsyncIterator()
        #expect(await second.centrals.isEmpty)
        let waiting = testTask { try await device.read(0xFFF1) }
        await time.settle()
        try await second.acceptCentrals(atSocket: path)
        guard case .connected(let central)? = try await events.next() else {
            Issue.record("not connected")
            return
        }
        #expect(central.isRestored && central.mtu == 185 && central.subscriptions.isEmpty)
        guard case .subscribed(let subscriber, let value, isRestored: true)? = try await events.next() else {
            Issue.record("not subscribed")
            return
        }
        #expect(subscriber.id == central.id && value.uuid == 0xFFF1)
        let third = try await events.next()
        guard case .connected(let other)? = third else {
            Issue.record("the newcomer is not connected: \(String(describing: third))")
            return
        }
        #expect(!other.isRestored)
        #expect(try await second.update([2], of: 0xFFF1).outcomes == [central.id: .notified])
        #expect(try await values.next()?.bytes == [1])
        #expect(try await values.next()?.bytes == [2])
        // The request was served by the second run, whose value was empty then.
        #expect(try await waiting.value == [])
        await time.settle()
        #expect(newcomer.receivePacket() == [0x0B] + Array("Bench".utf8))
        // The manager's copies would keep the link up after its end.
        await manager.wait { $0.filter { $0 == "FDSTOREREMOVE=1" }.count >= 4 }
        #expect(await manager.storedNames.isEmpty)
        await second.stop()
        await time.settle()
        #expect(await !device.isConnected)
        #expect(folder.names.isEmpty, "the socket is removed at the end")
    }

    @Test func anIndicationIsConfirmedToTheNextRun() async throws {
        let (first, _) = try await start([sensor])
        let (ours, theirs) = try LinkSocket.pair()
        let raw = RawCentral(
            id: try await first.attach(descriptor: ours), socket: LinkSocket(adopting: theirs), time: time)
        let handle = try #require(await first.publishedServices.first?.characteristics.last).id
        await raw.configure(handle, 2)
        let update = testTask { try await first.update([1], of: 0xFFF2) }
        #expect(await raw.receive() == [0x1D] + handle.bytes + [1])
        await suspend(first)
        #expect(try await update.value.outcomes.values.map { $0 } == [.disconnected])
        raw.send([0x1E])
        let (second, _) = try await start([sensor])
        try await second.acceptCentrals(atSocket: path)
        let next = testTask { try await second.update([2], of: 0xFFF2) }
        #expect(await raw.receive() == [0x1D] + handle.bytes + [2])
        raw.send([0x1E])
        #expect(try await next.value.outcomes.values.map { $0 } == [.confirmed])
        await second.stop()
    }

    /// A handler has 5 s to return; after that the link ends, because nobody can respond any more.
    @Test(arguments: [3, 9]) func aRequestIsFinishedFirst(seconds: Int) async throws {
        let clock = time.clock
        let slow = LocalService(
            0xFFF0,
            [
                LocalCharacteristic(
                    0xFFF1, .read,
                    value: .handled { _ in
                        try await clock.sleep(for: .seconds(seconds))
                        return [7]
                    })
            ])
        let (first, _) = try await start([slow])
        let (ours, theirs) = try LinkSocket.pair()
        let raw = RawCentral(
            id: try await first.attach(descriptor: ours), socket: LinkSocket(adopting: theirs), time: time)
        raw.send([0x0A] + (try #require(await first.publishedServices.first?.characteristics.first).id).bytes)
        await time.settle()
        let lost = await first.suspend(handingOverTo: store)
        #expect(lost.mapValues(\.code) == (seconds < 5 ? [:] : ["descriptor": .timedOut]))
        #expect(await raw.receive() == (seconds < 5 ? [0x0B, 7] : nil))
        #expect(await manager.storedNames.count == (seconds < 5 ? 2 : 0))
        let (second, restoration) = try await start([slow])
        #expect(restoration.links.count == (seconds < 5 ? 1 : 0))
        await second.stop()
        await manager.wait { $0.filter { $0 == "FDSTOREREMOVE=1" }.count >= (seconds < 5 ? 2 : 0) }
        #expect(await manager.storedNames.isEmpty, "what is not taken over ends")
    }

    /// The second link has a request unfinished at the end of the 5 s of the first one, unless it was handed over
    /// before.
    @Test func aBusyLinkDelaysNoOther() async throws {
        let clock = time.clock
        func slow(_ uuid: BluetoothUUID, seconds: Int, _ value: UInt8) -> LocalCharacteristic {
            LocalCharacteristic(
                uuid, .read,
                value: .handled { _ in
                    try await clock.sleep(for: .seconds(seconds))
                    return [value]
                })
        }
        let service = LocalService(0xFFF0, [slow(0xFFF1, seconds: 9, 7), slow(0xFFF2, seconds: 2, 8)])
        let (first, _) = try await start([service])
        var raw: [RawCentral] = []
        for name in ["busy", "quick", "idle"] {
            let (ours, theirs) = try LinkSocket.pair()
            let id = try await first.attach(descriptor: ours, name: name)
            raw.append(RawCentral(id: id, socket: LinkSocket(adopting: theirs), time: time))
        }
        let (busy, quick) = (raw[0], raw[1])
        let handles = await first.publishedServices.flatMap(\.characteristics).map(\.id.bytes)
        busy.send([0x0A] + handles[0])
        quick.send([0x0A] + handles[1])
        await time.settle()
        let store = store
        let suspending = testTask { await first.suspend(handingOverTo: store) }
        try await clock.sleep(for: .seconds(4))
        #expect(await quick.receive() == [0x0B, 8])
        quick.send([0x0A] + handles[1])
        let lost = await suspending.value
        #expect(lost.mapValues(\.code) == ["busy": .timedOut])
        let (second, restoration) = try await start([service])
        #expect(restoration.links.sorted() == ["idle", "quick"])
        try await second.acceptCentrals(atSocket: path)
        try await clock.sleep(for: .seconds(3))
        #expect(await quick.receive() == [0x0B, 8], "the next run serves it")
        await second.stop()
    }

    @Test func whatTheManagerDoesNotTakeIsReturned() async throws {
        let (local, _) = try await start([sensor])
        try await local.acceptCentrals(atSocket: path)
        let device = try await connect()
        await time.settle()
        let nobody = ServiceEnvironment(variables: ["NOTIFY_SOCKET": folder.path + "/nobody"], processID: 1)
        let absent = DescriptorStore(try #require(ServiceNotifier(nobody)))
        let lost = await local.suspend(handingOverTo: absent)
        #expect(lost.keys.sorted() == [path, "unix:\(path)#1"] && lost.values.allSatisfy { $0.code == .system })
        await time.settle()
        #expect(await !device.isConnected)
        #expect(await local.suspend(handingOverTo: store).isEmpty, "it has ended")
    }

    @Test func whereTheServicesDifferTheCentralIsNotified() async throws {
        let (first, _) = try await start([sensor])
        try await first.acceptCentrals(atSocket: path)
        let device = try await connect()
        try await device.discover(level: .full)
        let sequence = try await device.serviceChanges()
        var changes = sequence.makeAsyncIterator()
        await suspend(first)
        let other = LocalService(0xFFE0, [LocalCharacteristic(0xFFE1, .read, value: .fixed([5]))])
        let (second, _) = try await start([other])
        try await second.acceptCentrals(atSocket: path)
        #expect(try await changes.next() != nil)
        #expect(try await device.read(0xFFE1) == [5])
        await second.stop()
    }

    @Test func whatCannotBeUsedIsClosedAndReported() async throws {
        let socket = try #require(ServiceSocket(manager.address))
        let (one, two) = try LinkSocket.pair()
        let file = try MemoryFile.make("test", holding: [1, 2, 3])
        try socket.send("FDSTORE=1\nFDNAME=bareble-central.1.half", descriptors: [one])
        try socket.send("FDSTORE=1\nFDNAME=bareble-central.2.rubbish", descriptors: [two, file])
        try socket.send("FDSTORE=1\nFDNAME=bareble-listener.none", descriptors: [one])
        try socket.send("FDSTORE=1\nFDNAME=bareble.other", descriptors: [two])
        try await ServiceNotifier(manager.environment())?.barrier()
        for number in [one, two, file] { MemoryFile.close(number) }
        let (local, restoration) = try await start([sensor])
        #expect(restoration.links.isEmpty)
        #expect(
            restoration.lost.keys.sorted() == [
                "bareble-central.1.half", "bareble-central.2.rubbish", "bareble-listener.none",
            ])
        #expect(restoration.lost.values.allSatisfy { $0.code == .unusableState })
        try await local.acceptCentrals(atSocket: path)
        #expect(try await connect().read(0x2A00) == Array("Bench".utf8))
        await local.stop()
    }
}
