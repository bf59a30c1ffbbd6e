// The advertising instances that this program has in the kernel, on one adapter: adds them by the management interface,
// keeps them there, and removes them.
//
// Duties: choose the number of each instance. Add it again when a central has connected, when another program has
// removed it, and after the adapter was off or away. Remove at a start what a killed program has left.
//
// What the kernel does with instances, and how that is known: Docs/maintainers/advertising-instances.md.
//
// Invariants:
// - One command of the session is out at a time, as the kernel wants it for all programs. `advance` alone sends, and it
//   looks at all instances each time: what is requested meanwhile changes the goal of an instance, and takes effect
//   with the response.
// - `start` ends exactly once, by `started` or `failed`, and so does `stop`, by `stopped`; a stop also ends a start
//   that is under way. After `failed` and `stopped` the identifier means nothing.
// - An instance that has started never ends by itself. Whatever fails afterwards is retried after a pause that doubles
//   up to 30 s, and is short again after the instance was on air for 10 s. The connections of centrals are part of that
//   time.
// - The kernel keeps instances while the adapter is off, and puts them on air when it is on again; with advertising
//   sets, Set Powered removes them. Some kernels remove one while the adapter is off, and the others refuse the packet
//   with ENETDOWN: a stop tries it once, and what is left is removed once the adapter is on. Those that are to be on
//   air are then removed and added. The kernel forgets the instances of an adapter that is unplugged.
// - With advertising sets, the kernel leaves an instance off air while the link lasts that a central has made by it.
//   Adding it again puts it on air at once. Without sets the kernel does that by itself.
// - Numbers are taken from the greatest one down, because other programs begin with 1. Those in the upper half, 16 at
//   most, are taken for instances of this library: what is there and belongs to no process was left by a killed one,
//   unless bluetoothd runs, which may have so many. Since 6.1 the kernel does not list a number that is greater than
//   the number of instances. So all of them are removed that are not in use, listed or not: replacing one would leave
//   its scan response on air. The numbers of advertising sets of `AdvertiseSession` are not used: the kernel gives each
//   instance the set of its number, or the set 0 where a controller has only one.
// - What could not be removed is removed later; `stopped` reports the first failure. Some removals never succeed: with
//   one advertising set, some kernels remove the wrong one. So a start that finds no other number replaces what is
//   left.
//
// The session never acts; it returns commands to send and events to report, in order.

