// The setup of one adapter for pairing, through the management interface.
//
// Duties: put the adapter under management, switch its power off and on once where the kernel could not pair otherwise,
// bring its settings into the state of rest, load the lists of keys, and load them again when they may be gone. No list
// is loaded while a pairing of this program runs, because the kernel holds references into the lists meanwhile.
//
// How it is known that the kernel can pair: its Security Manager exists if the adapter was switched on while it was
// under management, and there is no query for that. The first command that names the adapter puts it under management.
// So an adapter that was off at that command, or at any time since, can pair whenever it is on. One that was on all the
// time was switched on by another program, and is switched off and on once, unless the owner knows better
// (`Plan.canPair`). In its first two seconds after it was plugged in, an adapter seems to be off while the kernel still
// has it on: if somebody switches it on then by HCIDEVUP, it stays on as it is, and cannot pair. So what seems to be
// off in that time counts only when this machine switches it on, by Set Powered.
//
// The state of rest: Low Energy on; Secure Connections on, but not "only", in which kernels 6.1 to 7.2 end every
// encrypted LE link; not bondable; no input and no output. While the owner lets centrals pair (`rest`), it is bondable,
// with the input and output of the agent. All other settings stay as they are. If another program clears the bondable
// setting meanwhile, it is set again, three times in 60 s; after that not until the first of these is 60 s ago: two
// programs must not fight without end. A `rest` that waits then fails.
// The kernel reports no change of the input and output, so these are then set again as well. If another program
// switches Secure Connections off, they are switched on again within the same limit while centrals may pair, and before
// each pairing of this side.
//
// Invariants:
// - One command of this machine is out at a time, except that a setup does not wait for a load that it replaces.
// - `begin` ends exactly once, in `finish`; each load ends exactly once, in `listsLoaded`; a pairing that was announced
//   may begin exactly once, in `pairingMayBegin`.
// - A pairing begins only on an adapter that is set up, on, able to pair, and whose lists are loaded. Else the
//   announcement ends in `pairingRefused`.
// - After each pairing that has begun, both lists are loaded again: it may have left keys in the kernel that are no
//   bond's, or removed some that are. Before that, the adapter is brought back to the state of rest.
// - Each `rest` ends once, in `rested`; a later one takes the place of one that has not ended. A later failure to keep
//   up the state is reported in the same way.
// - A power that this machine may have switched off is switched on again, whatever fails in between; also by the next
//   `begin`, if the management interface was lost meanwhile.
// - Both lists are loaded, Identity Resolving Keys first, also empty ones: until then the kernel does not ask peers for
//   their identity. The machine holds no key: its owner encodes what is stored at the moment of `load`.
// - Keys and settings survive power changes, other sockets and the end of a program, but not the removal of the
//   adapter: `adapterLost` forgets all that was known.
//
// New Settings is not sent to the socket whose command changed them, so it always reports a change by another program.

