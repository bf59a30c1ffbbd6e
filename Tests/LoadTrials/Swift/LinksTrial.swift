import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// 64 links at once, on one adapter in simulation and over socketpairs, each with requests and values of its own.
enum LinksTrial: Trial {
    static let name = "links"
    static let what = "64 links at once in simulation and over socketpairs, each value and response once, in order"
    private static let count = 64

    static func run(_ scale: Scale) async throws -> [Figure] {
        let (beats, virtual) = try await simulate(for: scale == .short ? .seconds(60) : .seconds(3600))
        let (requests, real) = try await connect(requests: scale == .short ? 100 : 5_000)
        return [
            Figure("links", count), Figure("beats in simulation, none lost", beats),
            Figure("simulated seconds a second", virtual), Figure("requests over socketpairs", requests),
            Figure("requests a second, one after the other on each link", real),
        ]
    }

    /// Belts on a radio in virtual time, a session and a subscription for each.
    private static func simulate(for duration: Duration) async throws -> (beats: Int, speed: Int) {
        let start = ContinuousClock.now
        let beats = try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            var sessions: [Session] = []
            for _ in 0..<count {
                let belt = await radio.add(.heartRate)
                await belt.keepNoTranscript()
                guard let id = await radio.id(of: belt) else { throw TrialFailure(description: "no address") }
                sessions.append(try await central.session(with: id))
            }
            let wanted = Int(duration.components.seconds)
            let counts = try await withThrowingTaskGroup(of: Int.self) { group in
                for session in sessions {
                    group.addTask { try await follow(session, until: wanted) }
                }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            for session in sessions { await session.disconnect() }
            try require(counts.allSatisfy { $0 == wanted }, "beats of a link: \(counts)")
            return counts.reduce(0, +)
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        return (beats, Int((duration / .seconds(1)) / max(seconds, 0.001)))
    }

    /// Takes so many beats; throws when one is missing, or the link is lost.
    private static func follow(_ session: Session, until wanted: Int) async throws -> Int {
        let expected: [UInt8] = [72, 73, 74, 75, 75, 74, 73, 72]
        var next = 0
        var iterator = await session.subscribe(to: 0x2A37).makeAsyncIterator()
        while next < wanted, let element = try await iterator.next() {
            switch element {
            case .began:
                try require(next == 0, "\(session.name): begun again after \(next) beats")
            case .value(let value):
                try require(
                    value.bytes.count > 1 && value.bytes[1] == expected[next % 8] && value.droppedBefore == 0,
                    "\(session.name): beat \(next) is \(value)")
                next += 1
            case .interrupted(let error):
                throw error
            }
        }
        return next
    }

    private static func connect(requests: Int) async throws -> (requests: Int, rate: Int) {
        let central = Central()
        var devices: [(Peripheral, ServedPeer)] = []
        for number in 0..<count {
            let peer = ServedPeer()
            devices.append((try await central.attach(descriptor: peer.connect(), name: "link \(number)"), peer))
        }
        let links = devices
        let start = ContinuousClock.now
        try await central.run {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, (device, _)) in links.enumerated() {
                    group.addTask {
                        for turn in 0..<requests / 2 {
                            let value = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: turn)]
                            try await device.write(value, to: .handle(6))
                            let read = try await device.read(.handle(6))
                            try require(read == value, "link \(number), turn \(turn): \(read)")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        for (device, _) in links { await device.disconnect() }
        return (count * requests, Int(Double(count * requests) / seconds))
    }
}
