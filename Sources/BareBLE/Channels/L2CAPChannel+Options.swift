package import BLELinux

extension L2CAPChannel {
    /// Options of a channel.
    public struct Options: Hashable, Sendable {
        /// The longest time for opening the channel.
        public var timeout: Duration
        /// The longest packet that the peer may send, 23 to 65,535 bytes. The peer is informed; its own limit is
        /// independent.
        public var mtu: Int
        /// The number of packets that are read ahead of the consumer, at least 1. Beyond that the peer has to wait.
        public var capacity: Int

        /// Creates options, with default values for those not given.
        public init(timeout: Duration = .seconds(10), mtu: Int = 672, capacity: Int = 64) {
            self.timeout = timeout
            self.mtu = mtu
            self.capacity = capacity
        }
    }
}

/// The former name of `L2CAPChannel.Options`.
@available(*, deprecated, renamed: "L2CAPChannel.Options")
public typealias ChannelOptions = L2CAPChannel.Options

/// A request to an adapter for a channel beside a link.
package struct ChannelRequest: Hashable, Sendable {
    /// The PSM of the peer's service.
    package let psm: UInt16
    /// The longest packet that the peer may send.
    package let receiveMTU: UInt16
    /// The longest time for opening the channel.
    package let timeout: Duration
    /// A Boolean value that indicates whether the link is encrypted: a channel over an unencrypted one is refused then.
    package let isEncrypted: Bool
    /// The level of security that the link has; `nil` where that is not known.
    package let linkLevel: SocketSecurity.Level?
    /// The level of security that the link must have before the channel is requested; `nil` for none. The adapter sets
    /// the one of the bond whose key encrypts the link, or that of the link if it is lower.
    package var security: SocketSecurity.Level?

    /// Creates a request with values that have been checked.
    package init(
        psm: UInt16, receiveMTU: UInt16, timeout: Duration, isEncrypted: Bool = false,
        linkLevel: SocketSecurity.Level? = nil
    ) {
        self.psm = psm
        self.receiveMTU = receiveMTU
        self.timeout = timeout
        self.isEncrypted = isEncrypted
        self.linkLevel = linkLevel
    }
}
