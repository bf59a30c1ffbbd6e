public import BLECore

/// One ATT PDU as it crossed a link, for tracing and capture.
public struct TracedPDU: Hashable, Sendable {
    /// Whether this host sent it.
    public let isOutgoing: Bool
    /// The PDU, opcode first.
    public let bytes: [UInt8]
    /// Whose link: an address, a path, or a name given to a descriptor.
    public let peer: String
    /// When it was written or read, on the boot-time clock.
    public let time: BootInstant
}

/// One packet between this process and the controller of its adapter, for capture.
public struct TracedHCIPacket: Hashable, Sendable {
    /// Whether this host sent it.
    public let isOutgoing: Bool
    /// What it is; commands and events only, because links carry data on sockets of their own.
    public let type: HCIPacketType
    /// The packet behind its type.
    public let bytes: [UInt8]
    /// The adapter's name, such as `hci0`.
    public let adapter: String
    /// When it was written or read, on the boot-time clock.
    public let time: BootInstant
}

/// A link that has come up, for capture.
public struct TracedLink: Hashable, Sendable {
    /// Whose link: an address, a path, or a name given to a descriptor.
    public let peer: String
    /// The peer's address; `nil` when the link is no Bluetooth link.
    public let id: PeerID?
    /// When it came up, on the boot-time clock.
    public let time: BootInstant

    /// What happens on a link.
    public enum Event: Hashable, Sendable {
        /// A PDU crossed it.
        case pdu(TracedPDU)
        /// It is down, for this reason and since that moment on the boot-time clock; nothing follows.
        case ended(DisconnectReason, at: BootInstant)
    }

    /// What is told of a link from its beginning to its end.
    public typealias Observer = @Sendable (Event) -> Void
}
