internal import BLECore
internal import BLELinux

// One pairing of a virtual link, at the level of management packets: there are no Security Manager PDUs.
//
//     beginning ──respond──▶ (method) ──ask──▶ confirming ─┬─reply──▶ verifying ──makeKeys──▶ ending
//                                              entering ───┤
//                                              showing ────┘
//
// Duties: chooses the association model by what both sides can do; evaluates the replies of the program and the data of
// the peer; makes the keys, and the events that report them.
//
// Invariants
// - Only these functions change its phase. The owner of the link ends the pairing,
//   and completes the command that began it.
// - `progress` grows with each phase: a timeout that was set before is void.

/// A pairing of a link.
struct VirtualPairing {
    enum Phase {
        /// Until the peer responds.
        case beginning
        case confirming
        /// Until this side enters the passkey that the peer shows.
        case entering(UInt32)
        /// Until the peer's user enters the passkey that this side shows.
        case showing
        /// Until both sides have compared what they know.
        case verifying(isRight: Bool)
        /// The keys exist; their events are being sent.
        case ending([VirtualManagementEvent])
    }

    /// A side of the link.
    enum Side {
        case own, peer
    }

    let number: UInt64
    private(set) var phase = Phase.beginning
    /// Counts what happens, for the timeout.
    private(set) var progress = 0
    /// The socket of the Pair Device command.
    private(set) var requester: UInt64?
    private let capability: IOCapability
    private let needed: SocketSecurity.Level
    private let isBondable: Bool
    /// The level of a second request of the socket.
    private var raised: SocketSecurity.Level?
    private var isSecureConnections = false
    private var method = Method.justWorks
    private var keySize = 16

    init(
        number: UInt64, requester: UInt64?, capability: IOCapability, needed: SocketSecurity.Level, isBondable: Bool
    ) {
        self.number = number
        self.requester = requester
        self.capability = capability
        self.needed = needed
        self.isBondable = isBondable
    }

    /// A Pair Device command joins the pairing; returns `false` if another one has.
    mutating func join(_ socket: UInt64) -> Bool {
        guard requester == nil else { return false }
        requester = socket
        return true
    }

    /// A socket requests a level while the pairing runs.
    mutating func raise(to level: SocketSecurity.Level) { raised = level }

    private mutating func enter(_ phase: Phase) {
        self.phase = phase
        progress += 1
    }
}

// MARK: - The association model

extension VirtualPairing {
    /// An association model, as the initiator has it.
    ///
    /// Spec: Core Vol 3 Part H, 2.3.5.1.
    enum Method: Hashable, Sendable {
        case justWorks
        case compare
        /// This side enters what the peer shows.
        case enter
        /// This side shows what the peer's user enters.
        case show
        case outOfBand

        init(ours: IOCapability, theirs: IOCapability, isSecureConnections: Bool) {
            let comparing: Set<IOCapability> = [.displayYesNo, .keyboardDisplay]
            let typing: Set<IOCapability> = [.keyboardOnly, .keyboardDisplay]
            if ours == .noInputNoOutput || theirs == .noInputNoOutput {
                self = .justWorks
            } else if isSecureConnections, comparing.isSuperset(of: [ours, theirs]) {
                self = .compare
            } else if typing.contains(theirs) {
                self = ours == .keyboardOnly ? .enter : .show
            } else {
                self = typing.contains(ours) ? .enter : .justWorks
            }
        }

        /// The same model, as the other side has it.
        var mirrored: Method {
            switch self {
            case .enter: .show
            case .show: .enter
            case .justWorks, .compare, .outOfBand: self
            }
        }
    }

    /// What follows the peer's response.
    enum Response {
        /// `ask` follows.
        case accepted
        /// Nothing: the peer does not respond.
        case ignored
        /// One side fails the pairing.
        case failed(Side)
    }

