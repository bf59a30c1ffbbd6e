/// One packet as people read it: a title, indented fields, the time and, for an answer, how long it took.
///
/// `text()` is the form of `blescan replay`:
///
///     #42 > Read By Group Type Response (0x11)                              +49 ms 23:14:05.250
///             0x0001-0x0009  Generic Access 1800
public struct PrintedPacket: Hashable, Sendable {
    /// Which protocol the title speaks of.
    public enum Layer: String, Hashable, Sendable {
        /// Commands and events between host and controller.
        case hci
        /// Advertisements, which are events too.
        case advertising = "adv"
        /// Frames of channels other than ATT's, and pieces of frames.
        case l2cap
        /// The Attribute Protocol.
        case att
        /// What the recorder noted beside the packets.
        case note
    }

    /// The place of the packet in its capture, counted from 1.
    public var number: Int
    /// Which way the packet went; `nil` for a note.
    public var direction: CapturedPacket.Direction?
    /// Which protocol the title speaks of.
    public var layer: Layer
    /// The name of the packet and what matters most in it.
    public var title: String
    /// The fields, one a line.
    public var details: [String] = []
    /// The time since 1970-01-01 00:00 UTC; `nil` where nobody noted it.
    public var timestamp: Duration?
    /// For an answer, the time since its request.
    public var elapsed: Duration?
    /// The packet itself: for ATT the whole PDU, else what the record holds.
    public var bytes: [UInt8]
    /// The advertisements in the packet.
    public var reports: [AdvertisingReport] = []

    /// The packet as lines of text; fields are indented, and times end at column `width` where the title leaves room.
    public func text(width: Int = 112) -> String {
        let arrow =
            switch direction {
            case .sent: "<"
            case .received: ">"
            case .none: "="
            }
        var head = "#\(number) \(arrow) \(title)"
        var right = ""
        if let elapsed { right = "+\(elapsed.wholeMilliseconds) ms" }
        if let timestamp { right += (right.isEmpty ? "" : " ") + Self.timeOfDay(timestamp) }
        if !right.isEmpty {
            let used = head.unicodeScalars.count &+ right.utf8.count
            head += String(repeating: " ", count: max(2, width &- used)) + right
        }
        for line in details { head += "\n        " + line }
        return head
    }

    /// `HH:MM:SS.mmm` in UTC.
    public static func timeOfDay(_ timestamp: Duration) -> String {
        let milliseconds = timestamp.wholeMicroseconds / 1000
        let day: Int64 = 86_400_000
        let inDay = ((milliseconds % day) &+ day) % day
        let seconds = inDay / 1000
        return [seconds / 3600, seconds / 60 % 60, seconds % 60].map { padded($0, 2) }.joined(separator: ":")
            + "." + padded(inDay % 1000, 3)
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = "\(number)"
        return String(repeating: "0", count: max(0, digits &- text.utf8.count)) + text
    }
}

extension Duration {
    /// Milliseconds, rounded to the nearest.
    var wholeMilliseconds: Int64 {
        (wholeMicroseconds &+ 500) / 1000
    }
}
