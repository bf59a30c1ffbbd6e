import BareBLE
import TestSupport
import Testing

/// The catalogue of hostile and faulty peers, through the public interface, with another link open beside. Each script
/// names the row of Tests/Catalogue/rows.txt that it plays, and each test the rows of its scripts.
@Suite("Hostile peers", .timeLimit(.minutes(10)))
struct HostileTests {
    @Test(
        "Attribute Protocol",
        .row(
            "T01", "T02", "T03", "T04", "T05", "T11", "T12", "T13", "T14", "T15", "T16", "T18", "T19", "T21", "T22",
            "T23", "T24", "T28", "T29"), arguments: HostileRow.attributeProtocol)
    func hostilePacketsEndAsTheCatalogueSays(_ row: HostileRow) async throws {
        expectCited(HostileRow.attributeProtocol.map(\.id))
        try await DialogueCalls(row.dialogue).play()
    }

    @Test("Reads and writes", .row("G16", "G17", "G18"), arguments: HostileRow.procedures)
    func readsAndWritesEndAsTheCatalogueSays(_ row: HostileRow) async throws {
        expectCited(HostileRow.procedures.map(\.id))
        try await DialogueCalls(row.dialogue).play()
    }

    @Test(
        "Discovery", .row("G01", "G02", "G03", "G04", "G05", "G06", "G07", "G08", "G12", "G13"),
        arguments: HostileDiscovery.all)
    func discoveriesEndAsTheCatalogueSays(_ row: HostileDiscovery) async throws {
        expectCited(HostileDiscovery.all.map(\.id))
        try await row.play()
    }

    /// The catalogue is compared with the traits, so those have to name what the tables play, and nothing else.
    private func expectCited(_ ids: [String]) {
        #expect(Test.current.map { Set($0.rows) } == Set(ids))
    }
}