/// Puts an adapter under management and keeps its lists of keys loaded.
package struct ManagementSetup: ~Copyable {
    /// A list of keys in the kernel.
    package enum List: Hashable, Sendable {
        case identityResolvingKeys
        case longTermKeys
    }

    /// The actions that `begin` may take.
    package struct Plan: Hashable, Sendable {
        /// A Boolean value that indicates whether an adapter that is off is switched on in the end.
        package var powersOn: Bool
        /// A Boolean value that indicates whether an adapter that may be unable to pair is switched off and on once,
        /// which ends its links.
        package var mayCyclePower: Bool
        /// A Boolean value that indicates whether the kernel can pair with the adapter as it is now,
        /// where the owner knows that.
        package var canPair: Bool?

        package init(powersOn: Bool, mayCyclePower: Bool = true, canPair: Bool? = nil) {
            self.powersOn = powersOn
            self.mayCyclePower = mayCyclePower
            self.canPair = canPair
        }

        /// What serves both plans.
        fileprivate func merged(_ other: Plan) -> Plan {
            Plan(
                powersOn: powersOn || other.powersOn, mayCyclePower: mayCyclePower && other.mayCyclePower,
                canPair: canPair)
        }
    }

    /// An adapter that is set up.
    package struct Managed: Hashable, Sendable {
        /// The settings in the end.
        package let settings: ManagementSettings
        /// A Boolean value that indicates whether the kernel can pair whenever the adapter is on;
        /// `nil` if that is not known.
        package let canPair: Bool?
        /// A Boolean value that indicates whether the power was switched off and on.
        package let hasCycledPower: Bool

        package init(settings: ManagementSettings, canPair: Bool?, hasCycledPower: Bool) {
            self.settings = settings
            self.canPair = canPair
            self.hasCycledPower = hasCycledPower
        }
    }

    /// The reason that an adapter is not set up, or a list not loaded.
    package enum Failure: Error, Hashable, Sendable {
        /// The process had no CAP_NET_ADMIN when it opened the socket.
        case notPermitted
        /// The adapter was removed, or another program uses it exclusively.
        case adapterGone
        /// The adapter does not support Low Energy.
        case noLowEnergy
        /// The radio is blocked by rfkill.
        case blocked
        /// The power did not change, although the kernel reported success.
        case powerUnchanged
        /// The kernel refused a whole list.
        case listRefused(List, ManagementStatus)
        /// A list does not fit into one packet.
        case listTooLong(List, limit: Int)
        /// The adapter is not set up.
        case notManaged
        /// The kernel cannot pair with the adapter, or that is not known.
        case cannotPair
        /// The adapter is switched off.
        case switchedOff
        /// Other programs keep clearing the bondable setting.
        case bondableCleared
        /// Any other failure of a command.
        case command(ManagementCommandFailure)
    }

    /// An action for the owner to take now.
    package enum Action: Hashable, Sendable {
        /// Put this command into the queue, and call `commandFinished` with its result.
        case send(ManagementPacket)
        /// Put the command that loads what is stored of this list into the queue, and call `commandFinished`.
        case load(List)
        /// `begin` has ended.
        case finish(Result<Managed, Failure>)
        /// All loads up to this number have ended; without a failure, the kernel has both lists as they were stored
        /// when the last one began.
        case listsLoaded(UInt64, Failure?)
        /// The pairing that `pairingBegins` announced may begin.
        case pairingMayBegin
        /// The pairing that `pairingBegins` announced cannot begin.
        case pairingRefused(Failure)
        /// The state of rest is in force, or could not be reached. Also a failure that no `rest` waits for.
        case rested(Failure?)
        /// Another program has cleared the bondable setting while centrals may pair. It is set again,
        /// now or after a pause.
        case bondableCleared(isSetAgain: Bool)
        /// Another program made the adapter bondable, or it could not be made otherwise:
        /// peers may bond with it unasked.
        case madeBondable
        /// The setup has found the adapter bondable: another program manages it, or has done so.
        case wasBondable
        /// Another program has changed a setting: pairings are legacy ones until it is set again.
        case secureConnectionsOff
        /// Another program has changed a setting: the kernel pairs with private addresses of its own, and fails where
        /// the controller uses the public one.
        case privacyOn
    }

    private enum Step: Hashable {
        case readInformation
        case powerOff
        case lowEnergy
        case simplePairing
        case secureConnections
        case bondable
        case capability
        case list(List)
        case powerOn

        /// Whether the setup fails where the adapter does not support it. Without Secure Connections there is still
        /// legacy pairing.
        var isRequired: Bool { self != .simplePairing && self != .secureConnections }
    }

    private struct Run {
        var plan: Plan
        var step = Step.readInformation
        var supported: ManagementSettings = []
        /// Whether this run has switched the power off, or may have.
        var hasCycledPower = false
        /// The first failure, while the power still has to be switched on again.
        var failure: Failure?
        var tries = 1
        /// When a command is sent again that the kernel was too busy for, or that has not changed the power.
        var pausesUntil: BootInstant?
    }

    private enum RestCommand {
        case secureConnections
        case bondable(Bool)
        case capability(IOCapability)

        var code: ManagementCommandCode {
            switch self {
            case .secureConnections: .setSecureConnections
            case .bondable: .setBondable
            case .capability: .setIOCapability
            }
        }
    }

    private enum State {
        /// Nothing is known of the adapter.
        case unmanaged
        /// A pairing has to end first.
        case held(Plan)
        case settingUp(Run)
        case managed
        /// Managed; a setting that is not the one of rest is being changed. Then lists are loaded.
        case resting(RestCommand)
        /// Managed, and a list is being loaded.
        case loading(List)
    }

    private enum Pairing {
        case none
        case waiting
        case running
    }

    private let adapter: UInt16
    private var state = State.unmanaged
    private var pairing = Pairing.none
    private var settings: ManagementSettings = []
    /// With what capability centrals may pair at rest; `nil` if they may not.
    private var restCapability: IOCapability?
    /// The capability that the kernel has for new links, once it is known.
    private var setCapability: IOCapability?
    /// Whether the owner waits for the state of rest.
    private var owesRest = false
    /// Whether the state of rest could not be reached, and is not tried again by itself.
    private var isRestRefused = false
    /// Whether another program has switched Secure Connections off, and they are not on again or refused.
    private var owesSecureConnections = false
    /// When another program has cleared a setting that centrals need while they may pair, the first time first.
    private var clearings: [BootInstant] = []
    /// The end of the pause in which none is set again.
    private var restPause: BootInstant?
    /// Whether the adapter was off at some time since it is under management.
    private var hasBeenOff = false
    /// Until when an adapter that seems to be off may be on.
    private var graceEnd: BootInstant
    /// Whether the power was switched off, and not on again.
    private var owesPower = false
    /// Whether the kernel has both lists as they were stored at some time, and the failure of the last load otherwise.
    private var hasLists = false
    private var loadFailure: Failure?
    /// What the owner knows about it.
    private var knownToPair: Bool?
    /// Whether another program has switched the power off since the lists were loaded.
    private var isStale = false
    /// The numbers of the load that was requested last, and of the one that began last.
    private var requestedLoad: UInt64 = 0
    private var begunLoad: UInt64 = 0
    /// The number of the load that ended last.
    private var endedLoad: UInt64 = 0

    /// The adapter with this index, of which nothing is known. It may have been plugged in at this moment.
    package init(adapter: UInt16, at now: BootInstant) {
        self.adapter = adapter
        graceEnd = now + Self.grace
    }

    /// A Boolean value that indicates whether the adapter is set up.
    package var isManaged: Bool {
        switch state {
        case .unmanaged, .held, .settingUp: false
        case .managed, .resting, .loading: true
        }
    }

    /// A Boolean value that indicates whether a setup is under way.
    package var isSettingUp: Bool { if case .settingUp = state { true } else { false } }

    /// The management interface is open again: the adapter with this index may have been plugged in at this moment.
    package mutating func interfaceOpened(at now: BootInstant) { graceEnd = now + Self.grace }

    /// A Boolean value that indicates whether the kernel has both lists as they were stored at some time.
    package var hasKeys: Bool { hasLists }

    /// A Boolean value that indicates whether a pairing runs: lists are not loaded until it ends.
    package var isPairing: Bool { pairing == .running }

    /// A Boolean value that indicates whether the kernel can pair whenever the adapter is on;
    /// `nil` if that is not known.
    package var canPair: Bool? { hasBeenOff ? true : knownToPair }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        if case .settingUp(let run) = state { run.pausesUntil } else { restPause }
    }

    // MARK: Setup

    /// Sets the adapter up. One that is set up, able to pair, and on if it has to be, is left alone. A run that is
    /// under way serves this call too, with what both plans allow and request.
    package mutating func begin(_ plan: Plan) -> [Action] {
        switch state {
        case .held(let held):
            state = .held(held.merged(plan))
            return []
        case .settingUp(var run):
            run.plan = run.plan.merged(plan)
            state = .settingUp(run)
            return []
        case .loading, .resting, .managed, .unmanaged: break
        }
        if let canPair = plan.canPair {
            if !canPair { hasBeenOff = false }
            knownToPair = canPair
        }
        let isOn = settings.contains(.powered)
        if isManaged, isOn || !plan.powersOn, canPair == true || !isOn || !plan.mayCyclePower {
            return [.finish(.success(managed(hasCycledPower: false)))]
        }
        if pairing == .running {
            state = .held(plan)
            return []
        }
        // A load that is under way is replaced by that of the setup; its response does not fit the first step.
        return send(Run(plan: plan))
    }

    /// A link has shown that the kernel cannot pair, although it was taken for able to: the next `begin` switches the
    /// power off and on.
    package mutating func cannotPair() {
        hasBeenOff = false
        knownToPair = false
    }

    // MARK: The state of rest

    /// Changes the state of rest. It is in force before another list is loaded, and not while a pairing runs: then the
    /// owner does not wait for it.
    ///
    /// - Parameter capability: With what capability centrals may pair; `nil` if they may not.
    package mutating func rest(_ capability: IOCapability?) -> [Action] {
        restCapability = capability
        owesRest = true
        isRestRefused = false
        (clearings, restPause) = ([], nil)
        switch state {
        case .unmanaged: return endRest(.notManaged)
        case .held, .settingUp, .resting, .loading: return []
        case .managed where pairing == .running: return endRest(nil)
        case .managed: return proceed()
        }
    }

    /// The command that brings the adapter nearer to the state of rest; `nil` if there is none.
    private var restCommand: RestCommand? {
        // Pairings that centrals begin are not announced.
        if owesSecureConnections, pairing == .waiting || restCapability != nil && restPause == nil {
            return .secureConnections
        }
        return isRestRefused || restPause != nil ? nil : changeToRest
    }

    /// The same, whether or not it may be sent now.
    private var changeToRest: RestCommand? {
        let isBondable = restCapability != nil
        if settings.contains(.bondable) != isBondable { return .bondable(isBondable) }
        let capability = restCapability ?? .noInputNoOutput
        return setCapability == capability ? nil : .capability(capability)
    }

    private mutating func send(_ command: RestCommand) -> [Action] {
        state = .resting(command)
        switch command {
        case .secureConnections: return [.send(ManagementSetSecureConnections(true).packet(adapter: adapter))]
        case .bondable(let isOn): return [.send(ManagementSetBondable(isOn).packet(adapter: adapter))]
        case .capability(let capability):
            return [.send(ManagementSetIOCapability(capability).packet(adapter: adapter))]
        }
    }

    /// A command of the state of rest has ended.
    private mutating func restCommandFinished(
        _ command: RestCommand, _ result: Result<ManagementCommandComplete, ManagementCommandFailure>
    ) -> [Action] {
        state = .managed
        switch (result, command) {
        case (.success, .capability(let capability)): setCapability = capability
        case (.success, .bondable(true)): settings.insert(.bondable)
        case (.success, .bondable(false)): settings.remove(.bondable)
        case (.success, .secureConnections):
            settings.insert(.secureConnections)
            owesSecureConnections = false
        // There is still legacy pairing.
        case (.failure, .secureConnections): owesSecureConnections = false
        case (.failure(let failure), _):
            isRestRefused = true
            let isOpen = settings.contains(.bondable) && restCapability == nil
            owesRest = false
            return (isOpen ? [.madeBondable] : []) + [.rested(.command(failure))] + proceed()
        }
        return proceed()
    }

    private mutating func endRest(_ failure: Failure?) -> [Action] {
        guard owesRest else { return [] }
        owesRest = false
        return [.rested(failure)]
    }

    // MARK: Lists

    /// Has both lists loaded as soon as nothing prevents it.
    ///
    /// - Returns: The number of the load, for `listsLoaded`; it may have ended already among the actions.
    package mutating func reload() -> (UInt64, [Action]) {
        let number = requestLoad()
        switch state {
        case .unmanaged: return (number, endLoads(upTo: number, .notManaged))
        case .held, .settingUp, .resting, .loading: return (number, [])
        case .managed: return (number, proceed())
        }
    }

    // MARK: Pairing

    /// A pairing is to begin: one at a time. It has to wait for `pairingMayBegin`, or ends with `pairingRefused`.
    package mutating func pairingBegins() -> [Action] {
        guard case .none = pairing else { return [] }
        pairing = .waiting
        switch state {
        case .held, .settingUp, .resting, .loading: return []
        case .unmanaged: return letPairingBegin()
        case .managed:
            if !hasKeys { _ = requestLoad() }
            return proceed()
        }
    }

    /// The pairing has ended, or is not to begin any more.
    ///
    /// - Parameter isBondable: Whether the owner has left the adapter bondable, or does not know that it has not; `nil`
    ///   if it has changed nothing.
    package mutating func pairingEnds(isBondable: Bool?) -> [Action] {
        let hasBegun = pairing == .running
        pairing = .none
        if hasBegun {
            isRestRefused = false
            if isBondable == true { settings.insert(.bondable) }
            if isBondable == false { settings.remove(.bondable) }
        }
        switch state {
        case .held(let plan): return send(Run(plan: plan))
        case .managed:
            if hasBegun { _ = requestLoad() }
            return proceed()
        case .unmanaged, .settingUp, .resting, .loading: return []
        }
    }

    // MARK: Events

    /// A command of this machine has its response, or failed.
    package mutating func commandFinished(
        _ code: ManagementCommandCode, _ result: Result<ManagementCommandComplete, ManagementCommandFailure>,
        at now: BootInstant
    ) -> [Action] {
        if case .failure(let failure) = result {
            if failure.reason == .adapterLost { return adapterLost() }
            if failure.reason == .socketLost { return socketLost(.command(failure)) }
        }
        switch state {
        case .unmanaged, .held, .managed:
            return []
        case .resting(let command):
            return code == command.code ? restCommandFinished(command, result) : []
        case .loading(let list):
            guard code == Self.code(of: list) else { return [] }
            return listFinished(list, Self.failure(of: list, result))
        case .settingUp(let run):
            guard run.pausesUntil == nil, code == Self.code(of: run.step) else { return [] }
            return stepFinished(run, result, at: now)
        }
    }

    /// New Settings was read: another program, or the kernel by itself, has changed them.
    package mutating func received(_ settings: ManagementSettings, at now: BootInstant) -> [Action] {
        let former = self.settings
        note(settings, at: now)
        guard isManaged else { return [] }
        var actions: [Action] = []
        if settings.contains(.bondable), !former.contains(.bondable), !isPairing, restCapability == nil {
            isRestRefused = true
            actions.append(.madeBondable)
        }
        let isBondableCleared = !settings.contains(.bondable) && former.contains(.bondable) && restCapability != nil
        let isSecurityCleared = !settings.contains(.secureConnections) && former.contains(.secureConnections)
        if isBondableCleared || isSecurityCleared && restCapability != nil, noteClearing(at: now), isBondableCleared {
            // It may have been changed too.
            setCapability = nil
            isRestRefused = false
            actions.append(.bondableCleared(isSetAgain: restPause == nil))
        }
        if isSecurityCleared {
            owesSecureConnections = true
            actions.append(.secureConnectionsOff)
        }
        if isBondableCleared || isSecurityCleared, case .managed = state { actions += proceed() }
        if settings.contains(.privacy), !former.contains(.privacy) { actions.append(.privacyOn) }
        if !settings.contains(.powered) {
            isStale = true
            hasLists = false
        } else if isStale {
            isStale = false
            _ = requestLoad()
            if case .managed = state { actions += proceed() }
        }
        return actions
    }

    /// Another program has cleared a setting that centrals need. After too many times a pause begins.
    ///
    /// - Returns: Whether there was no pause before.
    private mutating func noteClearing(at now: BootInstant) -> Bool {
        guard restPause == nil else { return false }
        clearings.removeAll { $0 + Self.clearingTime <= now }
        if clearings.count >= Self.clearingLimit, let first = clearings.first { restPause = first + Self.clearingTime }
        clearings.append(now)
        return true
    }

    /// The time is `now`: sends a command again that the kernel was too busy for,
    /// and sets again what others have cleared.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        if let pause = restPause, pause <= now {
            restPause = nil
            if case .managed = state { return proceed() }
        }
        guard case .settingUp(var run) = state, let pause = run.pausesUntil, pause <= now else { return [] }
        run.pausesUntil = nil
        return send(run)
    }

    /// The adapter was removed, or one with its number was added: nothing that was set is true any more.
    package mutating func adapterLost() -> [Action] {
        owesPower = false
        return lost(.adapterGone)
    }

    /// The management interface is closed: what becomes of the adapter is not known any more.
    package mutating func socketLost() -> [Action] {
        socketLost(.command(ManagementCommandFailure(code: .readControllerInformation, reason: .socketLost)))
    }
}

