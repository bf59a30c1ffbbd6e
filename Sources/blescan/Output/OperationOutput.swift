import BLECore
import BLEProfiles
import BareBLE

/// The lines about operations on a peer's attributes, the same in `read`, `write`, `notify`, `watch` and
/// `talk`.
struct OperationOutput: Sendable {
    /// The form of the lines.
    enum Form: Sendable {
        case plain, json, csv
        /// The bytes of values alone.
        case hex
    }

    let peer: String
    let form: Form
    var look = ScreenLook.plain
    /// Whether every object names the operation that it is the result of.
    var namesOperations = false
    /// The number of columns that lines for users fit, which are broken between words; `nil` for another output than a
    /// terminal, whose reader may be a script.
    var columns: @Sendable () -> Int? = { nil }

    var isJSON: Bool { form == .json }

    /// The line before all others; `nil` if the form has none.
    var header: [UInt8]? { form == .csv ? Array("t,peer,handle,uuid,name,event,hex,value".utf8) : nil }

    /// Returns the line about a value that was read; `label` is in front of it.
    ///
    /// - Parameter isTimed: Whether a line for users has the time, because there are others about the same value;
    ///   tables and objects always do.
    func line(
        ofReading value: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID?, label: String?,
        isTimed: Bool = false
    ) -> [UInt8] {
        let meaning = ValueDescription.of(value, uuid: uuid)
        if form == .csv { return csv(value, at: handle, uuid, event: "read", meaning) }
        guard isJSON else { return plain(isTimed ? Timestamp.localNow() : nil, label, value, meaning) }
        return JSONLine.object([
            "v": 1, "t": .string(Timestamp.now()), "operation": operation("read"),
            "peer": .string(peer), "handle": .integer(Int(handle)),
            "uuid": uuid.map { .string($0.description) }, "name": name(uuid), "hex": .string(Hex.encode(value)),
            "value": meaning?.json,
        ]).bytes
    }

    /// The number of bytes that fit a line for users.
    private static let longestLine = 32

    /// Returns the lines about a value that was read: the line, or for a long value on a terminal its length and a
    /// dump.
    func lines(
        ofReading value: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID?, label: String?
    ) -> [[UInt8]] {
        guard form == .plain, let columns = self.columns(), value.count > Self.longestLine else {
            return [line(ofReading: value, at: handle, uuid, label: label)]
        }
        let meaning = ValueDescription.of(value, uuid: uuid)
        let title = bytes(styled(nil, label, value.count.counted("byte"), meaning))
        return [title] + HexDump.lines(of: value, in: columns).map { Array($0.painted(look).utf8) }
    }

    /// Returns the line about the signal strength of the link.
    func line(ofRSSI rssi: Int, label: String?) -> [UInt8] {
        switch form {
        case .csv:
            let cells = [Timestamp.localNow(), CSVLine.text(peer), "", "", "RSSI", "read", "", String(rssi)]
            return Array(cells.joined(separator: ",").utf8)
        case .json:
            return JSONLine.object([
                "v": 1, "t": .string(Timestamp.now()), "operation": operation("read"), "peer": .string(peer),
                "rssi": .integer(rssi),
            ]).bytes
        case .plain, .hex:
            var line = StyledText()
            line.add(Timestamp.localNow(), .background)
            if let label { line.add("  " + label, .title) }
            line.add("  ")
            line.add("\(rssi) dBm", .meaning)
            return bytes(line)
        }
    }

    /// Returns the line about a value that the peer has sent.
    func line(of value: ReceivedValue, _ uuid: BluetoothUUID?, label: String?) -> [UInt8] {
        let meaning = ValueDescription.of(value.bytes, uuid: uuid)
        let event = value.isIndication ? "indication" : "notification"
        if form == .csv { return csv(value.bytes, at: value.handle, uuid, event: event, meaning) }
        guard isJSON else { return plain(Timestamp.localNow(), label, value.bytes, meaning) }
        return JSONLine.object([
            "v": 1, "t": .string(Timestamp.now()), "peer": .string(peer), "handle": .integer(Int(value.handle)),
            "uuid": uuid.map { .string($0.description) }, "name": name(uuid),
            "event": .string(event), "hex": .string(Hex.encode(value.bytes)),
            "value": meaning?.json,
            "dropped": value.droppedBefore > 0 ? .integer(value.droppedBefore) : nil,
        ]).bytes
    }

