// The pairing that a central begins, through the kernel's management interface.
//
// Duties: know whether centrals may pair, and until when; decide about each question of the kernel that a central has
// caused; pass what is allowed to the agent, and its replies to the kernel; gather the keys, check what they are worth,
// have them stored, and undo everything where one of these fails.
//
// Invariants
// - Without permission no question is accepted: `asked` returns `nil`, and the owner refuses it.
// - One central pairs at a time. A question of another one is refused at once, and does not disturb the first.
// - A central with a bond is refused, unless the owner asks the application about the replacement.
// - A central whose pairings have failed three times in 60 s is refused until the first of these is 60 s ago.
// - Where nobody confirms pairings with nothing to compare, at most three centrals get a bond in 60 s. Otherwise
//   a device in range could fill the store of bonds, with another address each time.
// - A pairing ends exactly once, in `finish`, and is paired only after the bond is stored. A failure after keys may
//   exist removes them from the kernel first; those of another bond are left to the next load of the lists.
// - Each question is asked once, with a number that no other question has had.
// - A pairing whose encrypted link has ended is decided at the latest by the next question of its central.
// - A question that the agent does not reply to is rejected before the kernel gives the pairing up, which would end the
//   link.
// - The bond of a central never has the identity of another bond, or of another device that is connected: the links of
//   that one would be taken for links to the bonded one. Links come and go,
//   so the owner looks right before it stores the bond.
// - A link is ended by its handle: the kernel may have several links under the identity that a central claims.
// - A pairing keeps the permission that it began with: the end of the time in which centrals may pair does not end it.
//   `refuse` does.
//
// Nothing indicates that a pairing begins, and no command ends in its success: it begins with the kernel's first
// question, and is done when the link is encrypted and the keys are reported. The kernel distributes keys for some
// connection intervals after the encryption, and reports all of them together.

