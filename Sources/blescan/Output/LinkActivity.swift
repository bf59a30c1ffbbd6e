import BLECore
import BareBLE

/// The activity of a link, derived from its requests.
struct LinkActivity {
    private var requests = 0

    /// Returns the activity from this packet on; `nil` if it is unchanged.
    mutating func sent(_ pdu: [UInt8]) -> String? {
        guard let opcode = pdu.first, let deed = Deed(opcode: opcode) else { return nil }
        requests += 1
        let handle = pdu.dropFirst().first.flatMap { low in
            pdu.dropFirst(2).first.map { CharacteristicReference.handle(UInt16($0) << 8 | UInt16(low)) }
        }
        let offset = pdu.dropFirst(3).first.flatMap { low in
            pdu.dropFirst(4).first.map { UInt16($0) << 8 | UInt16(low) }
        }
        switch (deed, handle, offset) {
        case (.negotiating, _, _): return "exchanging the MTU"
        case (.discovering, let handle?, _):
            return "discovering the database, \(requests.counted("request")), at \(handle)"
        case (.reading, let handle?, _): return "reading \(handle)"
        case (.readingOn, let handle?, let offset?): return "reading \(handle), \(Int(offset).counted("byte")) so far"
        case (.writing, let handle?, _): return "writing \(handle)"
        case (.writingOn, let handle?, let offset?): return "writing \(handle), \(Int(offset).counted("byte")) so far"
        default: return nil
        }
    }

    private enum Deed {
        case negotiating, discovering, reading, readingOn, writing, writingOn

        init?(opcode: UInt8) {
            switch opcode {
            // ATT_EXCHANGE_MTU_REQ
            case 0x02: self = .negotiating
            // ATT_FIND_INFORMATION_REQ, ATT_FIND_BY_TYPE_VALUE_REQ, ATT_READ_BY_TYPE_REQ, ATT_READ_BY_GROUP_TYPE_REQ
            case 0x04, 0x06, 0x08, 0x10: self = .discovering
            // ATT_READ_REQ, ATT_READ_BLOB_REQ
            case 0x0A: self = .reading
            case 0x0C: self = .readingOn
            // ATT_WRITE_REQ, ATT_PREPARE_WRITE_REQ
            case 0x12: self = .writing
            case 0x16: self = .writingOn
            default: return nil
            }
        }
    }
}
