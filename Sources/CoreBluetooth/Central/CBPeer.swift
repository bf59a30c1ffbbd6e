package import BareBLE

/// A device at the other end of a link, or one that could be.
open class CBPeer: NSObject, NSCopying, @unchecked Sendable {
    let peer: PeerID

    package init(peer: PeerID) {
        self.peer = peer
    }

    /// The identifier of the device.
    ///
    /// It is made from the device's address: for one device it is the same in every program, on every machine and after
    /// every restart. For a bonded device it is made from the identity address; an object from before the bond keeps
    /// its identifier, which still finds the device. A device with private addresses that is not bonded has a new
    /// identifier with each new address, as on Apple's systems.
    open var identifier: UUID { PeerIdentifier.uuid(of: peer) }

    /// Returns this object.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}
