import TestSupport
import Testing

@testable import BLECore

/// Changes of services, and the clients that know of them or not: Core Vol 3 Part G, 2.5.2 and 7.
@Suite("GATT server: changes of services") struct GATTServerAwarenessTests {
    private static let service = ServiceDefinition(
        0xFFF0,
        [CharacteristicDefinition(0xFFF1, [.read, .write, .writeWithoutResponse, .notify], value: .stored([1]))])

    /// The value at 16, its configuration at 17; the next service begins at 18.
    private static func client(isRobust: Bool = true) throws -> ServedClient {
        var client = try ServedClient([service])
        client.database.setHash([UInt8](repeating: 0xCC, count: 16))
        if isRobust { try client.send("120b0001") }
        return client
    }

    private static func publish(_ client: inout ServedClient) throws {
        try client.changeDatabase { try $0.publish([service]).affected }
        client.database.setHash([UInt8](repeating: 0xDD, count: 16))
    }

    /// Requests that use a handle, and those that discover.
    static let requests: [(request: String, response: String?)] = [
        ("0a1000", "010a100012"), ("0c10000000", "010c100012"), ("0e10001000", "010e100012"),
        ("2010001000", "0120100012"), ("1210000a", "0112100012"), ("16100000000a", "0116100012"),
        ("081000ffff012a", "0108100012"), ("080100ffff2a2b", nil), ("080100ffff0328", nil), ("081000ffff0328", nil),
        ("081000ffff0228", nil), ("040100ffff", nil), ("060100ffff0028f0ff", nil), ("100100ffff0028", nil),
        ("021700", nil), ("1800", nil),
    ]

    @Test("a client that does not know of a change gets Database Out Of Sync once", .row("P21"), arguments: requests)
    func outOfSync(_ request: String, _ response: String?) throws {
        var client = try Self.client()
        try Self.publish(&client)
        let received = try client.send(request)
        if let response {
            #expect(received == [response])
            #expect(try client.send(request).first != response)
            #expect(client.update([1], of: 16) == .notSubscribed)
        } else {
            #expect(received.first?.hasSuffix("12") != true || received.first?.hasPrefix("01") != true)
            #expect(try client.send("0a1000") == (request == "080100ffff2a2b" ? ["0b01"] : ["010a100012"]))
        }
    }

