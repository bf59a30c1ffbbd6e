import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// The last phases: nothing goes wrong any more, and within a minute everything works; then all is let go of, and
// nothing is left. Controllers that deviate have a promise of their own: `World+Hearing`.

extension World {
    static let time = Duration.seconds(60)

    /// Heals everything, and asks for what must work then.
    func recover() async {
        heal()
        await replaceLossyControllers()
        // A program that is being replaced begins first.
        var rest = 12_000
        while failure == nil, hosts.contains(where: \.isEnding) {
            await sleep(.milliseconds(10))
            rest -= 1
            if rest == 0 { return fail("a program that has ended has not been replaced within two minutes") }
        }
        await recoverManagement()
        let end = loop.now() + Self.time
        let crowded = crowdedAdapters
        let checks = peers.filter { !crowded.contains($0.adapter) }.map(\.number).map { number in
            time.task { await self.checkWorking(number, until: end) }
        }
        let crowds = crowded.map { adapter in time.task { await self.checkCrowd(adapter) } }
        let programs = hosts + neighbours.map(\.host)
        let stalling = stallingAdapters
        let scans = programs.enumerated().compactMap { number, host -> Task<Void, any Error>? in
            let connects = number < hosts.count ? [] : checks + crowds
            return script.personality(index(of: host)).scansBesideLinks && !stalling.contains(index(of: host))
                ? time.task { await self.checkHearing(host, number, until: end, after: connects) } : nil
        }
        for check in checks + crowds + scans { try? await check.value }
        await checkScansWithoutLinks(programs)
        await checkScansWithoutAttempts(programs)
        await sleep(until: end)
        if let (step, verb) = pending.min(by: { $0.key < $1.key }) {
            fail("step \(step) (\(verb)) has not ended a minute after the faults")
        }
    }

    private func heal() {
        isHealed = true
        note("s", "heal")
        healBonds()
        for host in hosts {
            let name = host.name
            radio.assumeIsolated { $0.silence(false, name) }
            plugIn(host)
            if host.store == nil { radio.assumeIsolated { $0.powerOn(name) } }
        }
        for peer in peers {
            peer.isHealed = true
            peer.responsesToDrop = 0
            peer.peripheral.assumeIsolated { $0.resumeResponding() }
            let peripheral = peer.peripheral
            radio.assumeIsolated { radio in
                radio.refuseConnections(to: peripheral, with: [])
                radio.delayConnections(to: peripheral, by: .zero)
                radio.move(peripheral, to: .near)
            }
        }
    }

    /// Whether a peer can be used: an honest one's value is read, within the time, by an application that tries again.
    func checkWorking(_ number: Int, until end: BootInstant) async {
        guard let peer = peer(number) else { return }
        // A link from before may be dead, and nobody knows yet; the application lets go of it.
        if let old = peer.link {
            peer.link = nil
            await old.disconnect()
        }
        var last = "nothing was tried"
        while loop.now() < end, failure == nil {
            do {
                let link: Peripheral
                if let session = peer.session {
                    // A session with an address that the peer no longer uses would wait forever.
                    let limit = peer.identity == nil ? end - loop.now() : .seconds(10)
                    link = try await session.ready(within: limit)
                } else {
                    link = try await host(peer.adapter).central.connect(name(of: peer))
                    peer.link = link
                }
                made.append(WeakLink(link: link))
                if peer.kind == .honest {
                    try await readHonest(peer, link)
                    if let host = security(of: peer), peer.pairs?.isGood == true {
                        try await recoverBond(peer, link, host)
                    }
                }
                return eventCounts.add("recovered.link")
            } catch {
                last = "\(error)"
                note("r", "\(number) \(last)")
                if security(of: peer) != nil { await recoverSecurity(peer, error) }
                // Another application is about to let go of the peer, or fills the queue.
                await sleep(.seconds(1))
            }
        }
        fail("a minute after the faults, peer \(number) (\(peer.kind.rawValue)) cannot be used: \(last)")
    }

    func readHonest(_ peer: SimulatedPeer, _ link: Peripheral) async throws {
        guard let value = peer.readable.first else { return }
        let isWriting = peer.values[value].writes > 0
        let writesBefore = peer.values[value].writesBegun
        let bytes = try await link.read(.uuid(peer.values[value].uuid))
        let isTorn =
            isWriting || peer.values[value].isUncertain || peer.values[value].writesBegun != writesBefore
        if let fault = peer.fault(bytes, of: value, mayBeTorn: isTorn) {
            fail("after the faults, \(fault) was read of honest peer \(peer.number): \(bytes)")
        }
        eventCounts.add("recovered.read")
    }

    /// Whether a scan runs: somebody who advertises is heard.
    func checkScan(_ host: Host, _ number: Int, until end: BootInstant) async {
        let (beacon, id) = await placeBeacon(number)
        var isHeard = false
        do {
            // An adapter that was off a moment ago is found to be on with the next look at it.
            while !isHeard, loop.now() < end {
                do {
                    for try await event in host.central.scan(duration: end - loop.now()) {
                        if case .found(let scanResult) = event, scanResult.peer == id {
                            isHeard = true
                            break
                        }
                    }
                } catch let error where [.adapterDown, .noAdapter, .busy, .timedOut].contains(error.code) {
                    await sleep(.seconds(2))
                }
            }
        } catch {
            fail("a minute after the faults, \(host.name) does not scan: \(error)")
        }
        if !isHeard { fail("a minute after the faults, the scan of \(host.name) hears nothing") }
        eventCounts.add("recovered.scan")
        await radio.remove(beacon)
    }

    /// Places a separate peer, without connections, for one program to hear.
    func placeBeacon(_ number: Int) async -> (beacon: VirtualPeripheral, id: PeerID) {
        let beacon = VirtualPeripheral(VirtualDevice(name: "Beacon", services: []), time: time)
        let id = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0900 + UInt64(number)), type: .random)
        let beat = VirtualAdvertisement([0x02, 0x01, 0x06], interval: .milliseconds(700))
        await radio.place(beacon, as: id, advertising: beat)
        return (beacon, id)
    }

    /// Lets go of everything, and looks at what is left.
    func tidyUp(_ watched: Int) async {
        note("s", "end")
        for peer in peers {
            let (session, link) = (peer.session, peer.link)
            (peer.session, peer.link) = (nil, nil)
            begin { await session?.disconnect() }
            begin { await link?.disconnect() }
        }
        await sleep(.seconds(120))
        if let left = leftovers(watched) { fail(left) }
    }

    private func leftovers(_ watched: Int) -> String? {
        if !pending.isEmpty { return "an end of a link has not ended within two minutes" }
        if made.contains(where: { $0.link != nil }) { return "somebody holds a link that has ended" }
        for host in hosts + neighbours.map(\.host) {
            let left = host.adapter.assumeIsolated { $0.outstanding }
            if left != 0 { return "\(left) wait for \(host.name), and nobody asked" }
        }
        if loop.timerCount != 0 { return "\(loop.timerCount) timers are left" }
        if loop.watchedCount > watched {
            return "\(loop.watchedCount - watched) descriptors more than at the beginning are watched"
        }
        for peer in peers where peer.peripheral.assumeIsolated({ $0.isConnected }) {
            return "peer \(peer.number) still has a link"
        }
        return nil
    }

    private func begin(_ body: @escaping @Sendable () async -> Void) {
        let number = 1_000_000 + pending.count + tasks.count
        pending[number] = "end"
        time.task {
            await body()
            await self.over(number)
        }
    }

    private func over(_ number: Int) {
        pending[number] = nil
    }
}
