// Which address the kernel pairs with, where an advertising set that was set up by commands has brought the central.
//
// Duties: add a connectable advertising instance without data, which is not put on air, and remove it; again after
// another program has added or removed an instance, while centrals may pair.
//
// Why: the kernel computes the keys of a pairing with the kind of address that its own last instance had. Since the
// commit 89fb8acc3885 (June 2025, also in stable series) the parameters that a raw socket sends do not change that. An
// instance that is not connectable has a random address. After one, a link to a set of `AdvertiseSession` counts as
// one to a random address of zeros, and every pairing on it fails: DHKey Check Failed (0x0B), or Confirm Value Failed
// (0x04) in legacy pairing. It outlasts the removal of the instance, and power cycles. A connectable instance has the
// public address, and its parameters alone set that. Sources: Docs/maintainers/advertising-instances.md.
//
// A set with the number of an instance as its handle would not do: the kernel then takes the random address of that
// instance, and it has none of the public kind.
//
// Invariants:
// - One command is out at a time. What was added is removed next, whatever happens in between.
// - Nothing is sent before `keep` and after `release`, except a removal.
// - Nothing is sent without advertising sets, where the kernel reads the address from the commands of all programs;
//   nor where there is one set, which the instance would take.
// - The removal of an instance counts if it was listed or added. So two programs that do this do not cause each
//   other's.
// - No number is used that may be another program's: after events were missed, the instances are read first. The kernel
//   lists no number that is greater than the number of instances, and adding one that is there replaces it. So what
//   was seen added stays known until it was seen removed, this program has removed it, which no event reports, or it is
//   missing where the kernel would list it.
// - There is a pause between two runs: another program may add instances all the time.
//
// The machine never acts; it returns commands to send, in order.

