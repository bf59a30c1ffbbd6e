/// The style of a piece of a line.
struct ScreenStyle: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    static let bold = ScreenStyle(rawValue: 1)
    static let dim = ScreenStyle(rawValue: 2)
    static let reverse = ScreenStyle(rawValue: 4)
    static let red = ScreenStyle(rawValue: 8)
    static let green = ScreenStyle(rawValue: 16)
    static let yellow = ScreenStyle(rawValue: 32)

    /// The sequence that switches from no style to this one.
    var sequence: String {
        let codes: [(ScreenStyle, String)] = [
            (.bold, "1"), (.dim, "2"), (.reverse, "7"), (.red, "31"), (.green, "32"), (.yellow, "33"),
        ]
        return "\u{1B}[" + codes.filter { contains($0.0) }.map(\.1).joined(separator: ";") + "m"
    }
}

// The roles, the same in the live table and in printed lines.
extension ScreenStyle {
    /// Titles of columns.
    static let heading = ScreenStyle.dim
    /// Times, numbers of packets, and bytes beside their meaning.
    static let background = ScreenStyle.dim
    /// What a line is about: a name, a packet, something done.
    static let title = ScreenStyle.bold
    /// A decoded value.
    static let meaning = ScreenStyle.green
    /// A refusal, or malformed data.
    static let defect = ScreenStyle.red

    /// A check without a finding.
    static let good = ScreenStyle.green
    /// A check with a restriction.
    static let warning = ScreenStyle.yellow
    /// A check that failed.
    static let failure: ScreenStyle = [.bold, .red]
    /// A check that was not made.
    static let skipped = ScreenStyle.dim

    /// The style of a signal strength in dBm; none if it is unknown.
    static func strength(_ strength: Int?) -> ScreenStyle {
        guard let strength else { return [] }
        return strength >= -60 ? .green : strength >= -80 ? .yellow : .red
    }
}
