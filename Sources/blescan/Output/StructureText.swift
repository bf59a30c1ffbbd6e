import BLECore
import BLEProfiles

/// The value of one structure in lines of text: bytes first, the decoded value after two spaces. Before the data of a
/// company or service stands its number, as it is written elsewhere.
enum StructureText {
    /// The lines of a structure; always one at least.
    static func lines(
        _ structure: AdvertisingData.Structure, of whole: AdvertisingData, from senders: [BluetoothAddress] = []
    ) -> [String] {
        // The structure alone, so that "the first one wins" finds this one.
        let alone = AdvertisingData(joining: [structure])
        let decoded = SensorKeys.decoded(structure, of: whole, from: senders).map { [$0.line] } ?? []
        switch structure.type {
        case .manufacturerSpecificData:
            return manufacturer(structure.value, alone) + decoded
        case .serviceData16Bit, .serviceData32Bit, .serviceData128Bit:
            return service(structure.value, alone) + decoded
        case .completeLocalName, .shortenedLocalName, .broadcastName:
            return hex(structure.value, meaning: "\"\(AdvertisedName(bytes: structure.value).printable)\"")
        default:
            let services = alone.serviceUUIDs + alone.solicitedServiceUUIDs
            if !services.isEmpty { return list(structure.value, services) }
            return hex(structure.value, meaning: meaning(structure.type, alone))
        }
    }

    private static func meaning(_ type: AdvertisingDataType, _ data: AdvertisingData) -> String? {
        switch type {
        case .flags: data.flags?.sentence
        case .txPowerLevel: data.txPowerLevel.map { "\($0) dBm" }
        case .appearance: data.appearance.flatMap { AssignedNumbers.appearanceName($0) }
        case .peripheralConnectionIntervalRange:
            data.connectionIntervalRange.map {
                "\($0.shortest.map(milliseconds) ?? "any") to \($0.longest.map(milliseconds) ?? "any")"
            }
        case .advertisingInterval, .advertisingIntervalLong: data.advertisingInterval.map(milliseconds)
        case .leRole: data.leRole.flatMap(role)
        case .leDeviceAddress: data.deviceAddress?.description
        case .publicTargetAddress, .randomTargetAddress:
            data.targetAddresses.map(\.description).joined(separator: ", ")
        case .uri: data.uri?.text.map { AdvertisedName(bytes: Array($0.utf8)).printable }
        case .meshBeacon:
            switch data.meshBeacon?.kind {
            case .unprovisionedDevice: "a device that waits for provisioning"
            case .secureNetwork: "a secure network"
            case .private: "a private network"
            default: nil
            }
        default: nil
        }
    }

    private static func manufacturer(_ value: [UInt8], _ data: AdvertisingData) -> [String] {
        guard let maker = data.manufacturerData.first else { return hex(value, meaning: nil) }
        let company = JSONLine.companyKey(maker.company)
        let name = AssignedNumbers.companyName(maker.company) ?? "unknown company"
        var lines = [company + "  " + name]
        if maker.data.count == 23 && maker.data.dropFirst().first == 0x15 {
            lines.append(grouped(maker.data, [2, 16, 2, 2, 1]))
        } else {
            lines += hex(maker.data, meaning: nil).filter { !$0.isEmpty }
        }
        return lines
    }

    private static func service(_ value: [UInt8], _ data: AdvertisingData) -> [String] {
        guard let entry = data.serviceData.first else { return hex(value, meaning: nil) }
        let name = AssignedNumbers.name(of: entry.service)
        var lines = [entry.service.description + (name.map { "  " + $0 } ?? "")]
        lines += hex(entry.data, meaning: nil).filter { !$0.isEmpty }
        return lines
    }

    private static func list(_ value: [UInt8], _ services: [BluetoothUUID]) -> [String] {
        let size = value.count / max(1, services.count)
        var rest = value[...]
        var lines: [String] = []
        for service in services {
            let name = AssignedNumbers.name(of: service).map { " " + $0 } ?? ""
            lines.append(Hex.encode(rest.prefix(size)) + "  \(service)\(name)")
            rest = rest.dropFirst(size)
        }
        return lines
    }

    private static func role(_ role: AdvertisingData.LERole) -> String? {
        switch role {
        case .peripheralOnly: "peripheral"
        case .centralOnly: "central"
        case .peripheralPreferred: "both, rather peripheral"
        case .centralPreferred: "both, rather central"
        default: nil
        }
    }

    /// Returns rows of 24 bytes; the decoded value is after the last one.
    private static func hex(_ bytes: [UInt8], meaning: String?) -> [String] {
        var lines: [String] = []
        var rest = bytes[...]
        repeat {
            lines.append(Hex.encode(rest.prefix(24)))
            rest = rest.dropFirst(24)
        } while !rest.isEmpty
        if let meaning, !meaning.isEmpty {
            lines[lines.count - 1] += (lines.last?.isEmpty == true ? "" : "  ") + meaning
        }
        return lines
    }

    private static func grouped(_ bytes: [UInt8], _ sizes: [Int]) -> String {
        var rest = bytes[...]
        return sizes.map { size in
            defer { rest = rest.dropFirst(size) }
            return Hex.encode(rest.prefix(size))
        }.joined(separator: " ")
    }

    private static func milliseconds(_ duration: Duration) -> String {
        "\(Double(duration / .microseconds(1)) / 1000) ms"
    }
}
