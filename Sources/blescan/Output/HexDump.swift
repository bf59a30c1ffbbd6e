import BLECore

/// Bytes in rows: the offset of the first one, the bytes, and the ASCII characters among them.
enum HexDump {
    /// The number of bytes in a row, on a wide terminal and on narrower ones.
    private static let lengths = [16, 8, 4]

    /// Returns the rows, in this number of columns if there is room for four bytes.
    static func lines(of bytes: [UInt8], in columns: Int) -> [StyledText] {
        let length = lengths.first { width(of: $0) <= columns } ?? 4
        return stride(from: 0, to: bytes.count, by: length).map { offset in
            line(of: bytes.dropFirst(offset).prefix(length), from: offset, length)
        }
    }

    private static func line(of row: ArraySlice<UInt8>, from offset: Int, _ length: Int) -> StyledText {
        var line = StyledText(
            Hex.encode([UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset)]), .dim)
        var digits = ""
        for (place, byte) in row.enumerated() {
            digits += (place == 0 ? "" : place % 8 == 0 ? "  " : " ") + Hex.encode([byte])
        }
        line.add("  " + digits.padded(to: digitsWidth(of: length)) + "  ")
        let characters = row.map { (0x20...0x7E).contains($0) ? Character(Unicode.Scalar($0)) : "." }
        line.add(String(characters), .green)
        return line
    }

    /// Returns the number of columns of a whole row.
    private static func width(of length: Int) -> Int { 4 + 2 + digitsWidth(of: length) + 2 + length }

    /// Returns the number of columns of its digits: a wider gap separates groups of eight bytes.
    private static func digitsWidth(of length: Int) -> Int { 3 * length - 1 + (length - 1) / 8 }
}
