// Turns the attribute channel of one link into single questions with single answers.
//
// Duties: keeps one request outstanding, sends everything in the order in which it was enqueued, finds the caller of
// each answer, ends requests that stay unanswered, confirms indications, answers the peer's own requests, and keeps the
// MTU. It looks no further into answers than that: what a response means, and whether its list adds up, is the
// procedure's business.
//
// Invariants:
// - At most one request is outstanding. Its slot is free again when the answer came, never earlier: a caller that gives
//   up leaves an orphan behind, and the late answer to it is discarded. Else it would be taken for the next answer.
// - 30 s after a request was sent the link closes for good. Nothing restarts that timer. Only `timePassed` judges it: an answer
//   that comes to be looked at late, because this process did not run, has come in time (row O21). So the owner reads what
//   there is before it says that time has passed.
// - Every id that was enqueued is finished exactly once, also when the link ends.
// - A response has no number, so a copy of one that arrives while the next request of its kind is under way cannot be told from the
//   response to that. Two things keep it rare: the owner reads what there is before it writes a request (`hold`), so that a copy that
//   has arrived finds the slot free; and what comes for a request that has ended is counted, for it puts earlier results in doubt.
// - At most one `.send` is in the owner's hands. It answers with `sent`, `blocked`, `hold` or `refused` before it does anything else, and
//   a packet counts as sent only then; until then it can be taken back.
// - Confirmations and answers to the peer overtake our own operations, and there is room for a fixed number of them.
//
// The owner is the link's actor. It passes in the time, and carries out what it gets back.

