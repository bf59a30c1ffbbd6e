package import BLECore

/// A dialogue of `Fixtures/gatt`: what another implementation expects of a server that has one of the databases there.
/// The heads of the files say where they come from.
package struct ServerDialogue: Hashable, Sendable, CustomStringConvertible {
    package enum Step: Hashable, Sendable {
        /// The client sends a packet.
        case request([UInt8])
        /// The server sends a packet.
        case response([UInt8])
        /// The application sends a value to the client.
        case update(AttributeHandle, [UInt8])
    }

    /// A packet of the server that is not the expected one, in hexadecimal; an empty text stands for none.
    package struct Difference: Hashable, Sendable {
        package let theirs: String
        package let ours: String
    }

    /// What is expected and is not what the specification says.
    package struct Deviation: Sendable {
        package let differences: [Difference]
        /// What the specification says, with its section.
        package let reason: String
    }

    /// A line that is none of the kinds that the heads of the files describe.
    package struct UnknownLine: Error {
        package let text: String
    }

    /// Every dialogue; none if the fixture cannot be read.
    package static let all: [ServerDialogue] = (try? read()) ?? []

    /// The deviations, by the name of the dialogue.
    package static let deviations = [
        "robustness/no-reliable-characteristic": Deviation(
            differences: [Difference(theirs: "0118250006", ours: "19")],
            reason: "Core Vol 3 Part G, 4.9.5, demands the Reliable Write property of the client alone")
    ]

    package let name: String
    package let database: String
    package private(set) var steps: [Step]

    package var description: String { name }

    /// The group of the test suite, or what stands for one.
    package var group: String {
        let parts = name.split(separator: "/")
        return String(parts[0] == "GATT" ? parts[1] : parts[0])
    }

    /// Reads the dialogues.
    package static func read() throws -> [ServerDialogue] {
        var dialogues: [ServerDialogue] = []
        for line in try lines(of: "server-dialogues.txt") {
            let words = line.split(separator: " ")
            if words.count == 4, words[0] == "dialogue" {
                dialogues.append(ServerDialogue(name: String(words[1]), database: String(words[3]), steps: []))
            } else if words.count >= 2, !dialogues.isEmpty {
                dialogues[dialogues.endIndex - 1].steps.append(try step(words, in: line))
            } else {
                throw UnknownLine(text: line)
            }
        }
        return dialogues
    }

    private static func step(_ words: [Substring], in line: String) throws -> Step {
        let rest = words.dropFirst()
        switch words[0] {
        case "<": return .request(try Hex.decode(rest.joined()))
        case ">": return .response(try Hex.decode(rest.joined()))
        case "=":
            guard words.count == 3, let handle = AttributeHandle(words[1], radix: 16) else { break }
            return .update(handle, try Hex.decode(words[2]))
        default: break
        }
        throw UnknownLine(text: line)
    }

    private static func lines(of file: String) throws -> [String] {
        try RepositoryFiles.text("Fixtures/gatt/\(file)").split(separator: "\n").map(String.init)
            .filter { !$0.hasPrefix("#") }
    }

    /// The dialogue, with the last bit of one response changed, counted from 0; `nil` if there are fewer responses.
    package func changing(response number: Int) -> ServerDialogue? {
        var changed = self
        let responses = steps.indices.filter { if case .response = steps[$0] { true } else { false } }
        guard number < responses.count, case .response(var packet) = steps[responses[number]] else { return nil }
        packet[packet.count - 1] ^= 1
        changed.steps[responses[number]] = .response(packet)
        return changed
    }
}

// MARK: - Databases

extension ServerDialogue {
    private static let databases: [String: [ServerAttribute]] = (try? readDatabases()) ?? [:]

    private static func readDatabases() throws -> [String: [ServerAttribute]] {
        var databases: [String: [ServerAttribute]] = [:]
        var name = ""
        for line in try lines(of: "server-databases.txt") {
            let words = line.split(separator: " ")
            if words.count == 2, words[0] == "database" {
                name = String(words[1])
            } else {
                databases[name, default: []].append(try attribute(words, in: line))
            }
        }
        return databases
    }

