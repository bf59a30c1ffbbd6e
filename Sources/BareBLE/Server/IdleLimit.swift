internal import BLECore
internal import BLELinux
internal import Logging

// How long a central may send nothing (`LocalPeripheral.Settings.idleLimit`).
//
// Duties
// - Ends each link that a central has made, and on which nothing was heard for the limit, unless the link is in use.
// - Looks again when the next link may have reached the limit.
//
// Invariants
// - There is one timer: for the link that may reach the limit first.
// - A link that is being ended is not found again before another limit has passed.
// - Only the event loop's thread uses it.

/// Disconnects centrals that send nothing.
// Unchecked: only the loop's thread touches its state.
final class IdleLimit: @unchecked Sendable {
    /// `nil` if centrals may send nothing for as long as they like.
    private let limit: Duration?
    private let central: Central
    private var timer = DeadlineTimer()

    init(_ limit: Duration?, on central: Central) {
        self.limit = limit.map { max($0, .seconds(1)) }
        self.central = central
    }

    /// Ends the links that have reached the limit, and does so again in time, until `links` is closed.
    func enforce(on links: ServedLinks) {
        guard let limit, !links.isClosed else { return }
        let now = central.loop.now()
        var next: BootInstant?
        for link in links.inOrder where link.isInbound {
            var end = link.server.lastHeard + limit
            if end <= now {
                // One that is ended now may take a while, and would be found at once again.
                if !isInUse(link) { disconnect(link, after: limit) }
                end = now + limit
            }
            next = next.map { min($0, end) } ?? end
        }
        timer.arm(for: next, on: central.loop) { deadline in
            central.loop.schedule(at: deadline) { [weak self, weak links] in
                guard let self, let links else { return }
                timer.fired()
                enforce(on: links)
            }
        }
    }

    /// Whether a central that sends nothing waits for this side, or uses its link otherwise. One that does not take
    /// what it is sent does neither.
    private func isInUse(_ link: ServedLink) -> Bool {
        if link.server.isAsking || link.peripheral.assumeIsolated({ $0.hasOpenChannels }) { return true }
        guard let identity = link.identity else { return false }
        return central.adapter.assumeIsolated { $0.isPairingCentral(on: identity) }
    }

    private func disconnect(_ link: ServedLink, after limit: Duration) {
        let peripheral = link.peripheral
        central.configuration.logger.notice(
            "a central that has sent nothing is disconnected",
            metadata: ["peer": "\(peripheral.name)", "limit": "\(limit)"])
        Task(executorPreference: central.loop) { await peripheral.disconnect() }
    }
}
