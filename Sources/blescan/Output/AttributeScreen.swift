import BLECore
import BareBLE

/// The result of `explore`, as lines for users.
///
/// No line is wider than the terminal. Where there is less room, first the properties become letters, then long UUIDs
/// and at last the values get lines of their own. A value keeps its meaning longer than its bytes, which are clipped
/// between two of them; the meaning is wrapped.
///
/// Every text that may have other characters than ASCII is spelled before it is laid out, because its spelling for a
/// terminal without them is wider.
struct AttributeScreen {
    /// One attribute with its value.
    private struct Row {
        let attribute: AttributeRow
        let name: String
        let value: ValueText?

        var uuid: BluetoothUUID? { attribute.uuid }
        var isService: Bool { attribute.kind == .service }
        var isLongUUID: Bool { uuid.map { $0.short == nil } ?? false }
    }

    /// The columns of a table.
    private struct Layout {
        var hasLetters: Bool
        /// Whether UUIDs of 128 bits are beside the names.
        var hasLongUUIDs: Bool
        /// Whether there is a value.
        var hasValues: Bool
        var handleWidth = 0
        var nameWidth = 0
        var propertyWidth = 0
        /// The column of the values; `nil` if they are below the names.
        var valueColumn: Int?

        var nameColumn: Int { handleWidth + 2 }
    }

    private static let valueTitle = "VALUE"
    private static let narrowestValue = 20
    private static let narrowestName = 16

    private let tree: AttributeTree
    private let terminalWidth: Int?
    private let spelled: (String) -> String

    /// Creates the screen.
    ///
    /// - Parameters:
    ///   - width: The columns of the terminal; `nil` for a file or a pipe, whose lines have any length.
    ///   - spelled: Returns a text in the characters of the terminal, as `Console.spelled` does.
    init(_ tree: AttributeTree, width: Int?, spelled: @escaping (String) -> String) {
        self.tree = tree
        terminalWidth = width
        self.spelled = spelled
    }

    /// The lines without styles.
    var lines: [String] { styled.map(\.plain) }

    /// The lines for a terminal.
    var styled: [StyledText] { header + table + wrapped(footer) }

    /// The attributes alone.
    var table: [StyledText] {
        let rows = rows
        let layout = layout(of: rows)
        var lines = [headingLine(layout)]
        for row in rows { lines += self.lines(of: row, layout) }
        if layout.hasLetters, let legend = Self.legend(of: rows) { lines += wrapped(legend, .dim) }
        return lines
    }

    // MARK: - Layout

    private func layout(of rows: [Row]) -> Layout {
        let hasValues = rows.contains { $0.value != nil }
        var layouts = [(false, true), (true, true), (true, false)].map { hasLetters, hasLongUUIDs in
            var layout = Layout(hasLetters: hasLetters, hasLongUUIDs: hasLongUUIDs, hasValues: hasValues)
            let shown = rows.filter { !$0.isService }
            layout.handleWidth = (rows.map { 6 + 2 * $0.attribute.level }.max() ?? 6)
            layout.nameWidth = shown.map { ScreenText.width(name(of: $0, layout)) }.max() ?? 0
            layout.propertyWidth =
                shown.map { Self.text($0.attribute.properties, asLetters: hasLetters).count }.max() ?? 0
            layout.propertyWidth = max(layout.propertyWidth, hasLetters ? 5 : 10)
            layout.valueColumn = layout.nameColumn + layout.nameWidth + layout.propertyWidth + 4
            return layout
        }
        guard let terminalWidth else { return layouts[0] }
        let longest = rows.compactMap { $0.value.map { ScreenText.width($0.whole) } }.max() ?? 0
        let valueWidth = hasValues ? max(Self.valueTitle.count, min(longest, 2 * Self.narrowestValue)) : 0
        for layout in layouts where (layout.valueColumn ?? 0) + valueWidth <= terminalWidth { return layout }
        // The values, or the names, on several lines.
        let room = terminalWidth - layouts[2].nameColumn - layouts[2].propertyWidth - 4
        let nameWidth = min(layouts[2].nameWidth, room - Self.narrowestValue)
        if nameWidth >= Self.narrowestName {
            layouts[2].nameWidth = nameWidth
            layouts[2].valueColumn = layouts[2].nameColumn + nameWidth + layouts[2].propertyWidth + 4
        } else {
            layouts[2].nameWidth = max(1, min(layouts[2].nameWidth, room + 2))
            layouts[2].valueColumn = nil
        }
        return layouts[2]
    }

