internal import BLECore

// The pairings that centrals begin, on the side of the adapter: who serves the centrals, how they may pair, and what the
// agent and the disk have done for the one that pairs.
//
// Invariants
// - The owner is one local peripheral, from `begin` to `end`.
// - While a central pairs, its link has no bond: an earlier one is not the one whose key is being made.

/// A central on a served link.
struct ServedCentral: Sendable {
    let link: LinkIdentity
    /// The descriptor of the link's socket, while that is open.
    let descriptor: Int32
    let central: ConnectedCentral
}

/// How centrals may pair, and the pairing that runs.
struct CentralPairings {
    /// The owner of the links, called on the loop.
    struct Host: Sendable {
        /// Returns the central whose link the kernel has under a name; `nil` if none is served there.
        let find: @Sendable (PeerID) -> ServedCentral?
        /// A pairing has ended.
        let ended: @Sendable (ConnectedCentral, Result<Bond, BLEError>) -> Void
    }

    private var owner: ObjectIdentifier?
    private(set) var host: Host?
    private(set) var options: CentralPairingOptions?
    private var current: ServedCentral?
    private var asking: Task<Void, Never>?
    /// The last link whose central was refused because none may pair.
    private var refused: LinkIdentity?
    /// Why the bond of the pairing that runs was not stored.
    private var storeFailure: BLEError?

    /// Serves the centrals of an owner.
    mutating func begin(for owner: ObjectIdentifier, _ host: Host) {
        self.owner = owner
        self.host = host
    }

    /// Whether this owner's centrals are served.
    func isServing(_ owner: ObjectIdentifier) -> Bool { self.owner == owner }

    /// Serves nobody's centrals any more.
    mutating func end() {
        (owner, host, options) = (nil, nil, nil)
    }

    mutating func allow(_ options: CentralPairingOptions) { self.options = options }

    // MARK: The pairing that runs

    /// Whether the central of a link pairs.
    func isPairing(_ link: LinkIdentity) -> Bool { current?.link == link }

    /// Whether the central on the link from this address pairs.
    func isPairing(onAir peer: PeerID) -> Bool { current?.link.peer == peer }

    mutating func pairs(_ central: ServedCentral) { if current == nil { current = central } }

    mutating func stored(_ failure: BLEError) { storeFailure = failure }

    /// Ends the pairing that runs; returns its central, and why its bond was not stored.
    mutating func finish() -> (central: ServedCentral?, storeFailure: BLEError?) {
        defer { (current, storeFailure) = (nil, nil) }
        return (current, storeFailure)
    }

    /// Whether the central of a link is refused for the first time; takes note of it.
    mutating func isNewRefusal(_ link: LinkIdentity) -> Bool {
        defer { refused = link }
        return refused != link
    }

    // MARK: The agent

    mutating func ask(by task: Task<Void, Never>) {
        asking?.cancel()
        asking = task
    }

    mutating func stopAsking() {
        asking?.cancel()
        asking = nil
    }
}
