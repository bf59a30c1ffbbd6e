// The pairing of one link through the kernel's management interface.
//
// Duties: make the adapter bondable for this one pairing, begin it with Pair Device, pass the kernel's questions to the
// agent and its replies to the kernel, gather the keys, check what they are worth, have them stored, and undo
// everything where one of these fails.
//
// Invariants
// - An exchange ends exactly once, in `finish`, and not before the adapter has been set not to be bondable.
// - Success is reported after the bond is stored. A failure after keys may exist removes them from the kernel first.
// - Each question is asked once, with a number that no other question has had. After the exchange was cancelled, or its
//   time is over, every question gets a no.
// - Whether a key is authenticated is decided by its kind. The security level of the socket repeats what was asked for,
//   so it only indicates whether the link is encrypted at all.
// - A question that the agent does not reply to is rejected before the kernel gives the pairing up, which would end the
//   link.
// - The link is not encrypted when the exchange begins: the kernel would succeed at once and make no key.
// - A peer that claims the identity of another bond is refused, and nothing of that bond is touched.
// - The adapter is no longer bondable when the bond is stored, however long the disk takes.
// - Questions about other peers are not this machine's: `refusal(of:)` is the response to them.
// - Every command but Pair Device ends by itself, in the queue of commands. Pair Device has this machine's deadline; a
//   kernel that does not end it even then is left, and the owner begins no other pairing before it has.
// - Keys count from Pair Device on: what was reported before belongs to a pairing that another program has begun.
//
// The order of what the kernel reports varies: keys and the end of Pair Device arrive at one socket, Encryption Change
// at another. A peer that distributes its keys late has a second for that.