// MARK: - Transitions

extension ManagementSetup {
    private mutating func send(_ run: Run) -> [Action] {
        var run = run
        if run.step == .powerOff {
            // From now on: a command without a response may take effect later.
            run.hasCycledPower = true
            owesPower = true
        }
        state = .settingUp(run)
        switch run.step {
        case .list(let list):
            if list == .identityResolvingKeys { beginLoad() }
            return [.load(list)]
        case .readInformation: return [.send(ManagementReadControllerInformation().packet(adapter: adapter))]
        case .powerOff: return [.send(ManagementSetPowered(false).packet(adapter: adapter))]
        case .lowEnergy: return [.send(ManagementSetLowEnergy(true).packet(adapter: adapter))]
        case .simplePairing: return [.send(ManagementSetSecureSimplePairing(true).packet(adapter: adapter))]
        case .secureConnections: return [.send(ManagementSetSecureConnections(true).packet(adapter: adapter))]
        case .bondable: return [.send(ManagementSetBondable(restCapability != nil).packet(adapter: adapter))]
        case .capability:
            setCapability = restCapability ?? .noInputNoOutput
            return [
                .send(ManagementSetIOCapability(restCapability ?? .noInputNoOutput).packet(adapter: adapter))
            ]
        case .powerOn: return [.send(ManagementSetPowered(true).packet(adapter: adapter))]
        }
    }

