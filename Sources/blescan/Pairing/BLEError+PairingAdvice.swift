import BLECore
import BareBLE

extension PeerArgument {
    /// What pairs with this peer, for users; `nil` if nothing does.
    var pairingAdvice: String? {
        switch self {
        case .address: "`blescan pair \(self)`"
        case .demo(let name): VirtualPeer(named: name)?.isProtected == true ? "--pair" : nil
        case .unix: nil
        }
    }

    /// The same on a screen, which takes no options and cannot ask.
    var screenPairingAdvice: String? {
        guard case .demo = self, let passkey = VirtualPeer(self)?.passkey else { return pairingAdvice }
        return "`blescan browse \(self) --pair --passkey \(passkey)`"
    }
}

extension BLEError {
    /// Returns the same failure of the peer as the user has named it: a virtual device that pairs has an address on its
    /// virtual radio, which nobody has typed.
    func named(as peer: PeerArgument) -> BLEError {
        guard case .demo = peer, let subject, PeerID(subject) != nil else { return self }
        return with(subject: peer.description)
    }

    /// Returns the same failure of the peer as the user has named it, with the commands that help where the security of
    /// the link is the reason.
    ///
    /// - Parameter isOnScreen: Whether a screen shows it.
    func advised(_ peer: PeerArgument, isBonded: Bool = false, isOnScreen: Bool = false) -> BLEError {
        let error = named(as: peer)
        switch code {
        case .insufficientSecurity where requiredSecurity != .authorization:
            guard let advice = isOnScreen ? peer.screenPairingAdvice : peer.pairingAdvice else {
                let obstacle =
                    if case .demo = peer {
                        "and of the virtual devices only demo:lock pairs"
                    } else {
                        "and a link on a socket cannot be either"
                    }
                return error.with(hint: "The peer requires a paired or encrypted link, \(obstacle).")
            }
            guard isBonded, case .address = peer else {
                return error.with(hint: "The peer requires a paired or encrypted link: \(advice).")
            }
            return error.with(
                hint: "The bond is too weak for it. Pair again: `blescan forget \(peer)`, then `blescan pair \(peer) "
                    + "--require authenticated`.")
        case .bondRejected:
            guard case .address = peer else { return error }
            return error.with(
                hint: "The bond is kept. If it is the right device: `blescan forget \(peer)`, then `blescan pair "
                    + "\(peer)`.")
        default:
            return error
        }
    }
}