/// Pairs with one peer.
package struct PairingExchange: ~Copyable {
    /// The goal of a pairing, and the means for it.
    package struct Demand: Hashable, Sendable {
        /// The peer, as the kernel names its link: by its identity, where the kernel had the key to resolve the address
        /// on the air when the link came up.
        package var peer: PeerID
        /// The peer, by the address that its link was made to.
        package var onAir: PeerID
        /// The input and output of the agent.
        package var capability: IOCapability
        /// The values of the peer that came in another way.
        package var outOfBand: OutOfBandValues?
        /// The lowest level that is accepted.
        package var level: BondRecord.Level
        /// The size of the shortest key that is accepted, in bytes.
        package var minimumKeySize: UInt8
        /// A Boolean value that indicates whether the owner has a bond with the peer.
        package var hasBond: Bool
        /// The identity of the bond that is to be replaced; `nil` if none is.
        package var replacedBond: PeerID?
        /// The identities of all other bonds.
        package var otherBonds: Set<PeerID>
        /// A Boolean value that indicates whether Encryption Change of the link is reported to `encryptionChanged`.
        package var followsEncryption: Bool
        package var deadline: BootInstant

        package init(
            peer: PeerID, onAir: PeerID? = nil, capability: IOCapability, outOfBand: OutOfBandValues? = nil,
            level: BondRecord.Level = .encrypted, minimumKeySize: UInt8 = 16, hasBond: Bool = false,
            replacedBond: PeerID? = nil, otherBonds: Set<PeerID> = [],
            followsEncryption: Bool = true, deadline: BootInstant
        ) {
            self.peer = peer
            self.onAir = onAir ?? peer
            self.capability = capability
            self.outOfBand = outOfBand
            self.level = level
            self.minimumKeySize = minimumKeySize
            self.hasBond = hasBond
            self.replacedBond = replacedBond
            self.otherBonds = otherBonds
            self.followsEncryption = followsEncryption
            self.deadline = deadline
        }
    }

    /// The values of a peer for the out-of-band association model of LE Secure Connections.
    package struct OutOfBandValues: Hashable, Sendable {
        package var confirmation: Secret128
        package var random: Secret128

        package init(confirmation: Secret128, random: Secret128) {
            self.confirmation = confirmation
            self.random = random
        }
    }

    /// A question to the agent, or something that it has to show.
    package enum Question: Hashable, Sendable {
        /// Asks whether to pair without any comparison.
        case justWorks
        /// Asks whether the peer shows this number, 0 to 999,999.
        case compare(UInt32)
        /// The passkey that the peer shows.
        case enter
        /// Show this passkey, which is entered at the peer. There is nothing to reply.
        case show(UInt32)
    }

    /// The agent's reply.
    package enum Reply: Hashable, Sendable {
        case yes
        case no
        case passkey(UInt32)
    }

    /// A pairing that went well, before it is stored.
    package struct Outcome: Hashable, Sendable {
        /// The peer's identity.
        package let identity: PeerID
        /// The keys as they came.
        package let longTermKeys: [ManagementLongTermKey]
        /// The key by which the peer's private addresses are resolved, if it has distributed one.
        package let identityResolvingKey: ManagementIdentityResolvingKey?
        /// The key by which this side signs, if one was made.
        package let signatureKey: ManagementNewSignatureKey?
        /// The key by which the peer signs, if it has distributed one.
        package let peerSignatureKey: ManagementNewSignatureKey?
        package let method: PairingMethod
        /// The level that the weakest of the keys is worth.
        package let level: BondRecord.Level
        /// The size of the shortest key, in bytes.
        package let keySize: UInt8
    }

    /// The reason that there is no bond.
    package enum Failure: Error, Hashable, Sendable {
        /// The kernel refused a command.
        case command(ManagementCommandCode, ManagementStatus)
        /// The kernel did not respond to a command.
        case noResponse(ManagementCommandCode)
        /// The time was over; the agent had not replied to the question, or the peer is silent.
        case timedOut(Question?)
        case cancelled
        /// The agent refused.
        case refusedHere(Question)
        /// The peer refused. The kernel drops the link, also in the three cases that follow.
        case refusedByPeer
        /// The peer refused the passkey that was entered here.
        case wrongPasskey
        /// The peer refused while a passkey was shown here: another one was entered there, or none.
        case passkeyNotEntered
        /// The peer refused the number that both sides show.
        case numberRejected
        /// The peer can only be paired without protection against a man in the middle. No key was made.
        case notProtected
        /// The key is weaker than what was demanded.
        case keyTooWeak(BondRecord.Level?)
        case keyTooShort(UInt8)
        /// The link is encrypted already: no pairing would make a key.
        case alreadyEncrypted
        /// The peer claims to be the one of another bond.
        case identityTaken
        /// The link is encrypted, and the peer left no key to keep.
        case noKey
        /// The link is encrypted, and the peer has not distributed its identity: the key would not be found again.
        case noIdentity
        /// The pairing ended without encryption.
        case notEncrypted
        /// The owner could not store the bond, or rejected it.
        case notStored
        case linkLost
        /// The adapter or the management interface is gone.
        case adapterLost
        /// The adapter is not in the state that pairing needs; nothing was begun.
        case notReady(ManagementSetup.Failure)

        /// A Boolean value that indicates whether the peer refused.
        package var isRefusalByPeer: Bool {
            switch self {
            case .refusedByPeer, .wrongPasskey, .passkeyNotEntered, .numberRejected: true
            default: false
            }
        }

        /// Returns what the peer has refused. The kernel has one status for all of it.
        ///
        /// - Parameters:
        ///   - method: The method of the question that was asked last.
        ///   - isAnswered: Whether the agent has replied to it.
        static func refusal(of method: PairingMethod, isAnswered: Bool) -> Failure {
            switch method {
            case .passkeyTyped where isAnswered: .wrongPasskey
            case .passkeyShown: .passkeyNotEntered
            case .numericComparison: .numberRejected
            case .justWorks, .passkeyTyped, .outOfBand: .refusedByPeer
            }
        }
    }

    /// A command of this machine.
    package enum Command: Hashable, Sendable {
        case setBondable(Bool)
        case disconnect
        case removeKeys(disconnects: Bool)
        /// Removes the keys of the bond that is replaced, where the kernel has the link under another name.
        case removeReplacedBond
        case addOutOfBandData(OutOfBandValues)
        case clearOutOfBandData
        case pair
        case cancelPairing
        case confirm
        case reject
        case enter(UInt32)
        case enterNothing
    }

    /// The end of a command.
    package enum CommandEnd: Hashable, Sendable {
        /// It succeeded; with the peer that it returned.
        case success(ManagementPeer?)
        case failure(ManagementStatus)
        /// There was no response in time.
        case noResponse
        /// The management interface or the adapter is gone.
        case lost
    }

    /// An action for the owner to take now.
    package enum Action: Hashable, Sendable {
        /// Send this command for the peer, and call `commandFinished` with its end.
        case send(Command, ManagementPeer)
        /// Ask the agent, and call `replied` with the number, unless it is only to show something.
        case ask(Question, UInt64)
        /// Read the security level and the key size of the link's socket, and call `securityRead`; at the beginning,
        /// and again in the end.
        case readSecurity
        /// Store the bond, and call `stored`.
        case store(Outcome)
        /// The exchange has ended. Questions to the agent that are open are void.
        case finish(Result<Outcome, Failure>)
    }

    private struct Pairing {
        let demand: Demand
        var keys: PairingKeys
        /// The question that waits for the agent's reply.
        private(set) var question: Question?
        /// When that is rejected.
        private var replyDeadline: BootInstant?
        var method: PairingMethod
        var isEncrypted = false
        /// Whether a key that the kernel had was removed before.
        var hasRemovedKeys = false

        init(_ demand: Demand) {
            self.demand = demand
            keys = PairingKeys(of: demand.peer)
            method = demand.outOfBand == nil ? .justWorks : .outOfBand
            isEncrypted = !demand.followsEncryption
        }

        /// When the pairing is given up unless something happens.
        var deadline: BootInstant { replyDeadline ?? demand.deadline }

        /// The agent is asked, and its reply awaited; a passkey that is shown is entered at the peer.
        mutating func ask(_ question: Question, at now: BootInstant) {
            self.question = question
            if case .show = question {
                replyDeadline = nil
            } else {
                replyDeadline = min(demand.deadline, now + PairingExchange.replyTime)
            }
        }

        /// The question has its reply.
        mutating func closeQuestion() {
            question = nil
            replyDeadline = nil
        }

        /// The peer's identity, as far as it is known.
        var identity: PeerID { keys.identity }

        func concerns(_ peer: ManagementPeer) -> Bool {
            guard let peer = peer.id else { return false }
            return peer == demand.peer || peer == identity || peer == demand.onAir
        }

        /// Begins without keys: those that were reported are of another pairing.
        mutating func forgetKeys() { keys = PairingKeys(of: demand.peer) }
    }

    private enum State {
        case idle
        /// The security of the socket is being read before anything is changed.
        case beginning(Pairing)
        /// The first of these commands is out. With a failure, the exchange ends as soon as it has.
        case preparing(Pairing, [Command], Failure?)
        /// Pair Device is out.
        case pairing(Pairing)
        /// Pair Device is out and to end, for this reason, by `until`.
        case stopping(Pairing, Failure, isCancelled: Bool, until: BootInstant)
        /// Pair Device has succeeded; a key or the encryption is not reported yet.
        case settling(Pairing, until: BootInstant)
        /// The security of the socket is being read.
        case checking(Pairing)
        /// Set Bondable is out; then the bond is stored.
        case closing(Pairing, Outcome)
        case storing(Pairing, Outcome)
        /// The first of these commands is out; then the exchange ends.
        case leaving(Pairing, [Command], Result<Outcome, Failure>)
        case finished
    }

    private var state = State.idle
    /// The number of the question that was asked last.
    package private(set) var lastQuestion: UInt64
    /// A Boolean value that indicates whether the adapter may be bondable by a command of this machine.
    package private(set) var mayBeBondable = false

    /// Creates an exchange that has not begun.
    ///
    /// - Parameter questions: The number of the last question of the exchange before.
    package init(after questions: UInt64 = 0) {
        lastQuestion = questions
    }

    /// A Boolean value that indicates whether the exchange has begun and not ended.
    package var isRunning: Bool {
        switch state {
        case .idle, .finished: false
        default: true
        }
    }

    /// Returns a Boolean value that indicates whether questions of the kernel about this peer belong to the exchange.
    package func concerns(_ peer: ManagementPeer) -> Bool { pairing?.concerns(peer) ?? false }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        switch state {
        case .pairing(let pairing): pairing.deadline
        case .stopping(_, _, _, let until), .settling(_, let until): until
        case .idle, .beginning, .preparing, .checking, .closing, .storing, .leaving, .finished: nil
        }
    }

    private var pairing: Pairing? {
        switch state {
        case .idle, .finished: nil
        case .beginning(let pairing), .preparing(let pairing, _, _), .pairing(let pairing),
            .stopping(let pairing, _, _, _), .settling(let pairing, _), .checking(let pairing),
            .closing(let pairing, _), .storing(let pairing, _), .leaving(let pairing, _, _):
            pairing
        }
    }

    // MARK: - From the owner

    /// Begins to pair. Only for an exchange that has not begun.
    package mutating func begin(_ demand: Demand) -> [Action] {
        guard case .idle = state else { return [] }
        state = .beginning(Pairing(demand))
        return [.readSecurity]
    }

    /// The agent has replied to the question with this number; a reply to an earlier one is late and has no effect.
    package mutating func replied(_ reply: Reply, to number: UInt64, at now: BootInstant) -> [Action] {
        guard case .pairing(var pairing) = state, number == lastQuestion, let question = pairing.question else {
            return []
        }
        switch (question, reply) {
        case (.justWorks, .yes), (.compare, .yes):
            pairing.closeQuestion()
            state = .pairing(pairing)
            return [send(.confirm, pairing)]
        case (.enter, .passkey(let passkey)) where passkey <= Self.largestPasskey:
            pairing.closeQuestion()
            state = .pairing(pairing)
            return [send(.enter(passkey), pairing)]
        case (.show, .yes):
            return []
        default:
            return stop(pairing, .refusedHere(question), at: now)
        }
    }

    /// The caller does not wait any longer. A bond that is being stored is not undone.
    package mutating func cancel(at now: BootInstant) -> [Action] { end(.cancelled, at: now) }

    /// The security of the link's socket; `nil` where the link is gone.
    package mutating func securityRead(_ security: (level: UInt8, keySize: UInt8)?) -> [Action] {
        switch state {
        case .beginning(var pairing):
            guard let security else { return finish(.failure(.linkLost)) }
            if Self.isEncrypted(security) { return finish(.failure(.alreadyEncrypted)) }
            var commands = [Command.setBondable(true)]
            if let bond = pairing.demand.replacedBond {
                commands.append(.removeKeys(disconnects: false))
                // The kernel resolves the peer of Pair Device. A load of the lists after the link came up may have
                // given it the keys of the identity.
                if bond != pairing.demand.peer { commands.append(.removeReplacedBond) }
                pairing.hasRemovedKeys = true
            }
            if let values = pairing.demand.outOfBand { commands.append(.addOutOfBandData(values)) }
            return prepare(pairing, commands)
        case .checking(let pairing):
            guard let security else { return leave(pairing, .linkLost) }
            return Self.isEncrypted(security) ? check(pairing) : leave(pairing, .notEncrypted)
        default:
            return []
        }
    }

    /// Neither of the two shows that alone: kernel 6.1 reports a key size before the link is encrypted, and every
    /// kernel reports the requested level after the link has ended.
    private static func isEncrypted(_ security: (level: UInt8, keySize: UInt8)) -> Bool {
        security.level >= encryptedLevel && security.keySize >= shortestKey
    }

    /// Decides what an encrypted link is worth.
    private mutating func check(_ pairing: Pairing) -> [Action] {
        do throws(Failure) {
            let outcome = try pairing.keys.outcome(
                pairing.method, level: pairing.demand.level, minimumKeySize: pairing.demand.minimumKeySize)
            state = .closing(pairing, outcome)
            return [send(.setBondable(false), pairing)]
        } catch {
            return leave(pairing, error)
        }
    }

    /// The bond is stored, or could not be.
    package mutating func stored(_ isStored: Bool) -> [Action] {
        guard case .storing(let pairing, let outcome) = state else { return [] }
        return isStored ? finishStored(pairing, outcome) : leave(pairing, .notStored)
    }

    /// The adapter or the management interface is gone: no command can be sent any more.
    package mutating func adapterLost() -> [Action] {
        guard isRunning else { return [] }
        // A bond that has been stored is one.
        if case .leaving(_, _, let result) = state { return finish(result) }
        if case .storing = state { return [] }
        // The keys were checked; the bond is good without the adapter.
        if case .closing(let pairing, let outcome) = state {
            state = .storing(pairing, outcome)
            return [.store(outcome)]
        }
        return finish(.failure(.adapterLost))
    }

    /// Advances to `now`.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        switch state {
        case .pairing(let pairing):
            // A passkey that is shown is entered at the peer.
            let unanswered = if case .show = pairing.question { nil as Question? } else { pairing.question }
            return stop(pairing, .timedOut(unanswered), at: now)
        case .stopping(let pairing, let failure, isCancelled: false, _):
            // The negative reply had no effect.
            return cancelPairing(pairing, failure, at: now)
        case .stopping(let pairing, let failure, isCancelled: true, _):
            return leave(pairing, failure)
        case .settling(let pairing, _):
            guard pairing.isEncrypted else { return leave(pairing, .notEncrypted) }
            state = .checking(pairing)
            return [.readSecurity]
        case .idle, .beginning, .preparing, .checking, .closing, .storing, .leaving, .finished:
            return []
        }
    }

    // MARK: - From the kernel

    /// A command of this machine has ended.
    package mutating func commandFinished(_ command: Command, _ end: CommandEnd, at now: BootInstant) -> [Action] {
        if end == .lost { return adapterLost() }
        if case .setBondable(false) = command, case .success = end { mayBeBondable = false }
        switch state {
        case .preparing(let pairing, let commands, let failure):
            guard commands.first == command else { return [] }
            if let failure = failure ?? Self.failure(of: command, end) { return leave(pairing, [], .failure(failure)) }
            return prepare(pairing, Array(commands.dropFirst()))
        case .pairing(let pairing):
            return command == .pair ? pairingEnded(pairing, end, nil, at: now) : []
        case .stopping(let pairing, let failure, _, _):
            return command == .pair ? pairingEnded(pairing, end, failure, at: now) : []
        case .closing(let pairing, let outcome):
            // Refused, it is left to the setup of the adapter; the bond is good all the same.
            guard command == .setBondable(false) else { return [] }
            state = .storing(pairing, outcome)
            return [.store(outcome)]
        case .leaving(let pairing, let commands, let result):
            // What cannot be undone now is left to the next load of the lists.
            return commands.first == command ? leave(pairing, Array(commands.dropFirst()), result) : []
        case .idle, .beginning, .settling, .checking, .storing, .finished:
            return []
        }
    }

    /// The encryption of the link has changed, as the controller reports it.
    package mutating func encryptionChanged(_ isEncrypted: Bool) -> [Action] {
        update { $0.isEncrypted = isEncrypted }
    }

    /// The link has ended.
    package mutating func linkEnded(at now: BootInstant) -> [Action] {
        switch state {
        case .pairing(let pairing):
            // Its status follows at once, and a refusal by the peer ends the link too. Without a link, Pair Device
            // would make one: then it has to be cancelled.
            state = .stopping(pairing, .linkLost, isCancelled: false, until: now + Self.linkLossTimeout)
            return []
        case .preparing(let pairing, let commands, nil):
            state = .preparing(pairing, commands, .linkLost)
            return []
        case .settling(let pairing, _), .checking(let pairing):
            return leave(pairing, .linkLost)
        case .beginning:
            return finish(.failure(.linkLost))
        case .idle, .preparing, .stopping, .closing, .storing, .leaving, .finished:
            return []
        }
    }

    /// An event of the management interface about a peer was read.
    ///
    /// - Returns: `nil` for an event that does not concern this exchange.
    package mutating func received(_ event: ManagementEvent.Content, at now: BootInstant) -> [Action]? {
        switch event {
        case .userConfirmationRequest(let request):
            guard concerns(request.peer) else { return nil }
            return asked(request.number.map { .compare($0) } ?? .justWorks, event, at: now)
        case .userPasskeyRequest(let request):
            return concerns(request.peer) ? asked(.enter, event, at: now) : nil
        case .passkeyNotify(let notification):
            // It is repeated for each digit.
            guard concerns(notification.peer) else { return nil }
            return asked(.show(notification.passkey), event, at: now)
        case .newIdentityResolvingKey(let new):
            guard let pairing,
                [pairing.demand.onAir.address, pairing.demand.peer.address].contains(new.privateAddress)
                    || pairing.concerns(new.key.peer)
            else { return nil }
            return update { $0.keys.add(new) }
        case .newLongTermKey(let new):
            guard concerns(new.key.peer) else { return nil }
            return update { $0.keys.add(new) }
        case .newSignatureKey(let new):
            guard concerns(new.peer) else { return nil }
            return update { $0.keys.add(new) }
        case .deviceDisconnected(let end):
            // It may be the end of an earlier link; where the controller's own events are followed, they decide.
            guard let pairing, !pairing.demand.followsEncryption, pairing.concerns(end.peer) else { return nil }
            return linkEnded(at: now)
        case .commandComplete, .commandStatus, .indexAdded, .indexRemoved, .newSettings, .deviceConnected,
            .authenticationFailed, .deviceUnblocked, .deviceUnpaired, .advertisingAdded, .advertisingRemoved, .unknown:
            return nil
        }
    }

    /// Returns the command that refuses a question of the kernel, with the peer; `nil` for every other event.
    ///
    /// It is the response to each question that belongs to no exchange: nobody has asked to pair.
    package static func refusal(of event: ManagementEvent.Content) -> (command: Command, peer: ManagementPeer)? {
        switch event {
        case .userConfirmationRequest(let request): (.reject, request.peer)
        case .userPasskeyRequest(let request): (.enterNothing, request.peer)
        // Showing nothing would leave the peer's user in front of a dialog.
        case .passkeyNotify(let notification): (.enterNothing, notification.peer)
        default: nil
        }
    }
}

