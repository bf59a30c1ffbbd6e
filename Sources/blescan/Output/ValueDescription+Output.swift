import BLECore
import BLEProfiles

// Decoded values, for users and programs. The bytes are always shown too.

extension ValueDescription {
    /// Returns the decoded value by the attribute's type; otherwise by the peer's presentation format; otherwise as
    /// text, if the bytes look like it. `nil` if only the bytes can be shown.
    static func of(
        _ value: [UInt8], uuid: BluetoothUUID?, format: GATTDescriptor.PresentationFormat? = nil
    ) -> ValueDescription? {
        if let uuid, let known = of(uuid: uuid, value: value) { return known }
        // Some devices send the whole buffer of their name, with what happens to be in its rest.
        if uuid == 0x2A00, let end = value.firstIndex(of: 0), end > 0,
            let name = String(validating: value[..<end], as: UTF8.self)
        {
            return ValueDescription(fields: name.fields)
        }
        if let fields = format?.describe(value) { return ValueDescription(fields: fields) }
        guard value.count >= 2, let text = String(validating: value, as: UTF8.self), text.printable == text else {
            return nil
        }
        return ValueDescription(fields: text.fields)
    }

    /// The decoded value on one line; characters that could control the terminal are spelled out.
    var line: String { text.printable }

    /// A number or a text where the value is one, else an object with a member for each field.
    var json: JSONLine {
        if let only = fields.first, fields.count == 1, only.name.isEmpty { return only.json }
        return .object(fields.map { JSONLine.Member(key: $0.key, value: $0.json) })
    }
}

extension ValueField {
    /// The field's value alone.
    var json: JSONLine { Self.json(of: content) }

    private static func json(of content: Content) -> JSONLine {
        switch content {
        case .integer(let number), .named(let number, _): .integer(Int(number))
        case .decimal(let number): .digits(number.description)
        case .float(let number): .number(number)
        case .text(let text), .quoted(let text): .string(text)
        case .flag(let isSet): .bool(isSet)
        case .missing: .null
        case .list(let items): .array(items.map(json(of:)))
        }
    }
}
