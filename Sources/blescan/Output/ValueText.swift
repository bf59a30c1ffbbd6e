import BLECore
import BLEProfiles
import BareBLE

/// A value, or the reason that there is none, as text. The meaning stays longer than the bytes, which are clipped
/// between two of them.
struct ValueText: Hashable, Sendable {
    private static let longestHex = 64
    private static let omission = "…"

    private let meaning: String?
    private let bytes: [UInt8]
    /// The sign of bytes that are left out.
    private let omission: String
    private let isRefusal: Bool

    /// The text of a value.
    ///
    /// - Parameter spelled: Returns a text in the characters of the terminal: the columns are those of its spelling.
    init(_ bytes: [UInt8], _ meaning: ValueDescription?, spelled: (String) -> String) {
        isRefusal = false
        omission = spelled(Self.omission)
        let line = meaning.map { spelled($0.line) }
        self.meaning = bytes.isEmpty ? "(empty)" : line
        // Plain text in quotes contains everything that the bytes do.
        self.bytes = line.map { Array($0.utf8) } == [0x22] + bytes + [0x22] ? [] : bytes
    }

    /// The text of a refusal.
    ///
    /// - Parameter spelled: Returns a text in the characters of the terminal.
    init(refusal error: BLEError, spelled: (String) -> String) {
        isRefusal = true
        omission = spelled(Self.omission)
        meaning = spelled("! " + [error.reason, error.underlyingCodes].compactMap(\.self).joined(separator: " "))
        bytes = []
    }

    var style: ScreenStyle { isRefusal ? .defect : .meaning }

    /// The text without a limit, but for the number of bytes.
    var whole: String { [meaning, hex(in: Self.longestHex)].compactMap(\.self).joined(separator: "  ") }

    /// Returns the value in lines of this number of columns.
    func lines(in room: Int) -> [String] {
        guard let meaning else { return hex(in: min(room, Self.longestHex)).map { [$0] } ?? [] }
        if ScreenText.width(meaning) + 2 + 2 * bytes.count <= room, let hex = hex(in: room) {
            return [meaning + "  " + hex]
        }
        return meaning.wrapped(to: room)
    }

    /// Returns the value in one line: the decoded value, which may be wider than `room`, or else the clipped bytes.
    func line(in room: Int) -> String { meaning ?? hex(in: min(room, Self.longestHex)) ?? "" }

    /// Returns the bytes in this number of columns; with their number if not all of them fit.
    private func hex(in room: Int) -> String? {
        guard !bytes.isEmpty else { return nil }
        if 2 * bytes.count <= room { return Hex.encode(bytes) }
        let rest = "\(omission) (\(bytes.count.counted("byte")))"
        return Hex.encode(bytes.prefix(max(1, (room - ScreenText.width(rest)) / 2))) + rest
    }
}
