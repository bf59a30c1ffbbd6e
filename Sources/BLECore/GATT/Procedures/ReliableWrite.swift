/// Writes several values, all of them or none, each piece checked by the peer's echo.
///
/// Duties
/// - Sends every value in pieces that the peer queues (Prepare Write), and then one request that writes the whole queue
///   (Execute Write).
/// - Compares handle, offset and bytes of every response with the request. On a difference it empties the peer's queue
///   and fails; nothing was written then.
/// - Empties the peer's queue after any other failure too: the queue outlives the operation, and what is left in it
///   would be written by the next one. The same on a cancellation, whatever the last request was: it may still wait in
///   the queue, and then never reaches the peer.
///
/// Invariants
/// - The first failure is the one reported; the peer's response to emptying the queue changes nothing.
/// - The queue is not emptied after the response to Execute Write: it is empty then, whatever the response.
///
/// The peer has one queue for the whole link, so no other procedure that uses it may run meanwhile.
///
/// Spec: Reliable Writes, Core Vol 3 Part G, 4.9.5.
package struct ReliableWrite: GATTProcedure {
    /// A value and its destination.
    package struct Part: Hashable, Sendable {
        package var handle: AttributeHandle
        package var value: [UInt8]
        /// The offset in the attribute at which the value begins.
        package var offset: UInt16

        package init(handle: AttributeHandle, value: [UInt8], offset: UInt16 = 0) {
            self.handle = handle
            self.value = value
            self.offset = offset
        }
    }

    private enum State: Sendable {
        /// The prepare request of the piece at this index is outstanding.
        case preparing(Int)
        case executing
        case cancelling(GATTFailure)
        case over
    }

    private let pieces: [ATTPrepareWriteRequest]
    private let isTooLong: Bool
    private var state = State.over

    package init(_ parts: [Part], mtu: UInt16) {
        let size = max(Int(mtu), Int(MTUExchange.minimum)) - 5
        isTooLong = parts.contains { Int($0.offset) + $0.value.count > ATTLimits.valueLength }
        pieces = isTooLong ? [] : parts.flatMap { $0.pieces(of: size) }
    }

    package var usesPreparedQueue: Bool { true }

    package var executesPreparedQueue: Bool {
        if case .executing = state { true } else { false }
    }

    package mutating func begin() -> GATTStep<Void> {
        if isTooLong { return .failed(.valueTooLong(partial: [])) }
        guard !pieces.isEmpty else { return .failed(.impossibleRequest(.prepareWriteRequest)) }
        return prepare(0)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<Void> {
        switch state {
        case .preparing(let index):
            guard index < pieces.count else { return .failed(.impossibleRequest(.prepareWriteRequest)) }
            let piece = pieces[index]
            do {
                let echo = try Self.response(to: ATTPrepareWriteRequest.self, in: reply)
                guard echo.handle == piece.handle, echo.offset == piece.offset, echo.part == piece.part else {
                    return cancel(.reliableWriteMismatch(piece.handle))
                }
            } catch {
                return cancel(error)
            }
            return prepare(index + 1)
        case .executing:
            state = .over
            return .attempt { () throws(GATTFailure) in
                _ = try Self.response(to: ATTExecuteWriteRequest.self, in: reply)
                return .finished(())
            }
        case .cancelling(let failure):
            state = .over
            return .failed(failure)
        case .over:
            return .failed(.impossibleRequest(.executeWriteRequest))
        }
    }

    package mutating func abandoned() -> [UInt8]? {
        switch state {
        case .preparing, .executing, .cancelling:
            state = .over
            return ATTExecuteWriteRequest(.cancel).bytes
        case .over:
            return nil
        }
    }

    private mutating func prepare(_ index: Int) -> GATTStep<Void> {
        guard index < pieces.count else {
            state = .executing
            return .send(ATTExecuteWriteRequest(.write).bytes)
        }
        state = .preparing(index)
        return .send(pieces[index].bytes)
    }

    private mutating func cancel(_ failure: GATTFailure) -> GATTStep<Void> {
        state = .cancelling(failure)
        return .send(ATTExecuteWriteRequest(.cancel).bytes)
    }
}

extension ReliableWrite.Part {
    /// Returns the value in pieces of `size` bytes; an empty value is one empty piece.
    fileprivate func pieces(of size: Int) -> [ATTPrepareWriteRequest] {
        var pieces: [ATTPrepareWriteRequest] = []
        var start = 0
        repeat {
            let end = min(start + size, value.count)
            let at = UInt16(truncatingIfNeeded: Int(offset) + start)
            pieces.append(ATTPrepareWriteRequest(handle: handle, offset: at, part: Array(value[start..<end])))
            start = end
        } while start < value.count
        return pieces
    }
}
