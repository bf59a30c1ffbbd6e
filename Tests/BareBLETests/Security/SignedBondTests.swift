import BLECore
import BLELinux
import BareBLECrypto
import Glibc
import TestSupport
import Testing

@testable import BareBLE
@testable import BareBLETestKit

/// Writes that are signed with the key of a bond, by counters of the bond.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct SignedBondTests {
    private static let adapter = VirtualRadio.address(of: 0)
    private let inClear = ConnectOptions(mtu: 23, security: .none)

    /// What a central sends over its links.
    private struct Signing {
        let bench: SecurityBench
        let central: Central
        let sent = Lock<[[UInt8]]>([])

        init(_ bench: SecurityBench, _ code: (@Sendable (WriteSignatureMessage) -> [UInt8])? = { $0.code }) {
            self.bench = bench
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bench.bonds)
            configuration.addressHash = { $0.hash }
            configuration.writeSignature = code
            let sent = sent
            configuration.trace = { pdu in if pdu.isOutgoing { sent.withLock { $0.append(pdu.bytes) } } }
            central = Central(configuration, radio: bench.radio)
        }

        /// The counters of the signed writes.
        var counters: [UInt32] {
            sent.withLock { $0 }.filter { $0.first == 0xD2 }.map { pdu in
                pdu.suffix(12).prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
            }
        }
    }

    private static let signedService = VirtualService(
        0xFFF8,
        [
            VirtualCharacteristic(0xFFF9, [.read, .authenticatedSignedWrites], value: [0]),
            VirtualCharacteristic(0xFFFA, .read, value: [0]),
        ])

    /// A device that asks for the key in a pairing, and takes signed writes.
    private static func bench(
        _ time: VirtualTime, asks: Bool = true, bonds: BondStore = .inMemory
    ) async throws -> SecurityBench {
        var security = VirtualSecurity()
        security.acceptsSignedWrites = asks
        return try await SecurityBench(time, security, bonds: bonds) { device in
            device.services.append(signedService)
        }
    }

    private static func handle(of device: Peripheral) async throws -> AttributeHandle {
        try await device.discover(level: .full)
        return try #require(await device.database?.characteristics(0xFFF9).first?.valueHandle)
    }

    private func stored(_ bench: SecurityBench) throws -> BondRecord.Signing? {
        try bench.bonds.open(adapter: Self.adapter).load().records.first?.signing
    }

    @Test(.row("O38")) func theKeyAndTheCounterAreThoseOfTheBond() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await bench.pair()
            let signing = try #require(try stored(bench))
            #expect(signing.counter == 0)
            let first = Signing(bench)
            let device = try await first.central.connect(bench.id, inClear)
            let handle = try await Self.handle(of: device)
            try await device.writeSigned([1, 2], to: 0xFFF9)
            try await device.writeSigned([3], to: .handle(handle))
            // The same key, by the signer that other stacks' signatures have checked.
            let key = signing.key.withBytes { bytes in (0..<16).map { bytes[$0] } }
            var signer = try #require(WriteSigner(key: key, counter: 0))
            let expected = [[1, 2], [3]].map { signer.sign($0, for: handle)?.bytes }
            #expect(first.sent.withLock { $0 }.suffix(2).map { $0 } == expected)
            #expect(try stored(bench)?.counter == 64, "reserved before the first one was used")
            await device.disconnect()
            // The process ends here, and another one goes on: none is used twice.
            let second = Signing(bench)
            let again = try await second.central.connect(bench.id, inClear)
            try await again.writeSigned([4], to: .handle(handle))
            #expect(second.counters == [64])
            #expect(try stored(bench)?.counter == 128)
            await again.disconnect()
        }
    }

    @Test func countersAscendOverTasksAndReservations() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await bench.pair()
            let signing = Signing(bench)
            let device = try await signing.central.connect(bench.id, inClear)
            let handle = try await Self.handle(of: device)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for value in 0..<50 {
                    group.addTask {
                        for _ in 0..<3 { try await device.writeSigned([UInt8(value)], to: .handle(handle)) }
                    }
                }
                try await group.waitForAll()
            }
            let counters = signing.counters
            #expect(counters.count == 150)
            #expect(zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 })
            #expect(try #require(try stored(bench)?.counter) > (counters.last ?? .max))
            await device.disconnect()
        }
    }

    @Test func nothingIsSignedOnAnEncryptedLink() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await bench.pair()
            let signing = Signing(bench)
            let device = try await signing.central.connect(bench.id, ConnectOptions(mtu: 23))
            let handle = try await Self.handle(of: device)
            try await device.writeSigned([1, 2], to: 0xFFF9)
            var signer = WriteSigner(counter: 7) { _ in [UInt8](repeating: 0, count: 8) }
            try await device.write([3], to: 0xFFF9, signedBy: &signer)
            let low = UInt8(truncatingIfNeeded: handle)
            #expect(signing.sent.withLock { $0 }.suffix(2).map { $0 } == [[0x52, low, 0, 1, 2], [0x52, low, 0, 3]])
            #expect(signer.counter == 7)
            #expect(try stored(bench)?.counter == 0)
            await device.disconnect()
        }
    }

    @Test func whatCannotBeSignedIsAnErrorAndSendsNothing() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time, asks: false)
            let signing = Signing(bench)
            let stranger = try await signing.central.connect(bench.id, inClear)
            let handle = try await Self.handle(of: stranger)
            await #expect(throws: error(.notBonded)) { try await stranger.writeSigned([1], to: .handle(handle)) }
            await #expect(throws: error(.notSupported)) { try await stranger.writeSigned([1], to: 0xFFFA) }
            await #expect(throws: error(.tooLong)) {
                try await stranger.writeSigned([UInt8](repeating: 1, count: 9), to: .handle(handle))
            }
            try await stranger.pair()
            await stranger.disconnect()
            let keyless = try await signing.central.connect(bench.id, inClear)
            await #expect(throws: error(.notSupported)) { try await keyless.writeSigned([1], to: .handle(handle)) }
            await keyless.disconnect()
            #expect(signing.counters.isEmpty)
            let plain = try await Central().attach(
                descriptor: VirtualPeripheral(.battery).connect(), ConnectOptions(mtu: 23))
            await #expect(throws: error(.notSupported)) { try await plain.writeSigned([1], to: .handle(handle)) }
            await plain.disconnect()
        }
    }

    @Test func withoutACodeNothingIsSent() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await bench.pair()
            let short: @Sendable (WriteSignatureMessage) -> [UInt8] = { _ in [1, 2, 3] }
            for (code, failure) in [(nil, error(.notSupported)), (short, error(.invalidArgument))] {
                let signing = Signing(bench, code)
                let device = try await signing.central.connect(bench.id, inClear)
                let handle = try await Self.handle(of: device)
                await #expect(throws: failure) { try await device.writeSigned([1], to: .handle(handle)) }
                #expect(signing.counters.isEmpty)
                await device.disconnect()
            }
        }
    }

    @Test func usedUpCountersAreAnError() async throws {
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time)
            try await bench.pair()
            let store = try bench.bonds.open(adapter: Self.adapter)
            #expect(try store.reserveSignatures(.max - 1, for: bench.id) != nil)
            let signing = Signing(bench)
            let device = try await signing.central.connect(bench.id, inClear)
            let handle = try await Self.handle(of: device)
            // The last one but the very last, which stays unused.
            try await device.writeSigned([1], to: .handle(handle))
            await #expect(throws: error(.notSupported)) { try await device.writeSigned([2], to: .handle(handle)) }
            #expect(signing.counters == [.max - 1])
            await device.disconnect()
        }
    }

    /// Another characteristic may have the handle by then.
    @Test func servicesThatChangeWhileTheDiskIsWrittenAreFollowed() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.acceptsSignedWrites = true
            let bench = try await SecurityBench(time, security) { device in
                device.services = [.genericAttribute(databaseHash: nil)] + device.services + [Self.signedService]
            }
            try await bench.pair()
            let signing = Signing(bench)
            let device = try await signing.central.connect(bench.id, inClear)
            let former = try await Self.handle(of: device)
            _ = try await device.serviceChanges()
            let bonds: BondedDevices = await signing.central.adapter.bonds
            let disk = HangingDisk()
            defer { disk.open() }
            let other = time.task { try await bonds.change(during: "test the disk") { _ in disk.respond() } }
            while !disk.isAsked {
                try Task.checkCancellation()
                await Task.yield()
            }
            let writing = time.task { try await device.writeSigned([1], to: 0xFFF9) }
            while bonds.waitingTasks == 0 {
                try Task.checkCancellation()
                await Task.yield()
            }
            var changed = SecurityBench.described(security)
            changed.services = [.genericAttribute(databaseHash: nil), .battery(level: 1)] + changed.services
            changed.services.append(Self.signedService)
            await bench.device.changeServices(to: changed)
            while await device.knows(0xFFF9) {
                try Task.checkCancellation()
                await Task.yield()
            }
            disk.open()
            try await other.value
            try await writing.value
            let handle = try await Self.handle(of: device)
            #expect(handle != former)
            let written = signing.sent.withLock { sent in sent.last { $0.first == 0xD2 } } ?? []
            #expect(written.dropFirst().prefix(2) == [UInt8(truncatingIfNeeded: handle), UInt8(handle >> 8)])
            await device.disconnect()
        }
    }

    @Test(.row("O38")) func aCounterThatIsNotOnTheDiskIsNotUsed() async throws {
        let folder = try Folder()
        let directory = folder.path + "/bonds"
        try await VirtualTime.run { time in
            let bench = try await Self.bench(time, bonds: try BondStore(directory: directory))
            let signing = Signing(bench)
            let pairing = try await signing.central.connect(bench.id)
            try await pairing.pair()
            await pairing.disconnect()
            let device = try await signing.central.connect(bench.id, inClear)
            let handle = try await Self.handle(of: device)
            let address = Self.adapter.description.filter { $0 != ":" }
            // Others may read it by now: it is not used, and not replaced.
            let opened = unsafe chmod("\(directory)/\(address).bonds", 0o644)
            #expect(opened == 0)
            await #expect(throws: error(.bondNotStored)) { try await device.writeSigned([1], to: .handle(handle)) }
            #expect(signing.counters == [])
            await device.disconnect()
        }
    }
}

extension Peripheral {
    fileprivate func knows(_ reference: CharacteristicReference) -> Bool { peerDatabase.known(reference) != nil }
}
