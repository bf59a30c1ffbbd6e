internal import BLECore

// The pairings that centrals begin, on the side of the adapter: the owner of the links, how centrals may pair, and what
// the agent and the disk have done for the one that pairs.
//
// Invariants
// - The owner is one local peripheral, from `begin` to `end`.
// - While a central pairs, its link has no bond: an earlier one is not the one whose key is being made. A link on which
//   a pairing has failed has none until it ends: the link may be encrypted with a key that belongs to no bond. That
//   also counts for a pairing of this side that has encrypted the link.
// - A pairing keeps the options that it began with.
// - A bond that is forgotten while its central pairs is not stored afterwards.

/// A central on a served link.
struct ServedCentral: Sendable {
    let link: LinkIdentity
    /// The descriptor of the link's socket, while that is open.
    let descriptor: Int32
    let central: ConnectedCentral
}

/// Why the central of a link was refused at its first question; without a failure because none may pair.
private struct Refusal: Hashable {
    let link: LinkIdentity
    let failure: PairingResponder.Failure?
}

/// How centrals may pair, and the pairing that runs.
final class CentralPairings {
    /// The owner of the links, called on the loop.
    struct Host: Sendable {
        /// Returns the central whose link the kernel has under a name; `nil` if none is served there.
        let find: @Sendable (PeerID) -> ServedCentral?
        /// Whether a link other than the one given is that of a central with this identity.
        let hasOther: @Sendable (PeerID, LinkIdentity) -> Bool
        /// A pairing has ended.
        let ended: @Sendable (ConnectedCentral, Result<Bond, BLEError>) -> Void
        /// A central does not follow a Security Request, or may not; returns whether there was one.
        let securityRefused: @Sendable (ConnectedCentral, BLEError) -> Bool
    }

    private var owner: ObjectIdentifier?
    private(set) var host: Host?
    private(set) var options: CentralPairingOptions?
    private var lastAllowance: UInt64 = 0
    private var current: (central: ServedCentral, options: CentralPairingOptions)?
    private var asking: Task<Void, Never>?
    /// The links on which a pairing has failed.
    private var unproven: Set<LinkIdentity> = []
    /// The refusals that were reported.
    private var refusals: Set<Refusal> = []
    /// Why the bond of the pairing that runs was not stored.
    private var storeFailure: BLEError?
    /// The peers whose bonds were forgotten since that pairing began.
    private var forgotten: Set<PeerID> = []

    /// Serves the centrals of an owner.
    func begin(for owner: ObjectIdentifier, _ host: Host) {
        self.owner = owner
        self.host = host
    }

    /// Whether this owner's centrals are served.
    func isServing(_ owner: ObjectIdentifier) -> Bool { self.owner == owner }

    /// Serves nobody's centrals any more.
    func end() {
        (owner, host, options) = (nil, nil, nil)
    }

    /// Lets centrals pair with these options; returns the number of this permission.
    func allow(_ options: CentralPairingOptions) -> UInt64 {
        self.options = options
        lastAllowance &+= 1
        return lastAllowance
    }

    /// Whether no later permission has taken the place of this one.
    func isLast(_ allowance: UInt64) -> Bool { allowance == lastAllowance }

    // MARK: The pairing that runs

    /// The central that pairs.
    var pairing: ServedCentral? { current?.central }

    /// Whether the key that encrypts a link may not be that of the bond with its peer.
    func isUnproven(_ link: LinkIdentity) -> Bool { current?.central.link == link || hasFailed(on: link) }

    /// Whether a pairing has failed on a link.
    func hasFailed(on link: LinkIdentity) -> Bool { unproven.contains(link) }

    /// A central begins to pair, or is asked about again; returns the options of its pairing.
    func begin(_ central: ServedCentral) -> CentralPairingOptions? {
        if current == nil, let options {
            current = (central, options)
            forgotten = []
        }
        return current?.options
    }

    func stored(_ failure: BLEError) { storeFailure = failure }

    /// The bond with a peer is about to be forgotten.
    func forget(_ identity: PeerID) {
        if current != nil { forgotten.insert(identity) }
    }

    /// Whether the bond that a central makes was forgotten since it began to pair: by its identity, or by the address
    /// of its link.
    func isForgotten(_ identity: PeerID) -> Bool {
        guard let link = current?.central.link else { return false }
        return forgotten.contains(identity) || forgotten.contains(link.peer)
    }

    /// Ends the pairing that runs; returns its central and options, and why its bond was not stored.
    ///
    /// - Parameter isUp: Whether a link is up: of others nothing is kept.
    func finish(isPaired: Bool, whereUp isUp: (LinkIdentity) -> Bool) -> (
        pairing: (central: ServedCentral, options: CentralPairingOptions)?, storeFailure: BLEError?
    ) {
        if !isPaired, let link = current?.central.link { failed(on: link, whereUp: isUp) }
        defer { (current, storeFailure) = (nil, nil) }
        return (current, storeFailure)
    }

    /// A pairing has failed on a link, which may be encrypted with its key.
    ///
    /// - Parameter isUp: Whether a link is up: of others nothing is kept.
    func failed(on link: LinkIdentity, whereUp isUp: (LinkIdentity) -> Bool) {
        unproven = unproven.filter(isUp).union([link])
    }

    /// Whether the central of a link is refused for the first time for this reason; keeps that it was.
    ///
    /// - Parameter isUp: Whether a link is up: of others nothing is kept.
    func isNewRefusal(
        _ link: LinkIdentity, _ failure: PairingResponder.Failure?, whereUp isUp: (LinkIdentity) -> Bool
    ) -> Bool {
        refusals = refusals.filter { isUp($0.link) }
        return refusals.insert(Refusal(link: link, failure: failure)).inserted
    }

    // MARK: The agent

    func ask(by task: Task<Void, Never>) {
        asking?.cancel()
        asking = task
    }

    func stopAsking() {
        asking?.cancel()
        asking = nil
    }
}
