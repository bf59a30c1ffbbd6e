import BLECore
import BareBLE

// What passes between the screen of a peer's attributes, which is a value, and the link.

/// Something that a user wants to be done on a link.
enum LinkRequest: Hashable, Sendable {
    /// Connects, discovers the attributes and reads the values that can be read.
    case connect(PeerArgument)
    case disconnect
    case read(AttributeHandle)
    case write(AttributeHandle, [UInt8], Peripheral.WriteKind)
    case subscribe(AttributeHandle)
    case unsubscribe(AttributeHandle)
}

/// Something that has happened on a link.
enum LinkEvent: Sendable {
    /// The origin of a value.
    enum Origin: Hashable, Sendable {
        /// It was read.
        case read
        /// The peer has sent it.
        case sent
        /// The values before it were dropped.
        case sentAfter(dropped: Int)
    }

    /// The peer is not scanned for any longer: the connection attempt begins.
    case found
    case connected(mtu: Int)
    case discovered(GATTDatabase)
    /// The signal strength of the link was measured, in dBm; `nil` if the measurement failed, and it is unknown.
    case strength(Int?)
    case value(AttributeHandle, [UInt8], LinkEvent.Origin)
    /// The value cannot be read.
    case unreadable(AttributeHandle, BLEError)
    case written(AttributeHandle, byteCount: Int, Peripheral.WriteKind)
    case subscribed(AttributeHandle)
    case unsubscribed(AttributeHandle)
    /// An operation on the attribute has failed; after it the link is as before. The peer may have carried out one that
    /// it has not responded to.
    case failed(AttributeHandle, Failure, mayBeCarriedOut: Bool = false)
    /// There is no link, or none any longer.
    case ended(Failure?)
}
