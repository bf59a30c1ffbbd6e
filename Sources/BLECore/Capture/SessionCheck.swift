// Plays the client's side of a recorded link on the machines that a live link has, and says where the recording and they part.
//
// Duties
// - Every request that was sent goes into the real `ATTQueue`, every packet that was received too: the queue has to send each request at
//   once, and to find the caller of each answer.
// - Every list that was asked for runs through the real discovery procedures, which see answers out of range, out of order or without
//   an end; a client that discovers as `GATTDiscovery` does is followed by that, in its strict mode.
//
// Invariants
// - The first disagreement is the last: what follows may well follow from it.
// - What the recorded host says as a server is not looked at: a client is checked, with its peer.

/// Checks the packets of one recorded link, in their order.
package final class SessionCheck {
    /// Where a recording and the machines part.
    package struct Disagreement: Hashable, Sendable {
        /// The number of the packet in its file.
        package let number: Int
        /// The packet.
        package let packet: [UInt8]
        /// Whether the client sent it.
        package let isSent: Bool
        /// What is wrong with it.
        package let reason: Reason
    }

    /// What is wrong with a packet.
    package enum Reason: Hashable, Sendable {
        /// It does not have the layout that its opcode asks for.
        case malformed(MalformedPacket)
        /// A request was sent while that packet's answer was still to come.
        case overlappingRequests(first: Int)
        /// It is longer than both sides agreed to.
        case tooLong(mtu: UInt16)
        /// An answer that nobody waits for.
        case unasked
        /// An error that names another handle than its request.
        case otherHandle
        /// A confirmation of nothing.
        case strayConfirmation
        /// An indication before the one of that packet was confirmed.
        case overlappingIndications(first: Int)
        /// A value without a handle, too long, or in a list that does not add up.
        case unusableValue
        /// The link would have been closed.
        case closed(ATTQueue.CloseReason)
        /// The answers to a discovery do not add up.
        case discovery(GATTFailure)
    }

    /// How many requests were checked.
    package private(set) var requestCount = 0

    /// The number of the packet whose request has no answer yet.
    package var unansweredRequest: Int? { openRequest?.number }

    private var queue: ATTQueue
    private var lists = ListCheck()
    private var now = BootInstant.zero
    private var openRequest: (number: Int, pdu: [UInt8])?
    private var unconfirmed: Int?
    /// Indications of the recorded host that its peer owes a confirmation for.
    private var ownIndications = 0
    /// A link that began before its recording may begin with the answer to what nobody has seen.
    private var mayBeInTheMiddle: Bool

    /// A check of a link from its beginning, or of one that began with an MTU that nobody knows.
    package init(mtu: Int, isWhole: Bool = true) {
        queue = ATTQueue(mtu: isWhole ? UInt16(clamping: mtu) : ATTQueue.largestMTU)
        mayBeInTheMiddle = !isWhole
    }

    /// The client sent a packet.
    package func sent(_ pdu: [UInt8], number: Int, at time: Duration = .zero) -> Disagreement? {
        check(sent: pdu, number, at: time).map {
            Disagreement(number: number, packet: pdu, isSent: true, reason: $0)
        }
    }

    /// The client received a packet.
    package func received(_ pdu: [UInt8], number: Int, at time: Duration = .zero) -> Disagreement? {
        check(received: pdu, number, at: time).map {
            Disagreement(number: number, packet: pdu, isSent: false, reason: $0)
        }
    }

    // MARK: Sent

    private func check(sent pdu: [UInt8], _ number: Int, at time: Duration) -> Reason? {
        pass(to: time)
        if let malformed = Self.malformation(of: pdu) { return .malformed(malformed) }
        let kind = ATTOpcode(rawValue: pdu.first ?? 0).kind
        switch kind {
        case .request:
            mayBeInTheMiddle = false
            if let openRequest { return .overlappingRequests(first: openRequest.number) }
            openRequest = (number, pdu)
            requestCount += 1
            lists.sent(pdu, mtu: queue.mtu)
            return enqueue(pdu, number)
        case .command:
            return enqueue(pdu, number)
        case .confirmation:
            if unconfirmed == nil, !mayBeInTheMiddle { return .strayConfirmation }
            unconfirmed = nil
            return nil
        case .indication:
            ownIndications += 1
            return nil
        case .response, .notification:
            return nil
        }
    }

    private func enqueue(_ pdu: [UInt8], _ number: Int) -> Reason? {
        for action in queue.enqueue(pdu, id: RequestID(UInt64(clamping: number)), at: now) {
            switch action {
            case .send: _ = queue.sent(at: now)
            case .finish(_, .failure(.tooLong(let mtu))): return .tooLong(mtu: mtu)
            case .close(let reason): return .closed(reason)
            case .finish, .deliver: continue
            }
        }
        return nil
    }

    // MARK: Received

    private func check(received pdu: [UInt8], _ number: Int, at time: Duration) -> Reason? {
        pass(to: time)
        let kind = ATTOpcode(rawValue: pdu.first ?? 0).kind
        switch kind {
        case .response:
            if mayBeInTheMiddle, openRequest == nil { return nil }
        case .confirmation:
            ownIndications -= 1
            return ownIndications < 0 && !mayBeInTheMiddle ? .strayConfirmation : nil
        case .indication:
            if let unconfirmed { return .overlappingIndications(first: unconfirmed) }
            unconfirmed = number
        case .request, .command, .notification:
            break
        }
        let before = queue.statistics
        var reason: Reason?
        // A recording says when a packet came, not when somebody looked at it: one that is too late has no excuse.
        for actions in [queue.timePassed(now), queue.received(pdu, at: now)] {
            for action in actions {
                switch action {
                case .finish(_, let result): reason = reason ?? answered(result)
                case .send: _ = queue.sent(at: now)
                case .close(let cause): reason = reason ?? .closed(cause)
                case .deliver: continue
                }
            }
        }
        return reason ?? Self.difference(before, queue.statistics) ?? Self.malformation(of: pdu).map { .malformed($0) }
    }

    /// The request has its answer.
    private func answered(_ result: Result<[UInt8], ATTFailure>) -> Reason? {
        let request = openRequest?.pdu ?? []
        openRequest = nil
        switch result {
        case .success(let pdu):
            if let malformed = Self.malformation(of: pdu) { return .malformed(malformed) }
            return lists.answered(.response(pdu)).map { .discovery($0) }
        case .failure(.refused(let error)):
            if let handles = Self.handles(of: request), !handles.contains(error.handle) { return .otherHandle }
            return lists.answered(.error(error)).map { .discovery($0) }
        case .failure(.malformed(let malformed)):
            return .malformed(malformed)
        case .failure(.closed(let cause)):
            return .closed(cause)
        case .failure:
            return nil
        }
    }

    private static func difference(_ before: ATTStatistics, _ after: ATTStatistics) -> Reason? {
        if after.knownStrays + after.unexplainedAnswers > before.knownStrays + before.unexplainedAnswers {
            return .unasked
        }
        return unusableValues(after) > unusableValues(before) ? .unusableValue : nil
    }

    private static func unusableValues(_ statistics: ATTStatistics) -> Int {
        statistics.oversizedValues + statistics.shortValues + statistics.valuesWithoutHandle
            + statistics.malformedLists + statistics.emptyPackets
    }

    /// Clocks of recording machines may be set back; ours is not.
    private func pass(to time: Duration) {
        now = max(now, BootInstant(nanoseconds: time.saturatedNanoseconds))
    }

    /// The handles that an error about this request may name: for a range that of the attribute that is in the way, too.
    private static func handles(of request: [UInt8]) -> ClosedRange<AttributeHandle>? {
        var reader = ByteReader(request.span)
        let opcode = ATTOpcode(rawValue: reader.u8() ?? 0)
        guard let first = reader.u16() else { return nil }
        switch opcode {
        case .readRequest, .readBlobRequest, .writeRequest, .prepareWriteRequest:
            return first...first
        case .findInformationRequest, .findByTypeValueRequest, .readByTypeRequest, .readByGroupTypeRequest:
            guard let last = reader.u16(), last >= first else { return nil }
            return first...last
        default:
            return nil
        }
    }

    private static func malformation(of pdu: [UInt8]) -> MalformedPacket? {
        do throws(MalformedPacket) {
            _ = try ATTPacket(pdu)
            return nil
        } catch {
            return error
        }
    }
}

extension SessionCheck.Reason {
    /// A sentence for people; packets are named by `place`, such as "packet 12".
    package func sentence(_ place: (Int) -> String) -> String {
        switch self {
        case .malformed(let packet): "\(packet)."
        case .overlappingRequests(let first): "A request is sent before that of \(place(first)) has its answer."
        case .tooLong(let mtu): "It is longer than the MTU of \(mtu)."
        case .unasked: "Nobody waits for this answer."
        case .otherHandle: "The error names another handle than its request."
        case .strayConfirmation: "There is nothing to confirm."
        case .overlappingIndications(let first): "The indication of \(place(first)) has no confirmation yet."
        case .unusableValue: "The value has no handle, or is longer than agreed, or its list does not add up."
        case .closed(let cause): cause.sentence
        case .discovery(let failure): failure.description
        }
    }
}
