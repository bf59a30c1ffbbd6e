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
    /// Text that was printed before, and is printed again.
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
        var writer = JSONWriter()
        write(to: &writer)
        return writer.bytes
    }

    private func write(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.literal("null")
        case .bool(let value): writer.literal(value ? "true" : "false")
        case .integer(let value): writer.integer(value)
        case .number(let value): writer.literal(value.isFinite ? String(value) : "null")
        case .digits(let digits): writer.literal(digits)
        case .string(let value): writer.string(value)
        case .rendered(let bytes): writer.rendered(bytes)
        case .array(let values):
            writer.array { writer in
                for value in values { value.write(to: &writer) }
            }
        case .object(let members):
            writer.object { writer in
                for member in members {
                    writer.key(member.key)
                    member.value.write(to: &writer)
                }
            }
        }
    }
}

extension JSONLine: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
}