// MARK: - Transitions

extension PairingExchange {
    private mutating func send(_ command: Command, _ pairing: Pairing) -> Action {
        if case .setBondable(true) = command { mayBeBondable = true }
        let peer =
            switch command {
            case .pair, .addOutOfBandData: pairing.demand.peer
            case .removeReplacedBond: pairing.demand.replacedBond ?? pairing.identity
            // The kernel knows the peer by its identity once the peer has distributed it.
            default: pairing.identity
            }
        return .send(command, ManagementPeer(peer))
    }

    private mutating func prepare(_ pairing: Pairing, _ commands: [Command]) -> [Action] {
        guard let next = commands.first else {
            var pairing = pairing
            pairing.forgetKeys()
            state = .pairing(pairing)
            return [send(.pair, pairing)]
        }
        state = .preparing(pairing, commands, nil)
        return [send(next, pairing)]
    }

    /// The failure that a command before Pair Device ends the exchange with.
    private static func failure(of command: Command, _ end: CommandEnd) -> Failure? {
        switch end {
        case .success, .lost: nil
        // There was no key to remove.
        case .failure(.notPaired) where command == .removeKeys(disconnects: false) || command == .removeReplacedBond:
            nil
        case .failure(.notConnected), .failure(.disconnected): .linkLost
        // A pairing that neither side refused: the kernel has given it up with its link.
        case .failure(.failed) where command == .pair: .linkLost
        case .failure(let status): .command(command.code, status)
        case .noResponse: .noResponse(command.code)
        }
    }