    /// Returns the line about a value that was written.
    func line(
        ofWriting bytes: [UInt8], to attribute: AttributeArgument, at handle: AttributeHandle?, _ uuid: BluetoothUUID?,
        _ kind: Peripheral.WriteKind
    ) -> [UInt8] {
        let isConfirmed = kind == .withResponse
        guard isJSON else {
            let count = bytes.count.counted("byte")
            var target = attribute.text
            if case .uuid = attribute.reference, let handle { target += " (\(CharacteristicReference.handle(handle)))" }
            var line = StyledText(isConfirmed ? "wrote" : "sent", .title)
            line.add(" \(count) to \(target)\(isConfirmed ? "" : ", no response expected")")
            return self.bytes(line)
        }
        return JSONLine.object([
            "v": 1, "t": .string(Timestamp.now()), "operation": operation("write"), "peer": .string(peer),
            "attribute": .string(attribute.text), "handle": handle.map { .integer(Int($0)) },
            "uuid": uuid.map { .string($0.description) },
            "name": name(uuid), "written": .integer(bytes.count), "hex": .string(Hex.encode(bytes)),
            "confirmed": .bool(isConfirmed),
        ]).bytes
    }

    private func operation(_ name: String) -> JSONLine? { namesOperations ? .string(name) : nil }

    private func name(_ uuid: BluetoothUUID?) -> JSONLine? {
        uuid.flatMap(AssignedNumbers.label(ofAttribute:)).map { .string($0) }
    }

    /// Returns a line for users: the meaning in green, as in `explore`.
    private func plain(
        _ time: String?, _ label: String?, _ value: [UInt8], _ meaning: ValueDescription?
    ) -> [UInt8] {
        if form == .hex { return Array(Hex.encode(value).utf8) }
        return bytes(styled(time, label, Hex.encode(value), meaning))
    }

    /// Returns a line for users, without the newline at its end. The bytes of a value are a word, which is copied as
    /// one line where the terminal breaks it.
    private func bytes(_ line: StyledText) -> [UInt8] {
        let spelled = Console.spelled(line)
        let lines = columns().map { spelled.wrapped(to: $0) } ?? [spelled]
        return Array(lines.map { $0.painted(look) }.joined(separator: "\n").utf8)
    }

    private func styled(
        _ time: String?, _ label: String?, _ bytes: String, _ meaning: ValueDescription?
    ) -> StyledText {
        var line = StyledText()
        func add(_ text: String?, _ style: ScreenStyle = []) {
            guard let text else { return }
            if line.width > 0 { line.add("  ") }
            line.add(text, style)
        }
        add(time, .background)
        add(label, .title)
        // An empty value has its place too.
        if line.width > 0 { line.add("  ") }
        line.add(bytes)
        if let meaning {
            line.add("  ")
            line.add(meaning.line, .meaning)
        }
        return line
    }

    /// Returns a value alone, as the column of a measurement has it; several fields are a text for users.
    private func cell(_ meaning: ValueDescription) -> String {
        if let only = meaning.fields.first, meaning.fields.count == 1, only.name.isEmpty { return CSVLine.value(only) }
        return CSVLine.text(meaning.line)
    }

    /// Returns a line of comma-separated values. What the device has sent is text, and no formula.
    private func csv(
        _ value: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID?, event: String,
        _ meaning: ValueDescription?
    ) -> [UInt8] {
        let cells = [
            Timestamp.localNow(), CSVLine.text(peer), String(handle), uuid?.description ?? "",
            CSVLine.text(uuid.flatMap(AssignedNumbers.label(ofAttribute:)) ?? ""), event, Hex.encode(value),
            meaning.map(cell) ?? "",
        ]
        return Array(cells.joined(separator: ",").utf8)
    }
}

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
