public import BLECore

/// One ATT PDU as it crossed a link, for tracing and capture.
public struct TracedPDU: Hashable, Sendable {
    /// A Boolean value that indicates whether this host sent the PDU.
    public let isOutgoing: Bool
    /// The PDU, opcode first.
    public let bytes: [UInt8]
    /// The link's name: an address, a path, or a name given to a descriptor.
    public let peer: String
    /// The time of the write or read, on the boot-time clock.
    public let time: BootInstant
}

/// One packet between this process and the controller of its adapter, for capture.
public struct TracedHCIPacket: Hashable, Sendable {
    /// A Boolean value that indicates whether this host sent the packet: this program, another one, or the kernel.
    public let isOutgoing: Bool
    /// The type of the packet: a command or an event, because links carry data on sockets of their own.
    public let type: HCIPacketType
    /// The packet after its type octet.
    public let bytes: [UInt8]
    /// The adapter's name, such as `hci0`.
    public let adapter: String
    /// The time of the write or read, on the boot-time clock.
    public let time: BootInstant

    package init(isOutgoing: Bool, type: HCIPacketType, bytes: [UInt8], adapter: String, time: BootInstant) {
        self.isOutgoing = isOutgoing
        self.type = type
        self.bytes = bytes
        self.adapter = adapter
        self.time = time
    }
}

/// A link that has come up, for capture.
public struct TracedLink: Hashable, Sendable {
    /// The link's name: an address, a path, or a name given to a descriptor.
    public let peer: String
    /// The peer's address; `nil` if the link is not a Bluetooth link.
    public let id: PeerID?
    /// A Boolean value that indicates whether the peer has made the link, which a `LocalPeripheral` serves.
    public let isInbound: Bool
    /// The time at which it came up, on the boot-time clock.
    public let time: BootInstant

    /// An event of a link.
    public enum Event: Hashable, Sendable {
        /// A PDU crossed the link.
        case pdu(TracedPDU)
        /// The link ended, for this reason and at this time on the boot-time clock; nothing follows.
        case ended(DisconnectReason, at: BootInstant)
    }

    /// A closure that receives the events of a link, from its beginning to its end.
    public typealias Observer = @Sendable (Event) -> Void
}