/// The attribute channel of one link, without a socket and without a clock.
///
/// Spec: Core Vol 3 Part F, 3.3.2 and 3.3.3.
package struct ATTQueue: ~Copyable {
    /// The numbers that bound the queue, and how strict it is.
    package struct Limits: Hashable, Sendable {
        /// How long the peer may think about a request before the link closes.
        package var responseTime: Duration = .seconds(30)
        /// How many operations may be unfinished at a time.
        package var operations = 64
        /// How many answers out of turn close the link, within one request.
        package var unexplainedAnswers = 3
        /// How many notifications without a handle close the link.
        package var shortValues = 16
        /// The longest value that an attribute can have.
        package var valueLength = 512
        /// The largest packet that we receive, which is what a peer that asks for our MTU gets.
        package var mtu: UInt16 = 517
        /// Whether the first answer out of turn closes the link.
        package var isStrict = false

        package init() {}
    }

    /// The MTU that every link begins with.
    package static let defaultMTU: UInt16 = 23
    /// The largest MTU that is of use: a value of 512 bytes fits into a Prepare Write Request.
    package static let largestMTU: UInt16 = 517
    /// How many confirmations a peer can be owed: one more than the specification lets it come to.
    package static let mostConfirmationsDue = 2

    package let limits: Limits
    package internal(set) var statistics = ATTStatistics()
    /// The largest packet that may be sent.
    package internal(set) var mtu: UInt16

    var slot = Slot.free
    var writing = Writing.ready
    /// Whether operations wait until the owner has read what there is.
    var isHeld = false
    var waiting: [Operation] = []

    // What the peer is owed; see ATTQueue+Peer.
    var answer: [UInt8]?
    var confirmationsDue = 0

    // What is known about the MTU; see ATTQueue+MTU.
    var receiveLimit: UInt16
    var exchangedMTU: UInt16?
    var peerMTU: UInt16?

    private var lastEnded: Ended?
    /// How many responses came for a request that had ended with another one: one of the two was not meant for it.
    package private(set) var contradictions = 0

    package init(limits: Limits = Limits(), mtu: UInt16 = ATTQueue.defaultMTU) {
        self.limits = limits
        self.mtu = Self.clamped(mtu)
        receiveLimit = Self.clamped(mtu)
    }

    /// Whether the link has ended; nothing is sent or received any more.
    package var isClosed: Bool {
        if case .closed = slot { true } else { false }
    }

    /// Takes one packet from the peer, as it was read.
    package mutating func received(_ pdu: [UInt8], at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        if isClosed { return actions }
        guard let first = pdu.first else {
            statistics.emptyPackets += 1
            return actions
        }
        let opcode = ATTOpcode(rawValue: first)
        switch opcode.kind {
        case .response: receivedAnswer(opcode, pdu, &actions)
        case .notification: receivedNotification(opcode, pdu, &actions)
        case .indication: receivedIndication(pdu, &actions)
        case .request: receivedRequest(opcode, pdu, &actions)
        case .confirmation: receivedConfirmation(&actions)
        case .command: statistics.peerCommandsIgnored += 1
        }
        offerNext(&actions, at: now)
        return actions
    }

    /// Matches an answer with the outstanding request.
    private mutating func receivedAnswer(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        if pdu.count > Int(receiveLimit) {
            statistics.oversizedAnswers += 1
            return close(.oversizedResponse, &actions)
        }
        guard case .taken(let request) = slot else { return receivedStray(opcode, pdu, &actions) }
        if opcode == request.opcode.response {
            return end(request, receivedResponse(pdu, to: request), pdu, &actions)
        }
        guard opcode == .errorResponse else { return receivedStray(opcode, pdu, &actions) }
        do throws(MalformedPacket) {
            let error = try ATTErrorResponse(pdu)
            guard error.requestOpcode == request.opcode else { return receivedStray(opcode, pdu, &actions) }
            if let handle = request.handle, handle != error.handle {
                if isStale(error, pdu) { return receivedStray(opcode, pdu, &actions) }
                statistics.handleMismatches += 1
            }
            end(request, .failure(.refused(error)), pdu, &actions)
            if error.code == .databaseOutOfSync { refuseWaitingRequests(&actions) }
        } catch {
            if let named = Self.requestNamed(by: pdu), named != request.opcode {
                return receivedStray(opcode, pdu, &actions)
            }
            end(request, .failure(.malformed(error)), pdu, &actions)
        }
    }

    /// Whether an Error Response that names another handle than the request is a copy of one for the request before.
    ///
    /// Devices in the field name wrong handles: 0, the first of a range, or what their buffer holds. Such a response is the only one
    /// that they send, so dropping it would cost the link after 30 s (row T04). It counts as a copy only where it names exactly
    /// what has just ended, opcode and handle, and either says the same once more or comes from a peer that has sent
    /// responses twice on this link before (row T33).
    private func isStale(_ error: ATTErrorResponse, _ pdu: [UInt8]) -> Bool {
        guard let lastEnded, lastEnded.opcode == error.requestOpcode, lastEnded.handle == error.handle else {
            return false
        }
        return lastEnded.response == pdu || statistics.duplicatedResponses > 0
    }

    /// Refuses what was made in ignorance of a change. The peer takes the next request as a sign that the change is known
    /// here, and would carry it out on a handle that may mean something else by now.
    ///
    /// Spec: Core Vol 3 Part G, 2.5.2.1.
    private mutating func refuseWaitingRequests(_ actions: inout ATTActions) {
        var kept: [Operation] = []
        for operation in waiting {
            let opcode = ATTOpcode(rawValue: operation.pdu.first ?? 0)
            guard operation.isRequest, opcode != .exchangeMTURequest, opcode != .executeWriteRequest else {
                kept.append(operation)
                continue
            }
            var reader = ByteReader(operation.pdu.span)
            let handle = reader.skip(1) ? reader.u16() : nil
            let error = ATTErrorResponse(requestOpcode: opcode, handle: handle ?? 0, code: .databaseOutOfSync)
            if let id = operation.id { actions.append(.finish(id, .failure(.refused(error)))) }
        }
        waiting = kept
    }

    /// Looks into the one response that concerns the queue itself, and hands on all others.
    private mutating func receivedResponse(
        _ pdu: [UInt8], to request: Outstanding
    ) -> Result<[UInt8], ATTFailure> {
        guard let offered = request.offeredMTU else { return .success(pdu) }
        do throws(MalformedPacket) {
            let response = try ATTExchangeMTUResponse(pdu)
            exchangedMTU = max(min(offered, response.mtu), Self.defaultMTU)
            return .success(pdu)
        } catch {
            return .failure(.malformed(error))
        }
    }

    /// Frees the slot and finishes its caller, unless there is none any more.
    private mutating func end(
        _ request: Outstanding, _ result: Result<[UInt8], ATTFailure>, _ pdu: [UInt8], _ actions: inout ATTActions
    ) {
        if case .failure(.malformed) = result { statistics.malformedAnswers += 1 }
        slot = .free
        lastEnded = Ended(opcode: request.opcode, handle: request.handle, response: pdu)
        if request.offeredMTU != nil { applyMTU() }
        guard let id = request.id else {
            statistics.lateAnswers += 1
            return
        }
        statistics.answers += 1
        actions.append(.finish(id, result))
    }

    /// Drops an answer out of turn, or closes the link over it.
    private mutating func receivedStray(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        if isKnownStray(opcode, pdu) {
            statistics.knownStrays += 1
            if let lastEnded, lastEnded.fits(opcode, pdu) {
                statistics.duplicatedResponses += 1
                if lastEnded.response != pdu { contradictions += 1 }
            }
        } else {
            statistics.unexplainedAnswers += 1
            if case .taken(var request) = slot {
                request.unexplainedAnswers += 1
                slot = .taken(request)
                if request.unexplainedAnswers >= limits.unexplainedAnswers {
                    return close(.unexplainedResponses, &actions)
                }
            }
        }
        if limits.isStrict { close(.unexplainedResponses, &actions) }
    }

    /// Whether devices in the field are known to send this out of turn, and mean no harm by it.
    private func isKnownStray(_ opcode: ATTOpcode, _ pdu: [UInt8]) -> Bool {
        if opcode == .exchangeMTUResponse, exchangedMTU != nil { return true }
        if opcode == .errorResponse {
            guard let named = Self.requestNamed(by: pdu) else { return false }
            if named.isCommand { return true }
        }
        return lastEnded?.isFollowed(by: opcode, pdu) ?? false
    }

    /// The opcode that an Error Response blames, also when the rest of it is malformed.
    fileprivate static func requestNamed(by pdu: [UInt8]) -> ATTOpcode? {
        pdu.dropFirst().first.map { ATTOpcode(rawValue: $0) }
    }

    /// Fails everything once, and never sends or accepts anything again.
    mutating func close(_ reason: CloseReason, _ actions: inout ATTActions) {
        if isClosed { return }
        failEverything(reason, &actions)
        actions.append(.close(reason))
    }

    /// Tells that the link went away by itself; everything unfinished fails once.
    ///
    /// - Parameter code: the owner's own number for why; it comes back in `CloseReason.linkLost`.
    package mutating func linkLost(_ code: Int32) -> ATTActions {
        var actions = ATTActions()
        if !isClosed { failEverything(.linkLost(code), &actions) }
        return actions
    }

    private mutating func failEverything(_ reason: CloseReason, _ actions: inout ATTActions) {
        if case .taken(let request) = slot, let id = request.id {
            actions.append(.finish(id, .failure(.closed(reason))))
        }
        for operation in waiting {
            if let id = operation.id { actions.append(.finish(id, .failure(.closed(reason)))) }
        }
        slot = .closed(reason)
        waiting = []
        answer = nil
        confirmationsDue = 0
    }
}

