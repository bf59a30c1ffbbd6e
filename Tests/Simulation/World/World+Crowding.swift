import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// What is promised where a controller cannot have a link to each of its peers.
//
// While faults go on, a connect beyond the limit of links fails or waits in its own time, as any other. After them
// nobody keeps a link: as many peers are connected as the controller can have links, one more is refused because of the
// limit and costs none of them its link, and it is connected after one of them has been disconnected. A controller that
// does not complete an attempt beyond its limit reports no limit: there, that connect fails in its time.

extension World {
    /// The adapters whose controllers cannot have a link to each of their peers.
    var crowdedAdapters: [Int] {
        hosts.indices.filter { index in script.linkLimit(index).links < peers.count { $0.adapter == index } }
    }

    /// Those whose controllers do not complete an attempt beyond the limit: each such connect takes all of its time, in
    /// which the scan makes way, as for any peer that is not heard.
    var stallingAdapters: [Int] {
        crowdedAdapters.filter { script.linkLimit($0).reaction == .neverCompletes }
    }

    /// Whether scans by these controllers hear, once nothing is tried beyond the limits any more.
    func checkScansWithoutAttempts(_ programs: [Host]) async {
        let stalling = stallingAdapters
        for (number, host) in programs.enumerated() where stalling.contains(index(of: host)) {
            await checkHearing(host, number, until: loop.now() + Self.time)
        }
    }

    /// Disconnects all links of an adapter.
    func releaseLinks(of adapter: Int) async {
        for peer in peers where peer.adapter == adapter {
            let (session, link) = (peer.session, peer.link)
            (peer.session, peer.link) = (nil, nil)
            await session?.disconnect()
            await link?.disconnect()
        }
    }

    /// Whether each peer of a crowded adapter can be used, as many at once as the controller can have links.
    func checkCrowd(_ adapter: Int) async {
        await releaseLinks(of: adapter)
        // Calls of the applications have links, too.
        let end = loop.now() + Self.time
        while loop.now() < end, taskAdapters.values.contains(adapter) { await sleep(.milliseconds(100)) }
        let host = hosts[adapter]
        let known = await interruptions(of: host)
        var linked: [SimulatedPeer] = []
        for peer in peers where peer.adapter == adapter && failure == nil {
            if linked.count == script.linkLimit(adapter).links {
                await checkIsRefused(peer, beside: linked, host, since: known)
                let first = linked.removeFirst()
                let link = first.link
                first.link = nil
                await link?.disconnect()
            }
            await checkWorking(peer.number, until: loop.now() + Self.time)
            linked.append(peer)
        }
    }

    /// How often the links of an adapter were taken away: by its loss, or by a step of recovery or the end of one.
    private func interruptions(of host: Host) async -> Int {
        let statistics = await host.central.statistics
        return statistics.losses + statistics.recoverySteps
    }

    /// Whether an error is what the limit of links of an adapter leads to.
    ///
    /// A controller that does not complete an attempt beyond its limit reports nothing by which the library could
    /// distinguish the limit from a peer that is not heard: the attempt is cancelled at the end of its time.
    private func isRefusal(_ error: BLEError?, on adapter: Int) -> Bool {
        guard script.linkLimit(adapter).reaction == .neverCompletes else {
            return error?.hciStatus?.reportsTooManyLinks == true
        }
        return error?.code == .timedOut
    }

    /// Whether a connect beyond the limit fails because of it, in its time, and leaves the links as they are. One that
    /// fails for another reason is repeated for a minute, as any other after the faults.
    ///
    /// - Parameter known: The number of interruptions before the links were made. After a further one nothing is sure
    ///   of a single connect: the links may be over, or about to end.
    private func checkIsRefused(
        _ peer: SimulatedPeer, beside linked: [SimulatedPeer], _ host: Host, since known: Int
    ) async {
        let end = loop.now() + Self.time
        var last = "nothing was tried"
        var isInterrupted = false
        while loop.now() < end, failure == nil {
            if await interruptions(of: host) != known { await reconnect(linked) }
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
            isInterrupted = await interruptions(of: host) != known
            if isRefusal(failed, on: peer.adapter) {
                if took > connectTime(of: peer) { fail("a connect beyond the limit of links took \(took)") }
                guard let lost = await fault(ofLinksTo: linked) else {
                    if failed?.code == .timedOut { eventCounts.add("effect.linkLimitUnreported") }
                    return eventCounts.add("effect.linkLimit")
                }
                if !isInterrupted { return fail("after a connect beyond the limit of links, \(lost)") }
            } else if failed == nil, !isInterrupted {
                return fail("the controller of \(host.name) has its \(linked.count) links, and one more was made")
            }
            last = failed.map { "\($0)" } ?? "it was made"
            note("r", "\(peer.number) \(last)")
            await sleep(.seconds(1))
        }
        if !isInterrupted {
            fail("no connect beyond the \(linked.count) links of \(host.name) names the limit: \(last)")
        }
    }

    /// Connects the peers again that have lost their links.
    private func reconnect(_ linked: [SimulatedPeer]) async {
        for peer in linked where failure == nil {
            if let link = peer.link, await link.isConnected { continue }
            await checkWorking(peer.number, until: loop.now() + Self.time)
        }
    }

    /// What is wrong with the links to these peers, if anything is.
    private func fault(ofLinksTo linked: [SimulatedPeer]) async -> String? {
        for peer in linked {
            do {
                guard let link = peer.link, await link.isConnected else {
                    return "peer \(peer.number) has lost its link"
                }
                if peer.kind == .honest { try await readHonest(peer, link) }
            } catch {
                return "peer \(peer.number) cannot be used: \(error)"
            }
        }
        return nil
    }
}
