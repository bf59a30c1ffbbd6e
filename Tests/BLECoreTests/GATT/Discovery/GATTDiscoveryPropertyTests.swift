import BLECore
import TestSupport
import Testing

/// Whatever a lawful server has, discovery finds all of it: thousands of random databases against the server's own
/// list.
@Suite struct GATTDiscoveryPropertyTests {
    static let seeds = 0..<32 as Range<UInt64>
    static let databasesPerSeed = 100 as UInt64

    @Test(arguments: seeds)
    func findsWhatTheServerHas(seed: UInt64) throws {
        for number in 0..<Self.databasesPerSeed {
            let identity = seed * Self.databasesPerSeed + number
            let database = RandomDatabase(seed: identity).database
            var numbers = SeededNumbers(seed: ~identity)
            let mtu = [23, 247, 517, Int.random(in: 23...517, using: &numbers)][Int(identity % 4)]
            let found = try discover(database, .full, mtu: mtu, identity: identity)
            check(found, database, .full, "\(identity) at \(mtu)")
            if number % 4 == 0 {
                for level in [DiscoveryLevel.structure, .subscribable] {
                    let found = try discover(database, level, mtu: mtu, identity: identity)
                    check(found, database, level, "\(identity) at \(mtu) \(level)")
                }
            }
        }
    }

    private func discover(
        _ database: ModelDatabase, _ level: DiscoveryLevel, mtu: Int, identity: UInt64
    ) throws -> GATTDatabase {
        var server = TestAttributeServer(database, mtu: mtu)
        let result = try server.run(GATTDiscovery(level: level, mtu: UInt16(mtu)))
        guard case .success(let found) = result else {
            Issue.record("\(identity) at \(mtu) \(level): \(result)")
            return GATTDatabase()
        }
        return found
    }

    private func check(
        _ found: GATTDatabase, _ database: ModelDatabase, _ level: DiscoveryLevel, _ name: String
    ) {
        let differences = database.differences(from: found, level: level)
        #expect(differences == [], "\(name)")
    }

    /// The mean number of requests; a change that costs round trips shows here.
    @Test(arguments: [(23, 46.4), (247, 33.3)])
    func aFullDiscoveryTakesFewRequests(mtu: Int, allowed: Double) throws {
        var total = 0
        let count = 400 as UInt64
        for seed in 0..<count {
            var server = TestAttributeServer(RandomDatabase(seed: seed).database, mtu: mtu)
            _ = try server.run(GATTDiscovery(level: .full, mtu: UInt16(mtu))).get()
            total += server.requests.count
        }
        #expect(Double(total) / Double(count) <= allowed)
    }

    /// A server that jumps over entries of another length in its lists hides services and characteristics; asking
    /// about the gaps brings them back.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func findsWhatAServerSkips(seed: UInt64) throws {
        let database = RandomDatabase(seed: seed).database
        var server = TestAttributeServer(database, mtu: 247, quirks: [.skipsOtherLengths])
        let found = try server.run(GATTDiscovery(level: .full, mtu: 247)).get()
        let differences = database.differences(from: found, level: .full)
        #expect(differences == [])
    }
}
