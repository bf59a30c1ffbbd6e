import BareBLE
import BareBLETestKit

extension ClientCaseRun {
    func discover() async throws -> Verdict {
        let range = recorded.params.start.flatMap { start in recorded.params.end.map { start...$0 } }
        var findings = recorded.findings
        switch recorded.operation {
        case "discover-all":
            return try await discoverAll()
        case "discover-primary", "discover-primary-by-uuid":
            let found = try await discovered(try findings.table(), .structure, recorded.params.uuid)
            try Self.compare(findings.services, with: found)
        case "discover-characteristics", "discover-characteristics-by-uuid":
            // The answers of the script hold more than a filtered search reports.
            let expected = findings.characteristics
            findings.characteristics = try recorded.script.compactMap(\.s2c).flatMap { text in
                try RecordedVectors.Findings.characteristics(in: bytes(text))
            }
            let found = try await discovered(try findings.table(in: range), .full).characteristics
            let name = try recorded.params.uuid.map { try uuid($0) }
            let wanted = found.filter { name == nil || $0.uuid == name }
            try Self.compare(expected, with: Array(wanted.prefix(recorded.params.limit ?? .max)))
        case "discover-descriptors":
            let table = try findings.table(in: range, valueHandle: recorded.params.valueHandle)
            let found = try await discovered(table, .full).descriptors
            let wanted = found.prefix(recorded.params.limit ?? .max).map { "\($0.handle) \($0.uuid)" }
            let expected = try findings.descriptors?.map { "\($0.handle) \(try uuid($0.uuid))" }
            try Mismatch.unless(wanted == expected, "found \(wanted)")
        case "discover-includes":
            let found = try await discovered(try findings.table(in: range), .full).services.flatMap(\.includes)
            let wanted = found.map { "\($0.handle) \($0.handles) \($0.uuid?.description ?? "")" }
            let expected = try findings.includes?.map { "\($0.handle ?? 0) \($0.start...$0.end) \(try uuid($0.uuid))" }
            try Mismatch.unless(wanted == expected, "found \(wanted)")
        default:
            return .failed("unknown operation \(recorded.operation)")
        }
        return .passed()
    }

    private func discoverAll() async throws -> Verdict {
        let table = try required(RecordedVectors.databases[recorded.database ?? ""]).table
        let found = try await discovered(table, .full)
        try Self.compare(recorded.findings.services, with: found)
        try Self.compare(recorded.findings.characteristics, with: found.characteristics)
        let descriptors = found.descriptors.map(\.handle)
        try Mismatch.unless(descriptors == recorded.findings.descriptors?.map(\.handle), "found \(descriptors)")
        return .passed()
    }

    private func discovered(
        _ table: AttributeTable, _ level: DiscoveryLevel, _ service: String? = nil
    ) async throws -> GATTDatabase {
        var server = RecordedServer(table, mtu: recorded.clientMtu)
        try server.add(recorded.script)
        let peer = AnsweringPeer(server)
        let device = try await attach(try await peer.connect())
        var found = GATTDatabase()
        if let service {
            found = try await device.discover(services: [try uuid(service)], level: level)
        } else {
            found = try await device.discover(level)
        }
        await device.disconnect()
        return found
    }

    // MARK: Comparing

    static func compare(_ expected: [RecordedVectors.Service]?, with found: GATTDatabase) throws {
        let names = try (expected ?? []).map { "\($0.start...$0.end) \(try uuid($0.uuid)) \($0.primary ?? true)" }
        let wanted = found.services.map { "\($0.handles) \($0.uuid) \($0.isPrimary)" }
        try Mismatch.unless(wanted == names, "found \(wanted)")
    }

    static func compare(
        _ expected: [RecordedVectors.Characteristic]?, with found: [GATTCharacteristic]
    ) throws {
        let names = try (expected ?? []).map {
            "\($0.declarationHandle) \($0.valueHandle) \($0.properties) \(try uuid($0.uuid))"
        }
        let wanted = found.map { "\($0.declarationHandle) \($0.valueHandle) \($0.properties.rawValue) \($0.uuid)" }
        try Mismatch.unless(wanted == names, "found \(wanted)")
    }
}
