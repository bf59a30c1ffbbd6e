import BLECore
import BareBLE

/// The result of `explore`, as lines for users.
///
/// No line is wider than the terminal. Where there is less room, first the properties become letters, then long UUIDs
/// and at last the values get lines of their own. A value keeps its meaning longer than its bytes, which are clipped
/// between two of them; the meaning is wrapped.
struct AttributeScreen {
    /// One attribute.
    private struct Row {
        var handle: String
        var level: Int
        /// The name; a UUID where there is none.
        var name: String
        /// The UUID; `nil` if it is the name.
        var uuid: BluetoothUUID?
        var note = ""
        var properties: CharacteristicProperties = []
        var value = Value()
        var isService = false

        var isLongUUID: Bool { uuid.map { $0.short == nil } ?? false }
    }

    /// A value, or the reason that there is none.
    private struct Value {
        var meaning: String?
        var bytes: [UInt8] = []
        var isRefusal = false

        var style: ScreenStyle { isRefusal ? .red : .green }

        /// The text without a limit, but for the number of bytes.
        var whole: String {
            [meaning, hex(in: AttributeScreen.longestHex)].compactMap(\.self).joined(separator: "  ")
        }

        /// Returns the value in lines of this number of columns.
        func lines(in room: Int) -> [String] {
            guard let meaning else { return hex(in: min(room, AttributeScreen.longestHex)).map { [$0] } ?? [] }
            if meaning.count + 2 + 2 * bytes.count <= room, let hex = hex(in: room) { return [meaning + "  " + hex] }
            return meaning.wrapped(to: room)
        }

        /// Returns the bytes in this number of columns; with their number if not all of them fit.
        private func hex(in room: Int) -> String? {
            guard !bytes.isEmpty else { return nil }
            if 2 * bytes.count <= room { return Hex.encode(bytes) }
            let rest = "… (\(bytes.count.counted("byte")))"
            return Hex.encode(bytes.prefix(max(1, (room - rest.count) / 2))) + rest
        }
    }

    /// The columns of a table.
    private struct Layout {
        var hasLetters: Bool
        /// Whether UUIDs of 128 bits are beside the names.
        var hasLongUUIDs: Bool
        var handleWidth = 0
        var nameWidth = 0
        var propertyWidth = 0
        /// The column of the values; `nil` if they are below the names.
        var valueColumn: Int?

        var nameColumn: Int { handleWidth + 2 }
    }

    private static let longestHex = 64
    private static let narrowestValue = 20
    private static let narrowestName = 16

    private let tree: AttributeTree
    private let terminalWidth: Int?

    /// Creates the screen for a terminal of `width` columns; `nil` for a file or a pipe, whose lines have any length.
    init(_ tree: AttributeTree, width: Int?) {
        self.tree = tree
        terminalWidth = width
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
        var layouts = [(false, true), (true, true), (true, false)].map { hasLetters, hasLongUUIDs in
            var layout = Layout(hasLetters: hasLetters, hasLongUUIDs: hasLongUUIDs)
            let shown = rows.filter { !$0.isService }
            layout.handleWidth = (rows.map { 6 + 2 * $0.level }.max() ?? 6)
            layout.nameWidth = shown.map { ScreenText.width(name(of: $0, layout)) }.max() ?? 0
            layout.propertyWidth = shown.map { Self.text($0.properties, asLetters: hasLetters).count }.max() ?? 0
            layout.propertyWidth = max(layout.propertyWidth, hasLetters ? 5 : 10)
            layout.valueColumn = layout.nameColumn + layout.nameWidth + layout.propertyWidth + 4
            return layout
        }
        guard let terminalWidth else { return layouts[0] }
        let longest = rows.map { $0.value.whole.count }.max() ?? 0
        for layout in layouts where (layout.valueColumn ?? 0) + min(longest, 2 * Self.narrowestValue) <= terminalWidth {
            return layout
        }
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
        if let column = layout.valueColumn {
            line.pad(to: column)
            line.add("VALUE", .dim)
        }
        return line
    }

