// The advertising sets of one adapter: starts them, keeps them on air, and ends them.
//
// Duties: choose the legacy or the extended commands once, by what the controller has, and never mix them. Set up each
// set in the same order: disable and remove what may be there, set parameters, address and data, enable. Enable a set
// again when a central has connected, when another program or the kernel has disabled it, and after the adapter was
// off. Remove at the first start what a killed program has left on air.
//
// Invariants:
// - One command of the session is out at a time. `advance` alone sends, and it looks at all sets again: what is
//   requested meanwhile changes the goal of a set, and takes effect with the response.
// - `start` ends exactly once, by `started` or `failed`, and so does `stop`, by `stopped`; a stop also ends a start
//   that is under way. After `failed` and `stopped` the identifier means nothing. A start that is refused while this
//   program connects does not fail for that: it follows the connect.
// - A set that has started never ends by itself. Whatever fails afterwards is retried after a pause that doubles up to
//   30 s, and is short again after the set was on air for 10 s. Interruptions that end at once, as by a central, are
//   part of that time.
// - The kernel disables all sets before each of its connection attempts and never enables them again. The response to
//   its command is all that can be seen of it. A set is enabled again 60 ms later, not at once: many controllers refuse
//   the kernel's attempt, whose command follows in a moment, while they advertise.
// - Another program's response to the command that is out cannot be distinguished from ours. The other one of the two
//   then counts as a disturbance, so that the set is enabled once more, which is harmless. Whether a set is on air
//   after a disturbance is uncertain, so that it is disabled all the same when it is stopped.
// - Disturbances of other programs are counted, and the pause after each is twice the one before. What this program
//   causes itself is not: what the kernel does while it carries out a command of ours (`ownCommands`), a response of
//   ours that comes after its time-out, a central that has connected before the response to the command that is out.
// - A command of another program that names its sets concerns those alone.
// - The kernel drops events where a socket is not read in time. A link of which the set is not reported, and one whose
//   beginning was not reported, have all sets enabled again: what is on air stays so. A second link that is accepted
//   with the same handle is one whose beginning was not reported.
// - A set whose end was not confirmed is disabled again until it is; `stopped` reports the failure at the first time.
// - On a controller with sets, ours have the handles 0xE0 to 0xEF: the kernel counts its own from 0. Sets of other
//   programs are never touched. Of other processes with this library the owner knows the handles,
//   if the system permits it.
//
// The session never acts; it returns commands to send and events to report, in order.

