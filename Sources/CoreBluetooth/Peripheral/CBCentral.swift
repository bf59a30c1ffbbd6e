internal import BLELinux
internal import BareBLE

/// A central that is connected to this program's services, or was.
open class CBCentral: CBPeer, @unchecked Sendable {
    let link: ConnectedCentral.ID
    private let limit: Lock<Int>

    init(_ central: ConnectedCentral, placeholder: PeerID) {
        link = central.id
        limit = Lock(central.maximumUpdateLength)
        super.init(peer: central.peer ?? placeholder)
    }

    /// The number of bytes that one notification or indication for this central can have.
    open var maximumUpdateValueLength: Int { limit.withLock { $0 } }

    func update(_ central: ConnectedCentral) { limit.withLock { $0 = central.maximumUpdateLength } }
}