/// Keeps advertising instances in the kernel for one adapter.
package struct InstanceSession: ~Copyable {
    /// Names one instance, from its start to its end.
    package struct InstanceID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// The reason why an instance that has started is not on air.
    package enum Pause: Hashable, Sendable {
        /// The adapter is off, gone or being reset.
        case adapterDown
        /// The owner has paused all instances, for a connection attempt.
        case requested
        /// A central has connected; the instance is added again at once.
        case connected
        /// Another program has removed the instance.
        case removed
        /// A command failed.
        case failed(ManagementCommandFailure)
    }

    /// The status of an instance.
    package enum Status: Hashable, Sendable {
        /// Not on air for the first time yet.
        case starting
        case on
        case paused(Pause)
        /// Being ended, or ended, or never started.
        case stopped
    }

    /// The reason why an instance could not be started.
    package enum StartFailure: Error, Hashable, Sendable {
        /// The kernel or the controller lacks the interval, extended PDUs, this PHY, or the room for the data.
        case notSupported
        /// As many instances as the kernel can have are in use, by all programs.
        case noFreeInstance(limit: Int)
        /// The adapter is off or gone.
        case adapterDown
        /// A command failed, at last.
        case command(ManagementCommandFailure)
        /// The instance was stopped.
        case stopped
    }

    /// Something that the owner of the session needs to know.
    package enum Event: Hashable, Sendable {
        /// The instance is on air for the first time.
        case started(InstanceID)
        /// The instance could not be started; it is removed.
        case failed(InstanceID, StartFailure)
        /// The instance is not on air any more; the session adds it again.
        case interrupted(InstanceID, Pause)
        /// The instance is on air again.
        case resumed(InstanceID)
        /// The stop has ended. After a failure the instance may still be on air; it is removed later.
        case stopped(InstanceID, ManagementCommandFailure?)
        /// The pause that was requested has begun.
        case paused
    }

    /// A command to the management interface.
    package enum Command: Hashable, Sendable {
        case remove(ManagementRemoveAdvertising)
        case setParameters(ManagementAddExtendedAdvertisingParameters)
        case setData(ManagementAddExtendedAdvertisingData)
    }

    /// An action for the owner to perform.
    package enum Action: Hashable, Sendable {
        /// Send this command, and call `commandFinished` with its result.
        case send(Command)
        /// Notify the owner.
        case notify(Event)
    }

    /// What the kernel has of an instance.
    private enum Position {
        /// Unknown; there may be one with this number.
        case unknown
        /// None, or one that is to be replaced.
        case absent
        /// The parameters.
        case described
        /// The instance is on air.
        case on
    }

    private enum Goal {
        /// On air; the start is not acknowledged yet.
        case start
        case run
        /// Removed; the stop is not acknowledged yet.
        case stop
        /// Removed; there is nothing to acknowledge.
        case cleanUp
    }

    private struct Entry {
        let id: InstanceID
        let number: UInt8
        let parameters: ManagementAddExtendedAdvertisingParameters
        let data: ManagementAddExtendedAdvertisingData
        var position: Position
        var goal = Goal.start
        var retry = AdvertisingRetry()
        /// No command before this instant.
        var notBefore: BootInstant?
        var pause: Pause?
        /// Since when the instance is on air, but for the connections of centrals.
        var since: BootInstant?

        var isConnectable: Bool { parameters.flags.contains(.connectable) }

        /// Whether the instance is to be on air.
        var isWanted: Bool {
            switch goal {
            case .start, .run: true
            case .stop, .cleanUp: false
            }
        }

        var isAbsent: Bool {
            if case .absent = position { return true }
            return false
        }
    }

    private enum Step {
        case remove, setParameters, setData
    }

    /// What has happened to an instance whose command is out.
    private enum Disturbance {
        case removed, connected
    }

    /// The command that is out.
    private enum Outstanding {
        case none
        case entry(InstanceID, Step, Disturbance?)
        case stale(UInt8)
    }

    private enum Pausing {
        case no
        /// Not acknowledged yet.
        case requested
        case acknowledged
    }

    private enum Power {
        case on, off, gone
    }

    private var entries: [Entry] = []
    private var outstanding = Outstanding.none
    private var pausing = Pausing.no
    private var power = Power.on
    private var lastID: UInt64 = 0
    /// The numbers to be removed at which killed programs may have left instances.
    private var stale: [UInt8] = []
    private var hasSets = false

    package init() {}

    /// Returns the status of an instance.
    package func status(of id: InstanceID) -> Status {
        guard let entry = entries.first(where: { $0.id == id }) else { return .stopped }
        return switch entry.goal {
        case .start: .starting
        case .run: entry.pause.map { .paused($0) } ?? .on
        case .stop, .cleanUp: .stopped
        }
    }

    /// Returns a Boolean value that indicates whether centrals may connect by an instance.
    package func isConnectable(_ id: InstanceID) -> Bool {
        entries.first { $0.id == id }?.isConnectable ?? false
    }

    /// A Boolean value that indicates whether an instance is on air.
    package var isOnAir: Bool {
        entries.contains { entry in
            if case .on = entry.position { true } else { false }
        }
    }

    /// The numbers of the instances that are not removed.
    package var usedNumbers: Set<UInt8> { Set(entries.map { $0.number }) }

    /// The numbers that no other process with this library may use: those of the instances, and those to be removed.
    package var claimedNumbers: Set<UInt8> { usedNumbers.union(stale) }

    /// A Boolean value that indicates whether nothing runs and no command is out.
    package var isResting: Bool { entries.isEmpty && !hasCommandOut }

    private var hasCommandOut: Bool {
        if case .none = outstanding { return false }
        return true
    }

    private var isPausing: Bool {
        if case .no = pausing { return false }
        return true
    }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        guard !hasCommandOut else { return nil }
        var earliest: BootInstant?
        for entry in entries where nextStep(of: entry) != nil {
            guard let notBefore = entry.notBefore else { continue }
            earliest = min(earliest ?? notBefore, notBefore)
        }
        return earliest
    }
}

// MARK: - What is wanted