    private mutating func stepFinished(
        _ run: Run, _ result: Result<ManagementCommandComplete, ManagementCommandFailure>, at now: BootInstant
    ) -> [Action] {
        var run = run
        let wasOff = !settings.contains(.powered)
        if let failure = take(result, of: &run, at: now) {
            let status = failure.status
            if run.step == .powerOff, status != nil {
                run.hasCycledPower = false
                owesPower = false
            }
            if status == .busy, run.tries < Self.tries { return pause(run, at: now) }
            let isHarmless = status == .notSupported || status == .rejected || status == .unknownCommand
            return run.step.isRequired || !isHarmless
                ? failed(run, Self.failure(failure, at: run.step)) : advance(run)
        }
        let isPowered = settings.contains(.powered)
        switch run.step {
        case .readInformation where !run.supported.contains(.lowEnergy): return failed(run, .noLowEnergy)
        case .powerOff where isPowered, .powerOn where !isPowered:
            // The kernel ends a change of the power before it is done, and its end can be taken for that of the next
            // one.
            return run.tries < Self.tries ? pause(run, at: now) : failed(run, .powerUnchanged)
        case .powerOff:
            hasBeenOff = true
        case .powerOn:
            // By Set Powered, also where it only seemed to be off.
            if wasOff { hasBeenOff = true }
            owesPower = false
        default: break
        }
        return advance(run)
    }

