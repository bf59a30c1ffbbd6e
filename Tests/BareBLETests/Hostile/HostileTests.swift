import BareBLE
import Testing

/// The catalogue of hostile and faulty peers, through the public interface, with another link open beside.
@Suite("Hostile peers", .timeLimit(.minutes(1)))
struct HostileTests {
    @Test("Attribute Protocol", arguments: HostileRow.attributeProtocol)
    func attributeProtocol(_ row: HostileRow) async throws {
        try await DialogueCalls(row.dialogue).play()
    }

    @Test("Reads and writes", arguments: HostileRow.procedures)
    func procedures(_ row: HostileRow) async throws {
        try await DialogueCalls(row.dialogue).play()
    }

    @Test("Discovery", arguments: HostileDiscovery.all)
    func discovery(_ row: HostileDiscovery) async throws {
        try await row.play()
    }

    /// Every row has a proof that exists, and every script a row.
    @Test func theTableIsComplete() throws {
        let identifiers =
            (1...29).map { ($0 < 10 ? "T0" : "T") + "\($0)" } + (1...24).map { ($0 < 10 ? "G0" : "G") + "\($0)" }
        #expect(HostileTable.rows.map(\.id) == identifiers)
        var scripts = Set((HostileRow.attributeProtocol + HostileRow.procedures).map(\.id))
        scripts.formUnion(HostileDiscovery.all.map(\.id))
        for row in HostileTable.rows {
            for proof in row.proofs {
                switch proof {
                case .script:
                    #expect(scripts.remove(row.id) != nil, "\(row.id): no script")
                case .fixture(let name):
                    _ = try RepositoryFiles.text("Fixtures/att/defects/\(name).dialogue")
                case .test(let file, let function):
                    let text = try RepositoryFiles.text("Tests/\(file).swift")
                    #expect(text.contains("func \(function)("), "\(row.id): no test \(function) in \(file)")
                case .notApplicable(let reason):
                    #expect(!reason.isEmpty)
                }
            }
        }
        #expect(scripts.isEmpty, "scripts without a row")
    }
}
