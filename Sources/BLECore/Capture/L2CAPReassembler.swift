/// Which link a piece of data belongs to, and which way it goes.
public struct L2CAPDirection: Hashable, Sendable {
    /// The index of the controller, see `CapturedPacket.controller`.
    public let controller: UInt16
    /// The connection handle, 12 bits.
    public let connection: UInt16
    /// Which way the data goes.
    public let direction: CapturedPacket.Direction
}

/// A whole L2CAP frame, put together from its pieces.
///
/// Spec: B-frame, Core Vol 3 Part A, 3.1.
public struct L2CAPFrame: Hashable, Sendable {
    /// The fixed channel that carries ATT.
    public static let attributeChannel: UInt16 = 0x0004

    /// The link and the way.
    public let origin: L2CAPDirection
    /// The number of the channel; 4 is ATT.
    public let channel: UInt16
    /// What the channel carries; for ATT one PDU.
    public let payload: [UInt8]
}

/// Puts L2CAP frames together from the pieces that pass between host and controller.
///
/// Each link has one unfinished frame a way at most, and it grows no longer than its header announced. The first piece
/// of a frame ends an unfinished one: it can never be completed. Captures begin and end anywhere, so all of that is
/// counted and nothing of it is an error.
///
/// Spec: HCI ACL Data packets, Core Vol 4 Part E, 5.4.2; fragmentation, Core Vol 3 Part A, 7.2.
public struct L2CAPReassembler: Sendable {
    /// What became of a piece.
    public enum Outcome: Hashable, Sendable {
        /// It completed a frame.
        case frame(L2CAPFrame)
        /// Its frame needs further pieces.
        case unfinished(L2CAPDirection)
        /// It belongs to no frame that has begun, or contradicts the frame's header.
        case unusable
    }

    private struct Partial {
        var channel: UInt16
        var length: Int
        var payload: [UInt8]
    }

    /// More than any controller keeps; with more links than that in a capture, unfinished frames are given up.
    private static let mostPartials = 64

    private var partials: [L2CAPDirection: Partial] = [:]

    /// How many frames were given up because their last pieces never came.
    public private(set) var abandonedFrameCount = 0

    /// A reassembler that has seen nothing.
    public init() {}

    /// Takes one packet of kind `.asynchronousData`; any other is unusable.
    public mutating func received(_ packet: CapturedPacket) -> Outcome {
        guard packet.kind == .asynchronousData else { return .unusable }
        var reader = ByteReader(packet.bytes.span)
        guard let handleAndFlags = reader.u16(), let length = reader.u16(), let piece = reader.array(Int(length)),
            reader.isAtEnd
        else { return .unusable }
        let origin = L2CAPDirection(
            controller: packet.controller, connection: handleAndFlags & 0x0FFF, direction: packet.direction)
        if handleAndFlags >> 12 & 0b11 == 0b01 {
            guard var partial = partials.removeValue(forKey: origin) else { return .unusable }
            partial.payload.append(contentsOf: piece)
            return finish(partial, of: origin)
        }
        if partials.removeValue(forKey: origin) != nil { abandonedFrameCount &+= 1 }
        var start = ByteReader(piece.span)
        guard let payloadLength = start.u16(), let channel = start.u16() else { return .unusable }
        return finish(Partial(channel: channel, length: Int(payloadLength), payload: start.rest()), of: origin)
    }

    /// Gives up what is unfinished on a link that ended.
    public mutating func linkEnded(controller: UInt16, connection: UInt16) {
        for direction in [CapturedPacket.Direction.sent, .received] {
            let origin = L2CAPDirection(controller: controller, connection: connection, direction: direction)
            if partials.removeValue(forKey: origin) != nil { abandonedFrameCount &+= 1 }
        }
    }

    private mutating func finish(_ partial: Partial, of origin: L2CAPDirection) -> Outcome {
        if partial.payload.count == partial.length {
            return .frame(L2CAPFrame(origin: origin, channel: partial.channel, payload: partial.payload))
        }
        guard partial.payload.count < partial.length else {
            abandonedFrameCount &+= 1
            return .unusable
        }
        if partials.count >= Self.mostPartials {
            abandonedFrameCount &+= partials.count
            partials.removeAll()
        }
        partials[origin] = partial
        return .unfinished(origin)
    }
}
