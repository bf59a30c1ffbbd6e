import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// The cost of a flood on one link for the requests of another, in real time: a figure. The suite IsolationTests has
/// the limits.
enum FloodTrial: Trial {
    static let name = "flood"
    static let what = "requests beside a link that floods: every response came"
    /// The capacity of a controller's radio, with the fastest packets.
    private static let rate = 2_000

    static func run(_ scale: Scale) async throws -> [Figure] {
        let requests = scale == .short ? 40 : 400
        let alone = try await measure(requests, flood: 0)
        let beside = try await measure(requests, flood: rate)
        let hard = try await measure(requests, flood: 50_000)
        return [
            Figure("median of \(requests) reads of a peer that takes 30 ms, ms", alone.median),
            Figure("beside \(rate) notifications a second", "\(beside.median) ms, \(beside.change(from: alone)) %"),
            Figure("beside 50,000 a second", "\(hard.median) ms, \(hard.change(from: alone)) %"),
        ]
    }

    private struct Times {
        var nanoseconds: [Int64] = []
        var middle: Int64 { nanoseconds.sorted()[nanoseconds.count / 2] }
        var median: Double { Double(middle / 10_000) / 100 }

        func change(from other: Times) -> Double {
            (Double(middle) / Double(other.middle) * 10_000 - 10_000).rounded() / 100
        }
    }

    private static func measure(_ requests: Int, flood: Int) async throws -> Times {
        let central = Central()
        let peripheral = VirtualPeripheral(.battery, latency: .milliseconds(30))
        let device = try await central.attach(descriptor: peripheral.connect(), name: "quiet")
        let peer = ServedPeer()
        let hostile = try await central.attach(descriptor: peer.connect(), name: "flood")
        let values = try await hostile.subscribe(to: 0xFFF1)
        let isOver = Lock(false)
        async let flooded: Void = {
            while flood > 0, !isOver.withLock(\.self) {
                let pacer = Pacer(rate: flood, count: flood / 10) { _ in
                    peer.assumeIsolated { $0.send([0x1B, 3, 0, 1, 2, 3, 4]) }
                }
                _ = await pacer.run()
            }
        }()
        var times = Times()
        for _ in 0..<requests {
            let start = EventLoop.peers.now()
            try require(try await device.read(0x2A19) == [64], "another value")
            times.nanoseconds.append((EventLoop.peers.now() - start).saturatedNanoseconds)
        }
        isOver.withLock { $0 = true }
        await flooded
        // Nobody took them.
        try require(flood == 0 || values.droppedInTotal > 0, "there was no flood")
        await device.disconnect()
        await hostile.disconnect()
        return times
    }
}
