import TestSupport
import Testing

@testable import BLECore

/// The rules of a server that take more than one packet. The rows are those of the server's design.
@Suite("GATT server") struct GATTServerTests {
    /// A service at 14; the value of the one characteristic at 16, its configuration, if any, at 17.
    private static func client(
        _ properties: CharacteristicProperties, _ value: DefinedValue = .stored([1]),
        access: AttributeAccess = AttributeAccess(), limits: GATTServer.Limits = GATTServer.Limits()
    ) throws -> ServedClient {
        try ServedClient(
            [ServiceDefinition(0xFFF0, [CharacteristicDefinition(0xFFF1, properties, value: value, access: access)])],
            limits: limits)
    }

    // MARK: Values of the application

    @Test("The application's value is the response, whenever it comes")
    func handledRead() throws {
        var client = try Self.client(.read, .handled)
        #expect(try client.send("0a1000").isEmpty)
        #expect(client.questions == [.read(16, offset: 0)])
        #expect(client.handlerReturns(.value([1, 2])) == ["0b0102"])
        #expect(try client.send("0a1000").isEmpty)
        #expect(client.handlerReturns(.rejected(ATTErrorCode(rawValue: 0x9F))) == ["010a10009f"])
        #expect(try client.send("0a1000").isEmpty)
        #expect(client.handlerReturns(.rejected(ATTErrorCode(rawValue: 0))) == ["010a10000e"])
        #expect(try client.send("0a1000").isEmpty)
        #expect(client.handlerReturns(.value([UInt8](repeating: 0, count: 513))) == ["010a10000e"])
    }

    @Test("an application that does not return costs one request, and its late result has no effect", .row("P23"))
    func handlerTimeout() throws {
        var client = try Self.client([.read, .write], .handled)
        try client.send("0a1000")
        client.pass(.milliseconds(19_999))
        #expect(client.takeSent().isEmpty)
        client.pass(.milliseconds(1))
        #expect(client.takeSent() == ["010a10000e"])
        #expect(client.server.statistics.handlerTimeouts == 1)
        #expect(try client.send("12100009").isEmpty)
        #expect(client.handlerReturns(.value([1])).isEmpty)
        #expect(client.server.statistics.lateResults == 1)
        #expect(client.handlerReturns(.accepted) == ["13"])
        #expect(client.closeReason == nil)
    }

    @Test("the time of the application counts for a request, not for each of its questions", .row("P23"))
    func handlerTimeOfSeveralQuestions() throws {
        let characteristics = (0..<2).map { _ in CharacteristicDefinition(0xFFF1, .read, value: .handled) }
        let requests = [
            ("080100fffff1ff", "010812000e"), ("0e10001200", "010e12000e"), ("2010001200", "012012000e"),
        ]
        for (request, response) in requests {
            var client = try ServedClient([ServiceDefinition(0xFFF0, characteristics)])
            #expect(try client.send(request).isEmpty)
            client.pass(.seconds(16))
            #expect(client.handlerReturns(.value([1])).isEmpty)
            client.pass(.milliseconds(3_999))
            #expect(client.takeSent().isEmpty)
            client.pass(.milliseconds(1))
            #expect(client.takeSent() == [response])
        }
        let access = AttributeAccess(AccessRequirement(.open, isAuthorized: true))
        var authorized = try Self.client([.read, .writeWithoutResponse], .handled, access: access)
        try authorized.send("0a1000")
        authorized.pass(.seconds(16))
        #expect(authorized.handlerReturns(.accepted).isEmpty)
        authorized.pass(.seconds(4))
        #expect(authorized.takeSent() == ["010a10000e"])
        // A command waits as long as a request.
        try authorized.send("52100001")
        #expect(authorized.server.nextDeadline == authorized.now + .seconds(20))
    }

    @Test("A question to the application has the deadline of its result")
    func handlerDeadline() throws {
        var client = try Self.client(.read, .handled, access: .init(.init(.open, isAuthorized: true)))
        let request = client.server.received([0x0A, 16, 0], in: &client.database, at: client.now)
        let end = client.now + .seconds(20)
        guard case .ask(let token, .authorize(16, isWrite: false), until: end)? = request.first else {
            Issue.record("not asked whether it may: \(request)")
            return
        }
        let later = client.server.finished(token, .accepted, in: &client.database, at: client.now + .seconds(16))
        guard case .ask(_, .read(16, offset: 0), until: end)? = later.first else {
            Issue.record("not asked for the value: \(later)")
            return
        }
    }