    /// The step's command is sent again after a pause.
    private mutating func pause(_ run: Run, at now: BootInstant) -> [Action] {
        var run = run
        run.tries += 1
        run.pausesUntil = now + Self.pause
        state = .settingUp(run)
        return []
    }

    /// Takes what the response to a step reports; returns the failure if it is none, or does not fit.
    private mutating func take(
        _ result: Result<ManagementCommandComplete, ManagementCommandFailure>, of run: inout Run,
        at now: BootInstant
    ) -> ManagementCommandFailure? {
        do throws(ManagementCommandFailure) {
            try take(result.get(), of: &run, at: now)
            return nil
        } catch {
            return error
        }
    }

    private mutating func take(
        _ complete: ManagementCommandComplete, of run: inout Run, at now: BootInstant
    ) throws(ManagementCommandFailure) {
        switch run.step {
        case .readInformation:
            let information = try complete.response(to: ManagementReadControllerInformation.self)
            run.supported = information.supportedSettings
            note(information.currentSettings, at: now)
        case .powerOff, .powerOn: note(try complete.response(to: ManagementSetPowered.self), at: now)
        case .lowEnergy: note(try complete.response(to: ManagementSetLowEnergy.self), at: now)
        case .simplePairing: note(try complete.response(to: ManagementSetSecureSimplePairing.self), at: now)
        case .secureConnections: note(try complete.response(to: ManagementSetSecureConnections.self), at: now)
        case .bondable: note(try complete.response(to: ManagementSetBondable.self), at: now)
        case .capability: _ = try complete.response(to: ManagementSetIOCapability.self)
        case .list(.identityResolvingKeys): _ = try complete.response(to: ManagementLoadIdentityResolvingKeys.self)
        case .list(.longTermKeys): _ = try complete.response(to: ManagementLoadLongTermKeys.self)
        }
    }