/// Keeps advertising sets on air on one adapter.
package struct AdvertiseSession: ~Copyable {
    /// Names one advertising set, from its start to its end.
    package struct SetID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// The reason why a set that has started is not on air.
    package enum Pause: Hashable, Sendable {
        /// The adapter is off, gone or being reset.
        case adapterDown
        /// The owner has paused all sets, for a connection attempt.
        case requested
        /// A central has connected; the set is enabled again at once.
        case connected
        /// Another program or the kernel has disabled or changed the set with this command.
        case disturbed(by: HCIOpcode)
        /// The kernel has disabled or changed the set with this command, for a command of this program.
        case ownCommand(HCIOpcode)
        /// The controller does not advertise while it has so many links; the next attempt follows when one ends.
        case noRoom(HCIStatus)
        /// A command failed.
        case failed(HCICommandFailure)
    }

    /// The status of a set.
    package enum Status: Hashable, Sendable {
        /// Not on air for the first time yet.
        case starting
        case on
        case paused(Pause)
        /// Being ended, or ended, or never started.
        case stopped
    }

    /// The reason why a set could not be started.
    package enum StartFailure: Error, Hashable, Sendable {
        /// The controller lacks extended advertising, or the PHY.
        case notSupported
        /// As many sets as the controller or this library can have are in use.
        case noFreeSet(limit: Int)
        /// The adapter is off, gone or was reset.
        case adapterDown
        /// A command failed, at last.
        case command(HCICommandFailure)
        /// The set was stopped.
        case stopped
    }

    /// Something that the owner of the session needs to know.
    package enum Event: Hashable, Sendable {
        /// The set is on air for the first time.
        case started(SetID)
        /// The set could not be started; it is removed.
        case failed(SetID, StartFailure)
        /// The set is not on air any more; the session sees to it.
        case interrupted(SetID, Pause)
        /// The set is on air again.
        case resumed(SetID)
        /// A central has connected by this set. Not reported by controllers with one advertiser.
        case connected(SetID, ConnectionHandle)
        /// The stop that was requested is done. After a failure the set may be on air still; it is disabled later.
        case stopped(SetID, HCICommandFailure?)
        /// The pause that was requested has begun.
        case paused
    }

    /// An action for the owner to perform.
    package enum Action: Hashable, Sendable {
        /// Put this command into the adapter's queue, and call `commandFinished` with its result.
        case send(HCICommandPacket)
        /// Notify the owner.
        case notify(Event)
    }

    /// Counts since the session began.
    package struct Counts: Hashable, Sendable {
        /// The number of times that a set came on air.
        package var enabled = 0
        /// The number of times that a central connected.
        package var connections = 0
        /// The number of times that another program or the kernel took a set off air.
        package var disturbances = 0
        /// Commands that failed, those included whose failure is expected to pass.
        package var failedCommands = 0
        /// Sets of a killed program that were removed.
        package var staleSets = 0
    }

    /// What the controller holds of a set.
    private enum Position {
        /// Unknown; the set may be on air.
        case unknown
        /// A disabled set with unknown contents, or none.
        case disabled
        /// So many commands of the set-up are done; the set is ready with the last one.
        case building(Int)
        /// The set is on air.
        case on
        /// The set is ready, and on air or not: enabling and disabling it are both right.
        case uncertain
    }

    private enum Goal {
        /// On air; the start is not acknowledged yet.
        case start
        case run
        /// Off and removed; the stop is not acknowledged yet.
        case stop
        /// Off and removed; there is nothing to acknowledge.
        case cleanUp
    }

    private struct Entry {
        let id: SetID
        let handle: UInt8
        let setUp: [HCICommandPacket]
        let usesRandomAddress: Bool
        let isConnectable: Bool
        var position: Position
        var goal = Goal.start
        var retry = AdvertisingRetry()
        /// No command before this instant.
        var notBefore: BootInstant?
        var pause: Pause?
        /// Since when the set is on air, but for interruptions that end at once.
        var since: BootInstant?

        var isOn: Bool {
            if case .on = position { return true }
            return false
        }

        /// Whether the set is to be on air.
        var isWanted: Bool {
            switch goal {
            case .start, .run: true
            case .stop, .cleanUp: false
            }
        }

        var isAbandoned: Bool {
            if case .cleanUp = goal { return true }
            return false
        }

        /// Whether the set is ready, on air or not.
        var isComplete: Bool {
            switch position {
            case .on, .uncertain: true
            case .building(let count): count >= setUp.count
            case .unknown, .disabled: false
            }
        }

        var mayBeOn: Bool {
            switch position {
            case .on, .unknown, .uncertain: true
            case .disabled, .building: false
            }
        }
    }

    private enum Step {
        case disable
        case remove
        case setUp(Int)
        case enable
    }

    /// Removing what may be left at a handle.
    private struct Sweep {
        enum Step {
            case remove
            /// It was on air.
            case disable
            case removeAgain
        }

        var handle = AdvertiseSession.firstHandle
        var step = Step.remove
    }

    /// What has happened to a set whose command is out.
    private enum Disturbance {
        /// A central has connected.
        case connected
        /// The controller has ended the set, and no central has connected.
        case ended(HCIStatus)
        /// Another command has changed or disabled the set.
        case command(HCIOpcode, isOwn: Bool)
    }

    /// The command that is out.
    private enum Outstanding {
        case none
        /// For a set, and what has happened to that since.
        case entry(SetID, Step, Disturbance?)
        case sweep(Sweep)
    }

    /// The commands of this program for which the kernel disables sets.
    private enum OwnCommands {
        case none
        case out
        /// What the controller has done for the last one may not be read yet.
        case finished(BootInstant)
    }

    private enum Pausing {
        case no
        /// Not acknowledged yet.
        case requested
        case acknowledged
    }

    package let controller: Controller
    private var entries: [Entry] = []
    private var outstanding = Outstanding.none
    private var pausing = Pausing.no
    private var isAsleep = false
    private var lastNumber: UInt64 = 0
    /// The links that are known to be up, by the event of their beginning or because they were accepted; and whether
    /// their sockets were accepted.
    private var links: [ConnectionHandle: Bool] = [:]
    private var ownCommandStatus = OwnCommands.none
    /// Commands of the session without a response in time, which may still come.
    private var late: Set<HCIOpcode> = []
    /// Where to look next for sets of a killed program; `nil` when that is done.
    private var sweep: Sweep?
    /// The handles of other processes with this library.
    private var others: Set<UInt8> = []
    /// When all sets are enabled again, by the link that may have ended one: no set was reported as terminated by it.
    private var suspicions: [ConnectionHandle: BootInstant] = [:]
    package private(set) var counts = Counts()

    package init(_ controller: Controller) {
        self.controller = controller
        sweep = controller.hasSets ? Sweep() : nil
    }

    /// Returns the status of a set.
    package func status(of id: SetID) -> Status {
        guard let entry = entries.first(where: { $0.id == id }) else { return .stopped }
        return switch entry.goal {
        case .start: .starting
        case .run: entry.pause.map { .paused($0) } ?? .on
        case .stop, .cleanUp: .stopped
        }
    }

    /// A Boolean value that indicates whether nothing runs and no command is out.
    package var isResting: Bool { entries.isEmpty && !hasCommandOut }

    /// A Boolean value that indicates whether a set is on air, as far as is known. One that is put on air again at
    /// once, after a central has connected or another program has disturbed it, counts as on air.
    package var isOnAir: Bool {
        guard !isAsleep else { return false }
        return entries.contains { entry in
            switch entry.pause {
            case nil: entry.isOn
            case .connected?, .disturbed?, .ownCommand?: true
            case .adapterDown?, .requested?, .noRoom?, .failed?: false
            }
        }
    }

    /// A Boolean value that indicates whether a set is on air, and nothing was seen that has ended it.
    package var isSurelyOnAir: Bool { entries.contains { $0.isOn } }

    private var hasCommandOut: Bool {
        if case .none = outstanding { return false }
        return true
    }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        guard !isAsleep, !hasCommandOut else { return nil }
        var earliest = suspicions.values.min()
        for entry in entries where nextStep(of: entry) != nil {
            guard let notBefore = entry.notBefore else { continue }
            earliest = min(earliest ?? notBefore, notBefore)
        }
        return earliest
    }
}

