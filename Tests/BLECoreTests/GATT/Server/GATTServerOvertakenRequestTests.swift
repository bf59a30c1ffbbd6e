import Testing

@testable import BLECore

/// Requests whose response is due while the services change: Core Vol 3 Part F, 3.3.1, and Part G, 2.5.2. The errors
/// are those of Part F, 3.4.1.1.
@Suite("GATT server: requests that a change overtakes") struct GATTServerOvertakenRequestTests {
    /// What happens to the service at 14 to 16.
    enum Change: CaseIterable {
        case withdrawn
        /// Another service has its handles, as after a change of a peer's firmware.
        case replaced
        /// It stays, and another service is published.
        case elsewhere

        /// The error for a request of its value.
        func code(isRobust: Bool) -> String {
            if isRobust { return "12" }
            return self == .withdrawn ? "01" : "0e"
        }
    }

    private static let asked = AttributeAccess(AccessRequirement(.open, isAuthorized: true))

    private static func service(_ access: AttributeAccess = AttributeAccess()) -> ServiceDefinition {
        ServiceDefinition(
            0xFFF0,
            [
                CharacteristicDefinition(
                    0xFFF1, [.read, .write, .writeWithoutResponse], value: .handled, access: access)
            ])
    }

    private static let other = ServiceDefinition(
        0xFFE0,
        [CharacteristicDefinition(0xFFE1, [.read, .write, .writeWithoutResponse], value: .stored([0xEE]))])
    private static let stored = ServiceDefinition(
        0xFFF3, [CharacteristicDefinition(0xFFF4, [.read, .write], value: .stored([1, 2]))])

    /// A value of the application at 16, and one of the database at 19.
    private static func client(
        isRobust: Bool = false, access: AttributeAccess = AttributeAccess()
    ) throws -> ServedClient {
        var client = try ServedClient([service(access), stored])
        if isRobust { try client.send("120b0001") }
        client.events.removeAll()
        return client
    }

    private static func apply(_ change: Change, _ client: inout ServedClient) throws {
        try client.changeDatabase { database in
            switch change {
            case .withdrawn: return try database.withdraw(14)
            case .replaced:
                database = try ServedClient([other, stored]).database
                return 14...16
            case .elsewhere: return try database.publish([other]).affected
            }
        }
    }

    // MARK: Reads

    static let reads: [(request: String, response: String)] = [
        ("0a1000", "0b07"), ("0c10000000", "0d07"), ("0e10001300", "0f070102"), ("2013001000", "2102000102010007"),
    ]

    @Test("a value that the application returns for an attribute that has changed is not sent", arguments: reads)
    func read(_ request: String, _ response: String) throws {
        for isRobust in [false, true] {
            for change in Change.allCases {
                var client = try Self.client(isRobust: isRobust)
                #expect(try client.send(request).isEmpty)
                try Self.apply(change, &client)
                #expect(client.takeSent().isEmpty)
                let error = "01\(request.prefix(2))1000\(change.code(isRobust: isRobust))"
                let expected = change == .elsewhere ? response : error
                #expect(client.handlerReturns(.value([7])) == [expected])
                // Database Out Of Sync is sent once.
                let isUnaware = isRobust && change == .elsewhere
                #expect(try client.send("0a1300") == [isUnaware ? "010a130012" : "0b0102"])
            }
        }
    }

    @Test("the application's own error for an attribute that is gone is not sent either")
    func refusedRead() throws {
        var client = try Self.client()
        try client.send("0a1000")
        try Self.apply(.withdrawn, &client)
        #expect(client.handlerReturns(.rejected(ATTErrorCode(rawValue: 0x9F))) == ["010a100001"])
    }

    @Test("a client that has confirmed the change meanwhile is not out of sync")
    func confirmedMeanwhile() throws {
        for (change, code) in [(Change.withdrawn, "01"), (Change.replaced, "0e")] {
            var client = try Self.client(isRobust: true)
            try client.send("1209000200")
            try client.send("0a1000")
            try Self.apply(change, &client)
            #expect(client.takeSent() == ["1d08000e001000"])
            #expect(try client.send("1e").isEmpty)
            #expect(client.handlerReturns(.value([7])) == ["010a1000" + code])
            #expect(try client.send("0a1300") == ["0b0102"])
        }
    }