    private mutating func asked(_ question: Question, _ event: ManagementEvent.Content, at now: BootInstant) -> [Action]
    {
        guard case .pairing(var pairing) = state else {
            // The exchange is about to end, or a stranger pairs under the address of this peer.
            return Self.refusal(of: event).map { [.send($0.command, $0.peer)] } ?? []
        }
        if pairing.question == question { return [] }
        switch question {
        case .justWorks:
            if pairing.demand.level > .encrypted {
                pairing.ask(question, at: now)
                return stop(pairing, .notProtected, at: now)
            }
            pairing.method = .justWorks
        case .compare: pairing.method = .numericComparison
        case .enter: pairing.method = .passkeyTyped
        case .show: pairing.method = .passkeyShown
        }
        pairing.ask(question, at: now)
        state = .pairing(pairing)
        lastQuestion &+= 1
        return [.ask(question, lastQuestion)]
    }

    /// Changes what is known about the pairing while it runs, and goes on where that was awaited.
    private mutating func update(_ change: (inout Pairing) -> Void) -> [Action] {
        switch state {
        case .pairing(var pairing):
            change(&pairing)
            state = .pairing(pairing)
        case .stopping(var pairing, let failure, let isCancelled, let until):
            change(&pairing)
            state = .stopping(pairing, failure, isCancelled: isCancelled, until: until)
        case .settling(var pairing, let until):
            change(&pairing)
            return settle(pairing, until: until)
        // Before Pair Device, keys are those of a pairing that another program has begun.
        case .idle, .beginning, .preparing, .checking, .closing, .storing, .leaving, .finished:
            break
        }
        return []
    }

