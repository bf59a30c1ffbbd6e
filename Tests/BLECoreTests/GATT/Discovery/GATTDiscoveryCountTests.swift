import BLECore
import Testing

/// Requests that discovery needs for five sample databases; the figures are those of the comparison with other stacks.
@Suite struct GATTDiscoveryCountTests {
    struct Sample: CustomTestStringConvertible {
        var name: String
        var database: ModelDatabase
        var attributes: Int
        /// At an MTU of 23, 247 and 517.
        var full: [Int]
        var subscribable: [Int]
        var testDescription: String { name }
    }

    static let samples = [
        Sample(
            name: "a", database: .smallSensor, attributes: 38, full: [8, 3, 3], subscribable: [8, 3, 3]),
        Sample(
            name: "b", database: .longUUIDs(withGenericServices: false), attributes: 75, full: [40, 17, 15],
            subscribable: [31, 6, 4]),
        Sample(
            name: "b+", database: .longUUIDs(withGenericServices: true), attributes: 86, full: [43, 19, 17],
            subscribable: [34, 8, 6]),
        Sample(
            name: "c", database: .fortyServices(long: false), attributes: 440, full: [82, 8, 5],
            subscribable: [82, 8, 5]),
        Sample(
            name: "c+", database: .fortyServices(long: true), attributes: 480, full: [241, 24, 12],
            subscribable: [241, 24, 12]),
    ]

    @Test(arguments: samples, [(0, 23), (1, 247), (2, 517)])
    func staysWithinTheTable(sample: Sample, size: (index: Int, mtu: Int)) throws {
        #expect(sample.database.attributes.count == sample.attributes)
        for level in [DiscoveryLevel.full, .subscribable] {
            var server = TestAttributeServer(sample.database, mtu: size.mtu)
            let found = try server.run(GATTDiscovery(level: level, mtu: UInt16(size.mtu), isStrict: true)).get()
            let allowed = level == .full ? sample.full : sample.subscribable
            #expect(server.requests.count <= allowed[size.index], "\(level)")
            #expect(sample.database.differences(from: found, level: level) == [])
        }
    }
}