    @Test("reading a type lists what has that type once the application has returned")
    func readByType() throws {
        let service = ServiceDefinition(0xFFF0, [CharacteristicDefinition(0xFFF1, .read, value: .handled)])
        for questions in 1...2 {
            var client = try ServedClient([service, service])
            #expect(try client.send("080100fffff1ff").isEmpty)
            if questions == 2 { #expect(client.handlerReturns(.value([1])).isEmpty) }
            try client.changeDatabase { try $0.withdraw(14) }
            if questions == 1 { #expect(client.handlerReturns(.value([1])).isEmpty) }
            #expect(client.handlerReturns(.value([2])) == ["0903130002"])
            #expect(client.questions == [.read(16, offset: 0), .read(19, offset: 0)])
        }
        // Another attribute of the same type has the handle: its value is not that of the former one.
        var client = try ServedClient([service])
        try client.send("080100fffff1ff")
        try client.changeDatabase { _ in 14...16 }
        #expect(client.handlerReturns(.value([1])).isEmpty)
        #expect(client.handlerReturns(.value([2])) == ["0903100002"])
        #expect(client.questions == [.read(16, offset: 0), .read(16, offset: 0)])
    }

    // MARK: Writes

    @Test("a write that the application has made is confirmed, whatever has become of the attribute")
    func write() throws {
        for isRobust in [false, true] {
            for change in Change.allCases {
                var client = try Self.client(isRobust: isRobust)
                #expect(try client.send("12100009").isEmpty)
                try Self.apply(change, &client)
                #expect(client.handlerReturns(.accepted) == ["13"])
                if change == .replaced { #expect(client.database[16]?.value == [0xEE]) }
                #expect(client.takeEvents().isEmpty)
            }
        }
    }

    @Test("a write that the application has rejected for an attribute that has changed gets the error of the change")
    func refusedWrite() throws {
        for isRobust in [false, true] {
            for change in [Change.withdrawn, .replaced] {
                var client = try Self.client(isRobust: isRobust)
                try client.send("12100009")
                try Self.apply(change, &client)
                let code = change.code(isRobust: isRobust)
                #expect(client.handlerReturns(.rejected(.valueNotAllowed)) == ["01121000" + code])
            }
        }
    }

    @Test("a value that the database was to keep is not written to the attribute that has the handle now")
    func storedWrite() throws {
        var attribute = ServerAttribute(handle: 16, type: 0xFFF1, value: [1])
        attribute.asksToWrite = true
        attribute.writeMethods = .request
        var client = ServedClient(ServerDatabase(attributes: [attribute]))
        #expect(try client.send("12100009").isEmpty)
        try client.changeDatabase { database in
            database = ServerDatabase(attributes: [ServerAttribute(handle: 16, type: 0xFFE1, value: [0xEE])])
            return 16...16
        }
        #expect(client.handlerReturns(.accepted) == ["011210000e"])
        #expect(client.database[16]?.value == [0xEE])
        #expect(client.takeEvents().isEmpty)
    }

    @Test(
        "an authorization is not one for the attribute that has the handle now",
        arguments: ["0a1000", "12100009", "161000000009"])
    func authorization(_ request: String) throws {
        for isRobust in [false, true] {
            for change in [Change.withdrawn, .replaced] {
                var client = try Self.client(isRobust: isRobust, access: Self.asked)
                #expect(try client.send(request).isEmpty)
                try Self.apply(change, &client)
                let error = "01\(request.prefix(2))1000\(change.code(isRobust: isRobust))"
                #expect(client.handlerReturns(.accepted) == [error])
                #expect(client.questions.count == 1)
                // Nothing was queued.
                #expect(try client.send("1801") == ["19"])
                if change == .replaced { #expect(client.database[16]?.value == [0xEE]) }
            }
        }
    }

    @Test(
        "a command that waits for its authorization is dropped, and one that was carried out is not counted as dropped")
    func commands() throws {
        var client = try Self.client(access: Self.asked)
        try client.send("52100009")
        try Self.apply(.replaced, &client)
        #expect(client.handlerReturns(.accepted).isEmpty)
        #expect(client.questions == [.authorize(16, isWrite: true)])
        #expect(client.server.statistics.droppedCommands == 1)
        #expect(client.database[16]?.value == [0xEE])
        var other = try Self.client()
        try other.send("52100009")
        try Self.apply(.withdrawn, &other)
        #expect(other.handlerReturns(.accepted).isEmpty)
        #expect(other.server.statistics.droppedCommands == 0)
    }

    // MARK: Prepared writes

    @Test(
        "writes that were prepared for an attribute that has changed are not executed, and the application is not asked"
    )
    func preparedBefore() throws {
        for change in Change.allCases {
            var client = try Self.client()
            #expect(try client.send("161000000009") == ["171000000009"])
            #expect(try client.send("161300000008") == ["171300000008"])
            try Self.apply(change, &client)
            let received = try client.send("1801")
            guard change != .elsewhere else {
                #expect(received.isEmpty)
                #expect(client.handlerReturns(.accepted) == ["19"])
                #expect(client.database[19]?.value == [8])
                continue
            }
            #expect(received == ["01181000" + change.code(isRobust: false)])
            #expect(client.questions.isEmpty)
            #expect(client.database[19]?.value == [1, 2])
            // The queue is empty, and new writes are not taken for the former ones.
            #expect(try client.send("161300000008") == ["171300000008"])
            #expect(try client.send("1801") == ["19"])
            #expect(client.database[19]?.value == [8])
        }
    }

    @Test("prepared writes that the application has made are confirmed, and those of other attributes are made")
    func executed() throws {
        for isRobust in [false, true] {
            for change in Change.allCases {
                var client = try Self.client(isRobust: isRobust)
                for request in ["161000000009", "161300000008"] { try client.send(request) }
                #expect(try client.send("1801").isEmpty)
                try Self.apply(change, &client)
                #expect(client.handlerReturns(.accepted) == ["19"])
                #expect(client.database[19]?.value == [8])
                if change == .replaced { #expect(client.database[16]?.value == [0xEE]) }
                #expect(client.takeEvents() == [.wrote(19, [8])])
            }
        }
    }

    @Test("a prepared write that cannot be made any more is named by an error, and nothing is stored")
    func executedInPart() throws {
        for isRobust in [false, true] {
            var client = try Self.client(isRobust: isRobust)
            for request in ["161000000009", "161300000008"] { try client.send(request) }
            #expect(try client.send("1801").isEmpty)
            try client.changeDatabase { try $0.withdraw(17) }
            #expect(client.handlerReturns(.accepted) == ["01181300" + (isRobust ? "12" : "01")])
            #expect(client.takeEvents().isEmpty)
            #expect(try client.send("1801") == ["19"])
            #expect(client.questions.count == 1)
        }
        var client = try Self.client()
        for request in ["161000000009", "161300000008"] { try client.send(request) }
        try client.send("1801")
        try Self.apply(.withdrawn, &client)
        #expect(client.handlerReturns(.rejected(.valueNotAllowed, handle: 16)) == ["0118100001"])
        #expect(client.database[19]?.value == [1, 2])
    }

    // MARK: Responses that wait for room

    static let waiting: [(request: String, response: String, code: String, robustCode: String)] = [
        ("0a1300", "0b0102", "01", "12"), ("0c13000100", "0d02", "01", "12"),
        ("0e13000300", "0f010254657374", "01", "12"),
        ("2003001300", "2104005465737402000102", "01", "12"),
        // A list of attributes, of which others may be left.
        ("080100fffff4ff", "090413000102", "0e", "0e"), ("060100ffff0028f3ff", "0711001300", "0e", "0e"),
    ]

    @Test("a response that waits for room is an error once the attribute of its value is gone", arguments: waiting)
    func waitingResponse(_ request: String, _ response: String, _ code: String, _ robustCode: String) throws {
        for isRobust in [false, true] {
            var client = try Self.client(isRobust: isRobust)
            client.hasRoom = false
            try client.send(request)
            try client.changeDatabase { try $0.withdraw(17) }
            client.makeRoom()
            let handle = request.hasPrefix("06") ? "1100" : "1300"
            let error = "01\(request.prefix(2))\(handle)\(isRobust ? robustCode : code)"
            #expect(client.takeSent() == [error])
            #expect(client.server.statistics.errors == 1)
            // The next request is served.
            #expect(try client.send("021700") == ["030502"])
            var unaffected = try Self.client(isRobust: isRobust)
            unaffected.hasRoom = false
            try unaffected.send(request)
            try Self.apply(.withdrawn, &unaffected)
            unaffected.makeRoom()
            #expect(unaffected.takeSent() == [response])
        }
    }

    @Test("a change while a response is offered makes it an error if there is no room, and not if it was written")
    func changedWhileOffered() throws {
        for isWritten in [false, true] {
            var client = try Self.client()
            let actions = client.server.received([0x0A, 19, 0], in: &client.database, at: client.now)
            #expect(actions == [.send([0x0B, 1, 2])])
            try client.changeDatabase { try $0.withdraw(17) }
            if isWritten {
                client.perform(client.server.sent(in: client.database, at: client.now))
                #expect(client.takeSent().isEmpty)
            } else {
                client.server.blocked()
                client.makeRoom()
                #expect(client.takeSent() == ["010a130001"])
            }
            #expect(client.server.isSettled)
        }
    }
}