// MARK: - States

extension ATTQueue {
    /// The place of the one outstanding request.
    enum Slot {
        case free
        case taken(Outstanding)
        case closed(CloseReason)
    }

    /// A request that was sent.
    struct Outstanding {
        /// Whom to tell; nobody once the caller gave up.
        var id: RequestID?
        let opcode: ATTOpcode
        /// The handle that an Error Response should name.
        let handle: AttributeHandle?
        /// What we offered, when this is an MTU request.
        let offeredMTU: UInt16?
        /// When the caller gives up.
        let deadline: BootInstant?
        /// When the link closes.
        let end: BootInstant
        var unexplainedAnswers = 0
    }

    /// The request that ended last.
    struct Ended {
        let opcode: ATTOpcode
        let handle: AttributeHandle?
        /// What the peer has sent for it.
        let response: [UInt8]

        /// Whether a packet could be for it too.
        func isFollowed(by other: ATTOpcode, _ pdu: [UInt8]) -> Bool {
            other == .errorResponse ? ATTQueue.requestNamed(by: pdu) == opcode : other == opcode.response
        }

        /// The same, except for the one response that devices are known to send twice without harm: nothing follows its request.
        func fits(_ other: ATTOpcode, _ pdu: [UInt8]) -> Bool {
            opcode != .exchangeMTURequest && isFollowed(by: other, pdu)
        }
    }

    /// A request or command that was not sent yet.
    struct Operation {
        /// Whom to tell; nobody when the caller gave up while the packet was in the owner's hands.
        var id: RequestID?
        let pdu: [UInt8]
        let isRequest: Bool
        let deadline: BootInstant?
    }

    /// Who holds the pen.
    enum Writing {
        case ready
        /// The owner has the packet and has not said yet what became of it.
        case offered(Offer)
        /// The owner could not write; it says when it can.
        case blocked
    }

    /// What the owner has in its hands.
    enum Offer {
        case confirmation
        case answer
        /// The first of `waiting`.
        case operation
    }
}
