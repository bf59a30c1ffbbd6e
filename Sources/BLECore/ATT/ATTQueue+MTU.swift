// The size of packets. Each side may ask once; when both do, the smallest of all numbers holds, from the moment on at
// which both exchanges are over. A peer that got our number may use it at once, so we accept more before we send more.

extension ATTQueue {
    /// Called when our answer to the peer's request is on its way.
    mutating func answeredPeer() {
        if let peerMTU { receiveLimit = max(receiveLimit, Self.clamped(min(peerMTU, limits.mtu))) }
        if case .taken(let request) = slot, request.offeredMTU != nil { return }
        applyMTU()
    }

    /// Called when our own exchange is over, and after the peer's when ours is not running.
    mutating func applyMTU() {
        var agreed: UInt16?
        if let exchangedMTU { agreed = exchangedMTU }
        if let peerMTU {
            let theirs = min(peerMTU, limits.mtu)
            agreed = agreed.map { min($0, theirs) } ?? theirs
        }
        guard let agreed else { return }
        mtu = Self.clamped(agreed)
        receiveLimit = max(receiveLimit, mtu)
    }

    static func clamped(_ mtu: UInt16) -> UInt16 {
        min(max(mtu, defaultMTU), largestMTU)
    }
}
