import BLECore
import BareBLE

/// The result of `explore`, as lines for users.
///
/// The columns are as wide as their contents, up to a limit; a longer entry shifts only its own line. Values are in
/// the last column, the only one that is clipped.
struct AttributeScreen {
    private struct Row {
        var handle: String
        var name: String
        var properties = ""
        var value = ""
        var byteCount = 0
        var isService = false

        /// Returns the value in `room` columns; with its length if it is clipped.
        func value(in room: Int) -> String {
            guard value.count > room, byteCount > 0 else { return value }
            let rest = "… (\(byteCount.counted("byte")))"
            return value.prefix(max(0, room - rest.count)) + rest
        }
    }

    private static let widestName = 64
    private static let widestNameOnSmallTerminal = 44
    private static let smallTerminal = 120
    /// The number of characters of a value if the terminal does not report its width.
    private static let valueWidth = 64
    private static let narrowestValue = 24

    private let tree: AttributeTree
    private let terminalWidth: Int?

    /// Creates the screen for a terminal of `width` columns; `nil` for a file or a pipe.
    init(_ tree: AttributeTree, width: Int?) {
        self.tree = tree
        terminalWidth = width
    }

    var lines: [String] {
        let heading = Row(
            handle: " HANDLE", name: "SERVICE / CHARACTERISTIC / descriptor", properties: "CAN", value: "VALUE")
        let rows = [heading] + rows
        let handleWidth = rows.map(\.handle.count).max() ?? 0
        let widestName =
            (terminalWidth ?? Self.smallTerminal) < Self.smallTerminal
            ? Self.widestNameOnSmallTerminal : Self.widestName
        let nameWidth = min(widestName, rows.filter { !$0.isService }.map(\.name.count).max() ?? 0)
        let propertyWidth = rows.map(\.properties.count).max() ?? 0
        let valueColumn = handleWidth + nameWidth + propertyWidth + 6
        let room = terminalWidth.map { max(Self.narrowestValue, $0 - valueColumn) } ?? Self.valueWidth
        return [header]
            + rows.map { row in
                var line = row.handle.padded(to: handleWidth) + "  " + row.name.padded(to: nameWidth) + "  "
                line += row.properties.padded(to: propertyWidth) + "  "
                line += row.value(in: room)
                while line.last == " " { line.removeLast() }
                return line
            } + [footer]
    }

    private var header: String {
        let attributes = tree.database.attributeCount.counted("attribute")
        let requests = tree.discoveryRequests.counted("request")
        let known =
            tree.isFromCache
            ? "\(attributes) known from the cache\(tree.isUnchecked ? ", unchecked" : ""), \(requests)"
            : "discovered \(attributes) in \(tree.discovering.milliseconds) ms, \(requests)"
        let peer = [tree.peer, tree.kind?.rawValue].compactMap(\.self).joined(separator: " ")
        return [peer, "connected \(tree.connecting.milliseconds) ms", "MTU \(tree.mtu)", known]
            .joined(separator: "   ")
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
        for service in tree.database.services { rows += self.rows(of: service) }
        for descriptor in tree.database.descriptors
        where tree.database.characteristic(containing: descriptor.handle) == nil {
            rows.append(row(of: descriptor, level: 1))
        }
        return rows
    }

    private func rows(of service: GATTService) -> [Row] {
        let name = tree.label(service.uuid, AssignedNumbers.serviceName) ?? "Vendor service"
        let kind = service.isPrimary ? "" : "  (secondary)"
        var rows = [
            Row(handle: " " + Self.text(service.handles), name: "\(name) \(service.uuid)\(kind)", isService: true)
        ]
        for include in service.includes {
            let target = ["includes", Self.text(include.handles), include.uuid?.description].compactMap(\.self)
            rows.append(row(include.handle, level: 1, target.joined(separator: " ")))
        }
        for characteristic in tree.database.characteristics(of: service) {
            let name = AssignedNumbers.characteristicName(characteristic.uuid)
            let title = [name, characteristic.uuid.description].compactMap(\.self).joined(separator: " ")
            var row = row(characteristic.valueHandle, level: 1, title)
            row.properties = Self.text(characteristic.properties)
            show(characteristic.valueHandle, characteristic.uuid, in: &row)
            rows.append(row)
            rows += tree.database.descriptors(of: characteristic).map { self.row(of: $0, level: 2) }
        }
        return rows
    }

    private func row(of descriptor: GATTDescriptor, level: Int) -> Row {
        // The position of "Client Characteristic Configuration" is evident.
        let name = AssignedNumbers.descriptorName(descriptor.uuid)?.lowercased()
            .split(separator: " ").filter { $0 != "characteristic" }.joined(separator: " ")
        let title = [name, descriptor.uuid.description].compactMap(\.self).joined(separator: " ")
        var row = row(descriptor.handle, level: level, title)
        show(descriptor.handle, descriptor.uuid, in: &row)
        return row
    }

    private func row(_ handle: AttributeHandle, level: Int, _ name: String) -> Row {
        let indent = String(repeating: "  ", count: level)
        return Row(handle: " \(indent)\(CharacteristicReference.handle(handle))", name: indent + name)
    }

    private func show(_ handle: AttributeHandle, _ uuid: BluetoothUUID, in row: inout Row) {
        switch tree.values[handle] {
        case nil:
            break
        case .refused(let error):
            row.value = ["! \(error.reason)", error.underlyingCodes].compactMap(\.self).joined(separator: " ")
        case .value(let bytes):
            row.byteCount = bytes.count
            let meaning = tree.meaning(of: bytes, at: handle, uuid)?.line
            if bytes.isEmpty {
                row.value = "(empty)"
            } else if let meaning, Array(meaning.utf8) == [0x22] + bytes + [0x22] {
                // Plain text in quotes contains everything that the bytes do.
                row.value = meaning
            } else {
                row.value = [Hex.encode(bytes), meaning].compactMap(\.self).joined(separator: "  ")
            }
        }
    }

    /// Returns them in the usual order, which is not quite that of the bits.
    private static func text(_ properties: CharacteristicProperties) -> String {
        let bits: [CharacteristicProperties] = [.read, .write, .writeWithoutResponse, .notify, .indicate]
        let names =
            bits.filter(properties.contains).flatMap(\.names)
            + properties.subtracting(CharacteristicProperties(bits)).names
        return names.joined(separator: " ")
    }

    private static func text(_ handles: ClosedRange<AttributeHandle>) -> String {
        "\(CharacteristicReference.handle(handles.lowerBound))-\(CharacteristicReference.handle(handles.upperBound))"
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
    func padded(to width: Int) -> String {
        let missing = width - count
        return missing > 0 ? self + String(repeating: " ", count: missing) : self
    }
}
