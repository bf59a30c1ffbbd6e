import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// Values from 64 links at a pace that no radio reaches, through subscriptions with the usual buffers.
enum NotificationTrial: Trial {
    static let name = "notifications"
    static let what = "64,000 notifications a second asked for over 64 socketpairs, none lost, all in order"
    private static let links = 64
    /// A thousand on each link: what is measured is not to be what was asked for.
    private static let rate = 64_000

    static func run(_ scale: Scale) async throws -> [Figure] {
        let total = rate * (scale == .short ? 4 : 60) / links * links
        let central = Central()
        var open: [(device: Peripheral, peer: ServedPeer, values: ValueSequence)] = []
        for number in 0..<links {
            let peer = ServedPeer()
            let device = try await central.attach(descriptor: peer.connect(), name: "link \(number)")
            open.append((device, peer, try await device.subscribe(to: 0xFFF1)))
        }
        let peers = open.map(\.peer)
        let sequences = open.map(\.values)
        let pacer = Pacer(rate: rate, count: total) { number in
            var writer = ByteWriter()
            writer.array([0x1B, 3, 0])
            writer.u32(UInt32(truncatingIfNeeded: number / links))
            writer.u64(UInt64(bitPattern: EventLoop.peers.now().nanoseconds))
            // 20 bytes: what fits a packet of the smallest MTU.
            writer.array([UInt8](repeating: 0, count: 8))
            let pdu = writer.bytes
            peers[number % links].assumeIsolated { $0.send(pdu) }
        }
        let cpuBefore = await central.run { ProcessState.threadTime }
        let start = ContinuousClock.now
        async let produced = pacer.run()
        let delays = try await central.run {
            try await withThrowingTaskGroup(of: Delays.self) { group in
                for (number, values) in sequences.enumerated() {
                    group.addTask { try await take(total / links, from: values, of: number) }
                }
                return try await group.reduce(into: Delays()) { $0.add($1) }
            }
        }
        // Until the last one was taken out of its sequence.
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        _ = await produced
        let cpu = await central.run { ProcessState.threadTime } - cpuBefore
        var counted = 0
        for (device, _, values) in open {
            counted += await device.statistics.notifications
            try require(values.droppedInTotal == 0, "\(values.droppedInTotal) values were dropped")
            await device.disconnect()
        }
        try require(counted == total, "\(counted) of \(total) were counted")
        return [
            Figure("sent and received", total), Figure("lost", 0), Figure("a second", Int(Double(total) / seconds)),
            Figure("processor time of the library's thread for each, ns", cpu / total),
            Figure("of which one processor alone would take, a second", 1_000_000_000 * total / cpu),
            Figure("share of one processor, %", cpu / Int(seconds * 10_000_000)),
            Figure("read from the socket within 5 ms of sending, %", delays.share(below: 5_000_000)),
            Figure("longest way, ms", delays.longest / 1_000_000),
        ]
    }

    /// Takes so many values, which are numbered and carry the time of sending.
    private static func take(_ count: Int, from values: ValueSequence, of link: Int) async throws -> Delays {
        var delays = Delays()
        var next = 0
        for try await value in values {
            let number = value.bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            try require(
                number == next && value.droppedBefore == 0,
                "link \(link): \(number) came for \(next), after \(value.droppedBefore) lost ones")
            let sent = value.bytes.dropFirst(4).prefix(8).reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
            delays.add(value.time.nanoseconds - sent)
            next += 1
            if next == count { break }
        }
        return delays
    }
}

/// Durations, counted by tenths of a millisecond.
struct Delays {
    private var counts = [Int](repeating: 0, count: 1001)
    private(set) var longest: Int64 = 0
    private(set) var total = 0

    mutating func add(_ nanoseconds: Int64) {
        counts[Int(min(max(nanoseconds, 0) / 100_000, 1000))] += 1
        longest = max(longest, nanoseconds)
        total += 1
    }

    mutating func add(_ other: Delays) {
        for index in counts.indices { counts[index] += other.counts[index] }
        longest = max(longest, other.longest)
        total += other.total
    }

    /// The percentage that took less, with two decimal places.
    func share(below nanoseconds: Int64) -> Double {
        let below = counts.prefix(Int(nanoseconds / 100_000)).reduce(0, +)
        return Double(below * 10_000 / max(total, 1)) / 100
    }
}
