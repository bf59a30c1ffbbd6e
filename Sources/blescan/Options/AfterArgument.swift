import BLECore

/// An attribute and the bytes to write to it on the command line: `fff2=dda50300fffd77`.
struct AfterArgument: Hashable, Sendable {
    let attribute: AttributeArgument
    let bytes: [UInt8]

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        guard let sign = argument.firstIndex(of: "=") else {
            throw BadValue(description: "write the attribute, an equals sign and the bytes, such as fff2=dda5.")
        }
        do {
            attribute = try AttributeArgument(argument: String(argument[..<sign]))
        } catch {
            throw BadValue(description: error.description)
        }
        guard let bytes = try? Hex.decode(argument[argument.index(after: sign)...]), !bytes.isEmpty else {
            throw BadValue(description: "after the equals sign come bytes in hexadecimal digits, such as fff2=dda5.")
        }
        self.bytes = bytes
    }
}
