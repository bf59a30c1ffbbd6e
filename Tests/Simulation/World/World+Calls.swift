import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// What applications do, and how it is judged: each call ends once, within its time, and what an honest peer's value is
// said to be it is.

extension World {
    func perform(_ step: Script.Step) {
        note("s", "\(step.number) \(step.verb.rawValue) \(step.subject) \(step.first) \(step.second)")
        if Script.faults.contains(step.verb) { return strike(step) }
        if Script.bondFaults.contains(step.verb) { return strikeBonds(step) }
        // A program that is not there calls nothing.
        if step.verb != .cancel, hosts[hostNumber(step)].isDown { return }
        switch step.verb {
        case .cancel:
            eventCounts.add("call.cancel")
            // Nothing cancels the end of a program.
            if pending[step.first] != Script.Verb.crash.rawValue { tasks[step.first]?.cancel() }
            return
        case .crash: return begin(step) { await self.crash(step) }
        case .scan: return begin(step) { await self.scan(step) }
        case .neighbourScan: return begin(step) { await self.neighbourScan(step) }
        case .neighbourConnect: return begin(step) { await self.neighbourConnect(step) }
        default: break
        }
        guard let peer = peer(step.subject) else { return }
        switch step.verb {
        case .notify: begin(step, isCall: false) { await self.notify(step, step.subject) }
        case .provoke, .changeServices, .outOfSync: move(step, peer)
        case .cancelAll:
            eventCounts.add("call.cancelAll")
            if let session = peer.session { session.assumeIsolated { $0.cancelAll() } }
            peer.link?.assumeIsolated { $0.cancelAll() }
        case .burst:
            for index in 0..<step.second {
                var read = step
                // Long values in pieces of 22 bytes from a slow peer would fill the link for minutes, and nobody else
                // could use it.
                if read.limit == 0 { read.limit = 15_000 }
                read.number = step.number * 1000 + 10_000 + index
                begin(read) { [read] in await self.read(read, step.subject) }
            }
        default: begin(step) { await self.call(step, step.subject) }
        }
    }

    /// Starts a task for a step.
    private func begin(_ step: Script.Step, isCall: Bool = true, _ body: @escaping @Sendable () async -> Void) {
        if isCall { pending[step.number] = step.verb.rawValue }
        taskAdapters[step.number] = hostNumber(step)
        tasks[step.number] = time.task {
            await body()
            await self.ended(step)
        }
    }

    private func ended(_ step: Script.Step) {
        pending[step.number] = nil
        tasks[step.number] = nil
        taskAdapters[step.number] = nil
    }

    // MARK: Calls on a peer

    private func call(_ step: Script.Step, _ number: Int) async {
        guard let peer = peer(number) else { return }
        let central = host(peer.adapter).central
        switch step.verb {
        case .connect:
            // The promise is 20 s for a connect, whose own limit is 15 s: a controller that forgot the call is given
            // some time to end it.
            await attemptConnect(step, peer, limit: connectTime(of: peer)) {
                let link = try await central.connect(self.name(of: peer))
                self.keep(link, of: number)
            }
        case .session: await beginSession(step, peer, central)
        case .endSession:
            guard let session = peer.session else { return }
            peer.session = nil
            await attempt(step) { await session.disconnect() }
        case .disconnect:
            guard let link = peer.link else { return }
            await attempt(step) { await link.disconnect(step.first == 1 ? .afterPendingOperations : .now) }
            if peer.link === link { peer.link = nil }
        case .discover:
            await onLink(step, number) { link in
                try await link.discover(ignoringCache: step.first == 1, timeout: self.limit(step))
            }
        case .read: await read(step, number)
        case .write, .command: await write(step, peer)
        case .subscribe: await subscribe(step, number)
        case .exclusively: await exclusively(step, number)
        case .pair, .connectPairing, .connectBonded, .forget: await callSecurity(step, peer)
        case .rssi:
            var unlimited = step
            unlimited.limit = 0
            await onLink(unlimited, number) { link in _ = try await link.rssi() }
        default: return
        }
    }

    func limit(_ step: Script.Step) -> Duration? {
        step.limit > 0 ? .milliseconds(step.limit) : nil
    }

