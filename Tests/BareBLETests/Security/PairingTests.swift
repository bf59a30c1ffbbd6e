import BLECore
import BLELinux
import BareBLECrypto
import TestSupport
import Testing

@testable import BareBLE
@testable import BareBLETestKit

/// `Peripheral.pair` on the virtual kernel, which pairs as kernels 6.1 to 7.2 do.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct PairingTests {
    /// A radio with a lock that has a protected value.
    private struct Bench {
        let radio: VirtualRadio
        let lock: VirtualPeripheral
        let id: PeerID
        let bonds: BondStore
        let central: Central

        init(_ time: VirtualTime, _ security: VirtualSecurity, protection: VirtualProtection = .encrypted) async throws
        {
            radio = VirtualRadio(time: time)
            var device = VirtualDevice(
                name: "Lock",
                services: [
                    VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [7], protection: protection)])
                ])
            device.security = security
            lock = await radio.add(device)
            id = try #require(await radio.id(of: lock))
            bonds = .inMemory
            central = Self.central(radio, bonds)
        }

        static func central(_ radio: VirtualRadio, _ bonds: BondStore) -> Central {
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bonds)
            configuration.addressHash = { $0.hash }
            return Central(configuration, radio: radio)
        }
    }

    @Test func justWorksMakesABondAndTheValueIsReadable() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(time, VirtualSecurity(capability: .noInputNoOutput))
            let peripheral = try await bench.central.connect(bench.id)
            let bond = try await peripheral.pair()
            #expect(bond.peer == bench.id && bond.method == .justWorks && bond.keySize == 16)
            #expect(!bond.isAuthenticated)
            #expect(try await bench.central.bonds() == [bond])
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
        }
    }

    @Test func aPasskeyAuthenticates() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(
                time, VirtualSecurity(capability: .displayOnly, passkey: 123_456), protection: .authenticated)
            let peripheral = try await bench.central.connect(bench.id)
            let passkey = try #require(Passkey(123_456))
            let bond = try await peripheral.pair(PairingOptions(agent: .passkey(passkey), require: .authenticated))
            #expect(bond.isAuthenticated && bond.method == .passkeyTyped)
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
        }
    }

    @Test func theNextLinkIsEncryptedBeforeItsFirstByte() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(time, VirtualSecurity(capability: .noInputNoOutput))
            let first = try await bench.central.connect(bench.id)
            try await first.pair()
            await first.disconnect()
            let second = try await bench.central.connect(bench.id)
            #expect(await bench.lock.linkSecurity.keySize == 16)
            #expect(try await second.read(0xFFF1) == [7])
            #expect(await bench.lock.pairingCount == 1)
            await second.disconnect()
        }
    }

    @Test func aPeerThatHasLostItsKeyIsNotPairedAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(time, VirtualSecurity(capability: .noInputNoOutput))
            let first = try await bench.central.connect(bench.id)
            try await first.pair()
            await first.disconnect()
            await bench.lock.forgetBonds()
            await #expect(throws: BLEError(.bondRejected, during: "connect", because: "")) {
                _ = try await bench.central.connect(bench.id)
            }
            #expect(await bench.lock.pairingCount == 1)
            #expect(try await bench.central.bonds().first?.rejectedSince != nil)
        }
    }

    /// In its first two seconds after it was plugged in, an adapter that is switched on by HCIDEVUP cannot pair.
    @Test func anAdapterThatReturnsIsSwitchedOnByTheManagementInterface() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(time, VirtualSecurity(capability: .noInputNoOutput))
            for isFirst in [true, false] {
                await bench.radio.unplug()
                await bench.radio.plugIn()
                try await bench.central.ready(powerOn: true)
                #expect(await bench.radio.hasSecurityManager(), "first: \(isFirst)")
            }
            let peripheral = try await bench.central.connect(bench.id)
            try await peripheral.pair()
            await peripheral.disconnect()
        }
    }

    /// Another program has made it: an adapter that is switched off would end it.
    @Test func aLinkThatIsTakenOverKeepsThePowerOn() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(time, VirtualSecurity(), protection: .none)
            let others = Central(Configuration(), radio: bench.radio)
            let peripheral = try await others.connect(bench.id)
            // As `adopt` does; links of the virtual radio lead to no adapter by their sockets.
            let adapter = await bench.central.adapter
            try await adapter.prepare(during: "adopt a link", mayCyclePower: false)
            #expect(await !bench.radio.hasSecurityManager())
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
        }
    }

    @Test func aBondedPeerConnectsWhileAnotherOneIsPaired() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(time, VirtualSecurity(capability: .noInputNoOutput))
            let bonded = try await bench.central.connect(bench.id)
            try await bonded.pair()
            await bonded.disconnect()
            var device = VirtualDevice(name: "Scale", services: [])
            device.security = VirtualSecurity(capability: .noInputNoOutput)
            let scale = await bench.radio.add(device)
            let slow = try await bench.central.connect(try #require(await bench.radio.id(of: scale)))
            let (asked, question) = AsyncStream.makeStream(of: Void.self)
            let (allowed, permission) = AsyncStream.makeStream(of: Void.self)
            let agent = PairingAgent(confirm: { _ in
                question.yield()
                for await _ in allowed { break }
                return true
            })
            async let pairing = slow.pair(PairingOptions(agent: agent))
            for await _ in asked { break }
            for _ in 0..<3 {
                let peripheral = try await bench.central.connect(bench.id)
                #expect(try await peripheral.read(0xFFF1) == [7])
                await peripheral.disconnect()
            }
            permission.yield()
            #expect(try await pairing.method == .justWorks)
            #expect(await bench.lock.pairingCount == 1)
            await slow.disconnect()
        }
    }

    /// The kernel has the link of a bonded peer with private addresses under its identity.
    @Test func aBondedPeerOnAPrivateAddressIsPairedAgain() async throws {
        try await VirtualTime.run { time in
            let identity = PeerID(address: BluetoothAddress(rawValue: 0xC655_4433_2211), type: .random)
            var security = VirtualSecurity(capability: .noInputNoOutput)
            security.identity = VirtualIdentity(identity, key: [UInt8](0..<16))
            let bench = try await Bench(time, security)
            let onAir = try #require(await bench.radio.rotateAddress(of: bench.lock))
            let first = try await bench.central.connect(onAir)
            #expect(try await first.pair().peer == identity)
            await first.disconnect()
            // A link that is not encrypted, as only another program makes it.
            let sockets = try await bench.radio.open(0).get()
            var commands = LinkSocket(adopting: sockets.commands)
            let reports = LinkSocket(adopting: sockets.reports)
            let address = Hex.encode(onAir.address.littleEndianBytes)
            let create = try Hex.decode("010d201960003000 00 01 \(address) 00 18002800 0000 d007 00000000")
            #expect(commands.send(create) == .sent)
            while bench.radio.system.linkHandle(0, identity.address) == nil {
                try await time.clock.sleep(for: .milliseconds(10))
            }
            let own = VirtualRadio.address(of: 0)
            let link = try bench.radio.system.connect(own, .public, identity, .seconds(20), nil)
            let descriptor = link.descriptor
            let adapter = await bench.central.adapter
            let identified = await adapter.register(0x0040, onAir)
            let bond = try await adapter.pair(identified, descriptor: descriptor, PairingOptions(replacing: .always))
            #expect(bond.peer == identity)
            #expect(await bench.lock.pairingCount == 2)
            _ = (link.descriptor, reports.descriptor)
        }
    }

    @Test func forgottenBondsLeaveNoKey() async throws {
        try await VirtualTime.run { time in
            let bench = try await Bench(time, VirtualSecurity(capability: .noInputNoOutput))
            let peripheral = try await bench.central.connect(bench.id)
            try await peripheral.pair()
            #expect(await bench.radio.longTermKeys().count == 1)
            try await bench.central.forgetBond(with: bench.id)
            _ = await peripheral.disconnected()
            #expect(try await bench.central.bonds().isEmpty)
            #expect(await bench.radio.longTermKeys().isEmpty)
        }
    }
}
