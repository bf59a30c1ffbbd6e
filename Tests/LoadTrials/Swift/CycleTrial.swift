import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// Connect, use, disconnect, again and again in one process.
enum CycleTrial: Trial {
    static let name = "cycles"
    static let what = "connect-disconnect cycles leave no descriptor, no thread, no object and no memory behind"
    static let rows = row("L08")
    /// The limits for the growth of allocated and resident bytes from the warm-up to the end.
    private static let tolerance = 64 * 1024

    private struct Use {
        let state = ProcessState.now
        let resident = ProcessState.resident
        let heap = ProcessState.heap
    }

    static func run(_ scale: Scale) async throws -> [Figure] {
        let cycles = scale == .short ? 6_000 : 100_000
        let warmUp = cycles / 5
        let central = Central()
        let peer = ServedPeer()
        let start = ContinuousClock.now
        try await central.run {
            for cycle in 1...warmUp { try await use(central, peer, cycle) }
        }
        // The first time brings in what measuring itself needs.
        _ = Use()
        let before = Use()
        // On the library's own thread: the pool of threads that Swift has for other tasks grows and shrinks by itself.
        try await central.run {
            for cycle in warmUp + 1...cycles { try await use(central, peer, cycle) }
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        await peer.disconnect()
        let after = Use()
        try require(after.state.descriptors <= before.state.descriptors, "\(before.state), then \(after.state)")
        try require(after.state.threads <= before.state.threads, "\(before.state), then \(after.state)")
        try require(after.heap - before.heap <= tolerance, "\(after.heap - before.heap) more bytes allocated")
        guard let residentBefore = before.resident, let residentAfter = after.resident else {
            throw TrialFailure(description: "the kernel does not tell what is in memory")
        }
        let more = residentAfter - residentBefore
        try require(more <= tolerance, "\(more) more bytes in memory")
        return [
            Figure("cycles", cycles), Figure("cycles a second", Int(Double(cycles) / seconds)),
            Figure("after \(warmUp) cycles", "\(before.state), \(residentBefore / 1024) KiB of its own in memory"),
            Figure("at the end", "\(after.state), \(residentAfter / 1024) KiB of its own in memory"),
            Figure("more allocated, bytes", after.heap - before.heap),
            Figure("more in memory, bytes", more),
        ]
    }

    private static func use(_ central: Central, _ peer: ServedPeer, _ cycle: Int) async throws {
        weak var left: Peripheral?
        do {
            let options = ConnectOptions(mtu: cycle % 2 == 0 ? 23 : 247, observesServiceChanges: false)
            let device = try await central.attach(descriptor: peer.connect(), name: "cycle", options)
            left = device
            if cycle % 10 == 0 {
                try await device.discover()
                let values = try await device.subscribe(to: 0xFFF1)
                await peer.send([0x1B, 3, 0, 1])
                var iterator = values.makeAsyncIterator()
                try require(try await iterator.next()?.bytes == [1], "cycle \(cycle): another value")
            } else {
                try require(try await device.read(.handle(6)) == [1, 2, 3, 4], "cycle \(cycle): another value")
            }
            switch cycle % 3 {
            case 0:
                await device.disconnect()
            case 1:
                await peer.disconnect()
                _ = await device.disconnected()
            default:
                // A call that has no response yet ends with the link.
                async let lost = device.read(.handle(3))
                await peer.disconnect()
                do {
                    _ = try await lost
                } catch let error as BLEError {
                    try require([.disconnected, .refusedByPeer].contains(error.code), "cycle \(cycle): \(error)")
                }
                _ = await device.disconnected()
            }
        }
        // Its last job may still be under way on the loop.
        for _ in 0..<2_000 where left != nil { try await central.clock.sleep(for: .milliseconds(1)) }
        try require(left == nil, "cycle \(cycle): the peripheral is still there")
    }
}
