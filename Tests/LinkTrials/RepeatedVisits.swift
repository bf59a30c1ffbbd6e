import BLEProfiles
import BareBLE

/// Connects, uses the link and disconnects, again and again in one process.
///
/// Before the first cycle, and after each `pause`, it says how many it has done and waits for a line on standard input,
/// so that somebody can look at the process meanwhile. Each tenth cycle does all that leaves something behind: it finds
/// out what the peer has, and subscribes.
struct RepeatedVisits {
    private static let thorough = 10

    let count: Int
    let pause: Int
    let peer: PeerID

    func run() async throws {
        // With the thread of its own that most programs have.
        let central = Central()
        try await central.ready(powerOn: true)
        await rest(0)
        for cycle in 1...max(1, count) {
            let device = try await central.connect(peer)
            if cycle % Self.thorough == 0 {
                try await device.discover()
                var beats = try await device.subscribe(to: .heartRateMeasurement).makeAsyncIterator()
                _ = try await beats.next()
            } else {
                _ = try await device.read(.handle(0x0003))
            }
            await device.disconnect()
            if cycle % max(1, pause) == 0 { await rest(cycle) }
        }
    }

    private func rest(_ cycle: Int) async {
        LinkTrials.say("cycle \(cycle)")
        _ = readLine()
    }
}
