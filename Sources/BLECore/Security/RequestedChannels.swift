// The channels that are requested from peers, and the signs that a peer has refused one for lack of security.
//
// A kernel does not report such a refusal as an error. It begins to pair, as nobody has asked it to, for one level more
// than the link has, and leaves the channel waiting (`l2cap_le_connect_rsp` in net/bluetooth/l2cap_core.c). So the
// signs are the kernel's questions about that pairing, and its failure:
//
// - A question about a pairing that no task has requested is a sign on any link.
// - On a link that is encrypted, the kernel needs a key that excludes a man in the middle, and fails the pairing
//   without a question where its capability permits none: a sign. Of several channels that are requested from the peer
//   it is the sign for one, and each has some time to open.
// - On a link that is not encrypted, it reports a Security Request of the peer that it has refused in the same way. The
//   channel may open all the same, and has some time for that. If the link ends meanwhile, that is the reason: the
//   kernel disconnects where the peer fails the pairing.
// - A program that is not configured for pairing, or cannot use the management interface, is not notified of the
//   kernel's, and where the adapter has no Security Manager there is none. The sign is the level that the kernel wants
//   for the channel then. Another program, such as bluetoothd, may reply to the kernel's questions, so the channel has
//   some time to open, and more on a slow link: a pairing has more exchanges than the refusal. It has none where the
//   kernel is known to pair with nobody.
//
// Invariants
// - A sign concerns the requests that are out, and none that follows.
// - Once a request counts as refused, it does so until its end.

/// The requests of an adapter for channels.
package struct RequestedChannels: Sendable {
    /// The time in which a channel may still open after a sign that may have another reason, or be that of another one.
    package static let grace = Duration.seconds(2)

    /// More than a pairing, the encryption and the next request have.
    private static let pairingExchanges = 12

    private struct Request {
        /// The kernel's name of the peer.
        let peer: PeerID
        let isEncrypted: Bool
        /// When the request counts as refused; `nil` without a sign.
        var refusal: BootInstant?
    }

    private var requests: [UInt64: Request] = [:]
    private var lastNumber: UInt64 = 0

    package init() {}

    /// A channel is requested from a peer, by the kernel's name.
    ///
    /// - Parameter isEncrypted: Whether the link is encrypted.
    /// - Returns: The number of the request.
    package mutating func begin(with peer: PeerID, isEncrypted: Bool) -> UInt64 {
        lastNumber &+= 1
        requests[lastNumber] = Request(peer: peer, isEncrypted: isEncrypted)
        return lastNumber
    }

    /// A request has ended.
    package mutating func end(_ number: UInt64) { requests[number] = nil }

    /// The kernel has asked about a pairing with a peer that no task has requested.
    package mutating func pairingRefused(with peer: PeerID, at now: BootInstant) {
        for (number, request) in requests where request.peer == peer { refuse(number, from: now) }
    }

    /// A pairing with a peer has failed that no task has requested, and that the kernel has asked nothing about.
    ///
    /// - Returns: Whether the kernel has begun it for a channel, as far as that is certain.
    package mutating func pairingFailed(with peer: PeerID, at now: BootInstant) -> Bool {
        var isForChannel = false
        let isOnlyOne = requests.values.count { $0.peer == peer } == 1
        for (number, request) in requests where request.peer == peer {
            if request.isEncrypted { isForChannel = true }
            refuse(number, from: request.isEncrypted && isOnlyOne ? now : now + Self.grace)
        }
        return isForChannel
    }

    /// The kernel wants more security for a channel than was requested.
    ///
    /// - Parameters:
    ///   - number: The number of the request.
    ///   - time: How long the peer has taken to respond, at most; `nil` where the kernel pairs with nobody.
    ///   - now: The present time.
    package mutating func securityWanted(for number: UInt64, after time: Duration?, at now: BootInstant) {
        refuse(number, from: time.map { now + max(Self.grace, $0 * Self.pairingExchanges) } ?? now)
    }

    /// Has a request count as refused from a time on, unless it does so earlier.
    private mutating func refuse(_ number: UInt64, from time: BootInstant) {
        guard let request = requests[number] else { return }
        requests[number]?.refusal = min(request.refusal ?? time, time)
    }

    /// Returns whether the end of the link, or of the channel, means that the peer has refused it for lack of security.
    package func isRefusedByItsEnd(_ number: UInt64) -> Bool { requests[number]?.refusal != nil }

    /// Returns whether the peer has refused a channel for lack of security.
    package func isRefused(_ number: UInt64, at now: BootInstant) -> Bool {
        guard let refusal = requests[number]?.refusal else { return false }
        return refusal <= now
    }
}