// MARK: - What is wanted

extension AdvertiseSession {
    /// Puts a set on air; acknowledged by `started` or `failed`.
    ///
    /// - Parameters:
    ///   - plan: The advertisement.
    ///   - others: The handles that other processes have.
    ///   - now: The present time.
    package mutating func start(
        _ plan: AdvertisingPlan, avoiding others: Set<UInt8> = [], at now: BootInstant
    ) -> (SetID, [Action]) {
        self.others = others
        if let handle = sweep?.handle { sweepOn(from: handle) }
        lastNumber &+= 1
        let id = SetID(number: lastNumber)
        guard !isAsleep else { return (id, [.notify(.failed(id, .adapterDown))]) }
        guard controller.supports(plan) else { return (id, [.notify(.failed(id, .notSupported))]) }
        // With one advertiser, a new set begins by disabling what an earlier one may have left.
        if !controller.hasSets { entries.removeAll { $0.isAbandoned } }
        guard entries.count(where: { $0.isWanted }) < controller.setLimit, let handle = takeHandle()
        else {
            return (id, [.notify(.failed(id, .noFreeSet(limit: controller.setLimit)))])
        }
        entries.append(
            Entry(
                id: id, handle: handle, setUp: controller.setUp(plan, handle),
                usesRandomAddress: plan.randomAddress != nil, isConnectable: plan.kind == .connectable,
                position: .unknown))
        return (id, advance(at: now))
    }

    /// Takes a set off air and removes it; acknowledged by `stopped`, once for all calls.
    package mutating func stop(_ id: SetID, at now: BootInstant) -> [Action] {
        guard let index = index(of: id) else { return [.notify(.stopped(id, nil))] }
        switch entries[index].goal {
        case .stop: return []
        case .cleanUp: return [.notify(.stopped(id, nil))]
        case .start, .run: break
        }
        var actions: [Action] = []
        if case .start = entries[index].goal { actions.append(.notify(.failed(id, .stopped))) }
        if isAsleep {
            entries.remove(at: index)
            return actions + [.notify(.stopped(id, nil))]
        }
        entries[index].goal = .stop
        entries[index].notBefore = nil
        entries[index].retry.reset()
        return actions + advance(at: now)
    }

    /// Takes all sets off air for a connection attempt; acknowledged by `paused`.
    package mutating func pause(at now: BootInstant) -> [Action] {
        pausing = .requested
        // What waits for a retry may be on air.
        for index in entries.indices where entries[index].mayBeOn { entries[index].notBefore = nil }
        return advance(at: now)
    }

    /// Puts the sets on air again.
    package mutating func resume(at now: BootInstant) -> [Action] {
        let actions = acknowledgePause()
        pausing = .no
        for index in entries.indices {
            if case .start = entries[index].goal {
                // It may have been refused because of the attempt.
                entries[index].retry.reset()
            } else if entries[index].pause != .requested {
                continue
            }
            entries[index].notBefore = nil
        }
        return actions + advance(at: now)
    }
}

// MARK: - What happens

extension AdvertiseSession {
    /// The command that was sent last has its response, or failed for the reason given.
    package mutating func commandFinished(_ failure: HCICommandFailure?, at now: BootInstant)
        -> [Action]
    {
        guard hasCommandOut else { return [] }
        // No later command can report more.
        if failure?.reason == .adapterLost { return adapterDown() }
        if let failure {
            counts.failedCommands &+= 1
            if failure.reason == .timeout { late.insert(failure.opcode) }
        }
        let finished = outstanding
        outstanding = .none
        var actions: [Action] = []
        switch finished {
        case .none: break
        case .sweep(let step): swept(step, failure)
        case .entry(let id, let step, let disturbance):
            guard let index = index(of: id) else { break }
            actions = finish(step, index, failure, at: now)
            if let disturbance { actions += happened(disturbance, to: id, at: now) }
        }
        return actions + advance(at: now)
    }

    /// This program has a command out for which the kernel may disable sets, or has none any more: a change of the
    /// kernel's advertising instances, a connect.
    package mutating func ownCommands(areOut: Bool, at now: BootInstant) {
        if areOut {
            ownCommandStatus = .out
        } else if case .out = ownCommandStatus {
            ownCommandStatus = .finished(now)
        }
    }

    /// Another program's command completed on this adapter.
    ///
    /// - Parameter handles: The sets that the command names; `nil` if it is about all of them, or was not seen.
    package mutating func foreignCompletion(
        _ opcode: HCIOpcode, _ status: HCIStatus?, about handles: Set<UInt8>? = nil, at now: BootInstant
    ) -> [Action] {
        let isLate = late.remove(opcode) != nil
        guard status == .success, controller.isDisturbing(opcode) else { return [] }
        let isOwn = isLate || isForOwnCommand(at: now)
        var actions: [Action] = []
        for index in entries.indices where concerns(index, opcode, handles) {
            guard case .entry(entries[index].id, let step, let former) = outstanding else {
                actions += disturb(index, by: opcode, isOwn: isOwn, at: now)
                continue
            }
            let disturbance = joined(former, opcode, isOwn: isOwn)
            outstanding = .entry(entries[index].id, step, disturbance)
        }
        return actions + advance(at: now)
    }

