/// Bytes that are not what their format asks for.
///
/// Says which format, where, and why. It is a value like any other: malformed bytes are an everyday event on air.
public struct MalformedPacket: Error, Hashable, Sendable, CustomStringConvertible {
    /// Why the bytes were refused.
    public enum Reason: Hashable, Sendable {
        /// The packet ended before its fixed part was complete.
        case tooShort
        /// Bytes were left over behind the last field; how many.
        case trailingBytes(Int)
        /// The packet begins with another opcode.
        case wrongOpcode(UInt8)
        /// A field holds a value that the specification does not allow there; its name.
        case invalidField(String)
    }

    /// The specification's name of the format, such as `ATT_READ_RSP`.
    public let format: String
    /// The offset of the first byte that does not fit.
    public let offset: Int
    /// Why the bytes were refused.
    public let reason: Reason

    /// Names a format, a place in it and what is wrong there.
    public init(format: String, offset: Int, reason: Reason) {
        self.format = format
        self.offset = offset
        self.reason = reason
    }

    package init(_ format: StaticString, at offset: Int, _ reason: Reason) {
        self.init(format: "\(format)", offset: offset, reason: reason)
    }

    /// A sentence such as "ATT_READ_BY_TYPE_RSP is malformed at byte 1: the packet ends too early".
    public var description: String {
        let why =
            switch reason {
            case .tooShort: "the packet ends too early"
            case .trailingBytes(let count): count == 1 ? "1 byte too many" : "\(count) bytes too many"
            case .wrongOpcode(let opcode): "opcode 0x\(Hex.encode([opcode])) does not belong to it"
            case .invalidField(let name): "\(name) has a value that is not allowed"
            }
        return "\(format) is malformed at byte \(offset): \(why)"
    }
}