/// Pairs with the centrals of links that others have made.
package struct PairingResponder: ~Copyable {
    /// The permission of centrals to pair.
    package struct Permission: Hashable, Sendable {
        /// The input and output of the agent.
        package var capability: IOCapability
        /// The lowest level that is accepted.
        package var level: BondRecord.Level
        /// The size of the shortest key that is accepted, in bytes.
        package var minimumKeySize: UInt8
        /// A Boolean value that indicates whether the owner asks the application about the replacement of a bond.
        package var mayReplaceBonds: Bool
        /// A Boolean value that indicates whether pairings with nothing to compare are accepted without asking anybody.
        package var acceptsUnconfirmed: Bool
        /// The time that a pairing may take.
        package var timeout: Duration
        /// The end of the permission; `nil` for none.
        package var end: BootInstant?

        package init(
            capability: IOCapability, level: BondRecord.Level = .encrypted, minimumKeySize: UInt8 = 16,
            mayReplaceBonds: Bool = false, acceptsUnconfirmed: Bool = false, timeout: Duration = .seconds(25),
            end: BootInstant? = nil
        ) {
            self.capability = capability
            self.level = level
            self.minimumKeySize = minimumKeySize
            self.mayReplaceBonds = mayReplaceBonds
            self.acceptsUnconfirmed = acceptsUnconfirmed
            self.timeout = timeout
            self.end = end
        }
    }

    /// A central on a link that is served.
    package struct Client: Hashable, Sendable {
        /// The name by which the kernel has the link.
        package var peer: PeerID
        /// The address that its link was made from, or the identity that was known then.
        package var onAir: PeerID
        /// Its link: the central may have an earlier one that has not ended yet.
        package var link: LinkIdentity?
        /// A Boolean value that indicates whether there is a bond with it.
        package var hasBond: Bool
        /// The identities of all other bonds.
        package var otherBonds: Set<PeerID>
        /// A Boolean value that indicates whether Encryption Change of the link is reported to `encryptionChanged`.
        package var followsEncryption: Bool
        /// A Boolean value that indicates whether the end of the link is reported to `linkEnded` by its handle.
        package var followsEnd: Bool

        package init(
            peer: PeerID, onAir: PeerID? = nil, link: LinkIdentity? = nil, hasBond: Bool = false,
            otherBonds: Set<PeerID> = [], followsEncryption: Bool = true, followsEnd: Bool = true
        ) {
            self.peer = peer
            self.onAir = onAir ?? peer
            self.link = link
            self.hasBond = hasBond
            self.otherBonds = otherBonds
            self.followsEncryption = followsEncryption
            self.followsEnd = followsEnd
        }
    }

    /// The reason that there is no bond.
    package enum Failure: Error, Hashable, Sendable {
        /// There is one, and it is not to be replaced.
        case bondExists
        /// Pairings with this central have failed too often in the last time.
        case tooManyFailures
        /// Too many centrals have got a bond that nobody has confirmed in the last time.
        case tooManyUnconfirmed
        /// Another pairing runs, or waits to begin.
        case busy
        /// Another central that is connected has the identity that it claims.
        case identityConnected
        case pairing(PairingExchange.Failure)
    }

    /// An action for the owner to take now.
    package enum Action: Hashable, Sendable {
        /// Let the kernel accept pairings with this capability from now on, or none.
        case rest(IOCapability?)
        /// A pairing is to begin: call `mayBegin` when it may, or `cannotBegin`.
        case begin
        /// Send this command for the peer, and call `commandFinished` with its end.
        case send(PairingExchange.Command, ManagementPeer)
        /// Send this refusal of a question that is no part of the pairing that runs; nothing waits for its end.
        case refuse(PairingExchange.Command, ManagementPeer)
        /// End the link of the central that pairs.
        case disconnect(Client)
        /// Ask the agent, where there is a bond first whether it may be replaced, and call `replied` with the number.
        case ask(PairingExchange.Question, Client, UInt64)
        /// The agent's reply is no longer needed.
        case stopAsking
        /// Read the security level and the key size of the link's socket, and call `securityRead`.
        case readSecurity(Client)
        /// Store the bond, and call `stored`; or `identityIsConnected`, if another device that is connected has its
        /// identity.
        case store(PairingExchange.Outcome, Client)
        /// The pairing has ended.
        case finish(Client, Result<PairingExchange.Outcome, Failure>)
        /// A pairing was refused before it has begun.
        case refused(Client, Failure)
        /// The time in which centrals may pair is over.
        case permissionEnded
    }

    private struct Pairing {
        var client: Client
        let permission: Permission
        /// When the pairing is given up where no question waits for a reply.
        private let end: BootInstant
        /// The event that has asked last, and waits for a reply.
        private(set) var event: ManagementEvent.Content?
        private(set) var question: PairingExchange.Question
        /// When that is rejected.
        private var replyDeadline: BootInstant?
        /// Whether the agent has replied to the question with a yes, or a passkey.
        var isAnswered = false
        var keys: PairingKeys
        var method = PairingMethod.justWorks
        var isEncrypted: Bool

        init(
            _ client: Client, _ permission: Permission, _ question: PairingExchange.Question,
            in event: ManagementEvent.Content, at now: BootInstant
        ) {
            self.client = client
            self.permission = permission
            self.question = question
            end = now + permission.timeout
            keys = PairingKeys(of: client.peer)
            isEncrypted = !client.followsEncryption
            ask(question, in: event, at: now)
        }

        /// When the pairing is given up unless something happens.
        var deadline: BootInstant { replyDeadline ?? end }

        /// The kernel asks, and the agent's reply is awaited; a passkey that is shown is entered at the central.
        mutating func ask(
            _ question: PairingExchange.Question, in event: ManagementEvent.Content, at now: BootInstant
        ) {
            self.event = event
            self.question = question
            replyDeadline = isShown ? nil : min(end, now + PairingExchange.replyTime)
        }

        /// The question needs no reply any more.
        mutating func closeQuestion() {
            event = nil
            replyDeadline = nil
        }

        /// Whether keys that are reported after the end of the link are worth something.
        var mayBondAfterEnd: Bool { isEncrypted && client.followsEncryption }

        /// Whether the keys have encrypted the link, as the controller has reported.
        var isProven: Bool { mayBondAfterEnd && !keys.isEmpty }

        /// What the keys are worth.
        func outcome() throws(PairingExchange.Failure) -> PairingExchange.Outcome {
            // Legacy pairing has one key for each role: the central uses this one.
            guard keys.hasPeripheralKey else { throw .noKey }
            return try keys.outcome(method, level: permission.level, minimumKeySize: permission.minimumKeySize)
        }

        /// Whether a passkey is shown.
        var isShown: Bool { if case .show = question { true } else { false } }

        /// Whether a bond is made that nobody has confirmed. The replacement of a bond is confirmed by the application.
        var isUnconfirmed: Bool { question == .justWorks && permission.acceptsUnconfirmed && !client.hasBond }

        func concerns(_ peer: ManagementPeer) -> Bool {
            guard let peer = peer.id else { return false }
            return peer == client.peer || peer == keys.identity || peer == client.onAir
        }
    }

    private enum State {
        case idle
        /// The owner has not allowed the pairing to begin yet.
        case waiting(Pairing)
        /// The agent or the central has its turn.
        case pairing(Pairing)
        /// The link is encrypted, or there are keys, and the rest is awaited.
        case settling(Pairing, until: BootInstant)
        /// The link has ended; the kernel may report that the central has refused, or the keys of the pairing.
        case ending(Pairing, until: BootInstant)
        /// The security of the socket is being read.
        case checking(Pairing)
        case storing(Pairing, PairingExchange.Outcome)
        /// The first of these commands is out; then the pairing ends.
        case leaving(Pairing, [PairingExchange.Command], Failure)
    }

    private var state = State.idle
    private var permission: Permission?
    private var lastQuestion: UInt64 = 0
    /// The pairings that have failed lately, the first one first.
    private var failures: [(peer: PeerID, time: BootInstant)] = []
    /// When bonds were made lately that nobody has confirmed, the first time first.
    private var unconfirmed: [BootInstant] = []

    package init() {}

    /// A Boolean value that indicates whether centrals may pair now.
    package var isAllowed: Bool { permission != nil }

    /// With what capability the kernel is to accept pairings; `nil` for none.
    package var capability: IOCapability? { permission?.capability }

    /// A Boolean value that indicates whether a central pairs.
    package var isRunning: Bool { if case .idle = state { false } else { true } }

    /// A Boolean value that indicates whether the bond of a central is being stored.
    package var isStoring: Bool { if case .storing = state { true } else { false } }

    /// Returns a Boolean value that indicates whether the central on the link from this address pairs.
    package func isRunning(onAir peer: PeerID) -> Bool { pairing?.client.onAir == peer }

    /// The link of the central that pairs, or waits to.
    package var link: LinkIdentity? { pairing?.client.link }

    /// Returns a Boolean value that indicates whether events of the kernel about this peer belong to the pairing that
    /// runs.
    package func concerns(_ peer: ManagementPeer) -> Bool { pairing?.concerns(peer) ?? false }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        let own: BootInstant? =
            switch state {
            case .waiting(let pairing), .pairing(let pairing): pairing.deadline
            case .settling(_, let until), .ending(_, let until): until
            case .idle, .checking, .storing, .leaving: nil
            }
        guard let end = permission?.end else { return own }
        return own.map { min($0, end) } ?? end
    }

    private var pairing: Pairing? {
        switch state {
        case .idle: nil
        case .waiting(let pairing), .pairing(let pairing), .settling(let pairing, _), .ending(let pairing, _),
            .checking(let pairing), .storing(let pairing, _), .leaving(let pairing, _, _):
            pairing
        }
    }
}

