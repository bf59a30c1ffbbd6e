internal import BLECore

extension PacketPrinter {
    /// Prints an ATT PDU, complete or damaged.
    mutating func describeAttribute(_ pdu: [UInt8], _ origin: L2CAPDirection, _ printed: inout PrintedPacket) {
        printed.layer = .att
        printed.bytes = pdu
        guard let first = pdu.first else {
            printed.title = "ATT packet without a single byte"
            return
        }
        let opcode = ATTOpcode(rawValue: first)
        let link = Link(controller: origin.controller, connection: origin.connection)
        let request = openRequest(opcode, origin, &printed)
        printed.title = "\(PacketNames.attribute(opcode)) (\(PacketNames.hex(first)))"
        do throws(MalformedPacket) {
            let (title, details) = describe(try ATTPacket(pdu), request, link)
            if !title.isEmpty { printed.title += " " + title }
            printed.details = details
            if opcode.isRequest { remember(pdu, opcode, origin, printed.timestamp) }
        } catch {
            if opcode.isRequest { remember(pdu, opcode, origin, printed.timestamp) }
            printed.title += " malformed"
            printed.details = [error.description] + PacketNames.dump(pdu)
        }
    }

    // MARK: Matching responses to requests

    /// Completes the request that this response belongs to, and measures its response time.
    private mutating func openRequest(
        _ opcode: ATTOpcode, _ origin: L2CAPDirection, _ printed: inout PrintedPacket
    ) -> AttributeContext.Request? {
        guard opcode.isResponse else { return nil }
        if opcode == .errorResponse { countError() }
        guard let request = attributes.takeRequest(of: opcode, from: origin) else { return nil }
        if let begun = request.timestamp, let now = printed.timestamp {
            let elapsed = now - begun
            printed.elapsed = elapsed
            countResponse(after: elapsed)
        }
        return request
    }

    private mutating func remember(
        _ pdu: [UInt8], _ opcode: ATTOpcode, _ origin: L2CAPDirection, _ timestamp: Duration?
    ) {
        countRequest()
        var type: BluetoothUUID?
        if let request = try? ATTReadByTypeRequest(pdu) { type = request.type }
        if let request = try? ATTReadByGroupTypeRequest(pdu) { type = request.type }
        attributes.begin(AttributeContext.Request(opcode: opcode, type: type, timestamp: timestamp), from: origin)
    }

    // MARK: PDUs

    private mutating func describe(
        _ packet: ATTPacket, _ request: AttributeContext.Request?, _ link: Link
    ) -> (title: String, details: [String]) {
        switch packet {
        case .errorResponse(let pdu):
            let handle = pdu.handle == 0 ? "" : ", handle \(PacketNames.hex(pdu.handle))"
            let asked = PacketNames.attribute(pdu.requestOpcode)
            return ("to \(asked)\(handle): \(pdu.code.sentenceName)", [])
        case .exchangeMTURequest(let pdu): return ("MTU \(pdu.mtu)", [])
        case .exchangeMTUResponse(let pdu): return ("MTU \(pdu.mtu)", [])
        case .findInformationRequest(let pdu): return (PacketNames.range(pdu.startHandle, pdu.endHandle), [])
        case .findInformationResponse(let pdu):
            for entry in pdu.entries { attributes.learn(entry.handle, entry.type, link) }
            return ("", pdu.entries.map { "\(PacketNames.hex($0.handle))  \(PacketNames.attribute($0.type))" })
        case .findByTypeValueRequest(let pdu): return (title(pdu), [])
        case .findByTypeValueResponse(let pdu):
            return ("", pdu.entries.map { PacketNames.range($0.startHandle, $0.endHandle) })
        case .readByTypeRequest(let pdu):
            return ("\(PacketNames.range(pdu.startHandle, pdu.endHandle)) \(PacketNames.attribute(pdu.type))", [])
        case .readByTypeResponse(let pdu):
            return ("", pdu.entries.map { line($0, of: request?.type, link) })
        case .readByGroupTypeRequest(let pdu):
            return ("\(PacketNames.range(pdu.startHandle, pdu.endHandle)) \(PacketNames.attribute(pdu.type))", [])
        case .readByGroupTypeResponse(let pdu):
            return ("", pdu.entries.map { Self.line($0) })
        case .readRequest(let pdu): return (named(pdu.handle, link), [])
        case .readBlobRequest(let pdu): return ("\(named(pdu.handle, link)) from byte \(pdu.offset)", [])
        case .readResponse(let pdu): return (PacketNames.bytes(pdu.value.count), PacketNames.dump(pdu.value))
        case .readBlobResponse(let pdu): return (PacketNames.bytes(pdu.part.count), PacketNames.dump(pdu.part))
        case .readMultipleRequest(let pdu): return ("", pdu.handles.map { named($0, link) })
        case .readMultipleResponse(let pdu): return ("", PacketNames.dump(pdu.values))
        case .readMultipleVariableRequest(let pdu): return ("", pdu.handles.map { named($0, link) })
        case .readMultipleVariableResponse(let pdu): return ("", pdu.values.flatMap { PacketNames.dump($0) })
        case .writeRequest(let pdu): return written(pdu.handle, pdu.value, link)
        case .writeCommand(let pdu): return written(pdu.handle, pdu.value, link)
        case .signedWriteCommand(let pdu):
            let (title, details) = written(pdu.handle, pdu.value, link)
            return (title, details + ["signature " + Hex.encode(pdu.signature)])
        case .prepareWriteRequest(let pdu):
            return ("\(named(pdu.handle, link)) from byte \(pdu.offset)", PacketNames.dump(pdu.part))
        case .prepareWriteResponse(let pdu):
            return ("\(named(pdu.handle, link)) from byte \(pdu.offset)", PacketNames.dump(pdu.part))
        case .executeWriteRequest(let pdu): return (pdu.action == .write ? "write" : "cancel", [])
        case .handleValueNotification(let pdu): return written(pdu.handle, pdu.value, link)
        case .handleValueIndication(let pdu): return written(pdu.handle, pdu.value, link)
        case .multipleHandleValueNotification(let pdu):
            return ("", pdu.entries.map { "\(named($0.handle, link))  \(Hex.encode($0.value))" })
        case .writeResponse, .executeWriteResponse, .handleValueConfirmation: return ("", [])
        case .unknown(_, let parameters): return ("", PacketNames.dump(parameters))
        }
    }