    func keep(_ link: Peripheral, of number: Int) {
        made.append(WeakLink(link: link))
        if isHealed { return }
        peer(number)?.link = link
    }

    func beginSession(_ step: Script.Step, _ peer: SimulatedPeer, _ central: Central) async {
        // A session has its peer for itself; an application that has a link keeps to that.
        guard peer.session == nil, peer.link == nil else { return }
        do {
            let reconnect = ReconnectPolicy.backoff(initial: .milliseconds(500), max: .seconds(8), jitter: 0)
            let session = try await central.session(with: name(of: peer), Session.Options(reconnect: reconnect))
            peer.session = session
            let number = peer.number
            time.task { [events = session.events, weak self] in
                for try await event in events { await self?.told(number, event) }
            }
        } catch {
            eventCounts.add("error.\(error.code)")
        }
    }

    private func told(_ number: Int, _ event: Session.Event) {
        let name =
            switch event {
            case .connecting: "connecting"
            case .connected: "connected"
            case .ready: "ready"
            case .disconnected: "disconnected"
            case .servicesChanged: "servicesChanged"
            case .gaveUp: "gaveUp"
            case .missed: "missed"
            case .ended: "ended"
            }
        note("S", "\(number) \(name)")
        eventCounts.add("session.\(name)")
    }

    /// Runs a call on the link that there is, or on the one that the session makes within some seconds.
    func onLink(_ step: Script.Step, _ number: Int, _ body: (Peripheral) async throws -> Void) async {
        guard let peer = peer(number) else { return }
        if let session = peer.session {
            await attempt(step, limit: limit(step).map { $0 + .seconds(8) }) {
                let link = try await session.ready(within: .seconds(8))
                self.remember(link)
                try await body(link)
            }
        } else if let link = peer.link {
            await attempt(step, limit: limit(step)) { try await body(link) }
        }
    }

    private func remember(_ link: Peripheral) {
        if !made.contains(where: { $0.link === link }) { made.append(WeakLink(link: link)) }
    }

    /// Runs a call, and says what came of it.
    @discardableResult
    func attempt(_ step: Script.Step, limit: Duration? = nil, _ body: () async throws -> Void) async -> BLEError? {
        let start = loop.now()
        let suspendedBefore = suspended
        note("a", "\(step.number) \(step.verb.rawValue)")
        eventCounts.add("call.\(step.verb.rawValue)")
        var failed: BLEError?
        do {
            try await body()
            note("z", "\(step.number)")
            eventCounts.add("done.\(step.verb.rawValue)")
        } catch let error as BLEError {
            note("z", "\(step.number) \(error.code)")
            eventCounts.add("error.\(error.code)")
            failed = error
        } catch is CancellationError {
            note("z", "\(step.number) CancellationError")
        } catch {
            fail("step \(step.number) failed with a foreign error: \(error)")
        }
        let took = loop.now() - start - (suspended - suspendedBefore)
        if let limit, took > limit {
            fail("step \(step.number) (\(step.verb.rawValue)) took \(took) and may take \(limit)")
        }
        return failed
    }

    // MARK: Values

    private func read(_ step: Script.Step, _ number: Int) async {
        guard let peer = peer(number), !peer.readable.isEmpty else { return }
        guard step.first >= 0 else {
            return await onLink(step, number) { link in _ = try await link.read(0xAFFF, timeout: self.limit(step)) }
        }
        let value = peer.readable[step.first % peer.readable.count]
        let uuid = peer.values[value].uuid
        await onLink(step, number) { link in
            let writesBefore = peer.values[value].writesBegun
            let wasWriting = peer.values[value].writes > 0
            let bytes = try await link.read(.uuid(uuid), timeout: self.limit(step))
            self.note("v", "\(step.number) \(bytes.count) \(bytes.prefix(4))")
            guard peer.kind == .honest else { return }
            let isTorn = wasWriting || peer.values[value].isUncertain || peer.values[value].writesBegun != writesBefore
            if let fault = peer.fault(bytes, of: value, mayBeTorn: isTorn) {
                self.fail("step \(step.number) read \(fault) of an honest peer: \(bytes)")
            }
        }
    }