    /// Goes on to the step after the one that has ended.
    private mutating func advance(_ run: Run) -> [Action] {
        var run = run
        run.tries = 1
        var actions: [Action] = []
        switch run.step {
        case .readInformation:
            if settings.contains(.bondable), restCapability == nil { actions.append(.wasBondable) }
            let mayBeUnable = settings.contains(.powered) && canPair != true
            run.step = mayBeUnable && run.plan.mayCyclePower ? .powerOff : .lowEnergy
        case .powerOff:
            run.step = .lowEnergy
        case .lowEnergy:
            // An adapter with BR/EDR refuses Secure Connections without it.
            let needsSimplePairing =
                run.supported.contains(.secureSimplePairing) && settings.contains(.classic)
                && !settings.contains(.secureSimplePairing)
            run.step = needsSimplePairing ? .simplePairing : .secureConnections
        case .simplePairing:
            run.step = .secureConnections
        case .secureConnections:
            run.step = .bondable
        case .bondable:
            run.step = .capability
        case .capability:
            run.step = .list(.identityResolvingKeys)
        case .list(.identityResolvingKeys):
            run.step = .list(.longTermKeys)
        case .list(.longTermKeys):
            actions = endLoads(upTo: begunLoad, nil)
            isStale = false
            guard !settings.contains(.powered), run.hasCycledPower || run.plan.powersOn || owesPower else {
                return actions + finish(run)
            }
            run.step = .powerOn
        case .powerOn:
            return finish(run)
        }
        return actions + send(run)
    }