    @Test("A result of another kind than the question has no effect")
    func otherKind() throws {
        var client = try Self.client([.read, .write], .handled)
        try client.send("0a1000")
        let token = try #require(client.open.first?.token)
        client.perform(client.server.finished(token, .accepted, in: &client.database, at: client.now))
        #expect(client.takeSent().isEmpty)
        #expect(client.handlerReturns(.value([5])) == ["0b05"])
    }

    @Test("the parts of a long value come from one result; writing, time and the next read end that")
    func thePartsOfALongValueComeFromOneResult() throws {
        var client = try Self.client([.read, .write], .handled)
        var value: UInt8 = 0
        client.decide = { question in
            guard case .read = question else { return .accepted }
            value += 1
            return .value([UInt8](repeating: value, count: 30))
        }
        #expect(try client.send("0a1000") == ["0b" + String(repeating: "01", count: 22)])
        #expect(try client.send("0c10001600") == ["0d" + String(repeating: "01", count: 8)])
        client.pass(.seconds(30))
        #expect(try client.send("0c10001600") == ["0d" + String(repeating: "02", count: 8)])
        #expect(try client.send("0c10001d00") == ["0d02"])
        #expect(try client.send("0c10000000") == ["0d" + String(repeating: "03", count: 22)])
        try client.send("12100000")
        #expect(try client.send("0c10001d00") == ["0d04"])
    }

    @Test("a value in parts is asked for at each offset, and leaves the parts of other values")
    func valueInParts() throws {
        var client = try ServedClient([
            ServiceDefinition(
                0xFFF0,
                [
                    CharacteristicDefinition(0xFFF1, .read, value: .handledInParts),
                    CharacteristicDefinition(0xFFF2, .read, value: .handled),
                ])
        ])
        var value: UInt8 = 0
        client.decide = { _ in
            value += 1
            return .value([UInt8](repeating: value, count: 30))
        }
        #expect(try client.send("0a1200") == ["0b" + String(repeating: "01", count: 22)])
        #expect(try client.send("0a1000") == ["0b" + String(repeating: "02", count: 22)])
        #expect(try client.send("0c10001600") == ["0d" + String(repeating: "03", count: 8)])
        #expect(try client.send("0c10001d00") == ["0d04"])
        #expect(try client.send("0c12001600") == ["0d" + String(repeating: "01", count: 8)])
        let parts: [GATTServer.Question] = [
            .read(18, offset: 0), .read(16, offset: 0), .read(16, offset: 22), .read(16, offset: 29),
        ]
        #expect(client.questions == parts)
    }

    @Test("reading a type asks for each value once, and the first one's error is the response", .row("P22"))
    func handledReadByType() throws {
        var client = try ServedClient([
            ServiceDefinition(
                0xFFF0, (0..<4).map { _ in CharacteristicDefinition(0xFFF1, .read, value: .handled) })
        ])
        client.decide = { question in
            guard case .read(let handle, _) = question else { return nil }
            return handle == 20 ? .rejected(.unlikelyError) : .value([UInt8(handle)])
        }
        #expect(try client.send("080100fffff1ff") == ["0903 100010 120012".filter { $0 != " " }])
        #expect(client.questions == [.read(16, offset: 0), .read(18, offset: 0), .read(20, offset: 0)])
        #expect(try client.send("081300fffff1ff") == ["010814000e"])
    }

    // MARK: Writes

    @Test("a shorter write leaves the tail of a fixed length, and replaces any other value")
    func aShorterWriteKeepsTheTailOfAFixedLengthOnly() throws {
        var fixed = try Self.client(.write, .stored([1, 2, 3], isFixedLength: true))
        #expect(try fixed.send("12100009") == ["13"])
        #expect(fixed.database[16]?.value == [9, 2, 3])
        #expect(fixed.takeEvents() == [.wrote(16, [9, 2, 3])])
        var other = try Self.client(.write, .stored([1, 2, 3]))
        #expect(try other.send("12100009") == ["13"])
        #expect(other.database[16]?.value == [9])
        let long = String(repeating: "00", count: 513)
        try other.send("020502")
        #expect(try other.send("121000" + long) == ["011210000d"])
    }

