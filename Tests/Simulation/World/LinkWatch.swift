import BLECore
import BareBLE

// What must hold of every link, whatever the peer does, looked at with each PDU that crosses it.

/// One link as its client's trace shows it.
struct LinkWatch {
    let peer: String
    /// The opcode of the request that is out.
    private var outstanding: UInt8?
    private(set) var isOver = false
    private var indicationsOwed = 0

    init(peer: String) {
        self.peer = peer
    }

    /// The violation by an event; `nil` if it is allowed.
    mutating func see(_ event: TracedLink.Event) -> String? {
        if isOver { return "something happened on a link that had ended (\(peer))" }
        switch event {
        case .ended:
            isOver = true
            return nil
        case .pdu(let pdu):
            return pdu.isOutgoing ? sent(pdu.bytes) : received(pdu.bytes)
        }
    }

    private mutating func sent(_ pdu: [UInt8]) -> String? {
        guard let first = pdu.first else { return "an empty PDU was sent (\(peer))" }
        let opcode = ATTOpcode(rawValue: first)
        if opcode.isRequest {
            if let outstanding {
                return "a request \(first) was sent while \(outstanding) was out (\(peer))"
            }
            outstanding = first
        }
        if opcode == .handleValueConfirmation {
            indicationsOwed -= 1
            if indicationsOwed < 0 { return "a confirmation was sent that nobody was owed (\(peer))" }
        }
        return nil
    }

    private mutating func received(_ pdu: [UInt8]) -> String? {
        guard let first = pdu.first else { return nil }
        if first == 0x1D { indicationsOwed += 1 }
        // What a malformed response is taken for is the library's affair; a response of another kind, or an error of
        // another request, ends none.
        if let request = outstanding {
            let isError = first == 0x01 && (pdu.count < 2 || pdu[1] == request)
            if isError || first == request &+ 1 { outstanding = nil }
        }
        return nil
    }
}