    private func name(of row: Row, _ layout: Layout) -> String {
        guard let uuid = row.uuid, layout.hasLongUUIDs || uuid.short != nil else { return row.name }
        return row.name + " " + uuid.description
    }

    // MARK: - Lines

    private func headingLine(_ layout: Layout) -> StyledText {
        var line = StyledText("HANDLE".padded(to: layout.nameColumn), .dim)
        let titles = ["SERVICE / CHARACTERISTIC / descriptor", "ATTRIBUTE", ""]
        line.add(titles.first { $0.count <= layout.nameWidth } ?? "", .dim)
        line.pad(to: layout.nameColumn + layout.nameWidth + 2)
        line.add(layout.hasLetters ? "PROPS" : "PROPERTIES", .dim)
        if layout.hasValues, let column = layout.valueColumn {
            line.pad(to: column)
            line.add(Self.valueTitle, .dim)
        }
        return line
    }

    private func lines(of row: Row, _ layout: Layout) -> [StyledText] {
        let attribute = row.attribute
        let handle = CharacteristicReference.handle(attribute.handle).description
        var line = StyledText(String(repeating: "  ", count: attribute.level) + handle, .dim)
        line.pad(to: layout.nameColumn)
        // A service has the whole line.
        let room = row.isService ? (terminalWidth ?? .max) - layout.nameColumn : layout.nameWidth
        var names = [row.name]
        if let uuid = row.uuid, layout.hasLongUUIDs || !row.isLongUUID || row.isService {
            names.append(uuid.description)
        }
        names += attribute.note.isEmpty ? [] : [attribute.note]
        // A long UUID that does not fit beside its name stands below it.
        var below: [String] = []
        if row.isLongUUID, row.isService, names.joined(separator: " ").count > room, let uuid = row.uuid {
            names.remove(at: 1)
            below = [uuid.description]
        } else if row.isLongUUID, !row.isService, !layout.hasLongUUIDs, let uuid = row.uuid {
            below = [uuid.description]
        }
        let title = names.joined(separator: " ").wrapped(to: room)
        line.add(title[0], row.isService ? .bold : [])
        let properties = Self.text(attribute.properties, asLetters: layout.hasLetters)
        if !properties.isEmpty {
            line.pad(to: layout.nameColumn + layout.nameWidth + 2)
            line.add(properties)
        }
        var lines = [line]
        for text in title.dropFirst() { lines.append(indented(text, layout.nameColumn, row.isService ? .bold : [])) }
        let valueColumn = layout.valueColumn ?? layout.nameColumn
        let values = row.value?.lines(in: terminalWidth.map { max(1, $0 - valueColumn) } ?? .max) ?? []
        for (number, text) in values.enumerated() {
            let place = layout.valueColumn == nil ? lines.count : number
            if place >= lines.count { lines.append(StyledText()) }
            lines[place].pad(to: valueColumn)
            lines[place].add(text, row.value?.style ?? [])
        }
        for text in below {
            // Beside the value's further lines there may be room, but a UUID is copied as a whole.
            lines += text.wrapped(to: max(1, (terminalWidth ?? .max) - layout.nameColumn))
                .map { indented($0, layout.nameColumn, .dim) }
        }
        return lines
    }

    private func indented(_ text: String, _ column: Int, _ style: ScreenStyle) -> StyledText {
        var line = StyledText()
        line.pad(to: column)
        line.add(text, style)
        return line
    }

    private func wrapped(_ text: String, _ style: ScreenStyle = []) -> [StyledText] {
        (terminalWidth.map { text.wrapped(to: $0) } ?? [text]).map { StyledText($0, style) }
    }