    @Test("the name has 248 bytes at most, also in prepared parts, and a new one is reported")
    func deviceName() throws {
        var client = ServedClient(ServerDatabase(name: "Test", appearance: 0, isNameWritable: true))
        try client.send("020502")
        let longest = String(repeating: "41", count: 248)
        #expect(try client.send("120300" + longest + "41") == ["011203000d"])
        #expect(client.database[3]?.value == Array("Test".utf8))
        #expect(client.takeEvents().isEmpty)
        #expect(try client.send("120300" + longest) == ["13"])
        #expect(client.takeEvents() == [.wrote(3, [UInt8](repeating: 0x41, count: 248))])
        for part in ["1603000000" + longest, "160300f80041"] { try client.send(part) }
        #expect(try client.send("1801") == ["011803000d"])
        #expect(client.database[3]?.value.count == 248)
    }

    @Test("the queue ends at 64 entries and at 4,096 bytes", .row("P04"))
    func queueLimits() throws {
        var entries = try Self.client(.write)
        for _ in 0..<64 { #expect(try entries.send("1610000000") == ["1710000000"]) }
        #expect(try entries.send("1610000000") == ["0116100009"])
        var bytes = try Self.client(.write)
        try bytes.send("020502")
        let part = String(repeating: "00", count: 256)
        for _ in 0..<16 { _ = try bytes.send("1610000000" + part) }
        #expect(try bytes.send("161000000000") == ["0116100009"])
        #expect(try bytes.send("1800") == ["19"])
        #expect(try bytes.send("161000000000") == ["171000000000"])
    }

    @Test("all prepared writes are executed together, or none", .row("P05"))
    func atomicExecution() throws {
        let characteristics = (0..<3).map { CharacteristicDefinition(0xFFF1, .write, value: .stored([UInt8($0)])) }
        var client = try ServedClient([ServiceDefinition(0xFFF0, characteristics)])
        func values(_ client: ServedClient) -> [[UInt8]?] { [16, 18, 20].map { client.database[$0]?.value } }
        for request in ["1610000000aa", "1612000000bb", "1614000500cc"] { try client.send(request) }
        #expect(try client.send("1801") == ["0118140007"])
        #expect(values(client) == [[0], [1], [2]])
        #expect(try client.send("1801") == ["19"])
        #expect(values(client) == [[0], [1], [2]])

        let long = String(repeating: "00", count: 300)
        try client.send("020502")
        for request in ["1610000000aa", "1612000000" + long, "1612002c01" + long] { try client.send(request) }
        #expect(try client.send("1801") == ["011812000d"])
        #expect(values(client) == [[0], [1], [2]])

        for request in ["1610000000aa", "1610000100bb", "1612000100cc"] { try client.send(request) }
        #expect(client.takeEvents().isEmpty)
        #expect(try client.send("1801") == ["19"])
        #expect(values(client) == [[0xAA, 0xBB], [1, 0xCC], [2]])
        #expect(client.takeEvents() == [.wrote(16, [0xAA, 0xBB]), .wrote(18, [1, 0xCC])])
    }

    @Test("the application gets the batch once, and its refusal leaves everything")
    func aRefusedBatchChangesNothing() throws {
        var client = try ServedClient([
            ServiceDefinition(
                0xFFF0,
                [
                    CharacteristicDefinition(0xFFF1, .write, value: .handled),
                    CharacteristicDefinition(0xFFF2, .write, value: .stored([0])),
                    CharacteristicDefinition(0xFFF3, .write, value: .handled),
                ])
        ])
        let parts = ["1610000000aa", "1612000000bb", "1614000700cc", "1614000800dd"]
        for part in parts { try client.send(part) }
        #expect(try client.send("1801").isEmpty)
        let batch: [GATTServer.WrittenValue] = [
            .init(handle: 16, offset: 0, value: [0xAA]), .init(handle: 20, offset: 7, value: [0xCC, 0xDD]),
        ]
        #expect(client.questions == [.write(batch)])
        #expect(client.handlerReturns(.rejected(.outOfRange, handle: 20)) == ["01181400ff"])
        #expect(client.database[18]?.value == [0])
        for part in parts { try client.send(part) }
        try client.send("1801")
        #expect(client.handlerReturns(.accepted) == ["19"])
        #expect(client.database[18]?.value == [0xBB])
    }

    @Test("unfinished commands are bounded in number and bytes, and the rest is reported", .row("P01"))
    func commandLimits() throws {
        var limits = GATTServer.Limits()
        limits.commands = 3
        limits.commandBytes = 4
        var client = try Self.client(.writeWithoutResponse, .handled, limits: limits)
        for _ in 0..<5 { #expect(try client.send("52100001").isEmpty) }
        #expect(client.questions.count == 3 && client.open.count == 3)
        #expect(client.takeEvents() == [.dropped(16), .dropped(16)])
        #expect(client.handlerReturns(.accepted).isEmpty)
        try client.send("521000010203")
        #expect(client.takeEvents() == [.dropped(16)])
        client.pass(.seconds(20))
        #expect(client.server.statistics.handlerTimeouts == 2 && client.server.nextDeadline == nil)
        #expect(client.takeEvents() == [.dropped(16), .dropped(16)], "too late is dropped as well")
        try client.send("5210000102")
        #expect(client.takeEvents().isEmpty)
    }

    @Test("a signed write is verified on an unencrypted link, and its counter is stored before it is used", .row("P19"))
    func signedWrites() throws {
        var client = try Self.client(.authenticatedSignedWrites)
        func packet(_ counter: UInt8) -> String { "d2100009" + Hex.encode([counter, 0, 0, 0]) + "1122334455667788" }
        try client.send(packet(5))
        #expect(client.questions.isEmpty)
        client.secure(ClientSecurity(keySize: 0, isBonded: true))
        client.decide = { if case .verify = $0 { .accepted } else { nil } }
        try client.send(packet(5))
        var record = ClientRecord(checksum: client.database.checksum)
        record.signCounter = 6
        #expect(client.takeEvents() == [.store(record), .wrote(16, [9])])
        for counter: UInt8 in [5, 4] { try client.send(packet(counter)) }
        #expect(client.questions.count == 1 && client.takeEvents().isEmpty)
        client.decide = { if case .verify = $0 { .rejected(.insufficientAuthentication) } else { nil } }
        try client.send(packet(6))
        #expect(client.questions.count == 2 && client.takeEvents().isEmpty)
        client.secure(ClientSecurity(isBonded: true))
        client.events.removeAll()
        try client.send(packet(7))
        #expect(client.questions.count == 2)
        #expect(client.takeEvents().isEmpty)
    }

    @Test("of two packets with one counter that wait for their verification, one is used", .row("P19"))
    func replayedCounter() throws {
        var client = try Self.client(.authenticatedSignedWrites)
        client.secure(ClientSecurity(keySize: 0, isBonded: true))
        for value in ["01", "02"] { try client.send("d21000" + value + "050000001122334455667788") }
        _ = client.handlerReturns(.accepted)
        _ = client.handlerReturns(.accepted)
        #expect(client.database[16]?.value == [1])
        var later = try Self.client(.authenticatedSignedWrites)
        var record = ClientRecord(checksum: later.database.checksum)
        record.signCounter = 6
        later.perform(later.server.identified(record, in: later.database, at: later.now))
        later.secure(ClientSecurity(keySize: 0, isBonded: true))
        try later.send("d2100001050000001122334455667788")
        #expect(later.questions.isEmpty)
        // Another bond has another key, whose counters begin again.
        let fresh = ClientRecord(checksum: later.database.checksum)
        later.perform(later.server.identified(fresh, isNewBond: true, in: later.database, at: later.now))
        try later.send("d2100001050000001122334455667788")
        #expect(later.questions.count == 1)
    }

    // MARK: Subscriptions

    @Test("a change of a configuration is reported once, and the end of the link ends all of them once")
    func configurationChangesAreReportedOnceAndEndWithTheLink() throws {
        var client = try Self.client([.notify, .indicate])
        for bits in ["0100", "0100", "0200", "0000"] { try client.send("121100" + bits) }
        #expect(
            client.takeEvents() == [
                .configured(16, .notifications, isRestored: false), .configured(16, .indications, isRestored: false),
                .configured(16, [], isRestored: false),
            ])
        try client.send("5211000300")
        #expect(try client.send("0a1100") == ["0b0300"])
        #expect(client.update([1], of: 16) == .notified)
        client.takeSent()
        client.events.removeAll()
        client.end()
        client.end()
        #expect(client.takeEvents() == [.configured(16, [], isRestored: false)])
        #expect(client.update([1], of: 16) == .closed)
        var other = ServedClient(client.database)
        #expect(other.update([1], of: 16) == .notSubscribed)
    }

    @Test("a configuration may be written in prepared parts", .row("P15"))
    func preparedConfiguration() throws {
        var client = try Self.client([.notify])
        for request in ["161100000001", "161100010000", "1801"] { try client.send(request) }
        #expect(client.update([1], of: 16) == .notified)
        for request in ["161100000004", "161100010000"] { try client.send(request) }
        #expect(try client.send("1801") == ["0118110013"])
    }

    @Test("a value that the client cannot receive is refused, not cut")
    func tooLong() throws {
        var client = try Self.client(.notify)
        try client.send("1211000100")
        #expect(client.update([UInt8](repeating: 0, count: 21), of: 16) == .tooLong(limit: 20))
        #expect(client.takeSent().isEmpty)
        #expect(client.update([UInt8](repeating: 0, count: 20), of: 16) == .notified)
        #expect(client.server.maximumUpdateLength == 20)
        // The largest MTU has room for two bytes more than a value may have.
        try client.send("020502")
        #expect(client.server.maximumUpdateLength == 512)
        #expect(client.update([UInt8](repeating: 0, count: 513), of: 16) == .tooLong(limit: 512))
        #expect(client.update([UInt8](repeating: 0, count: 512), of: 16) == .notified)
    }

    @Test("several values in one packet, if the client can read that; never one, never cut")
    func multipleNotifications() throws {
        var client = try ServedClient([
            ServiceDefinition(0xFFF0, (0..<3).map { _ in CharacteristicDefinition(0xFFF1, .notify, value: .handled) })
        ])
        for configuration in ["121100", "121400", "121700"] { try client.send(configuration + "0100") }
        let values: [(id: GATTServer.UpdateID, handle: AttributeHandle, value: [UInt8])] = [
            (.init(1), 16, [1]), (.init(2), 19, [2, 3]), (.init(3), 22, [4]),
        ]
        func notify(_ client: inout ServedClient) -> [GATTServer.UpdateOutcome] {
            let (outcomes, actions) = client.server.notify(values, in: client.database)
            client.perform(actions)
            return outcomes
        }
        client.events.removeAll()
        let ends = [1, 2, 3].map { (id: UInt64) in GATTServer.Action.notified(.init(id), failure: nil) }
        #expect(notify(&client) == [.notified, .notified, .notified])
        #expect(client.takeSent() == ["1b100001", "1b13000203", "1b160004"])
        #expect(client.takeEvents() == ends)
        try client.send("120b0004")
        _ = notify(&client)
        #expect(client.takeSent() == ["23 10000100 01 13000200 0203 16000100 04".filter { $0 != " " }])
        #expect(client.takeEvents() == ends)
        try client.send("1214000000")
        #expect(notify(&client) == [.notified, .notSubscribed, .notified])
        #expect(client.takeSent() == ["23 10000100 01 16000100 04".filter { $0 != " " }])
        try client.send("1217000000")
        _ = notify(&client)
        #expect(client.takeSent() == ["1b100001"])
        client.hasRoom = false
        #expect(notify(&client).first == .notified)
        #expect(notify(&client) == [.full, .notSubscribed, .notSubscribed])
    }

    @Test("an update that waits is cancelled: it is not sent, and the values beside it are")
    func cancelledUpdates() throws {
        var client = try ServedClient([
            ServiceDefinition(
                0xFFF0,
                [
                    CharacteristicDefinition(0xFFF1, .notify, value: .handled),
                    CharacteristicDefinition(0xFFF2, .notify, value: .handled),
                    CharacteristicDefinition(0xFFF3, .indicate, value: .handled),
                ])
        ])
        for request in ["1211000100", "1214000100", "1217000200", "120b0004"] { try client.send(request) }
        func cancel(_ id: UInt64) { client.perform(client.server.cancelUpdate(.init(id), in: client.database)) }
        client.hasRoom = false
        let (outcomes, actions) = client.server.notify(
            [(.init(1), 16, [1]), (.init(2), 19, [2])], in: client.database)
        #expect(outcomes == [.notified, .notified])
        client.perform(actions)
        for id: UInt64 in 3...5 { client.update([UInt8(id)], of: 22, id: id) }
        client.events.removeAll()
        for id: UInt64 in [1, 4, 9] { cancel(id) }
        #expect(client.takeEvents().isEmpty)
        client.makeRoom()
        #expect(client.takeSent() == ["1b130002", "1d160003"])
        #expect(client.takeEvents() == [.notified(.init(2), failure: nil), .readyToUpdate])
        #expect(try client.send("1e") == ["1d160005"])
        // What was sent cannot be cancelled.
        for id: UInt64 in [2, 5] { cancel(id) }
        client.events.removeAll()
        try client.send("1e")
        #expect(client.takeEvents() == [.finish(.init(5), failure: nil)])

        client.hasRoom = false
        #expect(client.update([6], of: 16, id: 6) == .notified)
        cancel(6)
        let hasRoom = client.server.hasRoom(for: 16, in: client.database)
        #expect(!hasRoom, "the system has none")
        client.makeRoom()
        #expect(client.takeSent().isEmpty)
        #expect(client.takeEvents() == [.readyToUpdate])
    }

    @Test("an indication that waits for room is cancelled, and the next one takes its place; one that was sent is not")
    func cancelledIndication() throws {
        var client = try Self.client([.read, .indicate])
        try client.send("1211000200")
        client.events.removeAll()
        client.hasRoom = false
        for id: UInt64 in 1...2 { client.update([UInt8(id)], of: 16, id: id) }
        client.perform(client.server.cancelUpdate(.init(1), in: client.database))
        client.makeRoom()
        #expect(client.takeSent() == ["1d100002"])
        #expect(client.takeEvents() == [.readyToUpdate])
        client.perform(client.server.cancelUpdate(.init(2), in: client.database))
        try client.send("1e")
        #expect(client.takeEvents() == [.finish(.init(2), failure: nil)])
    }

    @Test("the next indication waits for the confirmation; requests do not")
    func theNextIndicationWaitsForTheConfirmation() throws {
        var client = try Self.client([.read, .indicate])
        try client.send("1211000200")
        client.events.removeAll()
        #expect(client.update([1], of: 16, id: 1) == .indicated)
        #expect(client.update([2], of: 16, id: 2) == .indicated)
        #expect(client.takeSent() == ["1d100001"])
        #expect(try client.send("0a1000") == ["0b01"])
        #expect(try client.send("1e") == ["1d100002"])
        #expect(try client.send("1e").isEmpty)
        #expect(client.takeEvents() == [.finish(.init(1), failure: nil), .finish(.init(2), failure: nil)])
    }

    @Test("an indication that is not confirmed for 30 s closes the link, and every one ends once", .row("P02"))
    func confirmationTimeout() throws {
        var client = try Self.client(.indicate)
        try client.send("1211000200")
        client.events.removeAll()
        client.hasRoom = false
        client.update([1], of: 16, id: 1)
        client.update([2], of: 16, id: 2)
        client.pass(.seconds(60))
        #expect(client.closeReason == nil)
        client.makeRoom()
        #expect(client.takeSent() == ["1d100001"])
        client.pass(.milliseconds(29_999))
        #expect(client.closeReason == nil)
        client.pass(.milliseconds(1))
        client.end()
        #expect(
            client.takeEvents() == [
                .finish(.init(1), failure: .timedOut), .finish(.init(2), failure: .closed),
                .configured(16, [], isRestored: false), .close(.confirmationTimeout),
            ])
        #expect(try client.send("1e").isEmpty && client.server.nextDeadline == nil)
    }