    @Test("a client without robust caching is served, and one that never reads the hash gets one error", .row("P21"))
    func withoutFeature() throws {
        var client = try Self.client(isRobust: false)
        try Self.publish(&client)
        #expect(try client.send("0a1000") == ["0b01"])
        var robust = try Self.client()
        try Self.publish(&robust)
        #expect(try robust.send("0a1000") == ["010a100012"])
        for _ in 0..<10 { #expect(try robust.send("0a1000") == ["0b01"]) }
    }

    @Test("commands of such a client are dropped, and it gets no values, until it knows")
    func commandsAndValues() throws {
        var client = try Self.client()
        try client.send("1211000100")
        try Self.publish(&client)
        try client.send("5210000b")
        #expect(client.database[16]?.value == [1])
        #expect(client.update([2], of: 16) == .outOfSync)
        #expect(try client.send("080100ffff2a2b") == ["09120d00" + String(repeating: "dd", count: 16)])
        try client.send("5210000b")
        #expect(client.database[16]?.value == [1])
        #expect(client.update([2], of: 16) == .outOfSync)
        #expect(try client.send("0a1000") == ["0b01"])
        #expect(client.update([2], of: 16) == .notified)
        try client.send("5210000b")
        #expect(client.database[16]?.value == [0x0B])
    }

    @Test("prepared writes that a change has overtaken are not executed")
    func staleQueue() throws {
        var client = try Self.client()
        try client.send("16100000000b")
        try Self.publish(&client)
        #expect(try client.send("1801") == ["0118000012"])
        #expect(client.database[16]?.value == [1])
        #expect(try client.send("1801") == ["19"])
        var other = try Self.client(isRobust: false)
        try other.send("16100000000b")
        try Self.publish(&other)
        #expect(try other.send("1801") == ["19"])
    }

    @Test("a change is indicated to a client that has subscribed, and its confirmation makes the client aware")
    func serviceChanged() throws {
        var client = try Self.client()
        try client.send("1209000200")
        try Self.publish(&client)
        #expect(client.takeSent() == ["1d080012001500"])
        try Self.publish(&client)
        try client.changeDatabase { try $0.withdraw(18) }
        #expect(client.takeSent().isEmpty)
        // What has changed since the first indication comes in one.
        #expect(try client.send("1e") == ["1d080012001900"])
        #expect(try client.send("5210000b").isEmpty)
        #expect(client.database[16]?.value == [1])
        #expect(try client.send("1e").isEmpty)
        #expect(try client.send("0a1000") == ["0b01"])
    }

    @Test("a confirmation makes a client aware of no change that came after the indication")
    func confirmedAfterAnotherChange() throws {
        var client = try Self.client()
        try client.send("1209000200")
        try Self.publish(&client)
        #expect(client.takeSent() == ["1d080012001500"])
        // It ends its subscription before it confirms: the next change is not indicated.
        #expect(try client.send("1209000000") == ["0112090012"])
        #expect(try client.send("1209000000") == ["13"])
        try Self.publish(&client)
        #expect(client.takeSent().isEmpty)
        let remains = try #require(client.server.remains)
        #expect(try client.send("1e").isEmpty)
        #expect(try client.send("0a1000") == ["010a100012"])
        // Nor does it where the link was handed over in between.
        var later = ServedClient(client.database)
        later.now = client.now
        later.server = GATTServer(
            limits: GATTServer.Limits(), remains: remains, change: nil, in: later.database, at: later.now)
        #expect(try later.send("1e").isEmpty)
        #expect(try later.send("0a1000") == ["010a100012"])
    }

    @Test("A change comes before the values that wait")
    func changeFirst() throws {
        var client = try ServedClient([
            ServiceDefinition(0xFFF0, [CharacteristicDefinition(0xFFF1, .indicate, value: .handled)])
        ])
        for request in ["1209000200", "1211000200"] { try client.send(request) }
        client.update([1], of: 16, id: 1)
        client.update([2], of: 16, id: 2)
        client.takeSent()
        try client.changeDatabase { try $0.publish([Self.service]).affected }
        #expect(try client.send("1e") == ["1d080012001500"])
        #expect(try client.send("1e") == ["1d100002"])
    }

    @Test("the subscriptions of a withdrawn service end, and so do its values that wait")
    func subscriptionsAndWaitingValuesEndWithTheirService() throws {
        var client = try ServedClient([
            ServiceDefinition(0xFFF0, [CharacteristicDefinition(0xFFF1, .indicate, value: .handled)])
        ])
        try client.send("1211000200")
        client.update([1], of: 16, id: 1)
        client.update([2], of: 16, id: 2)
        client.events.removeAll()
        try client.changeDatabase { try $0.withdraw(14) }
        #expect(
            client.takeEvents() == [
                .configured(16, [], isRestored: false), .finish(.init(2), failure: .withdrawn),
            ])
        #expect(client.update([3], of: 16) == .notSubscribed)
    }

    /// A client without robust caching that has subscribed to the values at 16 and 20, of two services.
    private static func subscriber() throws -> ServedClient {
        var client = try client(isRobust: false)
        try publish(&client)
        for request in ["1211000100", "1215000100"] { try client.send(request) }
        client.events.removeAll()
        return client
    }

