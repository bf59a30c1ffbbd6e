/// A column of the live table.
enum ScreenColumn: Hashable, Sendable {
    case strength, bar, address, kind, name, says, interval, seen

    /// From left to right.
    static let all: [ScreenColumn] = [.strength, .bar, .address, .kind, .name, .says, .interval, .seen]
    /// The order in which columns are removed for lack of room. The strength and the name stay.
    static let dropped: [ScreenColumn] = [.interval, .kind, .bar, .says, .address, .seen]

    /// The least sensible width.
    var least: Int {
        switch self {
        case .strength: 5
        case .bar: 10
        case .address: 17
        case .kind: 8
        case .name: 10
        case .says: 12
        case .interval: 7
        case .seen: 5
        }
    }

    var heading: String {
        switch self {
        case .strength: "RSSI"
        case .bar: ""
        case .address: "ADDRESS"
        case .kind: "TYPE"
        case .name: "NAME"
        case .says: "SAYS"
        case .interval: "EVERY"
        case .seen: "SEEN"
        }
    }

    var isRightAligned: Bool { [.strength, .interval, .seen].contains(self) }

    /// The columns before this one.
    var gap: Int { self == .strength || self == .bar ? 1 : 2 }

    /// Returns the columns for a screen of that width, and their widths.
    static func layout(for width: Int) -> [(column: ScreenColumn, width: Int)] {
        var columns = all
        func taken() -> Int { columns.reduce(0) { $0 + $1.gap + $1.least } }
        for column in dropped where taken() > width { columns.removeAll { $0 == column } }
        var room = max(0, width - taken())
        var widths: [ScreenColumn: Int] = [:]
        // The rest goes to the texts: most names are short, and most data is long.
        for (column, most) in [(ScreenColumn.name, 14), (.says, 36), (.name, 20), (.says, 80)] {
            guard columns.contains(column) else { continue }
            let width = widths[column] ?? column.least
            let more = min(room, max(0, most - width))
            widths[column] = width + more
            room -= more
        }
        return columns.map { ($0, widths[$0] ?? $0.least) }
    }
}
