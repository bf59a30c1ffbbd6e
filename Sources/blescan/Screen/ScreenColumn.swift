/// A column of the live table.
enum ScreenColumn: Hashable, Sendable {
    case strength, bar, address, kind, name, data, interval, seen

    /// From left to right.
    static let all: [ScreenColumn] = [.strength, .bar, .address, .kind, .name, .data, .interval, .seen]
    /// The order in which columns are removed for lack of room. The strength and the name stay.
    static let dropped: [ScreenColumn] = [.interval, .kind, .bar, .data, .address, .seen]

    /// The least sensible width.
    var least: Int {
        switch self {
        case .strength: 5
        case .bar: 10
        case .address: 17
        case .kind: 8
        case .name: 10
        case .data: 22
        case .interval: 7
        case .seen: 5
        }
    }

    /// The width for which minor columns are removed.
    private var comfortable: Int { self == .name ? 14 : least }

    private var isMinor: Bool { [.interval, .kind].contains(self) }

    var heading: String {
        switch self {
        case .strength: "RSSI"
        case .bar: ""
        case .address: "ADDRESS"
        case .kind: "TYPE"
        case .name: "NAME"
        case .data: "DATA"
        case .interval: "EVERY"
        case .seen: "SEEN"
        }
    }

    var isRightAligned: Bool { [.strength, .interval, .seen].contains(self) }

    /// The columns before this one.
    var gap: Int { self == .strength || self == .bar ? 1 : 2 }

    /// The width of the number of an advertising set, after the address.
    private static let setWidth = 4

    /// Returns the columns for a screen of that width, and their widths.
    ///
    /// - Parameter hasSets: Whether numbers of advertising sets are to be shown beside the addresses.
    static func layout(for width: Int, hasSets: Bool = false) -> [(column: ScreenColumn, width: Int)] {
        var columns = all
        func taken(_ size: (ScreenColumn) -> Int) -> Int { columns.reduce(0) { $0 + $1.gap + size($1) } }
        for column in dropped where taken(column.isMinor ? \.comfortable : \.least) > width {
            columns.removeAll { $0 == column }
        }
        var room = max(0, width - taken(\.least))
        var widths: [ScreenColumn: Int] = [:]
        if hasSets, columns.contains(.address), room >= setWidth {
            widths[.address] = ScreenColumn.address.least + setWidth
            room -= setWidth
        }
        // The rest goes to the texts: most names are short, and most data is long.
        for (column, most) in [(ScreenColumn.name, 14), (.data, 36), (.name, 20), (.data, .max)] {
            guard columns.contains(column) else { continue }
            let width = widths[column] ?? column.least
            let more = min(room, max(0, most - width))
            widths[column] = width + more
            room -= more
        }
        return columns.map { ($0, widths[$0] ?? $0.least) }
    }
}