    private static func attribute(_ words: [Substring], in line: String) throws -> ServerAttribute {
        let handles = words[0].split(separator: "-").map { AttributeHandle($0, radix: 16) }
        guard (3...4).contains(words.count), let handle = handles[0], let type = BluetoothUUID(words[1]) else {
            throw UnknownLine(text: line)
        }
        let value = words.count == 4 ? try Hex.decode(words[3]) : []
        var attribute = ServerAttribute(handle: handle, type: type, value: value)
        attribute.read = words[2].contains("r") ? .open : words[2].contains("R") ? .encrypted : nil
        attribute.write = words[2].contains("W") ? .encrypted : .open
        attribute.writeMethods = words[2].contains("w") || words[2].contains("W") ? [.request, .command] : []
        if handles.count == 2, let end = handles[1] { attribute.role = .group(end: end) }
        return attribute
    }

    private func served() throws -> ServerDatabase {
        guard var attributes = Self.databases[database] else { throw UnknownLine(text: database) }
        let sendsValues = steps.contains { if case .update = $0 { true } else { false } }
        // Other dialogues write three bytes into a client configuration, which no server should permit: there it is an
        // attribute like any other.
        for index in attributes.indices
        where sendsValues && attributes[index].type == .clientCharacteristicConfiguration {
            attributes[index].role = .clientConfiguration(
                value: attributes[index].handle - 1, permitted: [.notifications, .indications])
        }
        return ServerDatabase(attributes: attributes)
    }
}

// MARK: - Running

extension ServerDialogue {
    /// Runs the dialogue against `GATTServer`.
    ///
    /// - Returns: Each packet of the server that is not the expected one, in their order.
    package func differences() throws -> [Difference] {
        var link = ServedLink(try served())
        var differences: [Difference] = []
        for step in steps {
            switch step {
            case .request(let packet):
                differences += link.takeSent().map { Difference(theirs: "", ours: $0) }
                link.receive(packet)
            case .update(let handle, let value):
                differences += link.takeSent().map { Difference(theirs: "", ours: $0) }
                link.update(value, of: handle)
            case .response(let packet):
                let (theirs, ours) = (Hex.encode(packet), link.takeNext())
                if theirs != ours { differences.append(Difference(theirs: theirs, ours: ours)) }
            }
        }
        differences += link.takeSent().map { Difference(theirs: "", ours: $0) }
        if link.unconfirmed > 0 { differences.append(Difference(theirs: "", ours: "no confirmation")) }
        return differences
    }

    /// One link of a server whose packets are written at once.
    private struct ServedLink: ~Copyable {
        private var database: ServerDatabase
        private var server = GATTServer(limits: GATTServer.Limits(mtu: 512))
        private var sent: [String] = []
        /// The indications that the client has not confirmed.
        private(set) var unconfirmed = 0

        init(_ database: ServerDatabase) {
            self.database = database
        }

        mutating func receive(_ packet: [UInt8]) {
            perform(server.received(packet, in: &database, at: .zero))
        }

        mutating func update(_ value: [UInt8], of handle: AttributeHandle) {
            let (outcome, actions) = server.update(value, of: handle, id: GATTServer.UpdateID(0), in: database)
            if outcome == .indicated { unconfirmed += 1 }
            perform(actions)
        }

        /// The oldest packet that was sent; an empty text if there is none.
        mutating func takeNext() -> String {
            sent.isEmpty ? "" : sent.removeFirst()
        }

        mutating func takeSent() -> [String] {
            defer { sent = [] }
            return sent
        }

        private mutating func perform(_ actions: [GATTServer.Action]) {
            for action in actions {
                switch action {
                case .send(let packet):
                    sent.append(Hex.encode(packet))
                    perform(server.sent(in: database, at: .zero))
                case .finish(_, failure: nil): unconfirmed -= 1
                case .close(let reason): sent.append("the end of the link: \(reason)")
                default: break
                }
            }
        }
    }
}