// MARK: - From the owner

extension PairingResponder {
    /// Lets centrals pair from now on, instead of what they may do now.
    package mutating func allow(_ permission: Permission) -> [Action] {
        self.permission = permission
        return [.rest(permission.capability)]
    }

    /// Lets no central pair from now on. A pairing that runs ends, unless its bond is being stored,
    /// or it is to be kept.
    package mutating func refuse(keepingCurrent: Bool = false, at now: BootInstant) -> [Action] {
        guard permission != nil || isRunning else { return [] }
        permission = nil
        return (keepingCurrent ? [] : end(.pairing(.cancelled), at: now)) + [.rest(nil)]
    }

    /// The kernel asks a question about a central.
    ///
    /// - Returns: `nil` for an event that asks nothing, and where centrals may not pair.
    package mutating func asked(
        _ event: ManagementEvent.Content, about client: Client, isBusy: Bool, at now: BootInstant
    ) -> [Action]? {
        guard let question = Self.question(in: event) else { return nil }
        var actions: [Action] = []
        if let pairing, pairing.client == client || pairing.client.peer == client.peer {
            guard case .ending(let ended, _) = state, ended.mayBondAfterEnd, permission != nil else {
                return askedAgain(question, event, about: client, at: now)
            }
            // The central is back. The keys of the link that has ended come before its question, from the same socket.
            actions = lost(ended, at: now)
        }
        guard let permission else { return nil }
        let pairing = Pairing(client, permission, question, in: event, at: now)
        if let failure = obstacle(to: pairing, isBusy: isBusy, at: now) {
            return actions + Self.refusal(of: event) + [.refused(client, failure)]
        }
        state = .waiting(pairing)
        return actions + [.begin]
    }

