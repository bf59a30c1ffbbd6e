internal import BLECore

/// One direction of a link.
public struct L2CAPDirection: Hashable, Sendable {
    /// The index of the controller, see `CapturedPacket.controller`.
    public let controller: UInt16
    /// The connection handle, 12 bits.
    public let connection: UInt16
    /// The direction of the data.
    public let direction: CapturedPacket.Direction
}

/// A reassembled L2CAP frame.
///
/// Spec: B-frame, Core Vol 3 Part A, 3.1.
public struct L2CAPFrame: Hashable, Sendable {
    /// The fixed channel that carries ATT.
    public static let attributeChannel: UInt16 = 0x0004

    /// The link and the direction.
    public let origin: L2CAPDirection
    /// The channel identifier; 4 is ATT.
    public let channel: UInt16
    /// The payload; for ATT, one PDU.
    public let payload: [UInt8]
}

/// Reassembles L2CAP frames from the fragments between host and controller.
///
/// Each link has at most one incomplete frame per direction, no longer than its header announced. A first fragment
/// discards an incomplete frame, which can no longer be completed. Captures begin and end anywhere, so these cases are
/// counted and are not errors.
///
/// Spec: HCI ACL Data packets, Core Vol 4 Part E, 5.4.2; fragmentation, Core Vol 3 Part A, 7.2.
public struct L2CAPReassembler: Sendable {
    /// The result for a fragment.
    public enum Outcome: Hashable, Sendable {
        /// The fragment completed a frame.
        case frame(L2CAPFrame)
        /// The frame needs further fragments.
        case unfinished(L2CAPDirection)
        /// The fragment does not belong to a frame in progress, or contradicts the frame's header.
        case unusable
    }

    private struct Partial {
        var channel: UInt16
        var length: Int
        var payload: [UInt8]
    }

    /// More links than any controller supports; beyond that, incomplete frames are discarded.
    private static let mostPartials = 64

    private var partials: [L2CAPDirection: Partial] = [:]

    /// The number of frames discarded because their last fragments never arrived.
    public private(set) var abandonedFrameCount = 0

    /// Creates a reassembler.
    public init() {}

    /// Processes one packet of kind `.asynchronousData`; any other is unusable.
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

    /// Discards the incomplete frames of a link that ended.
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