    private var header: [StyledText] {
        let attributes = tree.database.attributeCount.counted("attribute")
        let requests = tree.discoveryRequests.counted("request")
        let known =
            tree.isFromCache
            ? "\(attributes) known from the cache\(tree.isUnchecked ? ", unchecked" : ""), \(requests)"
            : "discovered \(attributes) in \(tree.discovering.milliseconds) ms, \(requests)"
        let peer = [shown(tree.peer), tree.kind?.rawValue].compactMap(\.self).joined(separator: " ")
        let parts = ["connected \(tree.connecting.milliseconds) ms", "MTU \(tree.mtu)", known]
        var lines = [StyledText(peer, .bold)]
        for part in parts {
            if let terminalWidth, lines[lines.count - 1].width + 3 + part.count > terminalWidth {
                lines += wrapped(part)
            } else {
                lines[lines.count - 1].add("   " + part)
            }
        }
        return lines
    }

    private var footer: String {
        var parts = [tree.allRequests.counted("request") + " used"]
        let refusals = tree.values.values.compactMap { if case .refused(let error) = $0 { error } else { nil } }
        let unanswered = refusals.filter { $0.code == .timedOut }.count
        let invalid = refusals.filter(\.isOfInvalidValue).count
        let refused = refusals.count - unanswered - invalid
        let unpaired = refusals.filter { $0.code == .insufficientSecurity }.count
        if !tree.values.isEmpty { parts.append("\((tree.values.count - refusals.count).counted("value")) read") }
        if refused > 0 { parts.append("\(refused) refused") }
        if unpaired > 0 {
            let advice = tree.pairingAdvice.map { ": \(shown($0.filter { $0 != "`" }))" } ?? ""
            parts.append("\(unpaired) of them \(unpaired == 1 ? "needs" : "need") pairing\(advice)")
        }
        if invalid > 0 { parts.append("\(invalid) invalid") }
        if unanswered > 0 { parts.append("\(unanswered) without a response") }
        if !tree.database.quirks.isEmpty {
            parts.append("\(tree.database.quirks.count.counted("quirk")) of the peer tolerated")
        }
        return parts.joined(separator: ", ")
    }
}

// MARK: - Rows

extension AttributeScreen {
    private var rows: [Row] {
        AttributeRow.rows(of: tree.services, in: tree.database).map { attribute in
            Row(
                attribute: attribute, name: shown(attribute.name),
                value: attribute.kind == .include ? nil : value(of: attribute))
        }
    }

    /// Returns a text as it is laid out: what could control a terminal is escaped, and the rest is spelled.
    private func shown(_ text: String) -> String { spelled(text.printable) }

    private func value(of attribute: AttributeRow) -> ValueText? {
        switch tree.values[attribute.handle] {
        case nil: nil
        case .refused(let error): ValueText(refusal: error, spelled: spelled)
        case .value(let bytes):
            ValueText(
                bytes, attribute.type.flatMap { tree.meaning(of: bytes, at: attribute.handle, $0) }, spelled: spelled)
        }
    }

    private static func text(_ properties: CharacteristicProperties, asLetters: Bool) -> String {
        asLetters ? properties.letters : properties.words
    }

    /// Returns the sentence that explains the letters in use.
    private static func legend(of rows: [Row]) -> String? {
        let used = CharacteristicProperties.lettered
            .filter { lettered in rows.contains { $0.attribute.properties.contains(lettered.property) } }
        guard !used.isEmpty else { return nil }
        return used.map { "\($0.letter) \($0.property.names.joined())" }.joined(separator: ", ")
    }
}

extension Int {
    /// `1 byte`, `2 bytes`.
    func counted(_ noun: String) -> String {
        self == 1 ? "1 \(noun)" : "\(self) \(noun)s"
    }
}

extension Duration {
    /// Whole milliseconds.
    var milliseconds: Int64 { saturatedNanoseconds / 1_000_000 }
}

extension String {
    /// Returns the text with blanks after it, if it is narrower than this number of columns.
    func padded(to width: Int) -> String {
        let missing = width - ScreenText.width(self)
        return missing > 0 ? self + String(repeating: " ", count: missing) : self
    }
}
