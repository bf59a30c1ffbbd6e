import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// Advertisements at a pace that no controller reaches on the adapter's own sockets.
enum ReportTrial: Trial {
    static let name = "reports"
    static let what =
        "5,000 advertising reports a second: each counted, the newest kept, losses of a slow consumer exact"
    static let rows = row("A12", "H17", "H18")
    private static let rate = 5_000

    static func run(_ scale: Scale) async throws -> [Figure] {
        let strangers = scale == .short ? 10_000 : 100_000
        let source = ReportSource()
        let adapter = try await source.adapter()
        let central = Central(adapter: adapter)
        let quick = Listener(central.scan())
        let slow = Listener(central.scan(capacity: 256), sleeps: true)
        while await adapter.runningScans < 2 { await Task.yield() }
        await source.report(0, [2, 1, 6])
        _ = try await (quick.heard(1), slow.heard(1))

        // Strangers: each address once.
        let cpuBefore = await central.run { ProcessState.threadTime }
        let pacer = Pacer(rate: rate, count: strangers) { number in
            source.assumeIsolated { $0.report(number + 1, [2, 1, 6, 2, 0x0A, UInt8(truncatingIfNeeded: number)]) }
        }
        let seconds = await pacer.run() / .seconds(1)
        try await settle(central, reports: strangers + 1)
        let cpu = await central.run { ProcessState.threadTime } - cpuBefore
        let capacity = DeviceTable.capacity
        let tally = try await quick.heard(2 * (strangers + 1) - capacity)
        try require(tally.found == strangers + 1, "\(tally.found) found")
        try require(tally.lost == strangers + 1 - capacity, "\(tally.lost) lost")
        try require(tally.dropped == 0, "\(tally.dropped) dropped")
        for number in max(0, strangers - 2 * capacity)...strangers {
            let isKnown = await central.scanResult(of: ReportSource.peer(number)) != nil
            try require(isKnown == (number > strangers - capacity), "device \(number) is \(isKnown ? "" : "not ")there")
        }
        try require(
            await central.scanStatistics(since: BootInstant(nanoseconds: 0)).devices == capacity, "devices in the table"
        )

        // Acquaintances: the duplicate filter does not work, and they say the same again and again.
        let repetitions = strangers / 4 / 1_000 * 1_000
        let before = quick.tally
        let again = Pacer(rate: rate, count: repetitions) { number in
            source.assumeIsolated { $0.report(strangers - number % 1_000, [2, 1, 6], rssi: -61) }
        }
        _ = await again.run()
        try await settle(central, reports: strangers + 1 + repetitions)
        let after = try await quick.heard(before.all + 1_000)
        try require(
            after.updated - before.updated == 1_000 && after.found == before.found,
            "\(after.updated - before.updated) updates of 1,000 devices")
        let count = await central.scanResult(of: ReportSource.peer(strangers))?.count
        try require(count == 1 + repetitions / 1_000, "a device was heard \(count ?? 0) times")

        // The slow one wakes up.
        slow.wake()
        let woken = try await slow.heard(after.all)
        try require(
            woken.all + woken.dropped == after.all, "\(woken.all) taken and \(woken.dropped) dropped of \(after.all)")
        try require(woken.dropped > 0 && woken.all <= 257, "\(woken.all) were kept for it")
        await quick.stop()
        await slow.stop()
        return [
            Figure("reports", strangers + 1 + repetitions), Figure("a second", Int(Double(strangers) / seconds)),
            Figure("addresses", strangers + 1), Figure("devices kept, the newest", capacity),
            Figure("processor time of the library's thread for each, two scans, ns", cpu / strangers),
            Figure("share of one processor, %", cpu / Int(seconds * 10_000_000)),
            Figure("for the consumer that slept: taken", woken.all),
            Figure("and dropped, as it was told", woken.dropped),
            Figure("reports that the socket had no room for at once", await source.refusals),
        ]
    }

    private static func settle(_ central: Central, reports: Int) async throws {
        while await central.scanStatistics(since: BootInstant(nanoseconds: 0)).reports < reports {
            ShortPause.take()
        }
    }
}

/// A consumer of a scan that counts its events.
private final class Listener: Sendable {
    struct Tally {
        var found = 0
        var updated = 0
        var lost = 0
        var dropped = 0
        var all: Int { found + updated + lost }
    }

    private let counted = Lock(Tally())
    private let sleeps = Lock(false)
    private let task = Lock<Task<Void, any Error>?>(nil)

    /// Begins to listen; one that `sleeps` takes the first event, and the others when it is woken.
    init(_ scan: ScanSequence, sleeps: Bool = false) {
        self.sleeps.withLock { $0 = sleeps }
        let task = Task {
            for try await event in scan {
                add(event)
                while self.sleeps.withLock(\.self) { try await Task.sleep(for: .milliseconds(1)) }
            }
        }
        self.task.withLock { $0 = task }
    }

    var tally: Tally { counted.withLock(\.self) }

    /// Waits until so many events were there, those that were dropped included.
    func heard(_ count: Int) async throws -> Tally {
        while tally.all + tally.dropped < count { try await Task.sleep(for: .milliseconds(1)) }
        return tally
    }

    func wake() {
        sleeps.withLock { $0 = false }
    }

    func stop() async {
        let task = task.withLock(\.self)
        task?.cancel()
        _ = await task?.result
    }

    private func add(_ event: ScanEvent) {
        counted.withLock { tally in
            switch event {
            case .found: tally.found += 1
            case .updated: tally.updated += 1
            case .lost: tally.lost += 1
            case .dropped(let count): tally.dropped += count
            case .paused, .resumed: return
            }
        }
    }
}
