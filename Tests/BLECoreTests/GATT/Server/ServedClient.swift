@testable import BLECore

/// A server, its database, and an owner that writes each packet at once and has the application decide at once by
/// default.
struct ServedClient {
    var database: ServerDatabase
    var server: GATTServer
    var now = BootInstant(nanoseconds: 1_000_000_000)
    /// The application; `nil` leaves the question open.
    var decide: (GATTServer.Question) -> GATTServer.HandlerResult? = { _ in nil }
    /// Whether the kernel has room.
    var hasRoom = true

    private(set) var sent: [[UInt8]] = []
    var events: [GATTServer.Action] = []
    private(set) var open: [(token: GATTServer.Token, question: GATTServer.Question)] = []
    private(set) var questions: [GATTServer.Question] = []

    init(_ database: ServerDatabase, limits: GATTServer.Limits = GATTServer.Limits()) {
        self.database = database
        server = GATTServer(limits: limits)
    }

    /// Generic Access at 1 to 5, Generic Attribute at 6 to 13 (the configuration of Service Changed is 9, the features
    /// 11, the hash 13), and the services after that.
    init(_ services: [ServiceDefinition], limits: GATTServer.Limits = GATTServer.Limits()) throws {
        var database = ServerDatabase(name: "Test", appearance: 0)
        _ = try database.publish(services)
        self.init(database, limits: limits)
    }

    mutating func perform(_ actions: [GATTServer.Action]) {
        for action in actions {
            switch action {
            case .send(let packet):
                guard hasRoom else {
                    server.blocked()
                    continue
                }
                sent.append(packet)
                perform(server.sent(in: database, at: now))
            case .ask(let token, let question, _):
                questions.append(question)
                if let result = decide(question) {
                    perform(server.finished(token, result, in: &database, at: now))
                } else {
                    open.append((token, question))
                }
            default: events.append(action)
            }
        }
    }

    /// The client sends a packet, in hexadecimal. Returns what it receives meanwhile.
    @discardableResult
    mutating func send(_ packet: String) throws -> [String] {
        perform(server.received(try Hex.decode(packet), in: &database, at: now))
        return takeSent()
    }

    @discardableResult
    mutating func takeSent() -> [String] {
        defer { sent = [] }
        return sent.map { Hex.encode($0) }
    }

    mutating func takeEvents() -> [GATTServer.Action] {
        defer { events = [] }
        return events
    }

    /// The application returns its result for the oldest open question.
    mutating func handlerReturns(_ result: GATTServer.HandlerResult) -> [String] {
        guard !open.isEmpty else { return ["nothing was asked"] }
        let token = open.removeFirst().token
        perform(server.finished(token, result, in: &database, at: now))
        return takeSent()
    }

    @discardableResult
    mutating func update(_ value: [UInt8], of handle: AttributeHandle, id: UInt64 = 0) -> GATTServer.UpdateOutcome {
        let (outcome, actions) = server.update(value, of: handle, id: .init(id), in: database)
        perform(actions)
        return outcome
    }

    mutating func secure(_ security: ClientSecurity) {
        perform(server.securityChanged(security, in: database, at: now))
    }

    mutating func pass(_ time: Duration) {
        now = now + time
        if let due = server.nextDeadline, due <= now { perform(server.timePassed(in: database, at: now)) }
    }

    mutating func makeRoom() {
        hasRoom = true
        perform(server.writable(in: database))
    }

    mutating func changeDatabase(_ change: (inout ServerDatabase) throws -> ClosedRange<AttributeHandle>?) throws {
        guard let range = try change(&database) else { return }
        perform(server.databaseChanged(range, in: database, at: now))
    }

    mutating func end() {
        perform(server.ended(in: database))
    }

    var closeReason: GATTServer.CloseReason? {
        for case .close(let reason) in events { return reason }
        return nil
    }
}
