/// A line of input, without its end. A line that is too long has no text: a part of it would be another line.
enum InputLine: Hashable, Sendable {
    case whole(String)
    /// Longer than a line may be; how long, for users.
    case tooLong(String)

    /// The most bytes of a line: more than any advertising data, in any spelling, and any operation need.
    static let limit = 65_536
    /// The most bytes before a line feed: the last one may be a carriage return, which is a part of the end.
    static let longestBeforeLineFeed = limit + 1

    /// Returns a line from the bytes before its line feed, or from more than `longestBeforeLineFeed` of them.
    static func ended(_ bytes: some BidirectionalCollection<UInt8>) -> InputLine {
        bytes.last == 0x0D ? InputLine(bytes.dropLast()) : InputLine(bytes)
    }

    /// Creates a line from all of its bytes, or from more than `limit` of them.
    init(_ bytes: some Collection<UInt8>) {
        self =
            bytes.count > Self.limit
            ? .tooLong("more than \(Self.limit) bytes") : .whole(String(decoding: bytes, as: UTF8.self))
    }
}
