import BLECore

/// JSON text on one line, written piece by piece: a capture has a million objects, and a tree of each would cost more
/// than its text.
struct JSONWriter {
    /// The text so far, in UTF-8.
    private(set) var bytes: [UInt8] = []

    init() {
        bytes.reserveCapacity(1024)
    }

    /// Writes an object; `members` calls `member` for each of them, in their order.
    mutating func object(_ members: (inout JSONWriter) -> Void) {
        beginElement()
        bytes.append(UInt8(ascii: "{"))
        members(&self)
        bytes.append(UInt8(ascii: "}"))
    }

    /// Writes an array; `elements` calls the writer for each of them.
    mutating func array(_ elements: (inout JSONWriter) -> Void) {
        beginElement()
        bytes.append(UInt8(ascii: "["))
        elements(&self)
        bytes.append(UInt8(ascii: "]"))
    }

    /// Writes the key of a member, whose value must follow. Keys are ours, or hexadecimal: nothing in them needs
    /// escaping.
    mutating func key(_ key: String) {
        beginElement()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: key.utf8)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    mutating func member(_ key: String, _ value: String) {
        self.key(key)
        string(value)
    }

    mutating func member(_ key: String, _ value: Int) {
        self.key(key)
        integer(value)
    }

    /// Writes a member that is null if there is no value.
    mutating func member(_ key: String, orNull value: String?) {
        self.key(key)
        if let value { string(value) } else { literal("null") }
    }

    /// Does the same for a number.
    mutating func member(_ key: String, orNull value: Int?) {
        self.key(key)
        if let value { integer(value) } else { literal("null") }
    }

    mutating func member(_ key: String, _ value: Bool) {
        self.key(key)
        literal(value ? "true" : "false")
    }

    /// Writes a member whose value is a string of lowercase hexadecimal digits, two for each byte.
    mutating func member(_ key: String, hex value: [UInt8]) {
        self.key(key)
        bytes.append(UInt8(ascii: "\""))
        for byte in value {
            bytes.append(Self.digit(byte >> 4))
            bytes.append(Self.digit(byte & 0x0F))
        }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func integer(_ value: Int) {
        beginElement()
        guard (0...999).contains(value) else { return bytes.append(contentsOf: String(value).utf8) }
        // Numbers of packets are long, all others short.
        if value > 99 { bytes.append(Self.digit(UInt8(truncatingIfNeeded: value / 100))) }
        if value > 9 { bytes.append(Self.digit(UInt8(truncatingIfNeeded: value / 10 % 10))) }
        bytes.append(Self.digit(UInt8(truncatingIfNeeded: value % 10)))
    }

    /// Writes a value that is already JSON, or a keyword.
    mutating func literal(_ value: String) {
        beginElement()
        bytes.append(contentsOf: value.utf8)
    }

    /// Writes earlier JSON output.
    mutating func rendered(_ value: [UInt8]) {
        beginElement()
        bytes.append(contentsOf: value)
    }

    /// Writes a string with JSON's special characters escaped, and those that could control a terminal; a parser of
    /// the JSON gets it back unchanged.
    mutating func string(_ value: String) {
        beginElement()
        bytes.append(UInt8(ascii: "\""))
        defer { bytes.append(UInt8(ascii: "\"")) }
        // Nearly all text is plain, and is copied as a whole.
        let start = bytes.count
        bytes.append(contentsOf: value.utf8)
        var isPlain = true
        for index in start..<bytes.count {
            let byte = bytes[index]
            if byte < 0x20 || byte > 0x7E || byte == 0x22 || byte == 0x5C {
                isPlain = false
                break
            }
        }
        if isPlain { return }
        bytes.removeSubrange(start...)
        for scalar in value.unicodeScalars { escaped(scalar) }
    }

    private mutating func escaped(_ scalar: Unicode.Scalar) {
        switch scalar.value {
        case 0x22, 0x5C: bytes += [0x5C, UInt8(truncatingIfNeeded: scalar.value)]
        case 0x0A: bytes += "\\n".utf8
        case 0x0D: bytes += "\\r".utf8
        case 0x09: bytes += "\\t".utf8
        case 0x20..<0x7F: bytes.append(UInt8(truncatingIfNeeded: scalar.value))
        case _ where scalar.isUnprintable:
            for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
                let code = [UInt8(truncatingIfNeeded: unit >> 8), UInt8(truncatingIfNeeded: unit)]
                bytes += "\\u\(Hex.encode(code))".utf8
            }
        default: bytes += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
        }
    }

    /// Writes the comma before each element except the first. No value ends with one of the characters after which
    /// there is none.
    private mutating func beginElement() {
        switch bytes.last {
        case nil, UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ":"): break
        default: bytes.append(UInt8(ascii: ","))
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 &+ value : 0x57 &+ value
    }
}