    private mutating func pairingEnded(
        _ pairing: Pairing, _ end: CommandEnd, _ failure: Failure?, at now: BootInstant
    ) -> [Action] {
        var pairing = pairing
        switch end {
        case .success(let peer):
            if let failure { return leave(pairing, failure) }
            if let identity = peer?.id { pairing.keys.identified(as: identity) }
            return settle(pairing, until: now + Self.keyTimeout)
        case .failure(.alreadyPaired)
        where failure == nil && !pairing.hasRemovedKeys && !pairing.demand.hasBond
            && !pairing.demand.otherBonds.contains(pairing.identity):
            // The kernel has a key that is no bond of the owner's.
            pairing.hasRemovedKeys = true
            return prepare(pairing, [.removeKeys(disconnects: false)])
        case .failure(.authenticationFailed) where failure == nil || failure == .linkLost:
            return leave(pairing, .refusal(of: pairing.method, isAnswered: pairing.question == nil))
        case .failure(.timeout) where failure == nil:
            return leave(pairing, .timedOut(nil))
        case .failure, .noResponse, .lost:
            return leave(pairing, failure ?? Self.failure(of: .pair, end) ?? .adapterLost)
        }
    }

    private mutating func settle(_ pairing: Pairing, until: BootInstant) -> [Action] {
        // Nothing of the other bond is removed. The kernel has the link under its identity now, so that it could be
        // taken for a link to that peer. The owner loads the lists again.
        if pairing.demand.otherBonds.contains(pairing.identity) {
            return leave(pairing, [.disconnect], .failure(.identityTaken))
        }
        guard pairing.keys.hasCentralKey, pairing.isEncrypted else {
            state = .settling(pairing, until: until)
            return []
        }
        state = .checking(pairing)
        return [.readSecurity]
    }