    private mutating func obstacle(to pairing: Pairing, isBusy: Bool, at now: BootInstant) -> Failure? {
        if isBusy || isRunning { return .busy }
        let client = pairing.client
        failures.removeAll { $0.time + Self.failureTime <= now }
        if failures.count(where: { $0.peer == client.peer }) >= Self.failureLimit { return .tooManyFailures }
        if client.hasBond, !pairing.permission.mayReplaceBonds { return .bondExists }
        return obstacle(toQuestionOf: pairing, at: now)
    }

    private mutating func obstacle(toQuestionOf pairing: Pairing, at now: BootInstant) -> Failure? {
        guard pairing.question == .justWorks else { return nil }
        if pairing.permission.level > .encrypted { return .pairing(.notProtected) }
        unconfirmed.removeAll { $0 + Self.failureTime <= now }
        return pairing.isUnconfirmed && unconfirmed.count >= Self.unconfirmedLimit ? .tooManyUnconfirmed : nil
    }

    /// The kernel repeats a question, or the central begins again.
    private mutating func askedAgain(
        _ question: PairingExchange.Question, _ event: ManagementEvent.Content, about client: Client,
        at now: BootInstant
    ) -> [Action] {
        switch state {
        case .waiting(var pairing):
            // It may be that of the central's next link.
            pairing.client.link = client.link
            pairing.ask(question, in: event, at: now)
            if let failure = obstacle(toQuestionOf: pairing, at: now) { return leave(pairing, failure, at: now) }
            state = .waiting(pairing)
            return []
        case .pairing(var pairing):
            // A shown passkey is reported once more for each digit.
            if pairing.question == question, pairing.event != nil || pairing.isShown { return [] }
            pairing.ask(question, in: event, at: now)
            if let failure = obstacle(toQuestionOf: pairing, at: now) { return leave(pairing, failure, at: now) }
            return ask(pairing)
        case .idle, .settling, .ending, .checking, .storing, .leaving:
            return Self.refusal(of: event)
        }
    }

    /// The pairing may begin.
    package mutating func mayBegin() -> [Action] {
        guard case .waiting(let pairing) = state else { return [] }
        return ask(pairing)
    }

    /// The pairing cannot begin.
    package mutating func cannotBegin(_ failure: ManagementSetup.Failure, at now: BootInstant) -> [Action] {
        guard case .waiting(let pairing) = state else { return [] }
        return leave(pairing, .pairing(.notReady(failure)), at: now)
    }

