/// A column of the live table.
enum ScreenColumn: Hashable, Sendable {
    case strength, bar, address, kind, name, data, interval, seen

    /// From left to right.
    static let all: [ScreenColumn] = [.strength, .bar, .address, .kind, .name, .data, .interval, .seen]
    /// The width where there is room for all columns; texts get more of it.
    private var usual: Int {
        switch self {
        case .strength: 5
        case .bar: 10
        case .address: 17
        case .kind: 8
        case .name: 14
        case .data: 22
        case .interval: 7
        case .seen: 5
        }
    }

    /// What is reduced for lack of room, in this order, until the rest fits: a column becomes narrower, or is removed.
    /// The strength and the name stay, and the data is removed last.
    private static let reductions: [(column: ScreenColumn, width: Int?)] = [
        (.interval, nil), (.kind, nil), (.name, 10), (.bar, nil),
        // Its end distinguishes devices of one vendor: …0B:7E:21.
        (.address, 9),
        // A temperature and a humidity, and the mark of what is missing.
        (.data, 16), (.address, nil), (.seen, nil),
        // A temperature.
        (.data, 8), (.data, nil),
    ]

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

    /// The columns that can be hidden, each by the key with its number.
    static let numbered: [ScreenColumn] = Array(all.dropFirst())

    /// The name in messages.
    var title: String { self == .bar ? "the bar" : heading }

    /// Finds the column of a key; `nil` for the other keys.
    init?(key: ScreenKey) {
        guard let place = Self.numbered.indices.first(where: { key == .character(Self.digit($0)) }) else { return nil }
        self = Self.numbered[place]
    }

    /// Returns the key of a place in `numbered`.
    private static func digit(_ place: Int) -> Unicode.Scalar { Unicode.Scalar(UInt8(ascii: "1") + UInt8(place)) }

    /// The columns before this one.
    var gap: Int { self == .strength || self == .bar ? 1 : 2 }

    /// The width of the number of an advertising set, after the address.
    private static let setWidth = 4

    /// Returns the columns for a screen of that width, and their widths.
    ///
    /// - Parameters:
    ///   - hasSets: Whether numbers of advertising sets are to be shown beside the addresses.
    ///   - hidden: The columns that the user has hidden.
    static func layout(
        for width: Int, hasSets: Bool = false, without hidden: Set<ScreenColumn> = []
    ) -> [(column: ScreenColumn, width: Int)] {
        let wanted = all.filter { !hidden.contains($0) }
        var widths = Dictionary(uniqueKeysWithValues: wanted.map { ($0, $0.usual) })
        var room: Int { width - widths.reduce(0) { $0 + $1.key.gap + $1.value } }
        for (column, narrower) in reductions where room < 0 && widths[column] != nil { widths[column] = narrower }
        func widen(_ column: ScreenColumn, to most: Int) {
            guard let width = widths[column] else { return }
            widths[column] = width + max(0, min(room, most - width))
        }
        if hasSets, room >= setWidth, let address = widths[.address] { widen(.address, to: address + setWidth) }
        // The rest goes to the texts: most names are short, and most data is long.
        widen(.data, to: 22)
        widen(.name, to: 14)
        widen(.data, to: 36)
        widen(.name, to: 20)
        widen(.data, to: .max)
        return all.compactMap { column in widths[column].map { (column, $0) } }
    }
}