    @Test("a notification that waits for room is dropped with its service, and no other one is")
    func blockedNotifications() throws {
        var client = try Self.subscriber()
        client.hasRoom = false
        #expect(client.update([7], of: 16, id: 1) == .notified)
        try client.changeDatabase { try $0.withdraw(14) }
        #expect(
            client.takeEvents() == [
                .configured(16, [], isRestored: false), .notified(.init(1), failure: .withdrawn),
            ])
        client.makeRoom()
        #expect(client.takeSent().isEmpty)
        client.hasRoom = false
        #expect(client.update([8], of: 20, id: 2) == .notified)
        try Self.publish(&client)
        client.makeRoom()
        #expect(client.takeSent() == ["1b140008"])
        #expect(client.takeEvents() == [.notified(.init(2), failure: nil)])
    }

    @Test("of several values in a packet that waits for room, those of a withdrawn service are dropped")
    func blockedMultipleNotification() throws {
        var client = try Self.subscriber()
        try client.send("120b0004")
        client.events.removeAll()
        client.hasRoom = false
        let (outcomes, actions) = client.server.notify(
            [(id: .init(1), handle: 16, value: [7]), (id: .init(2), handle: 20, value: [8])], in: client.database)
        #expect(outcomes == [.notified, .notified])
        client.perform(actions)
        try client.changeDatabase { try $0.withdraw(14) }
        client.makeRoom()
        #expect(client.takeSent() == ["1b140008"])
        #expect(
            client.takeEvents() == [
                .configured(16, [], isRestored: false), .notified(.init(1), failure: .withdrawn),
                .notified(.init(2), failure: nil),
            ])
    }

    @Test("an indication that waits for room is dropped with its service, and the change is indicated")
    func blockedIndication() throws {
        var client = try ServedClient([
            ServiceDefinition(0xFFF0, [CharacteristicDefinition(0xFFF1, .indicate, value: .handled)])
        ])
        for request in ["1209000200", "1211000200"] { try client.send(request) }
        client.events.removeAll()
        client.hasRoom = false
        #expect(client.update([1], of: 16, id: 1) == .indicated)
        try client.changeDatabase { try $0.withdraw(14) }
        #expect(
            client.takeEvents() == [
                .configured(16, [], isRestored: false), .finish(.init(1), failure: .withdrawn),
            ])
        client.makeRoom()
        #expect(client.takeSent() == ["1d08000e001100"])
        #expect(try client.send("1e").isEmpty)
    }

    @Test("values that wait for room are not sent to a client that does not know of a change")
    func blockedOutOfSync() throws {
        var client = try Self.client()
        try client.send("1211000100")
        client.events.removeAll()
        client.hasRoom = false
        #expect(client.update([2], of: 16, id: 1) == .notified)
        try Self.publish(&client)
        #expect(client.takeEvents() == [.notified(.init(1), failure: .outOfSync)])
        client.makeRoom()
        #expect(client.takeSent().isEmpty)
    }

    @Test("a change while a packet is offered drops it if there is no room, and not if it was written")
    func changedWhileOffered() throws {
        for isWritten in [false, true] {
            var client = try Self.subscriber()
            let (_, actions) = client.server.update([7], of: 16, id: .init(1), in: client.database)
            #expect(actions == [.send([0x1B, 16, 0, 7])])
            try client.changeDatabase { try $0.withdraw(14) }
            #expect(client.takeEvents() == [.configured(16, [], isRestored: false)])
            if isWritten {
                client.perform(client.server.sent(in: client.database, at: client.now))
            } else {
                client.server.blocked()
                client.makeRoom()
            }
            #expect(client.takeEvents() == [.notified(.init(1), failure: isWritten ? nil : .withdrawn)])
            #expect(client.takeSent().isEmpty)
        }
    }

    @Test("a bonded client that was away hears of the change once it has encrypted, until it has confirmed")
    func changedWhileAway() throws {
        var client = try Self.client()
        client.secure(ClientSecurity(isBonded: true))
        try client.send("1209000200")
        client.pass(.seconds(5))
        client.end()
        let stored = client.events.compactMap { if case .store(let record) = $0 { record } else { nil } }
        var record = try #require(stored.last)
        #expect(record.configurations == [9: .indications] && record.features == 1 && record.isAware)
        _ = try client.database.publish([Self.service])
        record.databaseChanged(18...21, checksum: client.database.checksum)

        for confirms in [false, true, true] {
            var later = ServedClient(client.database)
            later.perform(later.server.identified(record, in: later.database, at: later.now))
            #expect(later.takeSent().isEmpty)
            later.secure(ClientSecurity(isBonded: true))
            #expect(later.takeSent() == (record.pendingChange == nil ? [] : ["1d080012001500"]))
            if confirms { try later.send("1e") }
            later.pass(.seconds(5))
            later.end()
            for case .store(let stored) in later.events { record = stored }
        }
        #expect(record.pendingChange == nil && record.isAware)
    }

    @Test("a database that differs from the one of the record counts as a change of everything")
    func otherDatabase() throws {
        var client = try Self.client(isRobust: false)
        var record = ClientRecord(checksum: client.database.checksum ^ 1)
        record.configurations = [9: .indications]
        record.features = 1
        client.secure(ClientSecurity(isBonded: true))
        client.perform(client.server.identified(record, in: client.database, at: client.now))
        #expect(client.takeSent() == ["1d08000100ffff"])
        #expect(try client.send("0a1000") == ["010a100012"])
    }

    @Test("features are set and never cleared; unknown bits are not kept")
    func clientFeaturesAreSetAndNeverCleared() throws {
        var client = try Self.client()
        #expect(try client.send("120b00f4") == ["01120b0013"])
        #expect(try client.send("120b00ff07") == ["13"])
        #expect(try client.send("0a0b00") == ["0b07"])
    }
}