    /// The agent has replied to the question with this number; a reply to an earlier one is late and has no effect.
    package mutating func replied(_ reply: PairingExchange.Reply, to number: UInt64, at now: BootInstant) -> [Action] {
        guard case .pairing(var pairing) = state, number == lastQuestion, pairing.event != nil else { return [] }
        let command: PairingExchange.Command
        switch (pairing.question, reply) {
        case (.justWorks, .yes), (.compare, .yes): command = .confirm
        case (.enter, .passkey(let passkey)) where passkey <= 999_999: command = .enter(passkey)
        // The central's user has it from now on. It still can be withdrawn.
        case (.show, .yes): return []
        default: return leave(pairing, .pairing(.refusedHere(pairing.question)), at: now)
        }
        pairing.closeQuestion()
        pairing.isAnswered = true
        state = .pairing(pairing)
        return [send(command, pairing)]
    }

    /// The security of the link's socket; `nil` where the link is gone.
    package mutating func securityRead(
        _ security: (level: UInt8, keySize: UInt8)?, at now: BootInstant
    ) -> [Action] {
        guard case .checking(let pairing) = state else { return [] }
        guard let security else { return lost(pairing, at: now) }
        guard security.level >= 2, security.keySize >= 7 else {
            return leave(pairing, .pairing(.notEncrypted), at: now)
        }
        return judge(pairing, at: now)
    }

    /// The link has ended, and nothing more of it is awaited. Where there are keys, the central has them too, and may
    /// come back with them at once.
    private mutating func lost(_ pairing: Pairing, at now: BootInstant) -> [Action] {
        pairing.isProven ? judge(pairing, at: now) : leave(pairing, .pairing(.linkLost), at: now)
    }

    /// Decides what the keys of an encrypted link are worth.
    private mutating func judge(_ pairing: Pairing, at now: BootInstant) -> [Action] {
        do throws(PairingExchange.Failure) {
            let outcome = try pairing.outcome()
            state = .storing(pairing, outcome)
            return [.store(outcome, pairing.client)]
        } catch {
            return leave(pairing, .pairing(error), at: now)
        }
    }

    /// The bond is stored, or could not be.
    package mutating func stored(_ isStored: Bool, at now: BootInstant) -> [Action] {
        guard case .storing(let pairing, let outcome) = state else { return [] }
        guard isStored else { return leave(pairing, .pairing(.notStored), at: now) }
        if pairing.isUnconfirmed { unconfirmed.append(now) }
        state = .idle
        return [.finish(pairing.client, .success(outcome))]
    }

    /// The bond is not stored, because another device that is connected has its identity.
    package mutating func identityIsConnected(at now: BootInstant) -> [Action] {
        guard case .storing(let pairing, _) = state else { return [] }
        return leave(pairing, .identityConnected, at: now)
    }

    /// The adapter or the management interface is gone: no command can be sent any more.
    package mutating func adapterLost(at now: BootInstant) -> [Action] {
        switch state {
        // The keys were checked; the bond is good without the adapter.
        case .idle, .storing: []
        case .leaving(let pairing, _, let failure): finish(pairing, failure, at: now)
        case .checking(let pairing): keepKeys(of: pairing, at: now)
        // Keys are missing, or the link is not encrypted: there is no bond to keep.
        case .waiting(let pairing), .pairing(let pairing), .settling(let pairing, _), .ending(let pairing, _):
            finish(pairing, .pairing(.adapterLost), at: now)
        }
    }

    /// Has the keys of a pairing whose adapter is lost stored, if they are good. As after the end of a link, the
    /// central has them too, and may come back with them.
    private mutating func keepKeys(of pairing: Pairing, at now: BootInstant) -> [Action] {
        guard pairing.isProven, let outcome = try? pairing.outcome() else {
            return finish(pairing, .pairing(.adapterLost), at: now)
        }
        state = .storing(pairing, outcome)
        return [.store(outcome, pairing.client)]
    }