extension InstanceSession {
    /// Adds an instance; acknowledged by `started` or `failed`.
    ///
    /// - Parameters:
    ///   - plan: The advertisement. Its random address is of no use: the kernel chooses the address.
    ///   - kernel: The instances that the kernel can have, and those that it has now.
    ///   - others: The numbers that others have, as far as they are known: they are neither used nor reclaimed.
    ///   - reclaims: Whether what has a number of this library and belongs to no process was left by a killed one.
    ///   - now: The present time.
    package mutating func start(
        _ plan: AdvertisingPlan, on kernel: ManagementAdvertisingFeatures, avoiding others: Set<UInt8> = [],
        reclaims: Bool = false, at now: BootInstant
    ) -> (InstanceID, [Action]) {
        lastID &+= 1
        let id = InstanceID(number: lastID)
        guard case .on = power else { return (id, [.notify(.failed(id, .adapterDown))]) }
        let payload = plan.payload
        guard let flags = Self.flags(of: plan), kernel.supportedFlags.isSuperset(of: flags),
            payload.advertisingData.count <= Int(kernel.maximumDataLength),
            payload.scanResponse.count <= Int(kernel.maximumScanResponseLength)
        else { return (id, [.notify(.failed(id, .notSupported))]) }
        hasSets = kernel.hasSets
        if reclaims {
            let used = usedNumbers
            for number in Self.ownNumbers(of: kernel) where !others.contains(number) && !used.contains(number) {
                if !stale.contains(number) { stale.append(number) }
            }
        }
        let free = freeNumber(kernel, others)
        let unremoved = free == nil ? takeUnremovedNumber() : nil
        guard let number = free ?? unremoved else {
            return (id, [.notify(.failed(id, .noFreeInstance(limit: Int(kernel.maximumInstances))))])
        }
        entries.append(
            Entry(
                id: id, number: number,
                parameters: ManagementAddExtendedAdvertisingParameters(
                    number, flags, interval: UInt32(plan.interval.lowerBound)...UInt32(plan.interval.upperBound),
                    txPower: plan.txPower ?? 0x7F),
                data: ManagementAddExtendedAdvertisingData(
                    number, data: payload.advertisingData, scanResponse: payload.scanResponse),
                position: free == nil ? .unknown : .absent))
        return (id, advance(at: now))
    }

    /// Removes an instance; acknowledged by `stopped`, once for all calls.
    package mutating func stop(_ id: InstanceID, at now: BootInstant) -> [Action] {
        guard let index = index(of: id) else { return [.notify(.stopped(id, nil))] }
        var actions: [Action] = []
        switch entries[index].goal {
        case .stop: return []
        case .cleanUp: return [.notify(.stopped(id, nil))]
        case .start: actions.append(.notify(.failed(id, .stopped)))
        case .run: break
        }
        entries[index].goal = .stop
        entries[index].notBefore = nil
        entries[index].retry.reset()
        return actions + advance(at: now)
    }

    /// Removes all instances for a connection attempt; acknowledged by `paused`.
    package mutating func pause(at now: BootInstant) -> [Action] {
        pausing = .requested
        // What waits for a retry may be on air.
        for index in entries.indices where !entries[index].isAbsent { entries[index].notBefore = nil }
        return advance(at: now)
    }

    /// Adds the instances again.
    package mutating func resume(at now: BootInstant) -> [Action] {
        let actions = acknowledgePause()
        pausing = .no
        for index in entries.indices where entries[index].pause == .requested {
            entries[index].notBefore = nil
        }
        return actions + advance(at: now)
    }
}

// MARK: - What happens

extension InstanceSession {
    /// The command that was sent last has its response, or failed for the reason given.
    package mutating func commandFinished(_ failure: ManagementCommandFailure?, at now: BootInstant) -> [Action] {
        guard hasCommandOut else { return [] }
        if failure?.reason == .adapterLost { return adapterGone() }
        let finished = outstanding
        outstanding = .none
        var actions: [Action] = []
        switch finished {
        case .none: break
        case .stale(let number):
            stale.removeAll { $0 == number }
        case .entry(let id, let step, let disturbance):
            guard let index = index(of: id) else { break }
            actions = finish(step, index, failure, wasRemoved: disturbance == .removed, at: now)
            switch disturbance {
            case .removed: actions += removed(index, at: now)
            case .connected: actions += centralConnected(index, at: now)
            case nil: break
            }
        }
        return actions + advance(at: now)
    }