/// Has the kernel pair with the public address of an adapter.
package struct AdvertisingAddressReset: ~Copyable {
    /// A command to the management interface.
    package enum Command: Hashable, Sendable {
        case add(ManagementAddExtendedAdvertisingParameters)
        case remove(ManagementRemoveAdvertising)
    }

    /// The reason why the address may be another one.
    package enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// As many instances as the kernel can have are in use.
        case noFreeInstance(limit: Int)
        /// A command failed, at last.
        case command(ManagementCommandFailure)

        package var description: String {
            switch self {
            case .noFreeInstance(let limit): "all \(limit) advertising instances of the kernel are in use"
            case .command(let failure): failure.description
            }
        }
    }

    /// An action for the owner to perform.
    package enum Action: Hashable, Sendable {
        /// Send this command, and call `commandFinished` with its result.
        case send(Command)
        /// Read what instances the kernel has, and call `featuresRead` with the result.
        case readFeatures
        /// A run has ended that began after `keep`, or that no other one follows.
        case finish(Failure?)
    }

    private enum Step {
        case add, remove
    }

    private enum State {
        case idle
        /// What instances the kernel has is being read.
        case reading
        case out(Step, UInt8)
        /// The kernel was busy, or the socket was lost: the command is sent then.
        case waiting(Step, UInt8, until: BootInstant)
    }

    private var state = State.idle
    /// What the kernel can have, while the address is to be kept.
    package private(set) var kernel: ManagementAdvertisingFeatures?
    /// The instances of others, as far as they are known.
    private var known: Set<UInt8> = []
    /// Whether events were missed, so that `known` may lack some.
    private var isOutdated = false
    private var isNeeded = false
    /// Whether the last run has failed.
    private var hasFailed = false
    /// Whether the run that is under way began before the address was to be kept: its end indicates nothing about that.
    private var isFormerRun = false
    /// No run before this instant; set while the address is to be kept.
    private var notBefore: BootInstant?
    private var retry = AdvertisingRetry()

    package init() {}

    /// The number of the instance that is being added or removed.
    package var usedNumbers: Set<UInt8> {
        switch state {
        case .idle, .reading: []
        case .out(_, let number), .waiting(_, let number, _): [number]
        }
    }

    /// A Boolean value that indicates whether no command is out, and none is to be sent.
    package var isResting: Bool {
        if case .idle = state { return !isNeeded }
        return false
    }

    /// Returns the numbers that may be in use by other programs, as far as they are known, and that the kernel does not
    /// list. Since 6.1 that lacks the numbers that are greater than the number of instances; a number that is not, and
    /// is not listed, is free.
    package func unlisted(by found: ManagementAdvertisingFeatures) -> Set<UInt8> {
        // If there is one, there is at least this number of instances.
        let listed = max(found.instances.count, 1)
        return known.filter { Int($0) > listed && !found.instances.contains($0) }
    }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        switch state {
        case .idle: isNeeded ? notBefore : nil
        case .reading, .out: nil
        case .waiting(_, _, let until): until
        }
    }

    /// Returns a Boolean value that indicates whether `begin` is to be called.
    package func isDue(at now: BootInstant) -> Bool {
        guard case .idle = state, isNeeded else { return false }
        return notBefore.map { $0 <= now } ?? true
    }

    // MARK: What is wanted

    /// Keeps the address from now on, until `release`.
    ///
    /// - Parameters:
    ///   - kernel: What the kernel can have, and has, as it was just read.
    ///   - own: The numbers of the instances of this program, of whose removal no event reports.
    ///   - now: The present time.
    /// - Returns: Whether there is something to do with this adapter: `begin` is due then.
    package mutating func keep(
        on kernel: ManagementAdvertisingFeatures, own: Set<UInt8> = [], at now: BootInstant
    ) -> Bool {
        release()
        guard kernel.hasSets, kernel.maximumInstances >= 2 else { return false }
        self.kernel = kernel
        learn(kernel, own)
        isNeeded = true
        isFormerRun = !usedNumbers.isEmpty
        notBefore = now
        return true
    }

    /// Keeps the address no longer.
    package mutating func release() {
        kernel = nil
        isOutdated = false
        isNeeded = false
        hasFailed = false
        isFormerRun = false
        notBefore = nil
        retry.reset()
    }

    /// Adds an instance that is due; reads first what there is, if events were missed.
    ///
    /// - Parameter used: The numbers that are in use by this library.
    package mutating func begin(avoiding used: Set<UInt8>, at now: BootInstant) -> [Action] {
        guard isDue(at: now), let kernel else { return [] }
        // The former run is over.
        isFormerRun = false
        if isOutdated {
            state = .reading
            return [.readFeatures]
        }
        isNeeded = false
        let taken = used.union(known)
        let free = (1...InstanceSession.greatestNumber).reversed().first { number in
            number <= kernel.maximumInstances && !taken.contains(number)
        }
        guard let free else { return finish(.noFreeInstance(limit: Int(kernel.maximumInstances)), at: now) }
        return send(.add, free)
    }

    // MARK: What happens

    /// What instances the kernel has was read, or could not be. After a success, `begin` is due.
    ///
    /// - Parameter own: The numbers of the instances of this program.
    package mutating func featuresRead(
        _ result: Result<ManagementAdvertisingFeatures, ManagementCommandFailure>, own: Set<UInt8> = [],
        at now: BootInstant
    ) -> [Action] {
        guard case .reading = state else { return [] }
        state = .idle
        guard kernel != nil else { return [] }
        switch result {
        case .success(let found):
            learn(found, own)
            isOutdated = false
            return []
        case .failure(let failure):
            guard failure.reason != .adapterLost else {
                isNeeded = false
                return finish(nil, at: now)
            }
            // Anything else is tried again after an event.
            isNeeded = failure.reason == .socketLost
            return finish(.command(failure), at: now, pause: max(Self.pause, retry.nextPause()))
        }
    }

    /// The command that was sent last has its response, or failed for the reason given.
    package mutating func commandFinished(_ failure: ManagementCommandFailure?, at now: BootInstant) -> [Action] {
        guard case .out(let step, let number) = state else { return [] }
        if failure?.status == .busy, !retry.isExhausted {
            state = .waiting(step, number, until: now + retry.nextPause())
            return []
        }
        switch (step, failure?.reason) {
        case (.add, nil), (.add, .timeout?), (.add, .malformed?):
            // The kernel may have it, whatever its response.
            retry.reset()
            return send(.remove, number)
        case (.remove, nil), (.remove, .status(.invalidParameters)?), (_, .adapterLost?):
            retry.reset()
            return finish(nil, at: now)
        case (_, .socketLost?):
            // Its owner opens it again. The kernel may have the instance, which would be on air after the next suspend.
            isNeeded = kernel != nil
            let isLast = retry.isExhausted
            let pause = retry.nextPause()
            let actions = finish(failure.map { Failure.command($0) }, at: now, pause: pause)
            if !isLast { state = .waiting(.remove, number, until: now + pause) }
            return actions
        case (.add, _), (.remove, _):
            retry.reset()
            return finish(failure.map { Failure.command($0) }, at: now)
        }
    }

    /// An event of the adapter was read.
    package mutating func received(_ event: ManagementEvent.Content) {
        let isKept = kernel != nil
        switch event {
        case .advertisingAdded(let number):
            known.insert(number)
            isNeeded = isKept
        case .advertisingRemoved(let number):
            if known.remove(number) != nil { isNeeded = isKept }
        case .deviceDisconnected, .newSettings:
            // What it has failed for may be over: too many links, or an adapter that is off.
            if hasFailed { isNeeded = isKept }
        default: break
        }
    }

    /// An instance of this program that is not connectable is on air, which no event reports.
    package mutating func randomInstanceAdded() { isNeeded = kernel != nil }

    /// This program has removed an instance, which no event reports.
    package mutating func removedByThisProgram(_ number: UInt8) { known.remove(number) }

    /// The adapter was unplugged: the kernel has forgotten its instances and the address, which is the public one at
    /// first.
    package mutating func adapterGone(at now: BootInstant) -> [Action] {
        known = []
        isOutdated = false
        isNeeded = false
        hasFailed = false
        // A command that is out fails by itself. Once the adapter is back, the number may be another program's.
        guard case .waiting = state else { return [] }
        return finish(nil, at: now)
    }

    /// What other programs have done, or do for a time, is not known.
    package mutating func eventsMissed() {
        isNeeded = kernel != nil
        isOutdated = isNeeded
    }

    /// Called when time has passed. `begin` may be due then.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard case .waiting(let step, let number, let until) = state, until <= now else { return [] }
        if case .add = step {
            guard kernel != nil else { return finish(nil, at: now) }
            if isOutdated || known.contains(number) {
                // Another program may have the number by now: `begin` chooses one again.
                state = .idle
                isNeeded = true
                notBefore = now
                return []
            }
        }
        return send(step, number)
    }

    // MARK: Transitions

    /// Takes what the kernel lists.
    private mutating func learn(_ found: ManagementAdvertisingFeatures, _ own: Set<UInt8>) {
        known = unlisted(by: found).union(found.instances).subtracting(own)
    }

    private mutating func send(_ step: Step, _ number: UInt8) -> [Action] {
        state = .out(step, number)
        switch step {
        case .add:
            // Without the flag of the interval, the bounds count for nothing.
            let parameters = ManagementAddExtendedAdvertisingParameters(
                number, .connectable, interval: Self.unusedInterval...Self.unusedInterval)
            return [.send(.add(parameters))]
        case .remove: return [.send(.remove(ManagementRemoveAdvertising(number)))]
        }
    }

    private mutating func finish(
        _ failure: Failure?, at now: BootInstant, pause: Duration = Self.pause
    ) -> [Action] {
        state = .idle
        hasFailed = failure != nil
        // The run that was requested since then follows at once, and reports its own end.
        guard !isFormerRun else { return [] }
        notBefore = now + pause
        return [.finish(failure)]
    }

    /// The least time between two runs.
    package static let pause: Duration = .seconds(1)
    private static let unusedInterval: UInt32 = 0
}
