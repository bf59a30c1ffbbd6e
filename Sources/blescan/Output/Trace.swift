import BLECore
import BareBLE

/// Prints ATT packets as they cross the link, in btmon's arrows: `<` we send, `>` we receive.
enum Trace {
    static func print(_ pdu: TracedPDU) {
        Console.note("\(pdu.isOutgoing ? "<" : ">") \(Hex.encode(pdu.bytes))")
    }
}
