import BLECore
import BLELinux
import BareBLE
import BareBLECrypto
import BareBLETestKit
import TestSupport
import Testing

/// Scans that know the identity resolving key of a device, which changes its address.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct PrivateAddressTests {
    private let identity = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_55C6), type: .public)
    /// The key and the addresses of a peer of another make, as they came on air.
    private let key = "202122232425262728292a2b2c2d2e2f"
    private let first = PeerID(address: BluetoothAddress(rawValue: 0x7712_FB36_5BCF), type: .random)
    private let second = PeerID(address: BluetoothAddress(rawValue: 0x5A8D_ED8E_AB1E), type: .random)

    private func keys() throws -> [PeerID: Secret128] {
        let bytes = try Hex.decode(key)
        let secret = Secret128(bytes.span)
        return [identity: try #require(secret)]
    }

    private func central(_ radio: VirtualRadio) -> Central {
        var configuration = Configuration()
        configuration.addressHash = { $0.hash }
        return Central(configuration, radio: radio)
    }

    /// The next event, which must be of this kind.
    private func next(
        _ events: inout ScanSequence.AsyncIterator, _ kind: (ScanEvent) -> ScanResult?
    ) async throws -> ScanResult {
        let event = try await events.next()
        let scanResult = event.flatMap(kind)
        return try #require(scanResult, "\(String(describing: event))")
    }

    /// A belt on this radio, with its first address.
    private func belt(_ radio: VirtualRadio) async -> VirtualPeripheral {
        let belt = await radio.add(.heartRate)
        await radio.changeAddress(of: belt, to: first)
        return belt
    }

    @Test func aDeviceThatChangesItsAddressIsOneDevice() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let (belt, central) = (await belt(radio), central(radio))
            _ = await radio.add(.battery)
            await central.setIdentityKeys(try keys())
            let scan = central.scan(
                .peer(identity), .balanced.duplicates(.changed), lostAfter: .seconds(5), duration: .seconds(60))
            var events = scan.makeAsyncIterator()
            let found = try await next(&events, \.found)
            #expect(found.peer == first && found.identity == identity)
            await radio.changeAddress(of: belt, to: second)
            // A scan response may come before it.
            var moved = found
            while moved.peer == first {
                moved = try await next(&events, \.updated)
            }
            #expect(moved.peer == second && moved.identity == identity && moved.count > found.count)
            #expect(await central.scanResult(of: identity)?.peer == second)
            #expect(await central.adapter.addressOnAir(of: identity) == second)
            #expect(await central.adapter.identity(of: first) == identity)
            #expect(await central.adapter.identity(of: identity) == nil)
            await radio.move(belt, to: .outOfRange)
            let lost = try await next(&events, \.lost)
            #expect(lost.identity == identity && lost.peer == second)
            #expect(await central.statistics.resolvedAddresses == 2)
            await scan.stop()
        }
    }

    @Test func presenceFollowsTheIdentity() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let (belt, central) = (await belt(radio), central(radio))
            await central.setIdentityKeys(try keys())
            let monitor = try await central.monitor(lostAfter: .seconds(5))
            monitor.pin(identity)
            for round in 0..<20 {
                try await time.clock.sleep(for: .seconds(3))
                #expect(monitor.devices.map(\.identity) == [identity])
                await radio.changeAddress(of: belt, to: round.isMultiple(of: 2) ? second : first)
            }
            await radio.move(belt, to: .outOfRange)
            try await time.clock.sleep(for: .seconds(7))
            #expect(monitor.device(identity)?.isPresent == false)
            await monitor.stop()
        }
    }

    @Test func aLinkToItsAddressKeepsTheIdentityPresent() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let (belt, central) = (await belt(radio), central(radio))
            await central.setIdentityKeys(try keys())
            let monitor = try await central.monitor(lostAfter: .seconds(5))
            try await time.clock.sleep(for: .seconds(2))
            let device = try await central.connect(first)
            try await time.clock.sleep(for: .seconds(20))
            #expect(monitor.device(identity)?.isPresent == true)
            await radio.move(belt, to: .outOfRange)
            _ = await device.disconnected()
            try await time.clock.sleep(for: .seconds(7))
            #expect(monitor.device(identity) == nil)
            await monitor.stop()
        }
    }

    /// A session and a cache are those of the identity.
    @Test func anIdentityWithoutItsTypeIsFound() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let (belt, central) = (await belt(radio), central(radio))
            await central.setIdentityKeys(try keys())
            #expect(try await central.peer(at: identity.address) == identity)
            // And again, from what was heard.
            await radio.advertise(belt, nil)
            #expect(try await central.peer(at: identity.address) == identity)
            #expect(try await central.peer(at: first.address) == first)
        }
    }

    @Test func aDeviceIsExcludedByItsIdentity() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let (belt, central) = (await belt(radio), central(radio))
            await central.setIdentityKeys(try keys())
            let scan = central.scan(.any, .balanced.duplicates(.all), duration: .seconds(10))
            scan.excluded.insert(identity)
            let heard = Lock(0)
            let counting = time.task { for try await _ in scan { heard.withLock { $0 += 1 } } }
            try await time.clock.sleep(for: .seconds(5))
            await radio.changeAddress(of: belt, to: second)
            try await counting.value
            #expect(heard.withLock(\.self) == 0)
        }
    }

    @Test func keysThatComeAndGoMoveTheDevice() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = central(radio)
            _ = await belt(radio)
            let scan = central.scan(.any, .passive.duplicates(.changed), duration: .seconds(60))
            var events = scan.makeAsyncIterator()
            let stranger = try await next(&events, \.found)
            #expect(stranger.peer == first && stranger.identity == nil)
            await central.setIdentityKeys(try keys())
            // Its entry as a stranger gives way to the one under its identity.
            let former = try await next(&events, \.lost)
            #expect(former.id == stranger.id)
            let known = try await next(&events, \.found)
            #expect(known.peer == first && known.identity == identity)
            // Another bond has the same key now, so that it is nobody's any more.
            var shared = try keys()
            shared[PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0009), type: .random)] = shared[identity]
            await central.setIdentityKeys(shared)
            let gone = try await next(&events, \.lost)
            #expect(gone.identity == identity)
            let again = try await next(&events, \.found)
            #expect(again.peer == first && again.identity == nil)
            #expect(await central.scanResult(of: identity) == nil)
            await scan.stop()
        }
    }

    @Test func withoutAHashNothingIsResolved() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            _ = await belt(radio)
            let central = Central(radio: radio)
            await central.setIdentityKeys(try keys())
            let scanResult = try await central.first()
            #expect(scanResult.peer == first && scanResult.identity == nil)
        }
    }

    @Test func devicesWithOneKeyAreNotDistinguished() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            _ = await belt(radio)
            let central = central(radio)
            var keys = try keys()
            keys[PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0009), type: .random)] = keys[identity]
            await central.setIdentityKeys(keys)
            let scanResult = try await central.first()
            #expect(scanResult.peer == first && scanResult.identity == nil)
            #expect(await central.statistics.ambiguousAddresses == 1)
        }
    }
}

extension ScanEvent {
    fileprivate var found: ScanResult? { if case .found(let scanResult) = self { scanResult } else { nil } }
    fileprivate var updated: ScanResult? { if case .updated(let scanResult) = self { scanResult } else { nil } }
    fileprivate var lost: ScanResult? { if case .lost(let scanResult) = self { scanResult } else { nil } }
}