    /// Ends the exchange wherever it stands.
    private mutating func end(_ failure: Failure, at now: BootInstant) -> [Action] {
        switch state {
        case .preparing(let pairing, let commands, let earlier):
            state = .preparing(pairing, commands, earlier ?? failure)
            return []
        case .pairing(let pairing):
            return stop(pairing, failure, at: now)
        case .settling(let pairing, _), .checking(let pairing):
            return leave(pairing, failure)
        case .beginning:
            return finish(.failure(failure))
        case .idle, .stopping, .closing, .storing, .leaving, .finished:
            return []
        }
    }

    /// Rejects the open question, which keeps the link; without one, cancels the pairing, which disconnects.
    private mutating func stop(_ pairing: Pairing, _ failure: Failure, at now: BootInstant) -> [Action] {
        guard let question = pairing.question else { return cancelPairing(pairing, failure, at: now) }
        var pairing = pairing
        pairing.closeQuestion()
        state = .stopping(pairing, failure, isCancelled: false, until: now + Self.stopTimeout)
        switch question {
        case .justWorks, .compare: return [send(.reject, pairing)]
        case .enter, .show: return [send(.enterNothing, pairing)]
        }
    }

    private mutating func cancelPairing(_ pairing: Pairing, _ failure: Failure, at now: BootInstant) -> [Action] {
        state = .stopping(pairing, failure, isCancelled: true, until: now + Self.stopTimeout)
        return [send(.cancelPairing, pairing)]
    }

