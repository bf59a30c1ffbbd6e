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
}

extension BLEError {
    /// Returns the same failure with the commands that help, where the security of the link is the reason.
    func advised(_ peer: PeerArgument, isBonded: Bool = false) -> BLEError {
        switch code {
        case .insufficientSecurity where requiredSecurity != .authorization:
            guard let advice = peer.pairingAdvice else { return self }
            guard isBonded, case .address = peer else {
                return with(hint: "The peer requires a paired or encrypted link: \(advice).")
            }
            return with(
                hint: "The bond is too weak for it. Pair again: `blescan forget \(peer)`, then `blescan pair \(peer) "
                    + "--require authenticated`.")
        case .bondRejected:
            guard case .address = peer else {
                return with(hint: "A virtual device forgets its bonds when the command ends.")
            }
            return with(
                hint: "The bond is kept. If it is the right device: `blescan forget \(peer)`, then `blescan pair "
                    + "\(peer)`.")
        default:
            return self
        }
    }
}