    @Test("a confirmation that nobody waits for is counted and ignored", .row("P03"))
    func strayConfirmations() throws {
        var client = try Self.client([.read, .indicate])
        for _ in 0..<10_000 { try client.send("1e") }
        #expect(client.server.statistics.strayConfirmations == 10_000)
        #expect(try client.send("0a1000") == ["0b01"])
        try client.send("1211000200")
        client.hasRoom = false
        client.update([1], of: 16)
        try client.send("1e")
        #expect(client.server.statistics.strayConfirmations == 10_001)
    }

    @Test("Unsubscribing ends the indications that wait")
    func unsubscribingEndsWaitingIndications() throws {
        var client = try Self.client(.indicate)
        try client.send("1211000200")
        client.update([1], of: 16, id: 1)
        client.update([2], of: 16, id: 2)
        client.events.removeAll()
        try client.send("1211000000")
        #expect(
            client.takeEvents() == [
                .configured(16, [], isRestored: false), .finish(.init(2), failure: .notSubscribed),
            ])
        try client.send("1e")
        #expect(client.takeEvents() == [.finish(.init(1), failure: nil)])
    }

    @Test(
        "a link without room takes one notification and a few indications, and says when it has room again", .row("P13")
    )
    func aLinkWithoutRoomReportsWhenItHasRoomAgain() throws {
        var limits = GATTServer.Limits()
        limits.waitingIndications = 2
        var client = try ServedClient(
            [
                ServiceDefinition(
                    0xFFF0,
                    [
                        CharacteristicDefinition(0xFFF1, .notify, value: .handled),
                        CharacteristicDefinition(0xFFF2, .indicate, value: .handled),
                    ])
            ], limits: limits)
        try client.send("1211000100")
        try client.send("1214000200")
        client.events.removeAll()
        client.hasRoom = false
        #expect(client.update([1], of: 16) == .notified)
        #expect(client.update([2], of: 16) == .full)
        for _ in 0..<3 { #expect(client.update([3], of: 19) == .indicated) }
        #expect(client.update([3], of: 19) == .full)
        #expect(client.takeEvents().isEmpty)
        client.makeRoom()
        #expect(client.takeSent() == ["1b100001", "1d130003"])
        // Notifications do not wait for the confirmations of indications.
        #expect(client.takeEvents() == [.notified(.init(0), failure: nil), .readyToUpdate])
        #expect(client.update([4], of: 16) == .notified)
        #expect(client.takeSent() == ["1b100004"])
        #expect(client.takeEvents() == [.notified(.init(0), failure: nil)])
        try client.send("1e")
        #expect(client.takeEvents() == [.finish(.init(0), failure: nil), .readyToUpdate])
    }

    @Test("a notification that waits for room ends once: when it is written, or with the link")
    func endOfNotifications() throws {
        var client = try Self.client(.notify)
        try client.send("1211000100")
        client.events.removeAll()
        client.hasRoom = false
        #expect(client.update([1], of: 16, id: 1) == .notified)
        #expect(client.takeEvents().isEmpty)
        client.makeRoom()
        #expect(client.takeEvents() == [.notified(.init(1), failure: nil)])
        client.hasRoom = false
        #expect(client.update([2], of: 16, id: 2) == .notified)
        client.end()
        client.end()
        #expect(
            client.takeEvents() == [.notified(.init(2), failure: .closed), .configured(16, [], isRestored: false)])
    }

    @Test("A packet that the system never sends: a notification is dropped, a response closes the link")
    func anUnsendableNotificationIsDroppedAndAnUnsendableResponseClosesTheLink() throws {
        var client = try Self.client([.read, .notify])
        try client.send("1211000100")
        let (_, actions) = client.server.update([1], of: 16, id: .init(1), in: client.database)
        #expect(actions == [.send([0x1B, 16, 0, 1])])
        #expect(client.server.refused(in: client.database) == [.notified(.init(1), failure: .unsendable)])
        #expect(try client.send("0a1000") == ["0b01"])
        let request = client.server.received([0x0A, 16, 0], in: &client.database, at: client.now)
        #expect(request == [.send([0x0B, 1])])
        client.perform(client.server.refused(in: client.database))
        #expect(client.closeReason == .unsendable)
    }
}
