import BLECapture
import BLECore
import BLELinux
import BareBLE

/// Prints ATT packets as they cross the link: `<` for sent, `>` for received, the bytes, and the decoded packet.
///
/// The decoded packet is after `#`, so the lines are a dialogue that `blescan replay` reads.
final class Trace: Sendable {
    private static let meaningColumn = 40

    private let printer = Lock(PacketPrinter())

    func print(_ pdu: TracedPDU) {
        let event: Dialogue.Event = pdu.isOutgoing ? .sent(pdu.bytes) : .received(pdu.bytes)
        let meaning = printer.withLock { $0.print(Dialogue.Step(event)) }
        let packet = "\(pdu.isOutgoing ? "<" : ">") \(Hex.encode(pdu.bytes))"
        Console.note(packet.padded(to: Self.meaningColumn) + "  # " + meaning.title)
        for detail in meaning.details { Console.note("#         " + detail) }
    }
}
