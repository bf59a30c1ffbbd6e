internal import BLECore

/// In which order a client may send what was recorded.
public enum RequestOrder: Hashable, Sendable {
    /// As it was recorded.
    case recorded
    /// Reads may pass each other; all else stays in its place.
    case readsInAnyOrder
    /// Anything may pass anything.
    case any

    /// Whether `packet` may be sent before `earlier`, which was recorded first.
    func mayPass(_ packet: [UInt8], _ earlier: [UInt8]) -> Bool {
        // What answers the peer is sent by the reader of the link, while requests wait for their turn: nobody orders the two.
        if Self.isAnswer(packet) != Self.isAnswer(earlier) { return true }
        return switch self {
        case .recorded: false
        case .readsInAnyOrder: Self.isRead(packet) && Self.isRead(earlier)
        case .any: true
        }
    }

    private static func isAnswer(_ packet: [UInt8]) -> Bool {
        let kind = ATTOpcode(rawValue: packet.first ?? 0).kind
        return kind == .confirmation || kind == .response
    }

    private static func isRead(_ packet: [UInt8]) -> Bool {
        switch ATTOpcode(rawValue: packet.first ?? 0) {
        case .readRequest, .readBlobRequest, .readByTypeRequest, .readMultipleRequest, .readMultipleVariableRequest:
            true
        default: false
        }
    }
}
