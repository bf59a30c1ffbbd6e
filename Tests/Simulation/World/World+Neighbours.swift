import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// Another program on the same adapter: it hears every event of the controller, scans and calls as it likes, and knows
// nothing of the host beside it. What it does is no fault, so nothing of it may make the host's calls last longer than
// they may; but a call may fail because the other one was first.

extension World {
    private func neighbour(on adapter: Int) -> Central? {
        neighbours.first { $0.adapter == adapter }?.host.central
    }

    func neighbourScan(_ step: Script.Step) async {
        guard let central = neighbour(on: step.subject) else { return }
        await scan(step, central)
    }

    /// Connects, reads, keeps the link for a while, and lets go of it.
    func neighbourConnect(_ step: Script.Step) async {
        guard let peer = peer(step.subject), let central = neighbour(on: peer.adapter) else { return }
        var connected: Peripheral?
        await attempt(step, limit: .seconds(20)) { connected = try await central.connect(peer.peer) }
        guard let link = connected else { return }
        made.append(WeakLink(link: link))
        do {
            if peer.kind == .honest { try await readHonest(peer, link) }
            eventCounts.add("done.neighbourRead")
            try await central.clock.sleep(for: left(step.first))
        } catch {
            note("z", "\(step.number) \((error as? BLEError)?.code.description ?? "given up")")
        }
        await link.disconnect()
    }
}
