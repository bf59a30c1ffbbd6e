import BLECore

/// A JSON value whose members keep the order in which they were given, printed on one line.
///
/// The keys of blescan's output are a contract, and so is their order: `"v":1` comes first.
indirect enum JSONLine: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    /// A number as its digits, exact where a `Double` would not be.
    case digits(String)
    case string(String)
    /// What was printed before, and is to be printed again.
    case rendered([UInt8])
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
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The same in UTF-8.
    var bytes: [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(512)
        write(to: &output)
        return output
    }

    private func write(to output: inout [UInt8]) {
        switch self {
        case .null: output += "null".utf8
        case .bool(let value): output += (value ? "true" : "false").utf8
        case .integer(let value): output += String(value).utf8
        case .number(let value): output += (value.isFinite ? String(value) : "null").utf8
        case .digits(let digits): output += digits.utf8
        case .string(let value): Self.write(value, to: &output)
        case .rendered(let bytes): output += bytes
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
                // Keys are ours, or hexadecimal: nothing in them needs care.
                output.append(0x22)
                output.append(contentsOf: member.key.utf8)
                output.append(0x22)
                output.append(0x3A)
                member.value.write(to: &output)
            }
            output.append(0x7D)
        }
    }

    private static func write(_ string: String, to output: inout [UInt8]) {
        output.append(0x22)
        defer { output.append(0x22) }
        // Nearly all text is plain, and is taken as a whole.
        let start = output.count
        output.append(contentsOf: string.utf8)
        var isPlain = true
        for index in start..<output.count {
            let byte = output[index]
            if byte < 0x20 || byte > 0x7E || byte == 0x22 || byte == 0x5C {
                isPlain = false
                break
            }
        }
        if isPlain { return }
        output.removeSubrange(start...)
        for scalar in string.unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C: output += [0x5C, UInt8(truncatingIfNeeded: scalar.value)]
            case 0x0A: output += "\\n".utf8
            case 0x0D: output += "\\r".utf8
            case 0x09: output += "\\t".utf8
            case 0x20..<0x7F: output.append(UInt8(truncatingIfNeeded: scalar.value))
            // What could steer a terminal that shows the line; who reads the JSON gets it back unchanged.
            case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF:
                let code = [UInt8(truncatingIfNeeded: scalar.value >> 8), UInt8(truncatingIfNeeded: scalar.value)]
                output += "\\u\(Hex.encode(code))".utf8
            default: output += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
    }
}

extension JSONLine: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
}