    private func title(_ pdu: ATTFindByTypeValueRequest) -> String {
        let range = PacketNames.range(pdu.startHandle, pdu.endHandle)
        let type = BluetoothUUID(pdu.type)
        let value = BluetoothUUID(littleEndian: pdu.value.span).map { PacketNames.service($0) }
        return "\(range) \(PacketNames.attribute(type)) = \(value ?? Hex.encode(pdu.value))"
    }

    private func named(_ handle: AttributeHandle, _ link: Link) -> String {
        let type = attributes.type(of: handle, link)
        return "handle \(PacketNames.hex(handle))" + (type.map { " " + PacketNames.attribute($0) } ?? "")
    }

    private func written(_ handle: AttributeHandle, _ value: [UInt8], _ link: Link) -> (String, [String]) {
        guard attributes.type(of: handle, link) == 0x2902 else { return (named(handle, link), PacketNames.dump(value)) }
        let meaning =
            switch value {
            case [0, 0]: "off"
            case [1, 0]: "notifications on"
            case [2, 0]: "indications on"
            case [3, 0]: "notifications and indications on"
            default: Hex.encode(value)
            }
        return ("\(named(handle, link)): \(meaning)", [])
    }

    /// The meaning of a value in a Read By Type Response depends on the requested type.
    private mutating func line(
        _ entry: ATTReadByTypeResponse.Entry, of type: BluetoothUUID?, _ link: Link
    ) -> String {
        let handle = PacketNames.hex(entry.handle)
        var reader = ByteReader(entry.value.span)
        if type == 0x2803, let properties = reader.u8(), let value = reader.u16(),
            let uuid = reader.uuid(reader.remaining)
        {
            attributes.learn(value, uuid, link)
            let can = CharacteristicProperties(rawValue: properties)
            return "\(handle)  value \(PacketNames.hex(value))  \(PacketNames.attribute(uuid))  \(can)"
        }
        if type == 0x2802, let start = reader.u16(), let end = reader.u16() {
            let uuid = reader.uuid(reader.remaining).map { "  " + PacketNames.service($0) }
            return "\(handle)  includes \(PacketNames.range(start, end))\(uuid ?? "")"
        }
        if let type { attributes.learn(entry.handle, type, link) }
        return "\(handle)  " + (PacketNames.dump(entry.value).first ?? "empty")
    }

    private static func line(_ entry: ATTReadByGroupTypeResponse.Entry) -> String {
        let uuid = BluetoothUUID(littleEndian: entry.value.span).map { PacketNames.service($0) }
        return "\(PacketNames.range(entry.startHandle, entry.endHandle))  \(uuid ?? Hex.encode(entry.value))"
    }
}

extension ATTErrorCode {
    /// The lowercase name with the raw value, for use within a line.
    var sentenceName: String {
        "\(Self.lowercased(name)) (\(PacketNames.hex(rawValue)))"
    }

    /// Names are ASCII; "PDU" keeps its case.
    private static func lowercased(_ name: String) -> String {
        let words = name.utf8.split(separator: 0x20).map { word -> String in
            let isAcronym = word.dropFirst().contains { (0x41...0x5A).contains($0) }
            let bytes = word.map { isAcronym || !(0x41...0x5A).contains($0) ? $0 : $0 | 0x20 }
            return String(decoding: bytes, as: UTF8.self)
        }
        return words.joined(separator: " ")
    }
}