    /// Whether what the kernel does now is part of a command of this program. Its response, at another socket, may be
    /// read before what the controller has done for it.
    private func isForOwnCommand(at now: BootInstant) -> Bool {
        switch ownCommandStatus {
        case .none: false
        case .out: true
        case .finished(let end): now - end <= Self.settling
        }
    }

    /// Whether another program's command may have changed or disabled a set.
    private func concerns(_ index: Int, _ opcode: HCIOpcode, _ handles: Set<UInt8>?) -> Bool {
        if opcode == .leSetRandomAddress, !entries[index].usesRandomAddress { return false }
        guard controller.hasSets, let handles else { return true }
        return handles.contains(entries[index].handle)
    }

    /// Returns what has happened to a set whose command is out, with one command more.
    private func joined(_ former: Disturbance?, _ opcode: HCIOpcode, isOwn: Bool) -> Disturbance {
        guard case .command(let earlier, let wasOwn)? = former else { return .command(opcode, isOwn: isOwn) }
        // Contents that are lost stay so, whatever follows.
        return .command(controller.keepsContents(earlier) ? opcode : earlier, isOwn: wasOwn && isOwn)
    }

    /// LE Advertising Set Terminated was read.
    package mutating func received(_ event: LEAdvertisingSetTerminated, at now: BootInstant)
        -> [Action]
    {
        // Only then does the event name a link.
        if event.status.isSuccess { suspicions[event.handle] = nil }
        guard controller.hasSets,
            let index = entries.firstIndex(where: { $0.handle == event.advertisingHandle })
        else {
            return advance(at: now)
        }
        guard entries[index].isOn || isCommandOut(for: entries[index].id) else {
            return advance(at: now)
        }
        guard event.status.isSuccess else {
            return endedWithoutLink(index, event.status, at: now) + advance(at: now)
        }
        counts.connections &+= 1
        let connected = Action.notify(.connected(entries[index].id, event.handle))
        return [connected] + centralConnected(index, at: now) + advance(at: now)
    }

    /// LE (Enhanced) Connection Complete was read: ours, the kernel's or that of a central that has connected.
    package mutating func received(_ event: LEConnectionComplete, at now: BootInstant) -> [Action] {
        guard event.status.isSuccess else { return [] }
        links[event.handle] = false
        guard !event.isCentral else { return [] }
        if controller.hasSets {
            // The set is named by LE Advertising Set Terminated, which may have been dropped by the kernel.
            suspect(event.handle, at: now)
            return []
        }
        counts.connections &+= 1
        var actions: [Action] = []
        for index in entries.indices where entries[index].isConnectable {
            actions += centralConnected(index, at: now)
        }
        return actions + advance(at: now)
    }

    /// A central's link was accepted. If its beginning was not reported, the event was dropped, and which set it has
    /// ended is not known.
    package mutating func linkAccepted(_ handle: ConnectionHandle, at now: BootInstant) {
        guard !isAsleep else { return }
        // Each link is accepted once: the end of an earlier one with this handle may have been dropped too.
        if links.updateValue(true, forKey: handle) != false { suspect(handle, at: now) }
    }

    /// A link ended: a set for which there was no room may have some now.
    package mutating func linkEnded(_ handle: ConnectionHandle, at now: BootInstant) -> [Action] {
        // Its beginning was dropped, or is older than the session.
        if links.removeValue(forKey: handle) == nil, !isAsleep { suspect(handle, at: now) }
        for index in entries.indices {
            guard Self.mayBeShortOfRoom(entries[index].pause) else { continue }
            entries[index].notBefore = nil
            // The pauses were for that.
            entries[index].retry.reset()
        }
        return advance(at: now)
    }

    /// A link may have ended a set.
    private mutating func suspect(_ handle: ConnectionHandle, at now: BootInstant) {
        if !entries.isEmpty { suspicions[handle] = now + Self.settling }
    }

    /// Called when time has passed.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        if suspicions.values.contains(where: { $0 <= now }) {
            suspicions = suspicions.filter { $0.value > now }
            // Enabling what is on air changes nothing.
            for index in entries.indices where entries[index].isOn && entries[index].isConnectable {
                noteTimeOnAir(index, isOver: false, at: now)
                entries[index].position = .uncertain
                entries[index].notBefore = nil
            }
        }
        return advance(at: now)
    }

    /// The adapter went down, was unplugged or is being reset: nothing is on air.
    package mutating func adapterDown() -> [Action] {
        isAsleep = true
        outstanding = .none
        suspicions = [:]
        links = [:]
        late = []
        var actions: [Action] = []
        for index in entries.indices {
            entries[index].position = .unknown
            entries[index].notBefore = nil
            entries[index].since = nil
            entries[index].retry.reset()
            switch entries[index].goal {
            case .start: actions.append(.notify(.failed(entries[index].id, .adapterDown)))
            case .stop: actions.append(.notify(.stopped(entries[index].id, nil)))
            case .run: actions += interrupt(index, .adapterDown)
            case .cleanUp: break
            }
        }
        entries.removeAll { entry in
            if case .run = entry.goal { return false }
            return true
        }
        return actions + acknowledgePause()
    }

    /// The adapter is up again, or its reset is over: all sets are set up again.
    package mutating func adapterUp(at now: BootInstant) -> [Action] {
        guard isAsleep else { return [] }
        isAsleep = false
        return advance(at: now)
    }
}