    private func write(_ step: Script.Step, _ peer: SimulatedPeer) async {
        let choice = step.verb == .command ? peer.commandable : peer.writable
        guard !choice.isEmpty else { return }
        let value = choice[step.first % choice.count]
        let version = peer.values[value].versions
        // One PDU is all that a command has.
        let length = step.verb == .command ? min(step.second, 20) : step.second
        let bytes = SimulatedPeer.pattern(peer.number, value, version, length)
        let uuid = peer.values[value].uuid
        peer.values[value].versions += 1
        peer.values[value].writes += 1
        peer.values[value].writesBegun += 1
        var isDone = false
        await onLink(step, peer.number) { link in
            try await link.write(
                bytes, to: .uuid(uuid), step.verb == .command ? .withoutResponse : .withResponse,
                timeout: self.limit(step))
            isDone = true
        }
        peer.values[value].writes -= 1
        if !isDone || step.verb == .command { peer.values[value].isUncertain = true }
    }

    private func subscribe(_ step: Script.Step, _ number: Int) async {
        guard let peer = peer(number), !peer.subscribable.isEmpty else { return }
        let value = peer.subscribable[step.first % peer.subscribable.count]
        let uuid = peer.values[value].uuid
        let options = SubscribeOptions(capacity: step.second % 8, timeout: limit(step))
        var unlimited = step
        // The time in which it listens is no part of the call.
        unlimited.limit = 0
        await onLink(unlimited, number) { link in
            let values = try await link.subscribe(to: .uuid(uuid), options)
            self.eventCounts.add("done.subscribed")
            let length = left(step.second / 8)
            let end = time.task { [central = host(peer.adapter).central] in
                try? await central.clock.sleep(for: length)
                try? await values.unsubscribe()
            }
            defer { end.cancel() }
            try await listen(values, value, peer)
            try await end.value
        }
    }

    /// Takes values, at a leisurely pace, and looks for what is missing.
    private func listen(_ values: ValueSequence, _ value: Int, _ peer: SimulatedPeer) async throws {
        var last: UInt32?
        for try await received in values {
            note("n", "\(peer.number) \(value) \(received.bytes.count) \(received.droppedBefore)")
            eventCounts.add("done.value")
            if received.droppedBefore > 0 { eventCounts.add("effect.valuesDropped") }
            guard peer.kind == .honest else { continue }
            guard let place = peer.place(received.bytes, of: value) else {
                return fail("an honest peer's value is not what it sent: \(received.bytes)")
            }
            if let last {
                let dropped = received.droppedBefore
                let loss = script.dataLoss(peer.adapter)
                guard Self.mayFollow(Int(place), Int(last), dropped: dropped, losing: loss) else {
                    return fail("value \(place) came after \(last), and \(dropped) are reported to be dropped")
                }
                if Int(place) != Int(last) + 1 + dropped { eventCounts.add("effect.dataLost") }
            }
            last = place
            if place % 3 == 0 { await sleep(.milliseconds(25)) }
        }
    }

    /// Whether a value may come after another one, with so many that are reported to be dropped between them.
    ///
    /// What the controller loses or reorders, it does not report, and values have no numbers: the library cannot know
    /// of it. What it loses in the other direction does not change the values.
    static func mayFollow(
        _ place: Int, _ last: Int, dropped: Int, losing loss: VirtualPersonality.DataLoss?
    ) -> Bool {
        let next = last + 1 + dropped
        guard let loss else { return place == next }
        return switch loss {
        case .received, .receivedEvery: place >= next
        case .reordersEvery: true
        case .sentBeyond: place == next
        }
    }

    private func exclusively(_ step: Script.Step, _ number: Int) async {
        guard let peer = peer(number), let value = peer.readable.first else { return }
        let uuid = peer.values[value].uuid
        var unlimited = step
        unlimited.limit = 0
        await onLink(unlimited, number) { link in
            try await link.exclusively { link in
                _ = try await link.read(.uuid(uuid))
                await self.sleep(.milliseconds(step.second))
                _ = try await link.read(.uuid(uuid))
            }
        }
    }

    /// How long something may last from now on that wants so many milliseconds: what lasts ends with the faults.
    func left(_ wanted: Int) -> Duration {
        let remaining = BootInstant(nanoseconds: 0) + .milliseconds(script.length) + suspended - loop.now()
        return max(.milliseconds(1), min(.milliseconds(wanted), remaining))
    }
}
