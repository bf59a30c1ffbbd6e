/// How a channel is opened and kept.
public struct ChannelOptions: Hashable, Sendable {
    /// How long opening may take.
    public var timeout: Duration
    /// The longest packet that the peer may send, 23 to 65,535 bytes. The peer is told; what it takes is its own choice.
    public var mtu: Int
    /// How many packets are read ahead of the consumer, at least 1. Behind that the peer has to wait.
    public var capacity: Int

    /// The defaults, or other values for some of them.
    public init(timeout: Duration = .seconds(10), mtu: Int = 672, capacity: Int = 64) {
        self.timeout = timeout
        self.mtu = mtu
        self.capacity = capacity
    }
}

/// What an adapter is asked for when a channel is to be opened beside a link.
package struct ChannelRequest: Hashable, Sendable {
    /// The number of the service that the peer offers.
    package let psm: UInt16
    /// The longest packet that the peer may send.
    package let receiveMTU: UInt16
    /// How long opening may take.
    package let timeout: Duration

    /// A request, with values that have been checked.
    package init(psm: UInt16, receiveMTU: UInt16, timeout: Duration) {
        self.psm = psm
        self.receiveMTU = receiveMTU
        self.timeout = timeout
    }
}
