internal import BLECore
internal import BLELinux
internal import Logging

// What is logged of each peer. A peer may reconnect every second for years, and each link would begin with a line at
// once: so this state outlives the links.
//
// Duties
// - The counts of all of a peer's links go into one line, the first at once and from then on one a minute; so do lines
//   with other texts, each text by itself, with the number of lines suppressed.
// - The last line of a link, if no other will follow, is extra, but only for a peer whose last link, if it had one,
//   ended at least a minute before.
//
// Invariants
// - Each count of a link is added to its peer's once: `LinkWarnings` keeps what it has added.
// - A link keeps the state of its peer while it lasts, also if the table has dropped the peer. A dropped peer begins
//   again, as a new one.
// - `PeerWarnings` decides whether a line is due; its callers log it.

/// The state of the log for one peer.
final class PeerWarnings: Sendable {
    private struct Line {
        var lastTime: BootInstant
        var leftOut = 0
    }

    private struct State {
        var log = WarningThrottle()
        var counts: [(what: StaticString, count: Int)] = []
        var lastEnd: BootInstant?
        /// The lines by their text; a few at most.
        var lines: [String: Line] = [:]

        func forEach(_ body: (_ count: Int, _ what: StaticString) -> Void) {
            for (what, count) in counts { body(count, what) }
        }
    }

    private let state = Lock(State())

    /// Adds the new counts of one link, in their order; returns the text of the line that is due, if any, and whether
    /// something is left to be logged later.
    fileprivate func add(
        _ news: [(what: StaticString, count: Int)], isEnd: Bool, at now: BootInstant
    ) -> (text: String?, hasRest: Bool) {
        state.withLock { state in
            for (index, new) in news.enumerated() {
                if state.counts.count <= index { state.counts.append((new.what, 0)) }
                state.counts[index].count &+= new.count
            }
            var isExtra = false
            if isEnd {
                isExtra = state.lastEnd.map { now - $0 >= WarningThrottle.pause } ?? true
                state.lastEnd = now
            }
            let isDue = state.log.isDue(counts: state.forEach, isExtra: isExtra, at: now)
            return (isDue ? WarningThrottle.text(state.forEach) : nil, state.log.hasRest(counts: state.forEach))
        }
    }

    /// Whether a line may be logged now: `nil` if it was logged less than a minute ago, else how often it was
    /// suppressed since.
    func admit(_ line: String, at now: BootInstant) -> Int? {
        state.withLock { state in
            if let known = state.lines[line], now - known.lastTime < WarningThrottle.pause {
                state.lines[line]?.leftOut += 1
                return nil
            }
            return state.lines.updateValue(Line(lastTime: now), forKey: line)?.leftOut ?? 0
        }
    }
}

/// One link's part of it.
final class LinkWarnings {
    let peer: PeerWarnings
    private var seen: [Int] = []
    private var total = 0
    /// Whether something has not been logged yet.
    private var hasRest = false

    init(of peer: PeerWarnings) {
        self.peer = peer
    }

    /// Returns the text of the line that is due now, if any.
    func line(counts: WarningThrottle.Counts, isEnd: Bool, at now: BootInstant) -> String? {
        let total = WarningThrottle.sum(counts)
        // Called with each packet, and nearly always there is nothing to log.
        guard total > self.total || hasRest || isEnd else { return nil }
        self.total = total
        var news: [(what: StaticString, count: Int)] = []
        counts { count, what in
            let index = news.count
            if seen.count <= index { seen.append(0) }
            news.append((what, count &- seen[index]))
            seen[index] = count
        }
        let result = peer.add(news, isEnd: isEnd, at: now)
        hasRest = result.hasRest
        return result.text
    }
}

/// The state of the log for the most recent peers.
final class PeerWarningTable: Sendable {
    /// The number of peers that are remembered; the one met least recently is dropped.
    static let capacity = 256

    private struct State {
        var peers: [String: (warnings: PeerWarnings, number: UInt64)] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = Lock(State())

    /// Returns the state for the peer with this name.
    func warnings(for peer: String) -> PeerWarnings {
        state.withLock { state in
            state.lastNumber &+= 1
            let warnings = state.peers[peer]?.warnings ?? PeerWarnings()
            state.peers[peer] = (warnings, state.lastNumber)
            if state.peers.count > Self.capacity,
                let oldest = state.peers.min(by: { $0.value.number < $1.value.number })
            {
                state.peers[oldest.key] = nil
            }
            return warnings
        }
    }
}

/// Logs what a peer may bring about again and again: at first at once, then once a minute.
struct LinkLog: Sendable {
    let logger: Logger
    let peer: String
    /// Knows how long ago the log had the last such line, on this link or an earlier one.
    let warnings: PeerWarnings
    let loop: EventLoop

    func report(_ level: Logger.Level, _ message: String, _ details: Logger.Metadata = [:]) {
        guard let leftOut = warnings.admit(message, at: loop.now()) else { return }
        var metadata = details
        metadata["peer"] = "\(peer)"
        if leftOut > 0 { metadata["left out"] = "\(leftOut)" }
        logger.log(level: level, "\(message)", metadata: metadata)
    }
}
