public import BLECore

/// A printed packet: a title, indented fields, a timestamp and, for a response, the response time.
///
/// `text()` is the form of `blescan replay`:
///
///     #42 > Read By Group Type Response (0x11)                              +49 ms 23:14:05.250
///             0x0001-0x0009  Generic Access 1800
public struct PrintedPacket: Hashable, Sendable {
    /// The protocol that a title refers to.
    public enum Layer: String, Hashable, Sendable {
        /// Commands and events between host and controller.
        case hci
        /// Advertising reports, which are events too.
        case advertising = "adv"
        /// Frames on channels other than ATT's, and fragments.
        case l2cap
        /// The Attribute Protocol.
        case att
        /// Notes of the recorder between the packets.
        case note
    }

    /// The packet's number in the capture, from 1.
    public var number: Int
    /// The direction of the packet, or `nil` for a note.
    public var direction: CapturedPacket.Direction?
    /// The protocol that the title refers to.
    public var layer: Layer
    /// The packet's name and its most important fields.
    public var title: String
    /// The other fields, one per line.
    public var details: [String] = []
    /// The time since 1970-01-01 00:00 UTC, or `nil` if not recorded.
    public var timestamp: Duration?
    /// The time since the request, for a response.
    public var elapsed: Duration?
    /// The packet itself: the complete PDU for ATT, otherwise the bytes of the record.
    public var bytes: [UInt8]
    /// The advertising reports in the packet.
    public var reports: [AdvertisingReport] = []

    /// Returns the packet as lines of text. Fields are indented, and times end at column `width` if the title is short
    /// enough.
    ///
    /// - Parameters:
    ///   - width: The column in which times end.
    ///   - offset: The difference of the times from UTC, such as that of a time zone.
    public func text(width: Int = 112, offset: Duration = .zero) -> String {
        let arrow =
            switch direction {
            case .sent: "<"
            case .received: ">"
            case .none: "="
            }
        var head = "#\(number) \(arrow) \(title)"
        var right = ""
        if let elapsed { right = "+\(elapsed.wholeMilliseconds) ms" }
        if let timestamp { right += (right.isEmpty ? "" : " ") + Self.timeOfDay(timestamp + offset) }
        if !right.isEmpty {
            let used = head.unicodeScalars.count &+ right.utf8.count
            head += String(repeating: " ", count: max(2, width &- used)) + right
        }
        for line in details { head += "\n        " + line }
        return head
    }

    /// Returns `HH:MM:SS.mmm` in UTC.
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
    /// The duration in milliseconds, rounded.
    var wholeMilliseconds: Int64 {
        (wholeMicroseconds &+ 500) / 1000
    }
}