    /// The peer responds to the Pairing Request, or has sent it.
    ///
    /// - Parameters:
    ///   - peer: Its description; `nil` for a peer that cannot pair.
    ///   - isInitiator: Whether the peer has begun the pairing.
    ///   - allowsSecureConnections: Whether the adapter does.
    ///   - hasOutOfBand: Whether a program has values from the peer.
    mutating func respond(
        _ peer: VirtualSecurity?, isInitiator: Bool, allowsSecureConnections: Bool, hasOutOfBand: Bool
    ) -> Response {
        guard let peer, peer.response != .refuse else { return .failed(.peer) }
        guard peer.response != .ignore else { return .ignored }
        isSecureConnections = allowsSecureConnections && peer.hasSecureConnections
        keySize = min(max(peer.keySize, 7), 16)
        let theirs = IOCapability(peer.capability)
        if isSecureConnections, hasOutOfBand {
            method = .outOfBand
        } else if isInitiator {
            method = Method(ours: theirs, theirs: capability, isSecureConnections: isSecureConnections).mirrored
        } else {
            method = Method(ours: capability, theirs: theirs, isSecureConnections: isSecureConnections)
        }
        let isProtected = method != .justWorks
        if peer.requiresAuthentication, !isProtected { return .failed(.peer) }
        if needed >= .high, !isProtected { return .failed(.own) }
        if needed == .fips, isSecureConnections, keySize < 16 { return .failed(.own) }
        return .accepted
    }
}

// MARK: - Questions and replies

extension VirtualPairing {
    /// What this side is asked.
    enum Question {
        /// To compare a number, or without one, which is noise, to allow the pairing.
        case confirm(UInt32, isJustWorks: Bool)
        /// To enter what the peer shows.
        case enter(UInt32)
        /// To show what the peer's user enters.
        case show(UInt32)
        /// Nothing: `verify` follows.
        case nothing
    }

    /// Asks what the association model needs.
    ///
    /// - Parameters:
    ///   - number: A random number below 1,000,000.
    ///   - passkey: The one that the peer always shows, if it does.
    mutating func ask(_ number: UInt32, passkey: UInt32?) -> Question {
        switch method {
        case .justWorks:
            enter(.confirming)
            return .confirm(isSecureConnections ? number : 0, isJustWorks: true)
        case .compare:
            enter(.confirming)
            return .confirm(number, isJustWorks: false)
        case .enter:
            let shown = passkey ?? number
            enter(.entering(shown))
            return .enter(shown)
        case .show:
            enter(.showing)
            return .show(number)
        case .outOfBand: return .nothing
        }
    }

    /// What a reply of the program does.
    enum ReplyEffect {
        /// `verify` follows.
        case verify(isRight: Bool)
        case stop
        /// Nothing: the pairing does not wait for it.
        case late
    }

    /// Evaluates a reply command.
    func effect(of code: ManagementCommandCode, passkey: UInt32?) -> ReplyEffect {
        switch (code, phase) {
        case (.userConfirmationReply, .confirming): .verify(isRight: true)
        case (.userPasskeyReply, .entering(let shown)): .verify(isRight: passkey == shown)
        case (_, .ending), (.userConfirmationReply, _), (.userPasskeyReply, _): .late
        // A negative reply stops a pairing in any phase.
        default: .stop
        }
    }

    /// Both sides compare what they know.
    mutating func verify(isRight: Bool) { enter(.verifying(isRight: isRight)) }

    /// Returns the side that fails the pairing after the comparison; `nil` if neither does.
    ///
    /// - Parameters:
    ///   - peer: The description of the peer now.
    ///   - isRight: Whether this side has entered what it should.
    ///   - known: The values that a program has from the peer.
    func failureOfVerifying(
        _ peer: VirtualSecurity, isRight: Bool, outOfBand known: VirtualKernelKeys.OutOfBand?
    ) -> Side? {
        guard peer.response != .reject, isRight else { return .peer }
        guard method == .outOfBand, let known else { return nil }
        guard let theirs = peer.outOfBandData, Secret128(padding: theirs.confirmation) == known.confirmation,
            Secret128(padding: theirs.random) == known.random
        else { return .own }
        return nil
    }
}

// MARK: - Keys

extension VirtualPairing {
    /// What a pairing has made.
    struct Keys {
        /// The peer's name from now on: its identity, if it has distributed one.
        let peer: ManagementPeer
        let identity: ManagementIdentityResolvingKey?
        let longTerm: [ManagementLongTermKey]
        let level: SocketSecurity.Level
        let reached: VirtualLinkSecurity
        /// What the peer keeps; `nil` for nothing.
        let bond: VirtualBond?
    }