// MARK: - The next command

extension AdvertiseSession {
    /// Sends what is due, if no command is out; acknowledges a pause when nothing is.
    private mutating func advance(at now: BootInstant) -> [Action] {
        guard !hasCommandOut else { return [] }
        guard !isAsleep else { return acknowledgePause() }
        var actions: [Action] = []
        var index = 0
        while index < entries.count {
            let entry = entries[index]
            if isPausing, case .run = entry.goal, !entry.mayBeOn {
                actions += interrupt(index, .requested)
            }
            if isDone(entry) {
                if case .stop = entry.goal { actions.append(.notify(.stopped(entry.id, nil))) }
                entries.remove(at: index)
                continue
            }
            if let step = nextStep(of: entry), entry.notBefore.map({ $0 <= now }) ?? true {
                if let sweep {
                    outstanding = .sweep(sweep)
                    return actions + [.send(packet(sweep))]
                }
                entries[index].notBefore = nil
                outstanding = .entry(entry.id, step, nil)
                return actions + [.send(packet(step, entry))]
            }
            index += 1
        }
        return actions + acknowledgePause()
    }

    /// Whether a set that is to be removed is.
    private func isDone(_ entry: Entry) -> Bool {
        switch (entry.goal, entry.position) {
        case (.start, _), (.run, _), (_, .unknown), (_, .on), (_, .uncertain): false
        case (_, .building(0)): true
        case (_, .disabled), (_, .building): !controller.hasSets
        }
    }

    /// What is to be done next for a set, regardless of when.
    private func nextStep(of entry: Entry) -> Step? {
        switch entry.position {
        case .unknown: .disable
        case .on: entry.isWanted && !isPausing ? nil : .disable
        case .uncertain: entry.isWanted && !isPausing ? .enable : .disable
        case .disabled:
            if !entry.isWanted {
                controller.hasSets ? .remove : nil
            } else if isPausing {
                nil
            } else {
                controller.hasSets ? .remove : .setUp(0)
            }
        case .building(let count):
            if !entry.isWanted {
                controller.hasSets && count > 0 ? .remove : nil
            } else if isPausing {
                nil
            } else {
                entry.isComplete ? .enable : .setUp(count)
            }
        }
    }

    private func packet(_ sweep: Sweep) -> HCICommandPacket {
        switch sweep.step {
        case .disable: controller.enable(false, sweep.handle)
        case .remove, .removeAgain: HCICommandPacket(LERemoveAdvertisingSet(handle: sweep.handle))
        }
    }

    private func packet(_ step: Step, _ entry: Entry) -> HCICommandPacket {
        switch step {
        case .disable: controller.enable(false, entry.handle)
        case .enable: controller.enable(true, entry.handle)
        case .remove: HCICommandPacket(LERemoveAdvertisingSet(handle: entry.handle))
        // There is one more command: `isComplete` has checked that.
        case .setUp(let count):
            entry.setUp.dropFirst(count).first ?? controller.enable(false, entry.handle)
        }
    }

    private func isCommandOut(for id: SetID) -> Bool {
        if case .entry(id, _, _) = outstanding { return true }
        return false
    }

    private var isPausing: Bool {
        if case .no = pausing { return false }
        return true
    }

    /// Returns the handle of a new set. One whose removal has failed is forgotten for it before more handles are in use
    /// than the controller has sets: no sweep would look for those, and the controller may have no room for another.
    private mutating func takeHandle() -> UInt8? {
        if let free = freeHandle(in: Self.handles.prefix(controller.setLimit)) { return free }
        if let unremoved = takeUnremovedHandle() { return unremoved }
        return freeHandle(in: Self.handles[...])
    }

    private func freeHandle(in handles: Slice<ClosedRange<UInt8>>) -> UInt8? {
        handles.first { handle in !others.contains(handle) && !entries.contains { $0.handle == handle } }
    }

    /// Forgets a set whose removal has failed, and returns its handle. The set that gets it begins with the removal.
    private mutating func takeUnremovedHandle() -> UInt8? {
        for index in entries.indices where entries[index].isAbandoned && !isCommandOut(for: entries[index].id) {
            return entries.remove(at: index).handle
        }
        return nil
    }

    /// A Boolean value that indicates whether sets of a killed program are still looked for, at the handles that no
    /// other process has.
    package var isSweeping: Bool { sweep != nil }

    /// The handles that no other process may have: those of the sets that are not removed, and those where sets of a
    /// killed program are still looked for.
    package var usedHandles: Set<UInt8> {
        let used = Set(entries.map { $0.handle })
        guard let sweep, !used.isEmpty else { return used }
        return used.union(
            Self.handles.prefix(controller.setLimit).filter { $0 >= sweep.handle && !others.contains($0) })
    }

    private func index(of id: SetID) -> Int? {
        entries.firstIndex { $0.id == id }
    }
}

// MARK: - Transitions