    /// Removes what the pairing has left, and ends.
    private mutating func leave(_ pairing: Pairing, _ failure: Failure) -> [Action] {
        let hasKeys = !pairing.keys.isEmpty
        // The kernel refused to pair: what it has of this peer is not of this pairing.
        if case .command = failure, !hasKeys { return leave(pairing, [], .failure(failure)) }
        // The keys are another bond's.
        if pairing.demand.otherBonds.contains(pairing.identity) {
            return leave(pairing, [.disconnect], .failure(failure))
        }
        // Without an identity, or with a peer that keeps no bonds, the encryption is good for this link.
        let disconnects = hasKeys && failure != .noIdentity && failure != .noKey
        return leave(pairing, [.removeKeys(disconnects: disconnects)], .failure(failure))
    }

    private mutating func leave(
        _ pairing: Pairing, _ commands: [Command], _ result: Result<Outcome, Failure>
    ) -> [Action] {
        var commands = commands
        if case .leaving = state {
            guard !commands.isEmpty else { return finish(result) }
        } else {
            // The data would be used for the next pairing too.
            if pairing.demand.outOfBand != nil { commands.append(.clearOutOfBandData) }
            commands.append(.setBondable(false))
        }
        state = .leaving(pairing, commands, result)
        guard let first = commands.first else { return finish(result) }
        return [send(first, pairing)]
    }

