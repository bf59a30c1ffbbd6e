import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

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