    /// Makes the keys; `phase` has the events that report them.
    ///
    /// - Parameters:
    ///   - security: The description of the peer.
    ///   - peer: The peer's name so far.
    ///   - onAir: Its address on the air.
    ///   - asksForIdentity: Whether the kernel asks the peer for its identity.
    ///   - numbers: Where the keys come from.
    mutating func makeKeys(
        _ security: VirtualSecurity, of peer: ManagementPeer, onAir: PeerID, asksForIdentity: Bool,
        _ numbers: inout VirtualNumbers
    ) -> Keys {
        let isAuthenticated = method != .justWorks
        let isKept = isBondable && security.keepsBonds
        var events: [VirtualManagementEvent] = []
        let identity = security.identity.flatMap { identity in
            asksForIdentity
                ? ManagementIdentityResolvingKey(
                    peer: ManagementPeer(identity.address), key: Secret128(padding: identity.key)) : nil
        }
        if let identity {
            let privateAddress = onAir.kind == .resolvablePrivate ? onAir.address : .zero
            events.append(.newIdentityResolvingKey(isForStorage: isKept, privateAddress: privateAddress, identity))
        }
        let name = identity?.peer ?? peer
        if let key = security.signatureKey {
            events.append(
                .newSignatureKey(isForStorage: isKept, name, kind: isAuthenticated ? 3 : 1, Secret128(padding: key)))
        }
        if security.acceptsSignedWrites, isKept {
            events.append(
                .newSignatureKey(
                    isForStorage: isKept, name, kind: isAuthenticated ? 2 : 0, numbers.secret(size: 16)))
        }
        let longTerm = longTermKeys(name, isAuthenticated: isAuthenticated, isKept: isKept, &numbers)
        let isStored = isKept && VirtualKernelKeys.isIdentity(name)
        for key in longTerm { events.append(.newLongTermKey(isForStorage: isStored, key)) }
        phase = .ending(events)
        let worth = SocketSecurity.Level(isSecureConnections: isSecureConnections, isAuthenticated: isAuthenticated)
        let reached = VirtualLinkSecurity(keySize: keySize, isAuthenticated: isAuthenticated)
        // A second request while it ran is believed, whatever the key is worth.
        return Keys(
            peer: name, identity: identity, longTerm: longTerm, level: max(worth, raised ?? .low), reached: reached,
            bond: longTerm.first.flatMap { isKept ? VirtualBond($0, reached) : nil })
    }

    private func longTermKeys(
        _ peer: ManagementPeer, isAuthenticated: Bool, isKept: Bool, _ numbers: inout VirtualNumbers
    ) -> [ManagementLongTermKey] {
        let size = UInt8(truncatingIfNeeded: keySize)
        if isSecureConnections {
            return [
                ManagementLongTermKey(
                    peer: peer, kind: isAuthenticated ? .secureConnectionsAuthenticated : .secureConnections,
                    isCentral: false, size: size, ediv: 0, rand: 0, key: numbers.secret(size: keySize))
            ]
        }
        guard isKept else { return [] }
        var keys: [ManagementLongTermKey] = []
        for isCentral in [true, false] {
            keys.append(
                ManagementLongTermKey(
                    peer: peer, kind: isAuthenticated ? .legacyAuthenticated : .legacy, isCentral: isCentral,
                    size: size, ediv: UInt16(truncatingIfNeeded: numbers.next()), rand: numbers.next(),
                    key: numbers.secret(size: keySize)))
        }
        return keys
    }
}

extension SocketSecurity.Level {
    /// The level that a key provides.
    init(isSecureConnections: Bool, isAuthenticated: Bool) {
        self = !isAuthenticated ? .medium : isSecureConnections ? .fips : .high
    }
}

extension IOCapability {
    init(_ capability: VirtualSecurity.Capability) {
        self =
            switch capability {
            case .displayOnly: .displayOnly
            case .displayYesNo: .displayYesNo
            case .keyboardOnly: .keyboardOnly
            case .noInputNoOutput: .noInputNoOutput
            case .keyboardDisplay: .keyboardDisplay
            }
    }
}

/// Numbers that are the same in each run: SplitMix64.
struct VirtualNumbers {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    mutating func number(below limit: UInt32) -> UInt32 {
        UInt32(truncatingIfNeeded: next() % UInt64(limit))
    }

    /// Returns a key of this size.
    mutating func secret(size: Int) -> Secret128 {
        var writer = ByteWriter()
        writer.u64(next())
        writer.u64(next())
        return Secret128(padding: Array(writer.bytes.prefix(size)))
    }
}
