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
        var text: [UInt8] = []
        text.reserveCapacity(12)
        append(inDay / 3_600_000, 2, to: &text)
        text.append(0x3A)
        append(inDay / 60_000 % 60, 2, to: &text)
        text.append(0x3A)
        append(inDay / 1000 % 60, 2, to: &text)
        text.append(0x2E)
        append(inDay % 1000, 3, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    private static func append(_ number: Int64, _ digits: Int, to text: inout [UInt8]) {
        var rest = number
        let start = text.count
        for _ in 0..<digits {
            text.insert(0x30 &+ UInt8(truncatingIfNeeded: rest % 10), at: start)
            rest /= 10
        }
    }
}

extension Duration {
    /// Milliseconds, rounded to the nearest.
    var wholeMilliseconds: Int64 {
        (wholeMicroseconds &+ 500) / 1000
    }
}
