package import BLECore

// Replays the client's side of a recorded link on the state machines of a live link, and reports the first
// disagreement.
//
// Checks:
// - Every sent request and every received packet passes through the real `ATTQueue`, which must send each request at
//   once and find the caller of each response.
// - Every requested list runs through the real discovery procedures, which detect responses out of range, out of
//   order or without end. A client that discovers like `GATTDiscovery` is checked by it in strict mode.
//
// Invariants:
// - The first disagreement is the last: later ones may be its consequence.
// - The recorded host's role as a server is not checked, only the client and its peer.

/// Checks the packets of one recorded link, in order.
package final class SessionCheck {
    /// A disagreement between a recording and the state machines.
    package struct Disagreement: Hashable, Sendable {
        /// The packet's number in the file.
        package let number: Int
        /// The packet.
        package let packet: [UInt8]
        /// True if the client sent the packet.
        package let isSent: Bool
        package let reason: Reason
    }

    /// The defect of a packet.
    package enum Reason: Hashable, Sendable {
        /// The packet does not have the layout that its opcode requires.
        case malformed(MalformedPacket)
        /// A request was sent while the response to an earlier one was outstanding.
        case overlappingRequests(first: Int)
        /// The packet exceeds the MTU.
        case tooLong(mtu: UInt16)
        /// A response that no request is waiting for.
        case unasked
        /// An error response with another handle than its request.
        case otherHandle
        /// A confirmation without an indication.
        case strayConfirmation
        /// An indication was sent while an earlier one was not confirmed.
        case overlappingIndications(first: Int)
        /// A value without a handle, too long, or in an inconsistent list.
        case unusableValue
        /// The stack would have closed the link.
        case closed(ATTQueue.CloseReason)
        /// The responses of a discovery procedure are inconsistent.
        case discovery(GATTFailure)
    }

    /// The number of requests checked.
    package private(set) var requestCount = 0

    /// The number of the packet whose request is outstanding.
    package var unansweredRequest: Int? { openRequest?.number }

    private var queue: ATTQueue
    private var lists = ListCheck()
    private var now = BootInstant.zero
    private var openRequest: (number: Int, pdu: [UInt8])?
    private var unconfirmed: Int?
    /// The recorded host's own indications that the peer has not confirmed.
    private var ownIndications = 0
    /// A link that began before its recording may begin with a response to an unrecorded request.
    private var mayBeInTheMiddle: Bool

    /// Creates a check of a link from its beginning, or of one recorded from its middle, with an unknown MTU.
    package init(mtu: Int, isWhole: Bool = true) {
        queue = ATTQueue(mtu: isWhole ? UInt16(clamping: mtu) : ATTQueue.largestMTU)
        mayBeInTheMiddle = !isWhole
    }

    /// Checks a packet that the client sent.
    package func sent(_ pdu: [UInt8], number: Int, at time: Duration = .zero) -> Disagreement? {
        check(sent: pdu, number, at: time).map {
            Disagreement(number: number, packet: pdu, isSent: true, reason: $0)
        }
    }

    /// Checks a packet that the client received.
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
            guard ownIndications > 0 else { return mayBeInTheMiddle ? nil : .strayConfirmation }
            ownIndications -= 1
            return nil
        case .indication:
            if let unconfirmed { return .overlappingIndications(first: unconfirmed) }
            unconfirmed = number
        case .request, .command, .notification:
            break
        }
        let before = queue.statistics
        var reason: Reason?
        // A recording has the time of reception, not of processing: a late packet has no excuse.
        for actions in [queue.timePassed(now), queue.received(pdu, at: now)] {
            for action in actions {
                switch action {
                case .finish(_, let result): reason = reason ?? finished(with: result)
                case .send: _ = queue.sent(at: now)
                case .close(let cause): reason = reason ?? .closed(cause)
                case .deliver: continue
                }
            }
        }
        return reason ?? Self.difference(before, queue.statistics) ?? Self.malformation(of: pdu).map { .malformed($0) }
    }

    /// Handles the response to the request.
    private func finished(with result: Result<[UInt8], ATTFailure>) -> Reason? {
        let request = openRequest?.pdu ?? []
        openRequest = nil
        switch result {
        case .success(let pdu):
            if let malformed = Self.malformation(of: pdu) { return .malformed(malformed) }
            return lists.received(.response(pdu)).map { .discovery($0) }
        case .failure(.refused(let error)):
            if let handles = Self.handles(of: request), !handles.contains(error.handle) { return .otherHandle }
            return lists.received(.error(error)).map { .discovery($0) }
        case .failure(.malformed(let malformed)):
            return .malformed(malformed)
        case .failure(.closed(let cause)):
            return .closed(cause)
        case .failure:
            return nil
        }
    }

    private static func difference(_ before: ATTStatistics, _ after: ATTStatistics) -> Reason? {
        if after.knownStrays + after.unexplainedResponses > before.knownStrays + before.unexplainedResponses {
            return .unasked
        }
        return unusableValues(after) > unusableValues(before) ? .unusableValue : nil
    }

    private static func unusableValues(_ statistics: ATTStatistics) -> Int {
        statistics.oversizedValues + statistics.truncatedValues + statistics.valuesWithoutHandle
            + statistics.malformedLists + statistics.emptyPackets
    }

    /// The clock of a recording may be set back; ours never goes back.
    private func pass(to time: Duration) {
        now = max(now, BootInstant(nanoseconds: time.saturatedNanoseconds))
    }

    /// Returns the handles that an error for this request may contain: for a range, including the attribute that caused
    /// it.
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
    /// An explanation for users. `place` names a packet, such as "packet 12".
    package func sentence(_ place: (Int) -> String) -> String {
        switch self {
        case .malformed(let packet): "\(packet)."
        case .overlappingRequests(let first): "The request was sent before the response to \(place(first)) arrived."
        case .tooLong(let mtu): "It is longer than the MTU of \(mtu)."
        case .unasked: "No request is waiting for this response."
        case .otherHandle: "The error has another handle than its request."
        case .strayConfirmation: "There is no indication to confirm."
        case .overlappingIndications(let first): "The indication of \(place(first)) is not confirmed yet."
        case .unusableValue: "The value has no handle, exceeds the MTU, or is in an inconsistent list."
        case .closed(let cause): cause.sentence
        case .discovery(let failure): failure.description
        }
    }
}
