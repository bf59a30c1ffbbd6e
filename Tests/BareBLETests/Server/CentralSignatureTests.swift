import BLECore
import BareBLE
import BareBLECrypto
import TestSupport
import Testing

@testable import BareBLETestKit

/// The counters of bonded centrals' signed writes, on the disk and over runs of the program.
@Suite(.timeLimit(.minutes(5))) struct CentralSignatureTests {
    private static let key: [UInt8] = Array(0x40..<0x50)

    enum End: CaseIterable, Sendable {
        case stop, suspend, crash
    }

    @Test(.row("P19")) func theStoredCounterMovesInBlocksOf64() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await Self.bond(phone, bench.radio, bench.time)
            let handle = try await bench.handle(of: PairingBench.signed)
            var signer = try #require(WriteSigner(key: Self.key, counter: 0))
            var stored: Set<UInt32?> = []
            for number in 0..<1_000 {
                let value = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
                await phone.send(raw: try #require(signer.sign(value, for: handle)).bytes)
                try await bench.sleep(.milliseconds(1))
                #expect(try await bench.local.value(of: .handle(handle)) == value)
                stored.insert(try Self.stored(bench.bonds))
            }
            #expect(stored == Set((1...16).map { 64 * $0 }))
            #expect(await bench.central.statistics.refusedSignatures == 0)
        }
    }

    /// After a crash up to 63 counters are skipped, and after a regular end none.
    @Test(.row("P19", "O38"), arguments: End.allCases) func theNextRunAcceptsNoCounterAgain(_ end: End) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let bonds = BondStore.inMemory
            let phone = await radio.addCentral()
            try await Self.run(phone, radio, bonds, time, ending: end) { local in
                try await local.allowPairing(.justWorks)
                try await Self.bond(phone, radio, time)
                for counter in UInt32(0)..<5 {
                    #expect(try await Self.isAccepted(counter, from: phone, local, time))
                }
                #expect(try Self.stored(bonds) == 64, "before the first write was executed")
            }
            let next: UInt32 = end == .crash ? 64 : 5
            #expect(try Self.stored(bonds) == next)
            try await Self.run(phone, radio, bonds, time, ending: .stop) { local async throws in
                for counter in 0..<next { #expect(try await !Self.isAccepted(counter, from: phone, local, time)) }
                #expect(try await Self.isAccepted(next, from: phone, local, time))
            }
            #expect(try Self.stored(bonds) == next + 1)
        }
    }

    /// What it has signed for the bond before may have been recorded.
    @Test(.row("P19")) func aCentralThatPairsAgainWithTheSameKeyGoesOnCounting() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await Self.bond(phone, bench.radio, bench.time)
            #expect(try await Self.isAccepted(7, from: phone, bench.local, bench.time))
            try await bench.central.forgetBond(with: try #require(await phone.peer))
            try await bench.reconnect(phone)
            try await Self.bond(phone, bench.radio, bench.time)
            #expect(try Self.stored(bench.bonds) == 8)
            #expect(try await !Self.isAccepted(7, from: phone, bench.local, bench.time))
            #expect(try await Self.isAccepted(8, from: phone, bench.local, bench.time))
            #expect(try Self.stored(bench.bonds) == 72)
        }
    }

    // MARK: Helpers

    /// A run of the program, to which a central connects, and that ends after the link.
    private static func run(
        _ phone: VirtualCentral, _ radio: VirtualRadio, _ bonds: BondStore, _ time: VirtualTime, ending end: End,
        _ body: (LocalPeripheral) async throws -> Void
    ) async throws {
        let central = SecurityBench.central(radio, bonds)
        let local = LocalPeripheral(on: central)
        try await local.publish(
            LocalService(
                0xFFF0,
                [LocalCharacteristic(PairingBench.signed, [.read, .authenticatedSignedWrites], value: .stored([]))]))
        let advertising = try await local.advertise([.localName("Safe")])
        try await phone.connect()
        await time.settle()
        try await body(local)
        await phone.disconnect()
        await advertising.stop()
        switch end {
        case .stop: await local.stop()
        case .suspend:
            let manager = try VirtualServiceManager()
            let store = DescriptorStore(try #require(ServiceNotifier(manager.environment())))
            await local.suspend(handingOverTo: store)
        case .crash: break
        }
    }

    /// Has a central pair, and come back on a link that is not encrypted.
    private static func bond(_ phone: VirtualCentral, _ radio: VirtualRadio, _ time: VirtualTime) async throws {
        var security = VirtualSecurity()
        security.signatureKey = key
        await radio.pair(phone, security)
        try await time.clock.sleep(for: .seconds(1))
        await phone.disconnect()
        await time.settle()
        try await phone.connect()
        await time.settle()
    }

    /// Sends a signed write with a counter, and returns whether it was executed.
    private static func isAccepted(
        _ counter: UInt32, from phone: VirtualCentral, _ local: LocalPeripheral, _ time: VirtualTime
    ) async throws -> Bool {
        let all = await local.publishedServices.flatMap(\.characteristics)
        let handle = try #require(all.first { $0.uuid == PairingBench.signed }).id
        try await local.set([0xFF], of: .handle(handle))
        var signer = try #require(WriteSigner(key: key, counter: counter))
        await phone.send(raw: try #require(signer.sign([1], for: handle)).bytes)
        try await time.clock.sleep(for: .milliseconds(1))
        return try await local.value(of: .handle(handle)) == [1]
    }

    private static func stored(_ bonds: BondStore) throws -> UInt32? {
        try bonds.open(adapter: VirtualRadio.address(of: 0)).load().records.first?.peerSigning?.counter
    }
}