extension AdvertiseSession {
    private mutating func finish(
        _ step: Step, _ index: Int, _ failure: HCICommandFailure?, at now: BootInstant
    ) -> [Action] {
        let isUnknownSet = failure?.status == .unknownAdvertisingIdentifier
        switch step {
        case .disable:
            noteTimeOnAir(index, isOver: true, at: now)
            if isUnknownSet {
                entries[index].position = .building(0)
            } else if failure == nil || failure?.status == .commandDisallowed {
                // A set that was on air keeps its contents; whatever else is found there does not count.
                entries[index].position =
                    entries[index].isComplete ? .building(entries[index].setUp.count) : .disabled
            } else if let failure {
                entries[index].position = .unknown
                return endingFailed(index, failure, at: now)
            }
            return []
        case .remove:
            guard let failure, !isUnknownSet else {
                entries[index].position = .building(0)
                return []
            }
            entries[index].position = .unknown
            return endingFailed(index, failure, at: now)
        case .setUp(let count):
            guard let failure else {
                entries[index].position = .building(count + 1)
                return []
            }
            entries[index].position = isUnknownSet ? .building(0) : .unknown
            return retry(index, failure, at: now)
        case .enable:
            guard let failure else { return enabled(index, at: now) }
            if isUnknownSet {
                entries[index].position = .building(0)
            } else if failure.status == nil || entries[index].retry.isExhausted {
                // The set may be on air, or lack what it needs.
                entries[index].position = .unknown
            }
            return retry(index, failure, at: now)
        }
    }

    private mutating func enabled(_ index: Int, at now: BootInstant) -> [Action] {
        entries[index].position = .on
        entries[index].since = entries[index].since ?? now
        counts.enabled &+= 1
        let id = entries[index].id
        switch entries[index].goal {
        case .start:
            entries[index].goal = .run
            entries[index].retry.reset()
            return [.notify(.started(id))]
        case .run:
            guard entries[index].pause != nil else { return [] }
            entries[index].pause = nil
            return [.notify(.resumed(id))]
        case .stop, .cleanUp:
            return []
        }
    }

    /// What has happened to a set while a command for it was out follows its response.
    private mutating func happened(_ disturbance: Disturbance, to id: SetID, at now: BootInstant) -> [Action] {
        guard let index = index(of: id) else { return [] }
        return switch disturbance {
        case .connected: centralConnected(index, at: now)
        case .ended(let status): endedWithoutLink(index, status, at: now)
        case .command(let opcode, let isOwn): disturb(index, by: opcode, isOwn: isOwn, at: now)
        }
    }

    /// Another command has changed or disabled a set, or all of them.
    ///
    /// - Parameter isOwn: Whether this program has caused it.
    private mutating func disturb(
        _ index: Int, by opcode: HCIOpcode, isOwn: Bool, at now: BootInstant
    ) -> [Action] {
        guard entries[index].isOn else {
            if !controller.keepsContents(opcode) {
                switch entries[index].position {
                case .building, .uncertain: entries[index].position = .unknown
                case .unknown, .disabled, .on: break
                }
            }
            return []
        }
        noteTimeOnAir(index, isOver: !isOwn, at: now)
        entries[index].position =
            controller.keepsContents(opcode) ? .uncertain : .unknown
        if !isOwn { counts.disturbances &+= 1 }
        guard case .run = entries[index].goal else { return [] }
        guard !isOwn else {
            entries[index].notBefore = now + Self.settling
            return interrupt(index, .ownCommand(opcode))
        }
        entries[index].notBefore = now + entries[index].retry.nextPause(first: Self.settling)
        return interrupt(index, .disturbed(by: opcode))
    }

    /// The controller has disabled a set, because a central has connected.
    private mutating func centralConnected(_ index: Int, at now: BootInstant) -> [Action] {
        guard entries[index].isOn else {
            // The response to the command that is out reports less than this event.
            if case .entry(entries[index].id, .enable, nil) = outstanding {
                outstanding = .entry(entries[index].id, .enable, .connected)
            }
            return []
        }
        noteTimeOnAir(index, isOver: false, at: now)
        entries[index].position = .uncertain
        guard case .run = entries[index].goal else { return [] }
        return interrupt(index, .connected)
    }

    /// The controller has ended a set, and no central has connected. It may do so each time at once.
    private mutating func endedWithoutLink(_ index: Int, _ status: HCIStatus, at now: BootInstant) -> [Action] {
        if case .entry(entries[index].id, .enable, let former) = outstanding, !entries[index].isOn {
            if case .command? = former { return [] }
            outstanding = .entry(entries[index].id, .enable, .ended(status))
            return []
        }
        guard entries[index].isOn, case .run = entries[index].goal else { return centralConnected(index, at: now) }
        noteTimeOnAir(index, isOver: true, at: now)
        entries[index].position = .uncertain
        let opcode = controller.enable(true, entries[index].handle).opcode
        return retry(index, HCICommandFailure(opcode: opcode, reason: .status(status)), at: now)
    }

    /// A set that is on air no more: pauses are short again after a long time there.
    ///
    /// - Parameter isOver: Whether it is not on air again at once.
    private mutating func noteTimeOnAir(_ index: Int, isOver: Bool, at now: BootInstant) {
        guard let since = entries[index].since else { return }
        if entries[index].isOn { entries[index].retry.reset(afterOnAirFor: now - since) }
        if isOver { entries[index].since = nil }
    }

    private mutating func interrupt(_ index: Int, _ pause: Pause) -> [Action] {
        guard entries[index].pause != pause else { return [] }
        entries[index].pause = pause
        return [.notify(.interrupted(entries[index].id, pause))]
    }

