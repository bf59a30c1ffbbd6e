import BLECore

/// A JSON value whose members keep the order in which they were given, printed on one line.
///
/// The keys of blescan's output are a contract, and so is their order: `"v":1` comes first.
indirect enum JSONLine: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSONLine])
    case object([Member])

    /// One key and its value.
    struct Member: Hashable, Sendable {
        let key: String
        let value: JSONLine
    }

    /// An object; members without a value are left out.
    static func object(_ members: KeyValuePairs<String, JSONLine?>) -> JSONLine {
        .object(members.compactMap { key, value in value.map { Member(key: key, value: $0) } })
    }

    /// The text on one line, without a line end.
    var text: String {
        var output: [UInt8] = []
        write(to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    private func write(to output: inout [UInt8]) {
        switch self {
        case .null: output += "null".utf8
        case .bool(let value): output += (value ? "true" : "false").utf8
        case .integer(let value): output += String(value).utf8
        case .number(let value): output += (value.isFinite ? String(value) : "null").utf8
        case .string(let value): Self.write(value, to: &output)
        case .array(let values):
            output.append(0x5B)
            for (index, value) in values.enumerated() {
                if index > 0 { output.append(0x2C) }
                value.write(to: &output)
            }
            output.append(0x5D)
        case .object(let members):
            output.append(0x7B)
            for (index, member) in members.enumerated() {
                if index > 0 { output.append(0x2C) }
                Self.write(member.key, to: &output)
                output.append(0x3A)
                member.value.write(to: &output)
            }
            output.append(0x7D)
        }
    }

    private static func write(_ string: String, to output: inout [UInt8]) {
        output.append(0x22)
        for byte in string.utf8 {
            switch byte {
            case 0x22, 0x5C: output += [0x5C, byte]
            case 0x0A: output += "\\n".utf8
            case 0x0D: output += "\\r".utf8
            case 0x09: output += "\\t".utf8
            case 0..<0x20, 0x7F: output += "\\u00\(Hex.encode([byte]))".utf8
            default: output.append(byte)
            }
        }
        output.append(0x22)
    }
}

extension JSONLine: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
}
