import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// What a bonded central has configured, over runs of the program. The bonded central is a device that the program has
/// paired: it uses the services of the program on the same link.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct KeptCentralsTests {
    private let folder: Folder
    private let radio: VirtualRadio
    private let bonds = BondStore.inMemory
    private let sensor = LocalService(
        0xFFF0,
        [LocalCharacteristic(0xFFF1, [.read, .notify]), LocalCharacteristic(0xFFF2, [.read, .indicate])])
    private let battery = LocalService(0x180F, [LocalCharacteristic(0x2A19, [.read, .notify], value: .stored([1]))])
    private let pairing = PairingOptions(agent: .passkey(Passkey(123_456)!))

    init() throws {
        folder = try Folder()
        radio = VirtualRadio(time: try #require(VirtualTimeTrait.time))
    }

    private var store: StateStore { StateStore(directory: folder.path, identifier: "hub") }

    /// A run of the program.
    private struct Run {
        let central: Central
        let local: LocalPeripheral
        let restoration: LocalPeripheral.RestorationResult
    }

    /// Begins a run. Those of one test have the central in common, whose adapter has the bonds.
    private func start(
        _ services: [LocalService], on former: Central? = nil, in store: StateStore? = nil
    ) async throws -> Run {
        var configuration = Configuration()
        configuration.security = SecurityConfiguration(bonds: bonds)
        let central = former ?? Central(configuration, radio: radio)
        var settings = LocalPeripheral.Settings(name: "Bench")
        settings.store = store ?? self.store
        let local = LocalPeripheral(settings, on: central)
        let restoration = try await local.restore(from: ServiceEnvironment(variables: [:], processID: 1))
        for service in services { try await local.publish(service) }
        return Run(central: central, local: local, restoration: restoration)
    }

    private func handle(_ uuid: BluetoothUUID, _ run: Run) async throws -> AttributeHandle {
        try #require(await run.local.publishedServices.flatMap(\.characteristics).first { $0.uuid == uuid }).id
    }

    /// The device writes the configuration of the value at a handle.
    private func configure(_ device: VirtualPeripheral, _ value: AttributeHandle, _ bits: UInt8) async throws {
        await device.send(raw: [0x12] + (value + 1).bytes + [bits, 0])
        await VirtualTimeTrait.time?.settle()
    }

    private func end(_ link: Peripheral, _ run: Run) async {
        await link.disconnect()
        await run.local.stop()
    }

    /// Waits until the disk has what has changed.
    private func written() async throws {
        try await VirtualTimeTrait.time?.clock.sleep(for: .milliseconds(1))
    }

    /// The first run: a device is paired, and subscribes to the first value.
    private func subscribed() async throws -> (device: VirtualPeripheral, peer: PeerID, link: Peripheral, run: Run) {
        let device = await radio.add(.lock)
        let peer = try #require(await radio.id(of: device))
        let run = try await start([sensor, battery])
        #expect(run.restoration.knownCentrals == 0 && run.restoration.damage == nil)
        let link = try await run.central.connect(peer)
        try await link.pair(pairing)
        try await configure(device, try await handle(0xFFF1, run), 1)
        try await configure(device, try await handle(0x2A19, run), 1)
        let all = await run.local.centrals.flatMap(\.subscriptions).map(\.uuid)
        #expect(all == [0xFFF1, 0x2A19])
        return (device, peer, link, run)
    }

    /// The subscriptions that the next run reports, once the device is connected again.
    private func restored(_ run: Run, _ peer: PeerID) async throws -> [BluetoothUUID] {
        var events = run.local.events.makeAsyncIterator()
        let link = try await run.central.connect(peer)
        await VirtualTimeTrait.time?.settle()
        await link.disconnect()
        var found: [BluetoothUUID] = []
        while let event = try await events.next() {
            switch event {
            case .subscribed(_, let characteristic, isRestored: true): found.append(characteristic.uuid)
            case .disconnected: return found
            default: break
            }
        }
        return found
    }

    @Test func subscriptionsAreInForceAgainAfterARestart() async throws {
        let (_, peer, link, first) = try await subscribed()
        await end(link, first)
        #expect(folder.names.contains("hub.clients"))
        let attributes = try FileManager.default.attributesOfItem(atPath: store.clientsPath)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let second = try await start([sensor, battery], on: first.central)
        #expect(second.restoration.knownCentrals == 1)
        #expect(try await restored(second, peer) == [0xFFF1, 0x2A19])
        await second.local.stop()
    }

    @Test func aProgramThatIsKilledHasStoredThemBefore() async throws {
        let (_, peer, link, first) = try await subscribed()
        // The second change is written 5 s after the first.
        try await VirtualTimeTrait.time?.clock.sleep(for: .seconds(11))
        try await written()
        let copy = try Folder()
        try FileManager.default.copyItem(atPath: store.clientsPath, toPath: copy.path + "/hub.clients")
        await end(link, first)
        let second = try await start(
            [sensor, battery], on: first.central, in: StateStore(directory: copy.path, identifier: "hub"))
        #expect(try await restored(second, peer) == [0xFFF1, 0x2A19])
        await second.local.stop()
    }

    @Test func whereTheServicesDifferTheCentralIsNotifiedAndTheOthersStay() async throws {
        let (device, peer, link, first) = try await subscribed()
        // Service Changed is at 8.
        try await configure(device, 8, 2)
        await end(link, first)
        let second = try await start([sensor], on: first.central)
        #expect(try await restored(second, peer) == [0xFFF1])
        await second.local.stop()
        // The battery service was at 19 to 22.
        let change: [UInt8] = [0x1D, 0x08, 0x00, 0x13, 0x00, 0x16, 0x00]
        #expect(await device.transcript.steps.contains { $0.event == .sent(change) })
    }

    @Test func aCentralWithoutABondIsNotStored() async throws {
        let device = await radio.add(.battery)
        let peer = try #require(await radio.id(of: device))
        let first = try await start([sensor])
        let link = try await first.central.connect(peer)
        try await configure(device, try await handle(0xFFF1, first), 1)
        await end(link, first)
        let second = try await start([sensor], on: first.central)
        #expect(second.restoration.knownCentrals == 0)
        #expect(try await restored(second, peer) == [])
        await second.local.stop()
    }

    @Test func aSecondBondBeginsWithNothing() async throws {
        let (device, peer, link, first) = try await subscribed()
        await end(link, first)
        let second = try await start([sensor, battery], on: first.central)
        await device.forgetBonds()
        await #expect(throws: error(.bondRejected)) { _ = try await second.central.connect(peer) }
        let options = PairingOptions(agent: .passkey(Passkey(123_456)!), replacing: .lostByPeer)
        let again = try await second.central.connect(peer, ConnectOptions(security: .pairing(options)))
        await VirtualTimeTrait.time?.settle()
        #expect(await second.local.centrals.first?.isBonded == true)
        #expect(await second.local.centrals.first?.subscriptions.isEmpty == true)
        await end(again, second)
    }

    /// Another device may be at the address.
    @Test func aBondThatThisSideReplacesOnALinkBeginsWithNothing() async throws {
        let (device, peer, link, first) = try await subscribed()
        await end(link, first)
        let second = try await start([sensor, battery], on: first.central)
        await device.forgetBonds()
        let again = try await second.central.connect(peer, ConnectOptions(security: .none))
        try await again.pair(PairingOptions(agent: .passkey(Passkey(123_456)!), replacing: .always))
        try await VirtualTimeTrait.time?.clock.sleep(for: .seconds(1))
        #expect(await second.local.centrals.first?.isBonded == true)
        #expect(await second.local.centrals.first?.subscriptions.isEmpty == true)
        await end(again, second)
    }

    /// The key of the pairing encrypts the link, and belongs to no bond.
    @Test func aPairingOfThisSideThatMakesNoBondPutsNothingInForce() async throws {
        let (device, peer, link, first) = try await subscribed()
        await end(link, first)
        let second = try await start([sensor, battery], on: first.central)
        await device.forgetBonds()
        var stranger = VirtualDevice.lock
        stranger.security?.keepsBonds = false
        await device.changeServices(to: stranger)
        let again = try await second.central.connect(peer, ConnectOptions(security: .none))
        let options = PairingOptions(agent: .passkey(Passkey(123_456)!), replacing: .always)
        await #expect(throws: error(.notBonded)) { try await again.pair(options) }
        try await VirtualTimeTrait.time?.clock.sleep(for: .seconds(1))
        #expect(await second.local.centrals.first?.security.isEncrypted == true)
        #expect(await second.local.centrals.first?.isBonded == false)
        #expect(await second.local.centrals.first?.subscriptions.isEmpty == true)
        await end(again, second)
    }

    /// No key is made on a link that is encrypted already. The pairing that is refused for that waits for its turn.
    @Test func aPairingThatMakesNoKeyTakesTheBondFromNoLink() async throws {
        let time = try #require(VirtualTimeTrait.time)
        let (device, _, link, run) = try await subscribed()
        let access = AttributeAccess(AccessRequirement(.encrypted, isBonded: true))
        try await run.local.publish(
            LocalService(0xFFE0, [LocalCharacteristic(0xFFE1, .read, value: .fixed([5]), access: access)]))
        let value = try await handle(0xFFE1, run)
        // Set Bondable, with which the permission begins; the library waits six seconds for it.
        await radio.ignoreManagementPacket([9, 0, 0, 0, 1, 0, 1])
        let local = run.local
        let allowing = time.task { try await local.allowPairing(.justWorks) }
        await time.settle()
        let options = PairingOptions(agent: .passkey(Passkey(123_456)!), replacing: .always)
        let again = time.task { try await link.pair(options) }
        await time.settle()
        await device.send(raw: [0x0A] + value.bytes)
        await time.settle()
        #expect(await device.transcript.steps.contains { $0.event == .sent([0x0B, 5]) })
        await #expect(throws: error(.pairingFailed)) { _ = try await again.value }
        _ = await allowing.result
        await radio.ignoreManagementPacket(nil)
        await end(link, run)
    }

    @Test("the disk is written once in five seconds at most")
    func theDiskIsWrittenOnceInFiveSecondsAtMost() async throws {
        let (device, _, link, run) = try await subscribed()
        try await VirtualTimeTrait.time?.clock.sleep(for: .seconds(20))
        try await written()
        let before = try #require(await run.local.stateStatus)
        let value = try await handle(0xFFF1, run)
        for number in 0..<1_000 { try await configure(device, value, UInt8(number & 1)) }
        try await written()
        let after = try #require(await run.local.stateStatus)
        #expect(after.writes == before.writes + 1)
        try await VirtualTimeTrait.time?.clock.sleep(for: .seconds(11))
        try await written()
        let last = try #require(await run.local.stateStatus)
        #expect(last.writes == before.writes + 2 && !last.isPending && last.failures == 0)
        await end(link, run)
    }

    @Test("a damaged file is moved aside and reported, and the program begins with nothing", .row("O25"))
    func aDamagedFileIsMovedAsideAndReported() async throws {
        let (_, peer, link, first) = try await subscribed()
        await end(link, first)
        var bytes = Array(try Data(contentsOf: URL(filePath: store.clientsPath)))
        bytes[20] ^= 1
        try Data(bytes).write(to: URL(filePath: store.clientsPath))
        let second = try await start([sensor, battery], on: first.central)
        #expect(second.restoration.damage?.code == .unusableState)
        #expect(second.restoration.movedTo == store.clientsPath + ".damaged")
        #expect(second.restoration.knownCentrals == 0)
        #expect(try await restored(second, peer) == [])
        await second.local.stop()
        let third = try await start([sensor, battery], on: first.central)
        #expect(third.restoration.damage == nil)
        await third.local.stop()
    }

    @Test func oneProgramHasTheFile() async throws {
        let first = try await start([sensor])
        await #expect(throws: error(.busy)) { _ = try await start([sensor]) }
        await first.local.stop()
        try await start([sensor]).local.stop()
    }

    @Test func itIsRestoredOnceAndBeforeAnythingElse() async throws {
        let central = Central(radio: radio)
        let local = LocalPeripheral(on: central)
        let environment = ServiceEnvironment(variables: [:], processID: 1)
        _ = try await local.restore(from: environment)
        await #expect(throws: error(.busy)) { _ = try await local.restore(from: environment) }
        await local.stop()
        let other = LocalPeripheral(on: central)
        try await other.publish(sensor)
        await #expect(throws: error(.invalidArgument)) { _ = try await other.restore(from: environment) }
        await other.stop()
        await #expect(throws: error(.invalidArgument)) { _ = try await other.restore(from: environment) }
    }
}
