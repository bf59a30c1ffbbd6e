internal import BLECore
internal import BLEProfiles

extension PacketPrinter {
    mutating func describe(_ batch: AdvertisingReport.Batch, _ printed: inout PrintedPacket) {
        printed.layer = .advertising
        printed.reports = batch.reports
        if batch.reports.count == 1, let report = batch.reports.first {
            printed.title += " " + Self.headline(report)
            printed.details = lines(of: report)
        } else {
            printed.title += " \(batch.reports.count) reports"
            for report in batch.reports {
                printed.details.append(Self.headline(report))
                printed.details += lines(of: report).map { "  " + $0 }
            }
        }
        if !batch.losses.isEmpty {
            printed.details.append("unreadable: " + Self.reasons(batch.losses).joined(separator: "; "))
        }
    }

    private static func reasons(_ losses: AdvertisingReport.Losses) -> [String] {
        func counted(_ count: Int, _ rest: String) -> String? {
            count == 0 ? nil : (count == 1 ? "1 report" : "\(count) reports") + rest
        }
        return [
            counted(losses.oversized, " with more than the 31 bytes of a legacy advertisement"),
            counted(losses.reserved, " with a reserved value"),
            counted(losses.missing, " that the event is too short for"),
            losses.trailingBytes == 0 ? nil : "\(PacketNames.bytes(losses.trailingBytes)) after the last report",
        ].compactMap(\.self)
    }

    /// The advertiser, its signal strength and its properties.
    private static func headline(_ report: AdvertisingReport) -> String {
        var text = "anonymous"
        if let peer = report.peer {
            text = peer.address.description
            text += " "
            text += peer.kind.rawValue
        }
        if let rssi = report.rssi {
            text += " "
            text += String(rssi)
            text += " dBm"
        }
        if report.isScanResponse { text += " scan response" }
        if report.isConnectable { text += " connectable" }
        if report.isScannable { text += " scannable" }
        if report.isDirected { text += " directed" }
        switch report.dataStatus {
        case .complete: break
        case .incomplete: text += " to be continued"
        case .truncated: text += " truncated"
        }
        return text
    }

    /// The payload's lines, cached: devices repeat their payloads.
    private mutating func lines(of report: AdvertisingReport) -> [String] {
        // Without keys the sender makes no difference.
        let payload = PayloadLines.Payload(sender: keys == nil ? nil : report.address, data: report.advertisingData)
        if let known = payloadLines[payload] { return known }
        let lines = lines(payload)
        payloadLines.keep(lines, of: payload)
        return lines
    }

    private func lines(_ payload: PayloadLines.Payload) -> [String] {
        let data = payload.data
        var lines = data.structures.map { structure in
            let type = structure.type.rawValue
            let name = AssignedNumbers.adTypeName(type) ?? "Type"
            let text = "\(name) (\(PacketNames.hex(type)))  \(Self.meaning(structure))"
            let decoded =
                keys.map { data.decoded(structure, with: $0, from: payload.sender) } ?? data.decoded(structure)
            guard let description = decoded?.description else { return text }
            return text + "  " + AdvertisedName(bytes: Array(description.utf8)).printable
        }
        lines += data.defects.map { $0.description }
        return lines
    }

    private static func meaning(_ structure: AdvertisingData.Structure) -> String {
        let value = structure.value
        var reader = ByteReader(value.span)
        switch structure.type {
        case .flags:
            return value.first.map { "\(Hex.encode(value))  \(AdvertisingData.Flags(rawValue: $0).sentence)" } ?? ""
        case .completeLocalName, .shortenedLocalName, .broadcastName:
            return "\"\(AdvertisedName(bytes: value).printable)\""
        case .txPowerLevel:
            return reader.i8().map { "\($0) dBm" } ?? ""
        case .appearance:
            guard let appearance = reader.u16() else { return Hex.encode(value) }
            return PacketNames.hex(appearance) + (AssignedNumbers.appearanceName(appearance).map { "  \($0)" } ?? "")
        case .manufacturerSpecificData:
            guard let company = reader.u16() else { return Hex.encode(value) }
            let name = AssignedNumbers.companyName(company) ?? "unknown company"
            return "\(name) (\(PacketNames.hex(company)))  \(Hex.encode(reader.rest()))"
        case .serviceData16Bit: return serviceData(value, 2)
        case .serviceData32Bit: return serviceData(value, 4)
        case .serviceData128Bit: return serviceData(value, 16)
        case .complete16BitServiceUUIDs, .incomplete16BitServiceUUIDs, .solicited16BitServiceUUIDs:
            return services(value, 2)
        case .complete32BitServiceUUIDs, .incomplete32BitServiceUUIDs, .solicited32BitServiceUUIDs:
            return services(value, 4)
        case .complete128BitServiceUUIDs, .incomplete128BitServiceUUIDs, .solicited128BitServiceUUIDs:
            return services(value, 16)
        default:
            return Hex.encode(value)
        }
    }

    private static func services(_ value: [UInt8], _ size: Int) -> String {
        var reader = ByteReader(value.span)
        var names: [String] = []
        while let uuid = reader.uuid(size) { names.append(PacketNames.service(uuid)) }
        if !reader.isAtEnd { names.append(Hex.encode(reader.rest())) }
        return names.joined(separator: ", ")
    }

    private static func serviceData(_ value: [UInt8], _ size: Int) -> String {
        var reader = ByteReader(value.span)
        guard let uuid = reader.uuid(size) else { return Hex.encode(value) }
        return "\(PacketNames.service(uuid))  \(Hex.encode(reader.rest()))"
    }
}

/// The lines of advertised payloads.
struct PayloadLines: Sendable {
    /// A payload, with the address of its sender if that matters.
    struct Payload: Hashable, Sendable {
        var sender: BluetoothAddress?
        var data: AdvertisingData
    }

    private static let mostPayloads = 1024

    private var lines: [Payload: [String]] = [:]

    subscript(payload: Payload) -> [String]? { lines[payload] }

    mutating func keep(_ new: [String], of payload: Payload) {
        if lines.count >= Self.mostPayloads { lines.removeAll(keepingCapacity: true) }
        lines[payload] = new
    }
}
