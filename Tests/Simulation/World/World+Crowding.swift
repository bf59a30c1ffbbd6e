import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// What is promised where a controller cannot have a link to each of its peers.
//
// While faults go on, a connect that finds no room fails or waits in its own time, as any other. After them nobody keeps
// a link: as many peers are connected as there is room for, one more is refused as busy and costs none of them its link,
// and it is connected when one of them has made room.

extension World {
    /// The adapters whose controllers cannot have a link to each of their peers.
    var crowdedAdapters: [Int] {
        hosts.indices.filter { index in script.room(index).links < peers.count { $0.adapter == index } }
    }

    /// Lets go of all links of an adapter.
    func releaseLinks(of adapter: Int) async {
        for peer in peers where peer.adapter == adapter {
            let (session, link) = (peer.session, peer.link)
            (peer.session, peer.link) = (nil, nil)
            await session?.disconnect()
            await link?.disconnect()
        }
    }

    /// Whether each peer of a crowded adapter can be used, as many at once as there is room for.
    func checkCrowd(_ adapter: Int) async {
        await releaseLinks(of: adapter)
        // Calls of the applications take up room, too.
        let end = loop.now() + Self.time
        while loop.now() < end, taskAdapters.values.contains(adapter) { await sleep(.milliseconds(100)) }
        var linked: [SimulatedPeer] = []
        for peer in peers where peer.adapter == adapter && failure == nil {
            if linked.count == script.room(adapter).links {
                await checkIsRefused(peer, beside: linked, hosts[adapter])
                let first = linked.removeFirst()
                let link = first.link
                first.link = nil
                await link?.disconnect()
            }
            await checkWorking(peer.number, until: loop.now() + Self.time)
            linked.append(peer)
        }
    }

    /// Whether a connect beyond the limit fails as busy, in its time, and leaves the links as they are.
    private func checkIsRefused(_ peer: SimulatedPeer, beside linked: [SimulatedPeer], _ host: Host) async {
        let before = await host.central.statistics
        let start = loop.now()
        var failed: BLEError?
        do throws(BLEError) {
            let link = try await host.central.connect(name(of: peer))
            made.append(WeakLink(link: link))
            await link.disconnect()
        } catch {
            failed = error
        }
        let took = loop.now() - start
        let after = await host.central.statistics
        // A step of recovery, or the end of one, takes all links away.
        guard before.losses == after.losses, before.recoverySteps == after.recoverySteps else { return }
        let count = linked.count
        guard failed?.code == .busy else {
            let end = failed.map { "failed: \($0)" } ?? "was made"
            return fail("\(host.name) has room for \(count) links, and one more \(end)")
        }
        if took > connectTime(of: peer) { fail("a connect without room took \(took)") }
        for other in linked {
            do {
                guard let link = other.link, await link.isConnected else {
                    return fail("peer \(other.number) has lost its link to a connect without room")
                }
                if other.kind == .honest { try await readHonest(other, link) }
            } catch {
                return fail("peer \(other.number) cannot be used after a connect without room: \(error)")
            }
        }
        eventCounts.add("effect.noRoom")
    }
}
