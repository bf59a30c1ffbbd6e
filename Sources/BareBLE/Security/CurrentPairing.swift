internal import BLECore

// The pairing that a task of this program makes, on the side of the adapter: its link, the task that asks the agent,
// and what the disk has done with its bond. `PairingExchange` is the machine;
// `CentralPairings` has those that centrals begin.
//
// Invariants
// - One pairing runs at a time, from `begin` to `end`. What returns late from the agent or the disk is of the pairing
//   of a task, and concerns no later one.
// - One question is asked at a time; the next one, and the end of the pairing, cancel its task.
// - A bond that is forgotten while the pairing runs is not stored afterwards.

/// What a pairing needs besides the machine.
struct PairingContext {
    /// The task that pairs.
    let waiter: UInt64
    let peer: PeerID
    /// The peer's identity, as far as it was known when the pairing began.
    let identity: PeerID
    let link: LinkIdentity
    /// The descriptor of the link's socket, while `isUp`.
    let descriptor: Int32
    /// Whether the link was encrypted when the pairing began.
    let wasEncrypted: Bool
    let options: PairingOptions
}

/// The pairing that runs, and what the agent and the disk have done for it.
final class CurrentPairing {
    /// What a pairing has left.
    struct Rest {
        let context: PairingContext
        /// The bond that was stored.
        fileprivate(set) var stored: BondRecord?
        /// Why it was not.
        fileprivate(set) var storeFailure: BLEError?
    }

    private var rest: Rest?
    /// The peers whose bonds were forgotten since the pairing began.
    private var forgotten: Set<PeerID> = []
    /// Asks the agent.
    private var asking: Task<Void, Never>?

    /// The context of the pairing that runs, if there is one.
    var context: PairingContext? { rest?.context }

    /// Whether the key that encrypts a link may be that of the pairing. On a link that was encrypted before, the kernel
    /// makes none: the pairing is refused when it has its turn.
    func isMakingKey(of link: LinkIdentity) -> Bool {
        guard let context else { return false }
        return context.link == link && !context.wasEncrypted
    }

    func begin(_ context: PairingContext) {
        rest = Rest(context: context)
        forgotten = []
        asking = nil
    }

    /// Ends the pairing of a task.
    ///
    /// - Returns: What it has left; `nil` if another one runs, or none.
    func end(_ waiter: UInt64) -> Rest? {
        guard let rest, rest.context.waiter == waiter else { return nil }
        self.rest = nil
        asking = nil
        return rest
    }

    // MARK: The agent

    /// The agent is asked by this task.
    func ask(by task: Task<Void, Never>) { asking = task }

    /// The agent's reply is no longer needed.
    func stopAsking() {
        asking?.cancel()
        asking = nil
    }

    // MARK: The disk

    /// The bond with a peer is about to be forgotten.
    func forget(_ identity: PeerID) { forgotten.insert(identity) }

    /// Whether the bond with a peer was forgotten since the pairing began: by its identity, or by the address of the
    /// link, which is all that is known of a new peer with private addresses.
    func isForgotten(_ identity: PeerID) -> Bool {
        if let context, forgotten.contains(context.peer) || forgotten.contains(context.identity) { return true }
        return forgotten.contains(identity)
    }

    /// The disk has stored the bond of a task's pairing, or has not; `false` if that pairing has ended.
    func stored(_ result: Result<BondRecord, BLEError>, for waiter: UInt64) -> Bool {
        guard rest?.context.waiter == waiter else { return false }
        switch result {
        case .success(let record): rest?.stored = record
        case .failure(let error): rest?.storeFailure = error
        }
        return true
    }
}
