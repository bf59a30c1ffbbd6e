import BLECapture
import BLECore
import BLELinux
import BareBLE

/// Prints ATT packets as they cross the link: `<` for sent, `>` for received, the bytes, the time of day, and the
/// decoded packet.
///
/// What follows the bytes is a comment, so the lines are a dialogue that `blescan replay` reads. A line with the date
/// is above the first packet of each day, as there.
final class Trace: Sendable {
    private struct State {
        var printer = PacketPrinter()
        /// The day of the packet before.
        var day: Timestamp.Day?
    }

    private static let commentColumn = 40

    private let state = Lock(State())
    private let now: @Sendable () -> Duration
    private let note: @Sendable (String) -> Void

    /// Creates a trace.
    ///
    /// - Parameter now: The time since 1970-01-01 00:00 UTC.
    init(
        now: @Sendable @escaping () -> Duration = { Timestamp.sinceEpoch() },
        note: @Sendable @escaping (String) -> Void = { Console.note($0) }
    ) {
        self.now = now
        self.note = note
    }

    func print(_ pdu: TracedPDU) {
        print(pdu.bytes, isOutgoing: pdu.isOutgoing)
    }

    func print(_ bytes: [UInt8], isOutgoing: Bool) {
        let event: Dialogue.Event = isOutgoing ? .sent(bytes) : .received(bytes)
        let time = now()
        let day = Timestamp.Day(of: time)
        let (meaning, isNewDay) = state.withLock { state in
            defer { state.day = day }
            return (state.printer.print(Dialogue.Step(event)), state.day != day)
        }
        if isNewDay { note("# " + day.text) }
        let packet = "\(isOutgoing ? "<" : ">") \(Hex.encode(bytes))"
        let moment = PrintedPacket.timeOfDay(time + .seconds(day.offset))
        note(packet.padded(to: Self.commentColumn) + "  # " + moment + "  " + meaning.title)
        for detail in meaning.details { note("#         " + detail) }
    }
}