    private func lines(of row: Row, _ layout: Layout) -> [StyledText] {
        var line = StyledText(String(repeating: "  ", count: row.level) + row.handle, .dim)
        line.pad(to: layout.nameColumn)
        // A service has the whole line.
        let room = row.isService ? (terminalWidth ?? .max) - layout.nameColumn : layout.nameWidth
        var names = [row.name]
        if let uuid = row.uuid, layout.hasLongUUIDs || !row.isLongUUID || row.isService {
            names.append(uuid.description)
        }
        names += row.note.isEmpty ? [] : [row.note]
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
        let properties = Self.text(row.properties, asLetters: layout.hasLetters)
        if !properties.isEmpty {
            line.pad(to: layout.nameColumn + layout.nameWidth + 2)
            line.add(properties)
        }
        var lines = [line]
        for text in title.dropFirst() { lines.append(indented(text, layout.nameColumn, row.isService ? .bold : [])) }
        let valueColumn = layout.valueColumn ?? layout.nameColumn
        let values = row.value.lines(in: terminalWidth.map { max(1, $0 - valueColumn) } ?? .max)
        for (number, text) in values.enumerated() {
            let place = layout.valueColumn == nil ? lines.count : number
            if place >= lines.count { lines.append(StyledText()) }
            lines[place].pad(to: valueColumn)
            lines[place].add(text, row.value.style)
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
        let peer = [tree.peer, tree.kind?.rawValue].compactMap(\.self).joined(separator: " ")
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
        let unpaired = refusals.filter { $0.code == .insufficientSecurity }.count
        if !tree.values.isEmpty { parts.append("\((tree.values.count - refusals.count).counted("value")) read") }
        if refusals.count > unanswered { parts.append("\(refusals.count - unanswered) refused") }
        if unpaired > 0 {
            let advice = tree.pairingAdvice.map { ": \($0.filter { $0 != "`" })" } ?? ""
            parts.append("\(unpaired) of them \(unpaired == 1 ? "needs" : "need") pairing\(advice)")
        }
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
        var rows: [Row] = []
        for service in tree.services { rows += self.rows(of: service) }
        guard tree.services.count == tree.database.services.count else { return rows }
        for descriptor in tree.database.descriptors
        where tree.database.characteristic(containing: descriptor.handle) == nil {
            rows.append(row(of: descriptor, level: 1))
        }
        return rows
    }

    private func rows(of service: GATTService) -> [Row] {
        let name = tree.label(service.uuid, AssignedNumbers.serviceName) ?? "Vendor service"
        var rows = [
            Row(
                handle: Self.text(service.handles.lowerBound), level: 0, name: name, uuid: service.uuid,
                note: service.isPrimary ? "" : "(secondary)", isService: true)
        ]
        for include in service.includes {
            let range = Self.text(include.handles.lowerBound) + "-" + Self.text(include.handles.upperBound)
            let target = ["includes", range, include.uuid?.description].compactMap(\.self)
            rows.append(Row(handle: Self.text(include.handle), level: 1, name: target.joined(separator: " ")))
        }
        for characteristic in tree.database.characteristics(of: service) {
            var row = row(
                characteristic.valueHandle, level: 1, characteristic.uuid,
                AssignedNumbers.characteristicName(characteristic.uuid), "Vendor characteristic")
            row.properties = characteristic.properties
            rows.append(row)
            rows += tree.database.descriptors(of: characteristic).map { self.row(of: $0, level: 2) }
        }
        return rows
    }

    private func row(of descriptor: GATTDescriptor, level: Int) -> Row {
        // The position of "Client Characteristic Configuration" is evident.
        let name = AssignedNumbers.descriptorName(descriptor.uuid)?.lowercased()
            .split(separator: " ").filter { $0 != "characteristic" }.joined(separator: " ")
        return row(descriptor.handle, level: level, descriptor.uuid, name, "vendor descriptor")
    }

    private func row(
        _ handle: AttributeHandle, level: Int, _ uuid: BluetoothUUID, _ name: String?, _ substitute: String
    ) -> Row {
        // A short UUID is a name too.
        let isName = name == nil && uuid.short != nil
        return Row(
            handle: Self.text(handle), level: level, name: name ?? (isName ? uuid.description : substitute),
            uuid: isName ? nil : uuid, value: value(handle, uuid))
    }

    private func value(_ handle: AttributeHandle, _ uuid: BluetoothUUID) -> Value {
        switch tree.values[handle] {
        case nil:
            return Value()
        case .refused(let error):
            let text = [error.reason, error.underlyingCodes].compactMap(\.self).joined(separator: " ")
            return Value(meaning: "! " + text, isRefusal: true)
        case .value(let bytes):
            if bytes.isEmpty { return Value(meaning: "(empty)") }
            let meaning = tree.meaning(of: bytes, at: handle, uuid)?.line
            // Plain text in quotes contains everything that the bytes do.
            if let meaning, Array(meaning.utf8) == [0x22] + bytes + [0x22] { return Value(meaning: meaning) }
            return Value(meaning: meaning, bytes: bytes)
        }
    }

    /// The order of the properties, which is not quite that of the bits, and their letters.
    private static let letters: [(CharacteristicProperties, letter: String)] = [
        (.read, "R"), (.write, "W"), (.writeWithoutResponse, "w"), (.notify, "N"), (.indicate, "I"),
        (.broadcast, "B"), (.authenticatedSignedWrites, "S"), (.extendedProperties, "X"),
    ]

    private static func text(_ properties: CharacteristicProperties, asLetters: Bool) -> String {
        let present = letters.filter { properties.contains($0.0) }
        return present.flatMap { asLetters ? [$0.letter] : $0.0.names }.joined(separator: asLetters ? "" : " ")
    }

    /// Returns the sentence that explains the letters in use.
    private static func legend(of rows: [Row]) -> String? {
        let used = letters.filter { letter, _ in rows.contains { $0.properties.contains(letter) } }
        guard !used.isEmpty else { return nil }
        return used.map { "\($0.letter) \($0.0.names.joined())" }.joined(separator: ", ")
    }

    private static func text(_ handle: AttributeHandle) -> String { CharacteristicReference.handle(handle).description }
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
    func padded(to width: Int) -> String {
        let missing = width - count
        return missing > 0 ? self + String(repeating: " ", count: missing) : self
    }
}
