import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// What is promised of controllers that do not report as they should.
//
// | controller | what holds after the faults |
// |---|---|
// | loses events, or data of its links | somebody switches it off and on, and it loses nothing any more: as any other |
// | does not scan beside links | a scan hears within a minute after the last link has ended |
// | becomes deaf, and a permitted step helps | it becomes deaf again, and is heard again in the time of the steps before that one and of their pauses |
// | becomes deaf, and none does | that none had an effect is reported in the time of the steps |

/// What a program hears by a controller that becomes deaf.
struct Hearing {
    var last: BootInstant?
    /// A report has come after a silence that only a step of recovery ends.
    var hasRecovered = false
    var isExhausted = false
    /// When it must have been heard again, or given up, at the latest.
    var limit: BootInstant
}

extension VirtualPersonality {
    var scansBesideLinks: Bool { responsesWhileLinked[0x2042] == nil }
}

extension RecoveryPolicy.Limit {
    /// Whether a controller that becomes deaf is made to hear.
    func endsDeafness(_ deafness: VirtualPersonality.Deafness) -> Bool {
        switch deafness.recovery {
        case .rescan, .eventMask: self >= .rescan
        case .power, .radioSwitch: self >= .power
        case .usbPort, .driver: self >= .usb
        }
    }
}

extension World {
    /// 30 s until it is deaf, 90 s of silence, 30 s for the steps that end no link, 10 s for each of the others; and
    /// what a program needs that is busy with connects. For the first report, and from it on once more.
    private static let stepTime = Duration.seconds(300)
    /// No pause between two reports of the beacon is as long.
    private static let silence = Duration.seconds(20)

    func index(of host: Host) -> Int { hosts.firstIndex { $0.name == host.name } ?? 0 }

    /// Switches controllers that lose events, or data of their links, off and on; they are replaced by ones that lose
    /// nothing. No promise holds beside such a loss: a link on which nothing arrives cannot be used.
    func replaceLossyControllers() async {
        let lossy = hosts.indices.filter { index in
            let personality = script.personality(index)
            return personality.losesEvery != nil || personality.losesData != nil
        }
        guard !lossy.isEmpty else { return }
        for index in lossy { await radio.powerOff(hosts[index].name) }
        // Programs look at their adapters every two seconds.
        await sleep(.seconds(5))
        for index in lossy {
            var personality = script.personality(index)
            personality.losesEvery = nil
            personality.losesData = nil
            await radio.setPersonality(personality, of: hosts[index].name)
            guard hosts[index].store == nil else {
                try? await hosts[index].central.ready(powerOn: true)
                continue
            }
            await radio.powerOn(hosts[index].name)
        }
    }

    /// Disconnects all links of controllers that do not scan beside them, and looks whether they scan then.
    func checkScansWithoutLinks(_ programs: [Host]) async {
        for (number, host) in programs.enumerated() where !script.personality(index(of: host)).scansBesideLinks {
            await releaseLinks(of: index(of: host))
            await checkScan(host, number, until: loop.now() + Self.time)
        }
    }

    /// Whether a scan hears as its controller permits.
    ///
    /// - Parameter connects: What must have ended before a scan that lasts until the controller is deaf. The controller
    ///   accepts no connection attempt while it scans, and only the program whose scan it is can have it make way.
    func checkHearing(
        _ host: Host, _ number: Int, until end: BootInstant, after connects: [Task<Void, any Error>] = []
    ) async {
        guard let deafness = script.personality(index(of: host)).deafness else {
            return await checkScan(host, number, until: end)
        }
        let (beacon, _) = await placeBeacon(number)
        let key = "\(number)"
        hearings[key] = Hearing(limit: loop.now() + Self.stepTime)
        let follower = time.task { [events = host.central.recoveryEvents, weak self] in
            for try await event in events { await self?.heard(event, key) }
        }
        let scan = time.task { [weak self] in await self?.listen(host, key, after: connects) }
        // Links of another program are in the way of the steps that end links.
        let hearsAgain = script.recovery.endsDeafness(deafness)
        let mayGiveUp = !hearsAgain || neighbours.contains { $0.adapter == index(of: host) }
        while let hearing = hearings[key], failure == nil {
            if hearing.hasRecovered {
                eventCounts.add("recovered.deaf")
                break
            }
            if hearing.isExhausted, mayGiveUp {
                eventCounts.add("exhausted.deaf")
                break
            }
            if loop.now() >= hearing.limit {
                let what = hearsAgain ? "heard again" : "reported as exhausted"
                fail("\(host.name) became deaf, and was not \(what) in the time of the steps")
            }
            await sleep(.seconds(1))
        }
        follower.cancel()
        scan.cancel()
        try? await scan.value
        try? await follower.value
        await radio.remove(beacon)
    }

    private func listen(_ host: Host, _ key: String, after connects: [Task<Void, any Error>]) async {
        for connect in connects { try? await connect.value }
        if let limit = hearings[key]?.limit { hearings[key]?.limit = max(limit, loop.now() + Self.stepTime) }
        while !Task.isCancelled, failure == nil {
            do {
                for try await event in host.central.scan(.any, .passive.duplicates(.all)) {
                    if case .found(let result) = event { heard(result.lastSeen, key) }
                    if case .updated(let result) = event { heard(result.lastSeen, key) }
                }
            } catch {
                note("r", "\(host.name) \(error)")
                await sleep(.seconds(2))
            }
        }
    }

    private func heard(_ time: BootInstant, _ key: String) {
        guard let hearing = hearings[key] else { return }
        if let last = hearing.last {
            if time - last > Self.silence { hearings[key]?.hasRecovered = true }
        } else {
            // One that was deaf before needed the steps to be heard at all, and needs them again after this. Beside
            // another program, whose step let it hear, that program may have heard all of the first reports.
            hearings[key]?.limit = max(hearing.limit, time + Self.stepTime)
        }
        hearings[key]?.last = time
    }

    private func heard(_ event: RecoveryEvent, _ key: String) {
        note("R", "\(key) \(event)")
        guard case .exhausted(_, let next) = event else { return }
        hearings[key]?.isExhausted = true
        if let next { hearings[key]?.limit = loop.now() + next + Self.stepTime }
    }
}
