/// An error in the format of received or stored bytes.
///
/// Carries the format, the offset and the reason. Malformed bytes are an everyday event on air, not an exception.
public struct MalformedPacket: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason for which the bytes were rejected.
    public enum Reason: Hashable, Sendable {
        /// The packet ends before its fixed part is complete.
        case tooShort
        /// The number of bytes after the last field.
        case trailingBytes(Int)
        /// The packet has another opcode.
        case wrongOpcode(UInt8)
        /// The name of a field whose value is not allowed.
        case invalidField(String)
    }

    /// The specification's name of the format, such as `ATT_READ_RSP`.
    public let format: String
    /// The offset of the first offending byte.
    public let offset: Int
    /// The reason for which the bytes were rejected.
    public let reason: Reason

    /// Creates an error.
    public init(format: String, offset: Int, reason: Reason) {
        self.format = format
        self.offset = offset
        self.reason = reason
    }

    package init(_ format: StaticString, at offset: Int, _ reason: Reason) {
        self.init(format: "\(format)", offset: offset, reason: reason)
    }

    /// A message such as "ATT_READ_BY_TYPE_RSP is malformed at byte 1: the packet ends too early".
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
