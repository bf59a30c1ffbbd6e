import BLECore
import BareBLE

/// The activity of a link, derived from its requests.
struct LinkActivity {
    private var requests = 0

    /// Returns the activity from this packet on; `nil` if it is unchanged.
    mutating func sent(_ pdu: [UInt8]) -> String? {
        guard let first = pdu.first, ATTOpcode(rawValue: first).isRequest, let packet = try? ATTPacket(pdu) else {
            return nil
        }
        requests += 1
        let summary = packet.summary
        let handle = summary.handle.map { CharacteristicReference.handle($0) }
        let progress = summary.offset.map { ", \(Int($0).counted("byte")) so far" } ?? ""
        switch (summary.purpose, handle) {
        case (.mtuExchange, _): return "exchanging the MTU"
        case (.discovery, let handle?):
            return "discovering the database, \(requests.counted("request")), at \(handle)"
        case (.read, let handle?): return "reading \(summary.type.map { "\($0)" } ?? "\(handle)")\(progress)"
        case (.write, let handle?): return "writing \(handle)\(progress)"
        default: return nil
        }
    }
}
