public import BLECore

/// The physical layers of a link, one for each way.
public struct LinkPHY: Hashable, Sendable {
    /// What this host sends on.
    public let transmit: PHY
    /// What this host receives on.
    public let receive: PHY

    /// A layer for each way.
    public init(transmit: PHY, receive: PHY) {
        self.transmit = transmit
        self.receive = receive
    }
}