    /// A step has failed for good; what was switched off is switched on again first.
    private mutating func failed(_ run: Run, _ failure: Failure) -> [Action] {
        var run = run
        run.failure = run.failure ?? failure
        guard run.hasCycledPower, run.step != .powerOn else { return finish(run) }
        run.step = .powerOn
        run.tries = 1
        return send(run)
    }

    private mutating func finish(_ run: Run) -> [Action] {
        if let failure = run.failure {
            state = .unmanaged
            return [.finish(.failure(failure))] + endRest(failure) + endLoads(upTo: requestedLoad, failure)
                + letPairingBegin(failure)
        }
        state = .managed
        isRestRefused = false
        return [.finish(.success(managed(hasCycledPower: run.hasCycledPower)))] + proceed()
    }

    /// Brings the adapter to the state of rest, then begins the load that was requested meanwhile, or else the pairing.
    private mutating func proceed() -> [Action] {
        guard pairing != .running else { return [] }
        if let command = restCommand { return send(command) }
        let rested = endRest(restPause != nil && changeToRest != nil ? .bondableCleared : nil)
        guard requestedLoad > begunLoad else { return rested + letPairingBegin() }
        beginLoad()
        isStale = false
        state = .loading(.identityResolvingKeys)
        return rested + [.load(.identityResolvingKeys)]
    }

    private mutating func listFinished(_ list: List, _ failure: Failure?) -> [Action] {
        if failure == nil, list == .identityResolvingKeys {
            state = .loading(.longTermKeys)
            return [.load(.longTermKeys)]
        }
        state = .managed
        return endLoads(upTo: begunLoad, failure) + proceed()
    }

    /// Lets the pairing begin that waits, or refuses it.
    ///
    /// - Parameter failure: Why the adapter is not set up.
    private mutating func letPairingBegin(_ failure: Failure? = nil) -> [Action] {
        guard case .waiting = pairing else { return [] }
        if let obstacle = failure ?? obstacle {
            pairing = .none
            return [.pairingRefused(obstacle)]
        }
        pairing = .running
        return [.pairingMayBegin]
    }