    /// An event of the adapter was read.
    package mutating func received(_ event: ManagementEvent.Content, at now: BootInstant) -> [Action] {
        switch event {
        case .advertisingRemoved(let number):
            guard let index = entries.firstIndex(where: { $0.number == number }) else { return [] }
            if disturbCommand(of: entries[index].id, .removed) { return [] }
            return removed(index, at: now) + advance(at: now)
        case .deviceConnected(let link):
            guard hasSets, link.flags & Self.isInitiated == 0 else { return [] }
            var actions: [Action] = []
            for index in entries.indices where entries[index].isConnectable {
                if !disturbCommand(of: entries[index].id, .connected) { actions += centralConnected(index, at: now) }
            }
            return actions + advance(at: now)
        case .deviceDisconnected:
            // There may be room now.
            for index in entries.indices {
                if case .failed = entries[index].pause { entries[index].notBefore = nil }
            }
            return advance(at: now)
        case .newSettings(let settings):
            guard settings.contains(.powered) else { return adapterDown(at: now) }
            // For one that was unplugged the owner decides: the kernel has no keys for the centrals that would connect.
            if case .gone = power { return [] }
            return adapterUp(at: now)
        default:
            return []
        }
    }

    /// Called when time has passed.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        return advance(at: now)
    }

    /// The adapter went down, or is being reset: nothing is on air.
    package mutating func adapterDown(at now: BootInstant) -> [Action] {
        guard case .on = power else { return [] }
        power = .off
        var actions: [Action] = []
        for index in entries.indices {
            entries[index].position = .unknown
            entries[index].notBefore = nil
            entries[index].since = nil
            entries[index].retry.reset()
            switch entries[index].goal {
            case .start:
                entries[index].goal = .cleanUp
                actions.append(.notify(.failed(entries[index].id, .adapterDown)))
            case .run: actions += interrupt(index, .adapterDown)
            case .stop, .cleanUp: break
            }
        }
        return actions + advance(at: now)
    }

    /// The adapter was unplugged, and the kernel has forgotten its instances.
    package mutating func adapterGone() -> [Action] {
        power = .gone
        outstanding = .none
        stale = []
        var actions: [Action] = []
        for index in entries.indices {
            entries[index].position = .absent
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

    /// The adapter is up again, or its reset is over: all instances are added again.
    package mutating func adapterUp(at now: BootInstant) -> [Action] {
        if case .on = power { return [] }
        power = .on
        for index in entries.indices { entries[index].notBefore = nil }
        return advance(at: now)
    }

    /// The socket was lost: what has happened to the instances since then is not known.
    package mutating func interfaceLost(at now: BootInstant) {
        for index in entries.indices {
            guard case .on = entries[index].position else { continue }
            countTimeOnAir(index, isOver: true, at: now)
            entries[index].position = .unknown
            entries[index].notBefore = now + entries[index].retry.nextPause()
        }
    }
}

// MARK: - The next command

extension InstanceSession {
    /// Sends what is due, if no command is out; acknowledges a pause when nothing is.
    private mutating func advance(at now: BootInstant) -> [Action] {
        guard !hasCommandOut else { return [] }
        if let number = stale.first {
            outstanding = .stale(number)
            return [.send(.remove(ManagementRemoveAdvertising(number)))]
        }
        var actions: [Action] = []
        var index = 0
        while index < entries.count {
            let entry = entries[index]
            if isPausing, case .on = power, case .run = entry.goal, entry.isAbsent {
                actions += interrupt(index, .requested)
            }
            if !entry.isWanted, entry.isAbsent {
                if case .stop = entry.goal { actions.append(.notify(.stopped(entry.id, nil))) }
                entries.remove(at: index)
                continue
            }
            if let step = nextStep(of: entry), entry.notBefore.map({ $0 <= now }) ?? true {
                entries[index].notBefore = nil
                outstanding = .entry(entry.id, step, nil)
                return actions + [.send(command(step, entry))]
            }
            index += 1
        }
        return actions + acknowledgePause()
    }

    /// What is to be done next for an instance, regardless of when.
    private func nextStep(of entry: Entry) -> Step? {
        switch power {
        case .gone: return nil
        case .off:
            // What is to be on air is replaced once the adapter is on, and what could not be removed is removed then.
            guard case .stop = entry.goal else { return nil }
        case .on: break
        }
        let isAdded = entry.isWanted && !isPausing
        return switch entry.position {
        case .unknown: .remove
        case .absent: isAdded ? .setParameters : nil
        case .described: isAdded ? .setData : .remove
        case .on: isAdded ? nil : .remove
        }
    }

    private func command(_ step: Step, _ entry: Entry) -> Command {
        switch step {
        case .remove: .remove(ManagementRemoveAdvertising(entry.number))
        case .setParameters: .setParameters(entry.parameters)
        case .setData: .setData(entry.data)
        }
    }

    private func index(of id: InstanceID) -> Int? {
        entries.firstIndex { $0.id == id }
    }

    private func freeNumber(_ kernel: ManagementAdvertisingFeatures, _ others: Set<UInt8>) -> UInt8? {
        let used = usedNumbers
        return (1...Self.greatestNumber).reversed().first { number in
            number <= kernel.maximumInstances && !others.contains(number) && !used.contains(number)
                && (!kernel.instances.contains(number) || stale.contains(number))
        }
    }

    /// Forgets an instance whose removal has failed, and returns its number.
    private mutating func takeUnremovedNumber() -> UInt8? {
        var busy: InstanceID?
        if case .entry(let id, _, _) = outstanding { busy = id }
        for index in entries.indices {
            guard case .cleanUp = entries[index].goal, entries[index].id != busy else { continue }
            return entries.remove(at: index).number
        }
        return nil
    }
}

// MARK: - Transitions

extension InstanceSession {
    private mutating func finish(
        _ step: Step, _ index: Int, _ failure: ManagementCommandFailure?, wasRemoved: Bool, at now: BootInstant
    ) -> [Action] {
        switch step {
        case .remove:
            countTimeOnAir(index, isOver: true, at: now)
            // Invalid Parameters: there is none.
            guard let failure, failure.status != .invalidParameters else {
                entries[index].position = .absent
                return []
            }
            // What is there is replaced, unless the power is off: then it may be on air again with it.
            if entries[index].isWanted, !isPausing, case .on = power {
                entries[index].position = .absent
                return []
            }
            entries[index].position = .unknown
            return endingFailed(index, failure, at: now)
        case .setParameters:
            guard let failure else {
                // Its power may have been off meanwhile.
                if case .on = power { entries[index].position = .described } else { entries[index].position = .unknown }
                return []
            }
            entries[index].position = .unknown
            return retry(index, failure, isFinal: Self.isFinal(failure), at: now)
        case .setData:
            guard let failure else { return added(index, at: now) }
            entries[index].position = .unknown
            // One that was removed meanwhile may be added again.
            return retry(index, failure, isFinal: !wasRemoved && Self.isFinal(failure), at: now)
        }
    }

    private mutating func added(_ index: Int, at now: BootInstant) -> [Action] {
        let id = entries[index].id
        // It was switched off meanwhile.
        guard case .on = power else {
            entries[index].position = .unknown
            return []
        }
        entries[index].position = .on
        entries[index].since = entries[index].since ?? now
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

    /// Notes what has happened to an instance whose command is out, for the time when it has its response; `false` if
    /// none is.
    private mutating func disturbCommand(of id: InstanceID, _ disturbance: Disturbance) -> Bool {
        guard case .entry(let other, let step, let former) = outstanding, other == id else { return false }
        if case .removed = former { return true }
        outstanding = .entry(id, step, disturbance)
        return true
    }

    /// Another program has removed an instance.
    private mutating func removed(_ index: Int, at now: BootInstant) -> [Action] {
        guard case .on = entries[index].position else {
            entries[index].position = .absent
            return []
        }
        countTimeOnAir(index, isOver: true, at: now)
        entries[index].position = .absent
        guard case .run = entries[index].goal else { return [] }
        entries[index].notBefore = now + entries[index].retry.nextPause()
        return interrupt(index, .removed)
    }

    /// The kernel has taken an instance off air for a link.
    private mutating func centralConnected(_ index: Int, at now: BootInstant) -> [Action] {
        guard case .on = entries[index].position, case .run = entries[index].goal else { return [] }
        countTimeOnAir(index, isOver: false, at: now)
        // To be replaced by the same.
        entries[index].position = .absent
        return interrupt(index, .connected)
    }

    /// Called before an instance that may be on air goes off: after a long time there, pauses are short again.
    ///
    /// - Parameter isOver: Whether it is not on air again at once.
    private mutating func countTimeOnAir(_ index: Int, isOver: Bool, at now: BootInstant) {
        guard let since = entries[index].since else { return }
        if case .on = entries[index].position { entries[index].retry.reset(afterOnAirFor: now - since) }
        if isOver { entries[index].since = nil }
    }

    private mutating func interrupt(_ index: Int, _ pause: Pause) -> [Action] {
        guard entries[index].pause != pause else { return [] }
        entries[index].pause = pause
        return [.notify(.interrupted(entries[index].id, pause))]
    }

    /// Waits before the next attempt, or gives up a start.
    private mutating func retry(
        _ index: Int, _ failure: ManagementCommandFailure, isFinal: Bool, at now: BootInstant
    ) -> [Action] {
        let id = entries[index].id
        entries[index].since = nil
        switch entries[index].goal {
        case .start:
            entries[index].notBefore = now + entries[index].retry.nextPause()
            guard isFinal || entries[index].retry.isExhausted else { return [] }
            entries[index].goal = .cleanUp
            entries[index].notBefore = nil
            entries[index].retry.reset()
            return [.notify(.failed(id, .command(failure)))]
        case .run:
            guard case .on = power else { return [] }
            entries[index].notBefore = now + entries[index].retry.nextPause()
            return interrupt(index, .failed(failure))
        case .stop, .cleanUp:
            // It is removed next, whatever has failed.
            return []
        }
    }

    /// An instance was not removed.
    private mutating func endingFailed(
        _ index: Int, _ failure: ManagementCommandFailure, at now: BootInstant
    ) -> [Action] {
        if entries[index].isWanted { return retry(index, failure, isFinal: Self.isFinal(failure), at: now) }
        entries[index].notBefore = now + entries[index].retry.nextPause()
        guard case .stop = entries[index].goal else { return [] }
        entries[index].goal = .cleanUp
        return [.notify(.stopped(entries[index].id, failure))]
    }

    private mutating func acknowledgePause() -> [Action] {
        guard case .requested = pausing else { return [] }
        pausing = .acknowledged
        return [.notify(.paused)]
    }

    /// Whether another attempt would fail as well.
    private static func isFinal(_ failure: ManagementCommandFailure) -> Bool {
        switch failure.status {
        case .unknownCommand, .notSupported, .invalidParameters, .permissionDenied, .rejected, .notPowered,
            .noResources, .blocked, .invalidIndex:
            true
        default: false
        }
    }

    /// Returns the flags of an advertisement; `nil` for PHYs that the kernel does not offer.
    private static func flags(of plan: AdvertisingPlan) -> ManagementAdvertisingFlags? {
        var flags: ManagementAdvertisingFlags = .intervals
        switch plan.kind {
        case .connectable: flags.insert(.connectable)
        case .scannable: flags.insert(.scanResponse)
        case .nonconnectable: break
        }
        if plan.txPower != nil { flags.insert(.txPower) }
        guard plan.usesExtendedPDUs else { return flags }
        if plan.primaryPHY == .leCoded {
            guard plan.secondaryPHY == .leCoded else { return nil }
            flags.insert(.secondaryCoded)
        } else if plan.secondaryPHY == .le2M {
            flags.insert(.secondary2M)
        } else if plan.secondaryPHY == .le1M {
            flags.insert(.secondary1M)
        } else {
            return nil
        }
        return flags
    }

    /// The numbers, the greatest first, whose instances are taken for those of this library.
    package static func ownNumbers(of kernel: ManagementAdvertisingFeatures) -> [UInt8] {
        let greatest = min(kernel.maximumInstances, greatestNumber)
        let count = min(greatest / 2 + greatest % 2, 16)
        return (1...greatestNumber).reversed().filter { $0 <= greatest && $0 > greatest - count }
    }
}

extension InstanceSession {
    /// The greatest number of an instance: those of the sets of `AdvertiseSession` follow.
    package static let greatestNumber = AdvertiseSession.firstHandle - 1
    /// The flag of Device Connected for a link that this side has initiated. Older kernels do not set it.
    private static let isInitiated: UInt32 = 1 << 3
}
