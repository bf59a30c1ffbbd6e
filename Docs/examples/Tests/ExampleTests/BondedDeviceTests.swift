import BareBLE
import BareBLETestKit
import LockReading
import Synchronization
import SystemService
import Testing
import WeightLogging

/// The lock and the scale on a virtual radio, whose kernel pairs.
@Suite(.timeLimit(.minutes(10))) struct BondedDeviceTests {
    private static let scale: VirtualDevice = {
        var device = VirtualDevice(
            name: "Scale",
            services: [
                VirtualService(0x181D, [VirtualCharacteristic(0x2A9D, .indicate, protection: .encrypted)])
            ])
        device.security = VirtualSecurity(capability: .noInputNoOutput)
        return device
    }()

    @Test func theLockAsksForItsPasskeyOnce() async throws {
        let bench = try await Bench(.lock)
        guard case .address(let lock) = bench.peer else { return }
        let bonds = BondStore.inMemory
        let asked = Mutex(0)
        let agent = PairingAgent(enter: { _ in
            asked.withLock { $0 += 1 }
            return Passkey(123_456)
        })
        for _ in 1...2 {
            let central = bench.central(keeping: bonds)
            #expect(try await readLock(lock, .uuid(0xFFF1), of: central, agent: agent) == [0x01])
        }
        #expect(asked.withLock { $0 } == 1)
        #expect(await bench.peripheral.pairingCount == 1)
    }

    @Test func aLockThatHasLostItsBondIsNotPairedAgain() async throws {
        let bench = try await Bench(.lock)
        guard case .address(let lock) = bench.peer, let passkey = Passkey(123_456) else { return }
        let central = bench.central(keeping: .inMemory)
        _ = try await readLock(lock, .uuid(0xFFF1), of: central, agent: .passkey(passkey))
        await bench.peripheral.forgetBonds()
        do {
            _ = try await readLock(lock, .uuid(0xFFF1), of: central, agent: .passkey(passkey))
            Issue.record("it should be refused")
        } catch let error as BLEError {
            #expect(error.code == .bondRejected)
        }
        try await central.forgetBond(with: lock)
        #expect(try await readLock(lock, .uuid(0xFFF1), of: central, agent: .passkey(passkey)) == [0x01])
    }

    /// 0x00 metric, 14,500 steps of 5 g; imperial, 16,000 steps of 0.01 lb.
    @Test func theScaleIsBondedOnTheFirstDayAlone() async throws {
        let bench = try await Bench(Self.scale)
        let bonds = BondStore.inMemory
        let days: [(value: [UInt8], line: String)] = [
            ([0x00, 0xA4, 0x38], "72.5 kg"), ([0x01, 0x80, 0x3E], "72.5 kg"), ([0x00, 0xFF, 0xFF], "no weight"),
        ]
        for (number, day) in days.enumerated() {
            let requests = await bench.peripheral.requestCount
            let central = bench.central(keeping: bonds)
            let session = try await bench.peer.session(of: central, Bench.hasty, onReady: WeightLogger.bond)
            let group = bench.group(WeightLogger(session) { bench.lines.write($0) }, session)
            async let end: Void = group.run()
            // What it sends before the encryption is proved is discarded.
            try await waited(for: "the scale is asked for values") {
                guard await bench.peripheral.requestCount > requests else { return false }
                return try await bench.peripheral.notify(0x2A9D, day.value)
            }
            try await waited(for: "day \(number + 1) is written", seen: { bench.lines.all }) {
                bench.lines.all.count == number + 1
            }
            await group.triggerGracefulShutdown()
            try await end
            try await waited(for: "the link is gone") { await !bench.peripheral.isConnected }
        }
        #expect(bench.lines.all == days.map(\.line))
        #expect(await bench.peripheral.pairingCount == 1)
    }
}
