import BareBLE
import BareBLETestKit
import TestSupport

extension ClientCaseRun {
    func discover() async throws -> Verdict {
        let limit = recorded.params.limit
        let kinds = try recorded.params.uuid.map { [try uuid($0)] }
        guard let start = recorded.params.start, let end = recorded.params.end else { return try await discoverAll() }
        let findings = recorded.findings
        switch recorded.operation {
        case "discover-primary", "discover-primary-by-uuid":
            return try await discover(try findings.serverDatabase()) { device in
                let found = try await device.discoverServices(kinds, in: start...end, limit: limit)
                try Self.compare(findings.services, with: found)
            }
        case "discover-characteristics", "discover-characteristics-by-uuid":
            let served = GATTVectors.Findings(characteristics: try recorded.listedCharacteristics())
            return try await discover(try served.serverDatabase(in: start...end)) { device in
                let found = try await device.discoverCharacteristics(kinds, in: start...end, limit: limit)
                try Self.compare(findings.characteristics, with: found)
            }
        case "discover-descriptors":
            let database = try findings.serverDatabase(in: start...end, valueHandle: recorded.params.valueHandle)
            return try await discover(database) { device in
                let found = try await device.discoverDescriptors(in: start...end, limit: limit)
                    .map { "\($0.handle) \($0.uuid)" }
                let expected = try findings.descriptors?.map { "\($0.handle) \(try uuid($0.uuid))" }
                try Mismatch.unless(found == expected, "found \(found)")
            }
        case "discover-includes":
            return try await discover(try findings.serverDatabase(in: start...end)) { device in
                let found = try await device.discoverIncludedServices(in: start...end)
                    .map { "\($0.handle) \($0.handles) \($0.uuid?.description ?? "")" }
                let expected = try findings.includes?.map {
                    "\($0.handle ?? 0) \($0.start...$0.end) \(try uuid($0.uuid))"
                }
                try Mismatch.unless(found == expected, "found \(found)")
            }
        default:
            return .failed("unknown operation \(recorded.operation)")
        }
    }

    private func discoverAll() async throws -> Verdict {
        let findings = recorded.findings
        let database = try required(GATTVectors.databases()[recorded.database ?? ""]).serverDatabase()
        return try await discover(database) { device in
            let found = try await device.discover(level: .full)
            try Self.compare(findings.services, with: found.services)
            try Self.compare(findings.characteristics, with: found.characteristics)
            let descriptors = found.descriptors.map { "\($0.handle) \($0.uuid)" }
            let expected = try findings.descriptors?.map { "\($0.handle) \(try uuid($0.uuid))" }
            try Mismatch.unless(descriptors == expected, "found \(descriptors)")
            guard let recordedIncludes = findings.includes else { return }
            let includes = found.services.flatMap(\.includes).map { "\($0.handle) \($0.handles)" }
            let names = recordedIncludes.map { "\($0.handle ?? 0) \($0.start...$0.end)" }
            try Mismatch.unless(includes == names, "found \(includes)")
        }
    }

    /// Runs one discovery against a server of `database`, and the recorded responses where the same is asked.
    private func discover(
        _ database: ServerDatabase, _ search: (Peripheral) async throws -> Void
    ) async throws -> Verdict {
        var server = RecordedServer(database, mtu: recorded.clientMtu)
        try server.add(recorded.script)
        let peer = RespondingPeer(server)
        let device = try await attach(try await peer.connect())
        try await search(device)
        await device.disconnect()
        let sent = await peer.received.filter { $0.first != 0x02 }
        let requests = try recorded.script.compactMap(\.c2s).map { try bytes($0) }.filter { $0.first != 0x02 }
        let plural = sent.count == 1 ? "" : "s"
        return .passed(
            note: sent == requests ? nil : "own order, \(sent.count) request\(plural) for \(requests.count)")
    }

    // MARK: Comparing

    static func compare(_ expected: [GATTVectors.Service]?, with found: [GATTService]) throws {
        let names = try (expected ?? []).map { "\($0.start...$0.end) \(try uuid($0.uuid)) \($0.primary ?? true)" }
        let wanted = found.map { "\($0.handles) \($0.uuid) \($0.isPrimary)" }
        try Mismatch.unless(wanted == names, "found \(wanted)")
    }

    static func compare(
        _ expected: [GATTVectors.Characteristic]?, with found: [GATTCharacteristic]
    ) throws {
        let names = try (expected ?? []).map {
            "\($0.declarationHandle) \($0.valueHandle) \($0.properties) \(try uuid($0.uuid))"
        }
        let wanted = found.map { "\($0.declarationHandle) \($0.valueHandle) \($0.properties.rawValue) \($0.uuid)" }
        try Mismatch.unless(wanted == names, "found \(wanted)")
    }
}
