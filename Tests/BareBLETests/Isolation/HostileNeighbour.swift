import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport

/// The continuous activity of a malicious peer.
enum Hostility: String, CaseIterable, Sendable {
    case silence, notifications, lists, indications, unknownHandles, garbage
    case requests, responses, serviceChanges, drops, advertisements, everything
}

/// A peer that misbehaves, and an application that cannot let go of it: a session, a subscription that nobody takes
/// values from, and one call after the other.
struct HostileNeighbour: Sendable {
    /// How often it misbehaves, and how many packets at once: a thousand a second, more than a controller's radio can
    /// carry to one link beside others.
    private static let pause: Duration = .milliseconds(10)
    private static let burst = 10
    private static let device = VirtualDevice(
        name: "Hostile",
        services: [
            .genericAttribute,
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, [.notify, .indicate]),
                    VirtualCharacteristic(0xFFF2, [.read, .write], value: [7]),
                ]),
        ])
    /// Service Changed and the value that is notified, in that device.
    private static let (changed, notified): (UInt8, UInt8) = (3, 7)

    private let hostility: Hostility
    private let radio: VirtualRadio
    private let central: Central
    private let time: VirtualTime
    private let peer: VirtualPeripheral
    private let sent = Lock(0)

    init(_ hostility: Hostility, radio: VirtualRadio, central: Central, time: VirtualTime) {
        self.hostility = hostility
        self.radio = radio
        self.central = central
        self.time = time
        peer = radio.peripheral(Self.device, latency: .milliseconds(30))
    }

    /// Misbehaves until then; how many PDUs that were, and how many links.
    func work(until end: BootInstant) async throws -> (pdus: Int, links: Int) {
        let id = PeerID(address: BluetoothAddress(rawValue: 0xC0BA_D000_0001), type: .random)
        await radio.place(peer, as: id, advertising: VirtualAdvertisement(Self.device))
        let options = Session.Options(
            reconnect: .backoff(initial: .milliseconds(50), max: .milliseconds(200)),
            resetBackoffAfter: .milliseconds(10))
        let session = try await central.session(with: id, options)
        let values = await session.subscribe(to: 0xFFF1)
        let link = try await session.ready()
        try await link.discover()
        let calls = time.task {
            while time.now < end {
                _ = try? await session.withPeripheral(within: .seconds(1)) { try await $0.read(0xFFF2) }
                try await time.clock.sleep(for: .milliseconds(5))
            }
        }
        if hostility == .advertisements { await advertise() }
        var numbers = SeededNumbers(seed: 17)
        var round = 0
        while time.now < end {
            try await misbehave(hostility, round, Self.burst, &numbers)
            round += 1
            try await time.clock.sleep(for: Self.pause)
        }
        calls.cancel()
        _ = await calls.result
        await values.unsubscribe()
        await session.disconnect()
        return (sent.withLock(\.self), await peer.connectionCount)
    }

    private func misbehave(
        _ hostility: Hostility, _ round: Int, _ burst: Int, _ numbers: inout SeededNumbers
    ) async throws {
        switch hostility {
        case .silence:
            if round == 0 { await peer.stopResponding() }
        case .notifications:
            for number in 0..<burst { await send([0x1B, Self.notified, 0, UInt8(truncatingIfNeeded: number)]) }
        case .lists:
            for _ in 0..<burst { await send([0x23, Self.notified, 0, 1, 0, 9, Self.notified, 0, 200, 0, 1]) }
        case .indications:
            for _ in 0..<burst { await send([0x1D, Self.notified, 0, 1]) }
        case .unknownHandles:
            for number in 0..<burst { await send([0x1B, UInt8(truncatingIfNeeded: number), 0x77, 1]) }
        case .garbage:
            for _ in 0..<burst {
                let length = Int.random(in: 0...40, using: &numbers)
                await send((0..<length).map { _ in UInt8.random(in: 0...255, using: &numbers) })
            }
        case .requests:
            let requests: [[UInt8]] = [
                [0x02, 0x05, 0x02], [0x10, 1, 0, 0xFF, 0xFF, 0, 0x28], [0x0A, 3, 0], [0x2A, 1], [0x6A],
                [0x16, 3, 0, 0, 0, 1],
                [0xD2, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ]
            for number in 0..<burst { await send(requests[number % requests.count]) }
        case .responses:
            for _ in 0..<burst { await send([0x0B, 1]) }
        case .serviceChanges:
            for _ in 0..<burst { await send([0x1B, Self.changed, 0, 1, 0, 0xFF, 0xFF]) }
        case .drops:
            if round % 7 == 0 { await radio.disconnect(peer, because: .remotePowerOff) }
        case .advertisements:
            return
        case .everything:
            let all = Hostility.allCases.filter { ![.everything, .advertisements, .silence].contains($0) }
            let next = all[Int.random(in: 0..<all.count, using: &numbers)]
            try await misbehave(next, Int.random(in: 0..<50, using: &numbers), burst / 2, &numbers)
        }
    }

    private func send(_ pdu: [UInt8]) async {
        guard await peer.isConnected else { return }
        await peer.send(raw: pdu)
        sent.withLock { $0 += 1 }
    }

    /// A thousand reports a second for a scan that wants all of them and never looks.
    private func advertise() async {
        for number in 0..<20 as Range<UInt64> {
            let id = PeerID(address: BluetoothAddress(rawValue: 0xC0AD_0000_0000 + number), type: .random)
            let advertisement = VirtualAdvertisement([2, 1, 6], interval: .milliseconds(20), isConnectable: false)
            await radio.place(radio.peripheral(Self.device), as: id, advertising: advertisement)
        }
        sent.withLock { $0 += 1 }
        time.task {
            var events = central.scan(.any, .balanced.duplicates(.all), capacity: 8).makeAsyncIterator()
            _ = try await events.next()
            try await time.clock.sleep(for: IsolationRun.duration)
            await events.stop()
        }
    }
}
