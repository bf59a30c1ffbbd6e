internal import BLECore

/// Names and number formats for printed packets.
enum PacketNames {
    /// Returns the name of an attribute type with its short number, or the number alone.
    static func attribute(_ uuid: BluetoothUUID) -> String {
        if let declaration = AssignedNumbers.declarationName(uuid) { return declaration }
        let name =
            AssignedNumbers.characteristicName(uuid) ?? AssignedNumbers.descriptorName(uuid)
            ?? AssignedNumbers.serviceName(uuid)
        return named(name, uuid)
    }

    /// Returns the name of a service with its short number, or the number alone.
    static func service(_ uuid: BluetoothUUID) -> String {
        switch uuid.short {
        // The assigned numbers call them GAP and GATT.
        case 0x1800: named("Generic Access", uuid)
        case 0x1801: named("Generic Attribute", uuid)
        default: named(AssignedNumbers.serviceName(uuid) ?? AssignedNumbers.memberName(uuid), uuid)
        }
    }

    private static func named(_ name: String?, _ uuid: BluetoothUUID) -> String {
        name.map { "\($0) \(uuid)" } ?? uuid.description
    }

    /// `0x0021`.
    static func hex(_ value: UInt16) -> String {
        "0x" + Hex.encode([UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)])
    }

    /// `0x21`.
    static func hex(_ value: UInt8) -> String {
        "0x" + Hex.encode([value])
    }

    /// `0x0001-0x0009`.
    static func range(_ start: AttributeHandle, _ end: AttributeHandle) -> String {
        "\(hex(start))-\(hex(end))"
    }

    /// Formats bytes as lines of 32, followed by their text if printable; at most 16 lines.
    static func dump(_ bytes: [UInt8]) -> [String] {
        if bytes.isEmpty { return [] }
        if bytes.count <= 32 {
            let text = plainText(bytes)
            return [Hex.encode(bytes) + (text.map { "  \"\($0)\"" } ?? "")]
        }
        var lines: [String] = []
        var rest = bytes[...]
        while !rest.isEmpty, lines.count < 16 {
            lines.append(Hex.encode(rest.prefix(32)))
            rest = rest.dropFirst(32)
        }
        if !rest.isEmpty { lines.append("and \(Self.bytes(rest.count)) more") }
        return lines
    }

    /// Returns the bytes as text if they are likely to be text: three or more printable ASCII characters.
    static func plainText(_ bytes: [UInt8]) -> String? {
        guard bytes.count >= 3, bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// `1 byte`, `2 bytes`.
    static func bytes(_ count: Int) -> String {
        count == 1 ? "1 byte" : "\(count) bytes"
    }

    /// Returns the specification's name of an ATT PDU.
    static func attribute(_ opcode: ATTOpcode) -> String {
        let name: String? =
            switch opcode {
            case .errorResponse: "Error Response"
            case .exchangeMTURequest: "Exchange MTU Request"
            case .exchangeMTUResponse: "Exchange MTU Response"
            case .findInformationRequest: "Find Information Request"
            case .findInformationResponse: "Find Information Response"
            case .findByTypeValueRequest: "Find By Type Value Request"
            case .findByTypeValueResponse: "Find By Type Value Response"
            case .readByTypeRequest: "Read By Type Request"
            case .readByTypeResponse: "Read By Type Response"
            case .readRequest: "Read Request"
            case .readResponse: "Read Response"
            case .readBlobRequest: "Read Blob Request"
            case .readBlobResponse: "Read Blob Response"
            case .readMultipleRequest: "Read Multiple Request"
            case .readMultipleResponse: "Read Multiple Response"
            case .readByGroupTypeRequest: "Read By Group Type Request"
            case .readByGroupTypeResponse: "Read By Group Type Response"
            case .writeRequest: "Write Request"
            case .writeResponse: "Write Response"
            case .writeCommand: "Write Command"
            case .signedWriteCommand: "Signed Write Command"
            case .prepareWriteRequest: "Prepare Write Request"
            case .prepareWriteResponse: "Prepare Write Response"
            case .executeWriteRequest: "Execute Write Request"
            case .executeWriteResponse: "Execute Write Response"
            case .readMultipleVariableRequest: "Read Multiple Variable Request"
            case .readMultipleVariableResponse: "Read Multiple Variable Response"
            case .multipleHandleValueNotification: "Multiple Handle Value Notification"
            case .handleValueNotification: "Handle Value Notification"
            case .handleValueIndication: "Handle Value Indication"
            case .handleValueConfirmation: "Handle Value Confirmation"
            default: nil
            }
        return name ?? "Unknown ATT packet"
    }
}
