import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// Days of a daemon with eight sessions in virtual time: values, requests, lost links, an adapter that goes and comes,
/// scans.
enum SoakTrial: Trial {
    static let name = "soak"
    static let what =
        "simulated days of sessions, lost links, adapters and scans: memory is flat, and each day brings all that is wanted"
    private static let belts = 8
    private static let tolerance = 64 * 1024

    static func run(_ scale: Scale) async throws -> [Figure] {
        // A day as the unit of measuring; in the short form a day has fewer hours.
        let (days, day): (Int, Duration) = scale == .short ? (4, .seconds(6 * 3600)) : (30, .seconds(24 * 3600))
        let start = ContinuousClock.now
        let result = try await VirtualTime.run { try await Soak(time: $0).run(days, day) }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let hours = days * Int(day.components.seconds) / 3600
        let (first, last) = (result.heaps.dropFirst().first ?? 0, result.heaps.last ?? 0)
        try require(last - first <= tolerance, "\(last - first) bytes more: \(result.heaps)")
        return [
            Figure("simulated hours", hours), Figure("values", result.values), Figure("requests", result.requests),
            Figure("links lost and made again", result.links), Figure("disturbances", result.disturbances),
            Figure("devices found by scans", result.found), Figure("allocated after each day, bytes", result.heaps),
            Figure("simulated seconds a second", Int(Double(hours) * 3600 / seconds)),
        ]
    }

    struct Result: Sendable {
        var values = 0
        var requests = 0
        var links = 0
        var disturbances = 0
        var found = 0
        var heaps: [Int] = []
    }

    private struct Soak: Sendable {
        let time: VirtualTime
        let result = Lock(Result())

        func run(_ days: Int, _ day: Duration) async throws -> Result {
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            var peripherals: [VirtualPeripheral] = []
            var sessions: [Session] = []
            for _ in 0..<3 { await radio.add(.battery) }
            for _ in 0..<belts {
                let belt = await radio.add(Self.belt)
                await belt.keepNoTranscript()
                guard let id = await radio.id(of: belt) else { continue }
                peripherals.append(belt)
                sessions.append(try await central.session(with: id))
            }
            let tasks = sessions.flatMap { session in
                [time.task { try await follow(session) }, time.task { try await ask(session) }]
            }
            let scanning = time.task { try await scan(central) }
            var numbers = Chances(state: 42)
            var adapter = "hci0"
            for number in 1...days {
                let end = time.now + day
                let before = result.withLock(\.self)
                while time.now < end {
                    try await time.clock.sleep(for: .seconds(Int64(numbers.next() % 1_200)))
                    try await disturb(radio, &adapter, peripherals, &numbers)
                }
                // What is under way comes to rest first.
                try await time.clock.sleep(for: .seconds(300))
                for session in sessions { _ = try await session.ready(within: .seconds(60)) }
                result.withLock { $0.heaps.append(ProcessState.heap) }
                let now = result.withLock(\.self)
                try require(
                    now.values > before.values && now.requests > before.requests && now.found > before.found,
                    "day \(number) has brought nothing: \(now), before \(before)")
            }
            for session in sessions { await session.disconnect() }
            scanning.cancel()
            for task in tasks + [scanning] {
                task.cancel()
                _ = await task.result
            }
            for belt in peripherals {
                let links = await belt.connectionCount
                result.withLock { $0.links += links }
            }
            return result.withLock(\.self)
        }

        /// One that sends a value each ten seconds.
        private static var belt: VirtualDevice {
            let value = VirtualCharacteristic(
                0x2A37, .notify, plan: NotifyPlan([[0x06, 72], [0x06, 73]], every: .seconds(10)))
            return VirtualDevice(
                name: "Belt", services: [.genericAttribute, VirtualService(0x180D, [value]), .battery(level: 87)])
        }

        private func follow(_ session: Session) async throws {
            for try await element in await session.subscribe(to: .heartRateMeasurement) {
                if case .value = element { result.withLock { $0.values += 1 } }
            }
        }

        private func ask(_ session: Session) async throws {
            while !Task.isCancelled, session.state != .ended {
                do {
                    _ = try await session.withPeripheral { try await $0.read(0x2A19) }
                    result.withLock { $0.requests += 1 }
                } catch is BLEError {
                    // The link was lost meanwhile.
                }
                try await time.clock.sleep(for: .seconds(30))
            }
        }

        private func scan(_ central: Central) async throws {
            while !Task.isCancelled {
                do {
                    for try await event in central.scan(duration: .seconds(60)) {
                        if case .found = event { result.withLock { $0.found += 1 } }
                    }
                } catch {
                    // The adapter is away.
                }
                try await time.clock.sleep(for: .seconds(3600))
            }
        }

        /// Something happens to a belt, or to the adapter, and is over within two minutes.
        private func disturb(
            _ radio: VirtualRadio, _ adapter: inout String, _ belts: [VirtualPeripheral], _ numbers: inout Chances
        ) async throws {
            let belt = belts[Int(numbers.next() % UInt64(belts.count))]
            let pause = Duration.seconds(Int64(numbers.next() % 120))
            result.withLock { $0.disturbances += 1 }
            switch numbers.next() % 8 {
            case 0, 1: await radio.disconnect(belt, because: .remotePowerOff)
            case 2, 3:
                await radio.move(belt, to: .outOfRange)
                try await time.clock.sleep(for: pause)
                await radio.move(belt, to: .near)
            case 4: await radio.reset(belt)
            case 5: await radio.reset(adapter)
            case 6:
                await radio.powerOff(adapter)
                try await time.clock.sleep(for: pause)
                await radio.powerOn(adapter)
            default:
                let old = adapter
                adapter = numbers.next() % 2 == 0 ? "hci0" : "hci1"
                await radio.unplug(old)
                try await time.clock.sleep(for: pause)
                await radio.plugIn(old, as: adapter, isUp: true)
            }
        }
    }
}

/// Random numbers that a seed repeats (SplitMix64).
struct Chances {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