    private mutating func finishStored(_ pairing: Pairing, _ outcome: Outcome) -> [Action] {
        guard pairing.demand.outOfBand != nil else { return finish(.success(outcome)) }
        state = .leaving(pairing, [.clearOutOfBandData], .success(outcome))
        return [send(.clearOutOfBandData, pairing)]
    }

    private mutating func finish(_ result: Result<Outcome, Failure>) -> [Action] {
        state = .finished
        return [.finish(result)]
    }

    /// How long the agent's reply is awaited: the kernel gives a pairing up after 30 s without a packet, and the link
    /// with it.
    static let replyTime: Duration = .seconds(25)
    /// How long the end of Pair Device is awaited after a rejection, and after Cancel Pair Device.
    private static let stopTimeout: Duration = .seconds(3)
    /// How long the end of Pair Device is awaited after the end of the link.
    private static let linkLossTimeout: Duration = .seconds(1)
    /// How long a peer may take to distribute its keys after Pair Device has succeeded.
    private static let keyTimeout: Duration = .seconds(1)
    private static let largestPasskey: UInt32 = 999_999
    /// `BT_SECURITY_MEDIUM`: encrypted.
    private static let encryptedLevel: UInt8 = 2
    private static let shortestKey: UInt8 = 7
}

// MARK: - Packets

extension PairingExchange.Command {
    /// The code of the command.
    package var code: ManagementCommandCode {
        switch self {
        case .setBondable: .setBondable
        case .disconnect: .disconnect
        case .removeKeys, .removeReplacedBond: .unpairDevice
        case .addOutOfBandData: .addRemoteOutOfBandData
        case .clearOutOfBandData: .removeRemoteOutOfBandData
        case .pair: .pairDevice
        case .cancelPairing: .cancelPairDevice
        case .confirm: .userConfirmationReply
        case .reject: .userConfirmationNegativeReply
        case .enter: .userPasskeyReply
        case .enterNothing: .userPasskeyNegativeReply
        }
    }

    /// Returns the packet that carries the command.
    ///
    /// - Parameter capability: What the agent can show and ask.
    package func packet(_ peer: ManagementPeer, _ capability: IOCapability, adapter: UInt16) -> ManagementPacket {
        switch self {
        case .setBondable(let isOn): ManagementSetBondable(isOn).packet(adapter: adapter)
        case .disconnect: ManagementDisconnect(peer).packet(adapter: adapter)
        case .removeKeys(let disconnects):
            ManagementUnpairDevice(peer, disconnects: disconnects).packet(adapter: adapter)
        case .removeReplacedBond: ManagementUnpairDevice(peer, disconnects: false).packet(adapter: adapter)
        case .addOutOfBandData(let values):
            ManagementAddRemoteOutOfBandData(peer, confirmation: values.confirmation, random: values.random)
                .packet(adapter: adapter)
        case .clearOutOfBandData: ManagementRemoveRemoteOutOfBandData().packet(adapter: adapter)
        case .pair: ManagementPairDevice(peer, capability).packet(adapter: adapter)
        case .cancelPairing: ManagementCancelPairDevice(peer).packet(adapter: adapter)
        case .confirm: ManagementUserConfirmationReply(peer).packet(adapter: adapter)
        case .reject: ManagementUserConfirmationNegativeReply(peer).packet(adapter: adapter)
        case .enter(let passkey): ManagementUserPasskeyReply(peer, passkey: passkey).packet(adapter: adapter)
        case .enterNothing: ManagementUserPasskeyNegativeReply(peer).packet(adapter: adapter)
        }
    }
}