    /// Advances to `now`.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        var actions: [Action] = []
        if let end = permission?.end, end <= now {
            permission = nil
            actions = [.rest(nil), .permissionEnded]
        }
        switch state {
        case .waiting(let pairing) where pairing.deadline <= now:
            actions += leave(pairing, .pairing(.timedOut(nil)), at: now)
        case .pairing(let pairing) where pairing.deadline <= now:
            // A passkey that is shown is entered at the central.
            let unanswered = pairing.event == nil || pairing.isShown ? nil : pairing.question
            actions += leave(pairing, .pairing(.timedOut(unanswered)), at: now)
        case .settling(let pairing, let until) where until <= now:
            state = .checking(pairing)
            actions.append(.readSecurity(pairing.client))
        case .ending(let pairing, let until) where until <= now:
            actions += lost(pairing, at: now)
        case .idle, .waiting, .pairing, .settling, .ending, .checking, .storing, .leaving: break
        }
        return actions
    }
}

// MARK: - From the kernel

extension PairingResponder {
    /// A command of this machine has ended.
    package mutating func commandFinished(
        _ command: PairingExchange.Command, _ end: PairingExchange.CommandEnd, at now: BootInstant
    ) -> [Action] {
        if end == .lost { return adapterLost(at: now) }
        // A reply that comes too late has no effect; the end of the pairing is reported.
        guard case .leaving(let pairing, let commands, let failure) = state, commands.first == command else {
            return []
        }
        // What cannot be undone now is left to the next load of the lists.
        return leave(pairing, Array(commands.dropFirst()), failure, at: now)
    }

    /// The encryption of the link has changed, as the controller reports it.
    package mutating func encryptionChanged(_ isEncrypted: Bool, at now: BootInstant) -> [Action] {
        // After the end of the link, the event is about the next one.
        if case .ending = state { return [] }
        return update(at: now) { $0.isEncrypted = isEncrypted }
    }

    /// The link has ended.
    package mutating func linkEnded(at now: BootInstant) -> [Action] {
        switch state {
        case .waiting(var pairing), .pairing(var pairing):
            // There is nothing to reject any more.
            pairing.closeQuestion()
            state = .ending(pairing, until: now + Self.linkLossTime)
            return [.stopAsking]
        case .settling(let pairing, _) where pairing.keys.isEmpty:
            // The kernel may have reported them before the end of the link, on another socket.
            state = .ending(pairing, until: now + Self.linkLossTime)
            return []
        case .settling(let pairing, _), .checking(let pairing):
            return lost(pairing, at: now)
        case .idle, .ending, .storing, .leaving:
            return []
        }
    }

    /// An event of the management interface about a peer was read that is no question.
    ///
    /// - Returns: `nil` for an event that does not concern the pairing that runs.
    package mutating func received(_ event: ManagementEvent.Content, at now: BootInstant) -> [Action]? {
        guard let pairing else { return nil }
        switch event {
        case .newIdentityResolvingKey(let new):
            guard new.privateAddress == pairing.client.onAir.address || pairing.concerns(new.key.peer) else {
                return nil
            }
            return update(at: now) { $0.keys.add(new) }
        case .newLongTermKey(let new):
            guard pairing.concerns(new.key.peer) else { return nil }
            return update(at: now) { $0.keys.add(new) }
        case .newSignatureKey(let new):
            guard pairing.concerns(new.peer) else { return nil }
            return update(at: now) { $0.keys.add(new) }
        case .authenticationFailed(let failed):
            return pairing.concerns(failed.peer) ? givenUp(at: now) : nil
        case .deviceDisconnected(let end):
            // It may be the end of an earlier link; where the controller's own event is followed, that decides.
            guard !pairing.client.followsEnd, pairing.concerns(end.peer) else { return nil }
            return linkEnded(at: now)
        default:
            return nil
        }
    }