    /// Waits before the next attempt, or gives up a start.
    private mutating func retry(_ index: Int, _ failure: HCICommandFailure, at now: BootInstant)
        -> [Action]
    {
        let id = entries[index].id
        entries[index].since = nil
        // A set that another program has removed is set up again soon.
        let isUnknownSet = failure.status == .unknownAdvertisingIdentifier
        switch entries[index].goal {
        case .start:
            entries[index].notBefore = now + entries[index].retry.nextPause()
            // Some controllers do not advertise while they initiate.
            if case .out = ownCommandStatus, failure.status == .commandDisallowed { return [] }
            guard Self.isFinal(failure) || entries[index].retry.isExhausted else {
                return []
            }
            entries[index].goal = .cleanUp
            entries[index].notBefore = nil
            entries[index].retry.reset()
            let others = entries.count(where: { $0.isWanted })
            let isFull =
                failure.opcode == .leSetExtendedAdvertisingParameters
                && failure.status == .memoryCapacityExceeded
            return [.notify(.failed(id, isFull ? .noFreeSet(limit: others) : .command(failure)))]
        case .run:
            let first = isUnknownSet ? Self.settling : AdvertisingRetry.firstPause
            entries[index].notBefore = now + entries[index].retry.nextPause(first: first)
            let isRefusal =
                failure.opcode == controller.enable(true, 0).opcode && Self.isShortage(failure.status)
            guard let status = failure.status, !links.isEmpty, isRefusal else {
                return interrupt(index, .failed(failure))
            }
            return interrupt(index, .noRoom(status))
        case .stop, .cleanUp:
            // It is disabled next, whatever has failed.
            return []
        }
    }

    /// A set was not disabled or not removed.
    private mutating func endingFailed(
        _ index: Int, _ failure: HCICommandFailure, at now: BootInstant
    ) -> [Action] {
        if entries[index].isWanted { return retry(index, failure, at: now) }
        entries[index].notBefore = now + entries[index].retry.nextPause()
        guard case .stop = entries[index].goal else { return [] }
        let id = entries[index].id
        entries[index].goal = .cleanUp
        // With one advertiser, a set that has been started meanwhile begins by disabling this one.
        if !controller.hasSets, entries.contains(where: { $0.isWanted }) { entries.remove(at: index) }
        return [.notify(.stopped(id, failure))]
    }

    private mutating func swept(_ done: Sweep, _ failure: HCICommandFailure?) {
        if let failure, failure.status == nil {
            // A controller that is silent would be so sixteen times.
            sweep = nil
            return
        }
        switch done.step {
        case .remove where failure?.status == .commandDisallowed: sweep?.step = .disable
        case .disable: sweep?.step = .removeAgain
        case .remove, .removeAgain:
            if failure == nil { counts.staleSets &+= 1 }
            sweepOn(from: done.handle + 1)
        }
    }

    /// Looks next at the first handle that no other process has.
    private mutating func sweepOn(from first: UInt8) {
        if let sweep, sweep.handle == first, !others.contains(first) { return }
        let next = Self.handles.prefix(controller.setLimit).first { $0 >= first && !others.contains($0) }
        sweep = next.map { Sweep(handle: $0) }
    }

    private mutating func acknowledgePause() -> [Action] {
        guard case .requested = pausing else { return [] }
        pausing = .acknowledged
        return [.notify(.paused)]
    }

    /// Whether another attempt would fail as well.
    private static func isFinal(_ failure: HCICommandFailure) -> Bool {
        switch failure.status {
        case .unknownCommand, .memoryCapacityExceeded, .unsupportedFeature, .invalidParameters,
            .packetTooLong:
            true
        default: false
        }
    }

    /// Whether the end of a link may be what a set waits for. Links that are older than the session are not counted, so
    /// that the controller may be short of room although no link is known.
    private static func mayBeShortOfRoom(_ pause: Pause?) -> Bool {
        switch pause {
        case .noRoom?: true
        case .failed(let failure)?: isShortage(failure.status)
        case nil, .adapterDown?, .requested?, .connected?, .disturbed?, .ownCommand?: false
        }
    }

    /// Whether the controller may have refused because it has a link.
    private static func isShortage(_ status: HCIStatus?) -> Bool {
        switch status {
        case .commandDisallowed, .connectionLimitExceeded, .connectionRejectedLimitedResources,
            .memoryCapacityExceeded:
            true
        default: false
        }
    }
}

extension AdvertiseSession {
    /// The handles of this library: the kernel's begin with 0.
    package static let firstHandle: UInt8 = 0xE0
    /// The greatest handle that the specification allows.
    package static let lastHandle: UInt8 = 0xEF
    package static let handles = firstHandle...lastHandle
    /// The pause after a disturbance: in it the kernel sends the command for which it has disabled the sets.
    package static let settling: Duration = .milliseconds(60)
}

// MARK: - The controller