    /// Why no pairing can begin.
    private var obstacle: Failure? {
        if !isManaged { return .notManaged }
        if !settings.contains(.powered) { return .switchedOff }
        if canPair != true { return .cannotPair }
        return hasKeys ? nil : loadFailure ?? .notManaged
    }

    private mutating func socketLost(_ failure: Failure) -> [Action] { lost(failure) }

    private mutating func lost(_ failure: Failure) -> [Action] {
        let isBeginning =
            switch state {
            case .held, .settingUp: true
            case .unmanaged, .managed, .resting, .loading: false
            }
        state = .unmanaged
        settings = []
        hasBeenOff = false
        knownToPair = nil
        isStale = false
        hasLists = false
        loadFailure = nil
        setCapability = nil
        isRestRefused = false
        owesSecureConnections = false
        (clearings, restPause) = ([], nil)
        return (isBeginning ? [.finish(.failure(failure))] : []) + endRest(failure)
            + endLoads(upTo: requestedLoad, failure)
            + letPairingBegin(failure)
    }

    // MARK: What is known

    private mutating func note(_ settings: ManagementSettings, at now: BootInstant) {
        self.settings = settings
        if settings.contains(.secureConnections) { owesSecureConnections = false }
        if !settings.contains(.powered), now >= graceEnd { hasBeenOff = true }
    }

    private func managed(hasCycledPower: Bool) -> Managed {
        Managed(settings: settings, canPair: canPair, hasCycledPower: hasCycledPower)
    }

    /// Returns the number of a load that begins later than now.
    private mutating func requestLoad() -> UInt64 {
        requestedLoad = max(requestedLoad, begunLoad &+ 1)
        return requestedLoad
    }

    private mutating func beginLoad() {
        begunLoad = max(requestedLoad, begunLoad &+ 1)
        requestedLoad = begunLoad
    }

    private mutating func endLoads(upTo number: UInt64, _ failure: Failure?) -> [Action] {
        guard number > endedLoad else { return [] }
        begunLoad = max(begunLoad, number)
        endedLoad = number
        loadFailure = failure
        if failure == nil { hasLists = true }
        return [.listsLoaded(number, failure)]
    }

    // MARK: Commands

    private static func code(of list: List) -> ManagementCommandCode {
        switch list {
        case .identityResolvingKeys: .loadIdentityResolvingKeys
        case .longTermKeys: .loadLongTermKeys
        }
    }

    private static func code(of step: Step) -> ManagementCommandCode {
        switch step {
        case .readInformation: .readControllerInformation
        case .powerOff, .powerOn: .setPowered
        case .lowEnergy: .setLowEnergy
        case .simplePairing: .setSecureSimplePairing
        case .secureConnections: .setSecureConnections
        case .bondable: .setBondable
        case .capability: .setIOCapability
        case .list(let list): code(of: list)
        }
    }

    private static func failure(
        of list: List, _ result: Result<ManagementCommandComplete, ManagementCommandFailure>
    ) -> Failure? {
        switch result {
        case .success: nil
        case .failure(let failure): Self.failure(failure, at: .list(list))
        }
    }

    private static func failure(_ failure: ManagementCommandFailure, at step: Step) -> Failure {
        switch failure.reason {
        case .status(.permissionDenied): return .notPermitted
        case .status(.invalidIndex): return .adapterGone
        case .status(.blocked): return .blocked
        default: break
        }
        guard case .list(let list) = step else { return .command(failure) }
        switch failure.reason {
        case .status(let status): return .listRefused(list, status)
        case .tooLong(let limit): return .listTooLong(list, limit: limit)
        default: return .command(failure)
        }
    }

    // MARK: Limits

    /// The time for which the kernel has an adapter on that was plugged in, while it reports it as off:
    /// `HCI_AUTO_OFF_TIMEOUT` with as much again for a slow machine.
    package static let grace: Duration = .seconds(4)
    /// The number of times that a command is sent that the kernel is too busy for, because another program changes the
    /// same, or that has not changed the power.
    package static let tries = 10
    /// The pause before each further time.
    package static let pause: Duration = .milliseconds(500)
    /// The number of times that a setting is set again in `clearingTime` that another program clears while centrals may
    /// pair.
    package static let clearingLimit = 3
    package static let clearingTime: Duration = .seconds(60)
}
