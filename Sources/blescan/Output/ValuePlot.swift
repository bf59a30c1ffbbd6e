import BLECore
import BLEProfiles

/// The last numbers of a value as a row of blocks, with the smallest, the mean and the largest of all.
struct ValuePlot: Sendable {
    private struct Point: Sendable {
        let number: Double
        /// As the value's own format writes it.
        let digits: String
    }

    /// As many as fit the widest terminal.
    private static let limit = 512
    /// The widest row: more columns show no more.
    private static let widest = 60

    private var points: [Point] = []
    private var least: Point?
    private var most: Point?
    private var sum = 0.0
    private var count = 0.0

    /// Whether there is more than one number.
    var hasSeveral: Bool { points.count > 1 }

    /// Adds a number. One that is not finite has no place in a row.
    mutating func add(_ number: Double, digits: String) {
        guard number.isFinite else { return }
        let point = Point(number: number, digits: digits)
        points.append(point)
        if points.count > Self.limit { points.removeFirst() }
        if least.map({ number < $0.number }) ?? true { least = point }
        if most.map({ number > $0.number }) ?? true { most = point }
        // It need not be finite; there is no mean then.
        sum += number
        count += 1
    }

    /// Returns the first words of a text that fit: a number without its unit rather than nothing of both.
    private static func beginning(of text: String, in width: Int) -> String {
        guard ScreenText.width(text) > width else { return text }
        var words = text.split(separator: " ", omittingEmptySubsequences: false)
        while words.count > 1, ScreenText.width(words.joined(separator: " ")) > width { words.removeLast() }
        while words.count > 1, words.last?.isEmpty == true { words.removeLast() }
        return words.joined(separator: " ").wrapped(to: width).first ?? ""
    }

    /// Returns the text followed by the row, in this number of columns at most.
    ///
    /// Where there is no room for everything, first the row becomes shorter, then the mean goes, then the extremes,
    /// then the row.
    func line(_ text: String, in width: Int, _ look: ScreenLook) -> StyledText {
        let text = Self.beginning(of: text, in: width)
        var line = StyledText(text)
        guard let least, let most else { return line }
        let (low, high) = ("  min \(least.digits)", "  max \(most.digits)")
        let middle = Self.written(sum / count, as: most.digits).map { "  mean " + $0 } ?? ""
        let summaries = [low + middle + high, low + high]
        if let summary = summaries.first(where: { line.width + $0.count + 10 <= width }) { line.add(summary, .dim) }
        let room = min(Self.widest, width - line.width - 2)
        guard room > 0 else { return line }
        line.add("  ")
        line.add(row(in: room, look), .green)
        return line
    }

    /// Returns a number with as many decimals as another one has; `nil` if that is not a decimal number, or too long.
    private static func written(_ number: Double, as digits: String) -> String? {
        guard Double(digits) != nil, digits.allSatisfy({ $0.isNumber || $0 == "." || $0 == "-" }) else { return nil }
        let decimals = digits.split(separator: ".", omittingEmptySubsequences: false).dropFirst().first?.count ?? 0
        let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
        let scaled = (abs(number) * scale).rounded()
        // Beyond that a number has no such digits.
        guard scaled < 1e15 else { return nil }
        let text = String(Int64(scaled))
        let padded = String(repeating: "0", count: max(0, decimals + 1 - text.count)) + text
        let sign = number < 0 && scaled > 0 ? "-" : ""
        return sign + padded.dropLast(decimals) + (decimals > 0 ? "." + padded.suffix(decimals) : "")
    }

    /// Returns the newest numbers as blocks, between the smallest and the largest of those shown.
    func row(in room: Int, _ look: ScreenLook) -> String {
        let shown = points.suffix(room).map(\.number)
        guard let low = shown.min(), let high = shown.max() else { return "" }
        return Sparkline.text(shown, between: low, and: high, look)
    }
}

/// Numbers as a row of blocks.
enum Sparkline {
    private static let blocks = Array("▁▂▃▄▅▆▇█").map(String.init)
    private static let letters = Array("_.-:=+*#").map(String.init)

    /// Returns a block for each number, of a height between the least one and the greatest one; a blank for none.
    static func text(_ numbers: [Double?], between low: Double, and high: Double, _ look: ScreenLook) -> String {
        let steps = look.isUnicode ? blocks : letters
        return numbers.map { number in
            guard let number else { return " " }
            // The difference of two finite numbers may not be finite; halves of them have one.
            let part = high > low ? (min(max(number, low), high) / 2 - low / 2) / (high / 2 - low / 2) : 0.5
            let index = Int((part * Double(steps.count - 1)).rounded())
            return steps.indices.contains(index) ? steps[index] : steps[0]
        }.joined()
    }
}

/// The lines of `--plot`: one for each value, or on a terminal one that is rewritten.
struct PlotOutput: Sendable {
    private var plots: [AttributeHandle: ValuePlot] = [:]
    private let look: ScreenLook
    /// The line that is rewritten; `nil` for a line for each value.
    private let place: RewrittenLine?
    /// The line that is written at present.
    private var line: [UInt8] = []
    /// The place of the signal strength among the attributes: none has this handle.
    private static let rssi: AttributeHandle = 0

    init(look: ScreenLook, in place: RewrittenLine?) {
        self.look = look
        self.place = place
    }

    /// The line that was returned last has been written.
    func wrote() {
        place?.wrote(line)
    }

    /// No line follows: this one stays, and messages come below it.
    func end() {
        place?.end()
    }

    /// Returns the bytes that show the line about a value, in this number of columns at most. Call `wrote` when they
    /// are written.
    mutating func line(
        of value: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID?, label: String?, in width: Int
    ) -> [UInt8] {
        let meaning = ValueDescription.of(value, uuid: uuid)
        let field = meaning?.fields.first { $0.number != nil }
        if let field, let number = field.number {
            plots[handle, default: ValuePlot()].add(number, digits: field.json.text)
        }
        return drawn(field.map(\.text) ?? meaning?.line ?? Hex.encode(value), at: handle, label, in: width)
    }

    /// Returns the bytes that show the line about the signal strength of the link, in the same way.
    mutating func line(ofRSSI rssi: Int, label: String?, in width: Int) -> [UInt8] {
        plots[Self.rssi, default: ValuePlot()].add(Double(rssi), digits: String(rssi))
        return drawn("\(rssi) dBm", at: Self.rssi, label, in: width)
    }

    private mutating func drawn(_ text: String, at handle: AttributeHandle, _ label: String?, in width: Int) -> [UInt8]
    {
        let words = [label, text.printable].compactMap(\.self).joined(separator: "  ")
        // Spelled before it is laid out: in ASCII it may be wider.
        let spelled = look.isUnicode ? words : words.ascii
        // In the last column some terminals wrap.
        let line = (plots[handle] ?? ValuePlot()).line(spelled, in: max(1, width - 1), look).painted(look)
        self.line = Array(line.utf8)
        return place?.replacing(with: self.line) ?? self.line
    }
}