    /// The kernel has given up the pairing: this side has not, or the end is under way.
    private mutating func givenUp(at now: BootInstant) -> [Action] {
        switch state {
        case .waiting(var pairing), .pairing(var pairing), .ending(var pairing, _):
            pairing.closeQuestion()
            let refusal = PairingExchange.Failure.refusal(of: pairing.method, isAnswered: pairing.isAnswered)
            return leave(pairing, .pairing(refusal), at: now, isOver: true)
        case .settling(var pairing, _):
            // The link is encrypted, or has keys: what was compared or entered was right.
            pairing.closeQuestion()
            return leave(pairing, .pairing(.refusedByPeer), at: now, isOver: true)
        case .idle, .checking, .storing, .leaving:
            return []
        }
    }

    /// Changes what is known about the pairing, and goes on where all of it is.
    private mutating func update(at now: BootInstant, _ change: (inout Pairing) -> Void) -> [Action] {
        var until: BootInstant?
        var pairing: Pairing
        switch state {
        case .pairing(let running): pairing = running
        case .settling(let running, let end): (pairing, until) = (running, end)
        case .ending(let running, let end): return updateEnded(running, until: end, at: now, change)
        case .idle, .waiting, .checking, .storing, .leaving: return []
        }
        let (wasEncrypted, hadKeys) = (pairing.isEncrypted, !pairing.keys.isEmpty)
        change(&pairing)
        let hasKeys = !pairing.keys.isEmpty
        guard hasKeys || (pairing.isEncrypted && pairing.client.followsEncryption) else {
            state = .pairing(pairing)
            return []
        }
        pairing.closeQuestion()
        // The kernel has the link under its identity now, so that it could be taken for a link to that peer.
        if pairing.client.otherBonds.contains(pairing.keys.identity) {
            return [.stopAsking] + leave(pairing, .pairing(.identityTaken), at: now)
        }
        if pairing.keys.isComplete, pairing.isEncrypted {
            state = .checking(pairing)
            return [.stopAsking, .readSecurity(pairing.client)]
        }
        if until == nil || hasKeys != hadKeys || pairing.isEncrypted != wasEncrypted {
            until = now + (hasKeys ? Self.furtherKeyTime : Self.keyTime)
        }
        state = .settling(pairing, until: until ?? now)
        return [.stopAsking]
    }

    /// Changes what is known about a pairing whose link has ended.
    private mutating func updateEnded(
        _ running: Pairing, until: BootInstant, at now: BootInstant, _ change: (inout Pairing) -> Void
    ) -> [Action] {
        // Keys of a link that was never encrypted are worth nothing.
        guard running.mayBondAfterEnd else { return [] }
        var pairing = running
        change(&pairing)
        if pairing.client.otherBonds.contains(pairing.keys.identity) {
            return leave(pairing, .pairing(.identityTaken), at: now)
        }
        if pairing.keys.isComplete { return lost(pairing, at: now) }
        state = .ending(pairing, until: until)
        return []
    }
}

// MARK: - Transitions

extension PairingResponder {
    private static func question(in event: ManagementEvent.Content) -> PairingExchange.Question? {
        switch event {
        case .userConfirmationRequest(let request): request.number.map { .compare($0) } ?? .justWorks
        case .userPasskeyRequest: .enter
        case .passkeyNotify(let notification): .show(notification.passkey)
        default: nil
        }
    }

    private static func refusal(of event: ManagementEvent.Content) -> [Action] {
        PairingExchange.refusal(of: event).map { [.refuse($0.command, $0.peer)] } ?? []
    }

    private func send(_ command: PairingExchange.Command, _ pairing: Pairing) -> Action {
        .send(command, ManagementPeer(pairing.keys.identity))
    }

    private mutating func ask(_ pairing: Pairing) -> [Action] {
        var pairing = pairing
        pairing.isAnswered = false
        pairing.method =
            switch pairing.question {
            case .justWorks: .justWorks
            case .compare: .numericComparison
            case .enter: .passkeyTyped
            case .show: .passkeyShown
            }
        state = .pairing(pairing)
        lastQuestion &+= 1
        return [.ask(pairing.question, pairing.client, lastQuestion)]
    }

