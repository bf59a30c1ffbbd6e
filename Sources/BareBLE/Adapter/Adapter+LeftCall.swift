internal import BLECore
internal import BLELinux

// A call that was to be taken back, and a controller that never said that it was.
//
// For as long as it calls it refuses every other call, and that may be for ever: until the peer is heard. So the controller is told again
// with the next connect, which waits for the answer 2 s at most, and whenever it answers anything else. Its answer, the end of the call,
// a reset and the adapter's loss each end the matter; until then connects fail with an error that says what is wrong.

/// A call that the controller may still make although it was told to stop, because it did not answer.
struct LeftCall {
    /// Whom it calls.
    let peer: PeerID
    /// Who waits for its end.
    var waiter: UInt64?
    /// Whom that one wants to call.
    var next: PeerID?
    /// Whether the controller is being told again.
    var isTakingBack = false
}

extension Adapter {
    /// Takes back a call that may be out although nobody wants it, before the next one is made.
    ///
    /// - Throws: `BLEError` with `.timedOut` while the controller does not answer, `.cancelled`, `.adapterDown`.
    func takeBackLeftCall(for peer: PeerID, until deadline: BootInstant) async throws(BLEError) {
        guard leftCall != nil else { return }
        leftCall?.next = peer
        defer { leftCall?.next = nil }
        switch await run(HCICommandPacket(LECreateConnectionCancel()), until: loop.now() + HCICommandQueue.patience) {
        case .success:
            // There is room for another one when it has ended.
            let (wake, _) = await suspend(until: min(deadline, loop.now() + LEConnect.patience)) { number in
                if leftCall == nil { return self.wake(number) }
                leftCall?.waiter = number
            }
            leftCall?.waiter = nil
            if wake == .cancelled { throw cancelledError(during: "connect") }
            // Its end may have been lost; the controller has said that it is over.
            leftCallEnded()
        case .failure(let failure):
            switch failure.reason {
            case .status: leftCallEnded()
            case .timeout: throw BLEError(stillCallingOn: name)
            case .malformed, .noAnswer, .queueFull, .cancelled, .adapterLost, .notSent:
                throw error(failure, during: "connect")
            }
        }
    }

    /// The controller has answered a command: it may take the call back now.
    func controllerAnswered(_ opcode: HCIOpcode) {
        guard leftCall?.isTakingBack == false, call == nil, opcode != .leCreateConnectionCancel else { return }
        leftCall?.isTakingBack = true
        enqueue(HCICommandPacket(LECreateConnectionCancel()), for: .leftCall)
    }

    /// What it has said to that. Where it has taken the call back, the end of the call follows.
    func leftCallAnswered(_ failure: HCICommandFailure?) {
        if failure?.status != nil { leftCallEnded() }
    }

    /// A call has ended: the one that is wanted, or the one that was left.
    func callEnded(_ complete: LEConnectionComplete) {
        guard let left = leftCall, call == nil else { return performCall { $0.received(complete, at: $1) } }
        guard complete.isOfCall(to: left.peer) else { return }
        // Who waits to call this very peer has its link.
        let isWanted = left.next == left.peer
        leftCallEnded()
        guard complete.status.isSuccess, !isWanted else { return }
        enqueue(HCICommandPacket(HCIDisconnect(handle: complete.handle)), for: .nobody)
    }

    /// No call is out any more that nobody wants.
    func leftCallEnded() {
        if let waiter = leftCall.take()?.waiter { wake(waiter) }
    }
}
