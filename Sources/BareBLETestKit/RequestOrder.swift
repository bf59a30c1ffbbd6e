internal import BLECore

/// The order in which a client may send the recorded requests.
public enum RequestOrder: Hashable, Sendable {
    /// As recorded.
    case recorded
    /// Reads may be reordered; everything else keeps its position.
    case readsInAnyOrder
    /// Any order.
    case any

    /// Returns true if `packet` may be sent before `earlier`, which was recorded first.
    func mayPass(_ packet: [UInt8], _ earlier: [UInt8]) -> Bool {
        // Confirmations and responses are sent as packets arrive, while requests wait for their turn: their relative
        // order is undefined.
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