    private mutating func end(_ failure: Failure, at now: BootInstant) -> [Action] {
        switch state {
        case .waiting(let pairing), .pairing(let pairing), .settling(let pairing, _), .checking(let pairing):
            leave(pairing, failure, at: now)
        // Its keys may still be reported, and are not to be stored.
        case .ending(let pairing, _) where pairing.mayBondAfterEnd: leave(pairing, failure, at: now)
        case .idle, .ending, .storing, .leaving: []
        }
    }

    /// Stops what runs in the kernel, removes what the pairing has left, and ends.
    ///
    /// - Parameter isOver: Whether the kernel has given up the pairing by itself.
    private mutating func leave(
        _ pairing: Pairing, _ failure: Failure, at now: BootInstant, isOver: Bool = false
    ) -> [Action] {
        var commands: [PairingExchange.Command] = []
        var disconnects = false
        let hasHandle = pairing.client.followsEncryption
        switch pairing.event.flatMap({ PairingExchange.refusal(of: $0) }) {
        case let refusal?: commands.append(refusal.command)
        case nil where pairing.client.otherBonds.contains(pairing.keys.identity):
            // The keys are another bond's.
            disconnects = true
            if !hasHandle { commands.append(.disconnect) }
        case nil where !pairing.keys.isEmpty:
            // Without an identity, or with a central that keeps no bonds, the encryption is good for this link.
            disconnects = failure != .pairing(.noIdentity) && failure != .pairing(.noKey)
            commands.append(.removeKeys(disconnects: disconnects && !hasHandle))
        case nil where !isOver && failure != .pairing(.linkLost) && failure != .pairing(.noKey):
            // It also ends a pairing that waits for the central.
            commands.append(.removeKeys(disconnects: false))
        case nil: break
        }
        return [.stopAsking] + (disconnects && hasHandle ? [.disconnect(pairing.client)] : [])
            + leave(pairing, commands, failure, at: now)
    }

    private mutating func leave(
        _ pairing: Pairing, _ commands: [PairingExchange.Command], _ failure: Failure, at now: BootInstant
    ) -> [Action] {
        guard let first = commands.first else { return finish(pairing, failure, at: now) }
        state = .leaving(pairing, commands, failure)
        return [send(first, pairing)]
    }

    private mutating func finish(_ pairing: Pairing, _ failure: Failure, at now: BootInstant) -> [Action] {
        state = .idle
        if failure.isCounted {
            failures.append((pairing.client.peer, now))
            if failures.count > Self.rememberedFailures { failures.removeFirst() }
        }
        return [.finish(pairing.client, .failure(failure))]
    }

    /// The number of times that pairings with a central may fail in `failureTime`.
    package static let failureLimit = 3
    package static let failureTime: Duration = .seconds(60)
    private static let rememberedFailures = 64
    /// The number of centrals that may get a bond in `failureTime` that nobody has confirmed.
    package static let unconfirmedLimit = 3
    /// How long the keys of an encrypted link are awaited: the central sends its own with some connection intervals
    /// each.
    private static let keyTime: Duration = .seconds(5)
    /// How long further keys are awaited: the kernel reports all of them at once.
    private static let furtherKeyTime: Duration = .milliseconds(200)
    /// How long the kernel's reason is awaited after the end of the link.
    private static let linkLossTime: Duration = .milliseconds(500)
}

extension PairingResponder.Failure {
    /// Whether the central, or its user, can be the cause.
    fileprivate var isCounted: Bool {
        switch self {
        case .bondExists, .tooManyFailures, .tooManyUnconfirmed, .busy: false
        case .pairing(.cancelled), .pairing(.adapterLost), .pairing(.notReady), .pairing(.notStored): false
        case .pairing, .identityConnected: true
        }
    }
}
