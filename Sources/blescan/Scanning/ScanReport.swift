// A live scan that prints lines.
//
// Duties: one line for each event of the scan, in order; a heartbeat whenever it is due, also if nothing is heard; a
// message on standard error when reports were dropped, and when the library restarted the scan after a silence; with
// `--recover` also a message for each step of recovery, and an object where the lines are objects.
//
// It runs beside the event loop, never on it: writing blocks while the reader does not read, and the radio must not
// notice. Meanwhile events wait in the scan's buffer, which keeps the newest and counts the others. That count is in
// the next line.

import BLECore
import BareBLE
import Glibc

/// How a scan ended.
struct ScanEnd: Hashable, Sendable {
    /// The reason that it ended.
    enum Reason {
        case timeIsOver
        /// There is enough, the reader is gone, or the user has quit.
        case nothingIsWanted
    }

    let reason: Reason
    /// The number of lines about devices.
    let heard: Int
}

/// A live scan that prints lines.
actor ScanReport {
    /// The shortest time between two repetitions of a message.
    private static let quiet: Duration = .seconds(10)

    private let central: Central
    private let adapter: String
    private let output: LineOutput
    private let limit: Int?
    private let recovery: RecoveryChoice?
    private let note: @Sendable (String) -> Void
    private let began: BootInstant
    private var lines: ScanLines
    private var restarts = 0
    private var lastBeat: BootInstant
    private var lastWords: [String: BootInstant] = [:]
    private var isOver = false

    /// - Parameter recovery: What was asked for of recovery, whose steps are then reported; `nil` for nothing.
    init(
        _ central: Central, adapter: String, lines: ScanLines, limit: Int?, recovery: RecoveryChoice? = nil,
        to output: LineOutput,
        note: @Sendable @escaping (String) -> Void = Console.warn
    ) {
        self.central = central
        self.adapter = adapter
        self.lines = lines
        self.limit = limit
        self.recovery = recovery
        self.output = output
        self.note = note
        began = central.clock.now
        lastBeat = began
    }

    /// Prints until the scan is over, enough was printed, the reader is gone, or the task is cancelled.
    ///
    /// The number in the result counts the lines about devices.
    nonisolated func run(_ scan: ScanSequence, heartbeat: Duration?) async throws -> ScanEnd {
        let (notices, continuation) = AsyncStream.makeStream(of: ScanNotice.self, bufferingPolicy: .bufferingNewest(16))
        // From now on, so that no step is missed.
        let recoveries = recovery.map { _ in central.recoveryEvents }
        if let header = await lines.header { try await print(header) }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await self.listen(to: scan.noticing { continuation.yield($0) })
                return true
            }
            group.addTask {
                for await notice in notices { await self.take(notice) }
                return false
            }
            if let recoveries {
                group.addTask {
                    for try await event in recoveries {
                        let isOver = try await self.take(event)
                        if isOver { return true }
                    }
                    return false
                }
            }
            if let heartbeat {
                group.addTask { try await self.beat(every: heartbeat) }
            }
            while let isOver = try await group.next(), !isOver {}
            group.cancelAll()
        }
        return await end(isCancelled: Task.isCancelled)
    }

    private func end(isCancelled: Bool) -> ScanEnd {
        ScanEnd(reason: isOver || isCancelled ? .nothingIsWanted : .timeIsOver, heard: lines.count)
    }

    // MARK: What is heard

    /// Listens until there is enough, and returns when the radio no longer scans: the program ends soon.
    private func listen(to scan: ScanSequence) async throws {
        var events = scan.makeAsyncIterator()
        do {
            while !isOver, let event = try await events.next() {
                try await take(event)
                // In a flood there is always a next event; heartbeats need their turn.
                if lines.count & 0xFF == 0xFF { await Task.yield() }
            }
        } catch {
            await events.stop()
            throw error
        }
        await events.stop()
    }

    private func take(_ event: ScanEvent) async throws {
        switch event {
        case .found(let scanResult): try await show(scanResult, .found)
        case .updated(let scanResult): try await show(scanResult, .updated)
        case .dropped(let count):
            lines.dropped += count
            report(
                "dropped",
                "\(lines.dropped.counted("report")) dropped so far, because the reader is too slow")
        case .paused:
            guard recovery?.endsLinks == true else { throw Scan.adapterGone(adapter) }
            note("\(adapter) went down or away; the scan continues when it is back")
        case .resumed:
            if recovery?.endsLinks == true { note("\(adapter) is back; the scan continues") }
        case .lost: break
        }
    }

    private func show(_ scanResult: ScanResult, _ event: ScanLines.Event) async throws {
        let time = TimeOfDay.time(of: scanResult.lastSeen, now: central.clock.now)
        for line in lines.lines(of: scanResult, event, adapter: adapter, at: time, limit: limit) {
            try await print(line)
        }
        if let limit, lines.count >= limit { isOver = true }
    }

    private func print(_ line: [UInt8]) async throws {
        if try await output.write(line) != .written { isOver = true }
    }

    // MARK: What is not heard

    /// Returns whether the scan is to end because the reader is gone.
    private func beat(every period: Duration) async throws -> Bool {
        var due = began + period
        while (try? await central.clock.sleep(until: due)) != nil {
            let statistics = await central.scanStatistics(since: lastBeat)
            let now = central.clock.now
            let heartbeat = Heartbeat(
                packets: statistics.reports, devices: statistics.devices, restarts: restarts, uptime: now - began)
            lastBeat = now
            if let line = lines.line(of: heartbeat, adapter: adapter, at: TimeOfDay.time(of: now, now: now)) {
                try await print(line)
            }
            if isOver { return true }
            // The reader may have stopped for longer than a period.
            due = max(due + period, now)
        }
        return false
    }

    /// Reports an event of recovery, and returns whether the scan is to end because the reader is gone.
    private func take(_ event: RecoveryEvent) async throws -> Bool {
        // The notice of the silence is the message about that step.
        if !event.isRescan { note(event.line(adapter)) }
        let now = central.clock.now
        if let line = lines.line(of: event, adapter: adapter, at: TimeOfDay.time(of: now, now: now)) {
            try await print(line)
        }
        return isOver
    }

    private func take(_ notice: ScanNotice) {
        switch notice {
        case .stalled(let count, let time):
            let again = count > 1 ? ", for the \(count). time in a row" : ""
            let silence = "\(adapter) has heard nothing for \(time.components.seconds) s"
            guard recovery != .nothing else { return note(silence + again) }
            restarts += 1
            note("\(silence); the scan was started again\(again)")
        case .retrying(_, let pause):
            report("retrying", "\(adapter) could not resume the scan; the next attempt follows in \(pause)")
        case .adapterLost, .adapterBack, .disturbed, .resumed: break
        }
    }

    /// Writes a message on standard error, unless the same one was written a moment ago.
    private func report(_ topic: String, _ text: String) {
        let now = central.clock.now
        if let last = lastWords[topic], now - last < Self.quiet { return }
        lastWords[topic] = now
        note(text)
    }
}

/// The time of day for moments on the boot-time clock.
enum TimeOfDay {
    /// Returns the time of `moment` since 1970-01-01 00:00 UTC, by the machine's present clock.
    static func time(of moment: BootInstant, now: BootInstant) -> Duration {
        var time = timespec()
        guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec) - (now - moment)
    }
}
