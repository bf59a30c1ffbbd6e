import TestSupport
import Testing

@testable import BLECore

/// Links that another run of the program serves on. The client notices nothing.
@Suite("GATT server: handing a link over") struct GATTServerHandOverTests {
    private static let service = ServiceDefinition(
        0xFFF0,
        [
            CharacteristicDefinition(0xFFF1, [.read, .write, .notify], value: .stored([1, 2, 3, 4])),
            CharacteristicDefinition(0xFFF2, [.read, .write, .indicate], value: .handled),
        ])

    /// The next run, with the same services or with others.
    private func next(_ client: ServedClient, _ services: [ServiceDefinition] = [service]) throws -> ServedClient {
        let remains = try #require(client.server.remains)
        var later = try ServedClient(services)
        later.now = client.now + .seconds(1)
        later.server = GATTServer(
            limits: GATTServer.Limits(), remains: remains,
            change: later.database.outline.difference(from: client.database.outline), in: later.database, at: later.now)
        later.perform(later.server.resume(in: later.database))
        return later
    }

    /// The values are at 16 and 19, their configurations at 17 and 20.
    private func begun() throws -> ServedClient {
        var client = try ServedClient([Self.service])
        try client.send("02b900")
        try client.send("1211000100")
        try client.send("1214000200")
        client.events = []
        return client
    }

    @Test("the MTU and the subscriptions stay, and are reported as restored")
    func theMTUAndTheSubscriptionsAreRestored() throws {
        var later = try next(try begun())
        #expect(
            later.takeEvents() == [
                .configured(16, .notifications, isRestored: true), .configured(19, .indications, isRestored: true),
            ])
        #expect(later.server.mtu == 185)
        #expect(later.update([UInt8](repeating: 7, count: 182), of: 16) == .notified)
        #expect(later.takeSent().first?.count == 2 * 185)
        later.events.removeAll()
        // The MTU is exchanged once on a link.
        #expect(try later.send("021700") == ["030502"])
        #expect(later.server.mtu == 185)
        later.end()
        #expect(later.takeEvents().count == 2)
    }

    @Test("an indication that was not confirmed is waited for, until its own deadline")
    func anUnconfirmedIndicationKeepsItsDeadline() throws {
        var client = try begun()
        client.update([5], of: 19, id: 1)
        client.takeSent()
        var later = try next(client)
        later.events = []
        #expect(later.update([6], of: 19, id: 2) == .indicated)
        #expect(later.takeSent().isEmpty)
        #expect(try later.send("1e") == ["1d130006"])
        #expect(try later.send("1e").isEmpty)
        #expect(later.takeEvents() == [.finish(.init(2), failure: nil)])
        var late = try next(client)
        late.pass(.seconds(28))
        #expect(late.closeReason == nil)
        late.pass(.seconds(1))
        #expect(late.closeReason == .confirmationTimeout)
    }

    @Test("prepared writes are executed by the next run")
    func preparedWrites() throws {
        var client = try begun()
        try client.send("16100001000a0b")
        var later = try next(client)
        #expect(try later.send("1801") == ["19"])
        #expect(later.database[16]?.value == [1, 0x0A, 0x0B])
    }

    @Test("a link whose response is due, or whose command is unfinished, is not handed over")
    func aLinkWithAnUnfinishedRequestOrCommandIsNotHandedOver() throws {
        var client = try begun()
        try client.send("0a1300")
        #expect(client.server.remains == nil)
        #expect(client.handlerReturns(.value([9])) == ["0b09"])
        #expect(client.server.remains != nil)
        client.hasRoom = false
        try client.send("0a1000")
        #expect(client.server.remains == nil)
        client.makeRoom()
        #expect(client.server.remains != nil)
        client.end()
        #expect(client.server.remains == nil)
    }

    @Test("where the services differ, what was configured there ends, and the change is indicated")
    func otherServices() throws {
        var client = try begun()
        try client.send("1209000200")
        try client.send("120b0001")
        try client.send("16100000000a")
        let other = ServiceDefinition(
            0xFFE0, [CharacteristicDefinition(0xFFE1, [.read, .notify], value: .stored([1]))])
        var later = try next(client, [other])
        #expect(later.takeEvents() == [.configured(8, .indications, isRestored: true)])
        #expect(later.takeSent() == ["1d08000e001400"])
        #expect(try later.send("0a1000") == ["010a100012"], "it has robust caching")
        #expect(try later.send("1801") == ["0118000012"], "its prepared writes were for other attributes")
        #expect(later.update([1], of: 16) == .notSubscribed)
    }

    @Test("a write that was prepared for an attribute of the run before is not made to another one")
    func preparedForAnotherAttribute() throws {
        var client = try begun()
        try client.send("16100000000a")
        let other = ServiceDefinition(0xFFE0, [CharacteristicDefinition(0xFFE1, .write, value: .stored([1]))])
        var later = try next(client, [other])
        #expect(try later.send("1801") == ["011810000e"])
        #expect(later.database[16]?.value == [1])
    }
}