extension AdvertiseSession {
    /// The properties of the controller that the session needs.
    package struct Controller: Hashable, Sendable {
        /// A Boolean value that indicates whether the controller has advertising sets, and extended PDUs.
        package let hasSets: Bool
        /// The number of sets that the session may have.
        package let setLimit: Int
        /// The number of bytes of data that an extended advertisement may have.
        package let maximumDataLength: Int
        private let phys: LEPHYs

        /// Sets need the feature, and the commands where the controller lists them. Without what the controller reports
        /// of its sets, their number is found out by trying, and they have 31 bytes of data.
        package init(
            features: LEFeatures, commands: HCISupportedCommands? = nil, maximumSets: UInt8? = nil,
            maximumDataLength: UInt16? = nil
        ) {
            hasSets = features.contains(.extendedAdvertising) && commands?.hasExtendedAdvertising ?? true
            let handles = Int(AdvertiseSession.lastHandle - AdvertiseSession.firstHandle) + 1
            setLimit = hasSets ? min(maximumSets.map { Int($0) } ?? handles, handles) : 1
            self.maximumDataLength = hasSets ? Int(maximumDataLength ?? 31) : 31
            phys = features.phys
        }

        /// Returns how much data an advertisement holds.
        package func limits(_ kind: AdvertisingPlan.Kind, usesExtendedPDUs: Bool)
            -> AdvertisementData.Limits
        {
            AdvertisingPlan.limits(kind, usesExtendedPDUs: usesExtendedPDUs, maximum: maximumDataLength)
        }

        fileprivate func supports(_ plan: AdvertisingPlan) -> Bool {
            guard plan.usesExtendedPDUs else { return true }
            guard hasSets, supports(plan.primaryPHY), supports(plan.secondaryPHY) else { return false }
            return max(plan.payload.advertisingData.count, plan.payload.scanResponse.count)
                <= maximumDataLength
        }

        private func supports(_ phy: PHY) -> Bool {
            switch phy {
            case .le2M: phys.contains(.le2M)
            case .leCoded: phys.contains(.leCoded)
            default: true
            }
        }
    }
}

// The two kinds of commands.
extension AdvertiseSession.Controller {
    fileprivate func enable(_ isEnabled: Bool, _ handle: UInt8) -> HCICommandPacket {
        hasSets
            ? HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: isEnabled, handles: [handle]))
            : HCICommandPacket(LESetAdvertisingEnable(isEnabled: isEnabled))
    }

    /// Whether another program's command may have taken a set off air, or changed it.
    fileprivate func isDisturbing(_ opcode: HCIOpcode) -> Bool {
        switch opcode {
        case .leSetExtendedAdvertisingEnable, .leRemoveAdvertisingSet, .leClearAdvertisingSets: hasSets
        case .leSetAdvertisingEnable, .leSetAdvertisingParameters, .leSetAdvertisingData,
            .leSetScanResponseData,
            .leSetRandomAddress:
            !hasSets
        default: false
        }
    }

    /// Whether enabling suffices after another program's command. A set that was removed is noticed by that.
    fileprivate func keepsContents(_ opcode: HCIOpcode) -> Bool {
        hasSets || opcode == .leSetAdvertisingEnable
    }

    /// Returns the commands that make a set ready, in order.
    fileprivate func setUp(_ plan: AdvertisingPlan, _ handle: UInt8) -> [HCICommandPacket] {
        hasSets ? extendedSetUp(plan, handle) : legacySetUp(plan)
    }

    private func legacySetUp(_ plan: AdvertisingPlan) -> [HCICommandPacket] {
        var packets: [HCICommandPacket] = []
        if let address = plan.randomAddress {
            packets.append(HCICommandPacket(LESetRandomAddress(address: address)))
        }
        packets.append(
            HCICommandPacket(
                LESetAdvertisingParameters(
                    kind: plan.kind, interval: plan.interval,
                    ownAddressType: plan.randomAddress == nil ? .public : .random)))
        // Another program's data may be there.
        if let data = LESetAdvertisingData(data: plan.payload.advertisingData) {
            packets.append(HCICommandPacket(data))
        }
        if let response = LESetScanResponseData(data: plan.payload.scanResponse) {
            packets.append(HCICommandPacket(response))
        }
        return packets
    }

    private func extendedSetUp(_ plan: AdvertisingPlan, _ handle: UInt8) -> [HCICommandPacket] {
        var properties: LESetExtendedAdvertisingParameters.Properties =
            plan.usesExtendedPDUs ? [] : .legacy
        switch plan.kind {
        case .connectable:
            properties.formUnion(plan.usesExtendedPDUs ? .connectable : [.connectable, .scannable])
        case .scannable: properties.insert(.scannable)
        case .nonconnectable: break
        }
        var packets = [
            HCICommandPacket(
                LESetExtendedAdvertisingParameters(
                    handle: handle, properties: properties,
                    interval: UInt32(plan.interval.lowerBound)...UInt32(plan.interval.upperBound),
                    ownAddressType: plan.randomAddress == nil ? .public : .random, txPower: plan.txPower,
                    primaryPHY: plan.primaryPHY, secondaryPHY: plan.secondaryPHY, sid: handle & 0x0F))
        ]
        if let address = plan.randomAddress {
            packets.append(
                HCICommandPacket(LESetAdvertisingSetRandomAddress(handle: handle, address: address)))
        }
        // A new set has no data.
        if !plan.payload.advertisingData.isEmpty {
            packets += AdvertisingDataFragment.fragments(of: plan.payload.advertisingData)
                .map { HCICommandPacket(LESetExtendedAdvertisingData(handle: handle, fragment: $0)) }
        }
        if !plan.payload.scanResponse.isEmpty {
            packets += AdvertisingDataFragment.fragments(of: plan.payload.scanResponse)
                .map { HCICommandPacket(LESetExtendedScanResponseData(handle: handle, fragment: $0)) }
        }
        return packets
    }
}
