import BareBLE
import Testing

/// The catalogue of hostile and faulty peers, through the public interface, with another link open beside. Each script names the
/// row of Tests/Catalogue/rows.txt that it plays.
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
}
