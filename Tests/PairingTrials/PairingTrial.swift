import BareBLE
import BareBLECrypto
import Glibc
import Logging

/// One central, its links, and the commands of a test.
actor PairingTrial {
    private let central: Central
    private let directory: String
    private let replies = Replies()
    private var links: [String: Peripheral] = [:]
    private var sessions: [String: Session] = [:]
    private var pairings: [String: Task<Void, Never>] = [:]

    private struct NotUnderstood: Error {}

    init(directory: String, shortestKey: Int, sharing: SecurityConfiguration.Sharing) throws(BLEError) {
        self.directory = directory
        var configuration = Configuration()
        var security = SecurityConfiguration(bonds: try BondStore(directory: directory))
        security.minimumKeySize = shortestKey
        security.sharing = sharing
        configuration.security = security
        configuration.addressHash = { $0.hash }
        if unsafe getenv("PAIRING_TRIALS_LOG") != nil {
            configuration.logger = Logger(label: "pairing-trials") { StreamLogHandler.standardError(label: $0) }
            configuration.logger.logLevel = .trace
        }
        // With a thread of its own: this program's waits for commands.
        central = Central(configuration)
    }

    /// Performs one command; `pair` and the values of `subscribe` go on after it.
    func perform(_ words: [String]) async {
        await report(words) { [self] in try await result(of: words) }
    }

    private nonisolated func report(_ words: [String], _ body: () async throws -> String?) async {
        let command = words.prefix(2).joined(separator: " ")
        do {
            if let result = try await body() { PairingTrials.say("\(command) \(result)") }
        } catch let error as BLEError {
            PairingTrials.say("failed \(command) \(error.code): \(error)")
        } catch {
            PairingTrials.say("failed \(command) \(type(of: error)): \(error)")
        }
    }

    /// Returns what came of a command; `nil` for one that reports its end later.
    private func result(of words: [String]) async throws -> String? {
        switch (words.first, words.count) {
        case ("ready", 1):
            try await central.ready(powerOn: true)
            return "done"
        case ("connect", 2):
            links[words[1]] = try await central.connect(try peer(words[1]))
            return "done"
        case ("connect", 3...):
            let options = try PairingWords(words.dropFirst(2)).options(replies)
            links[words[1]] = try await central.connect(
                try peer(words[1]), ConnectOptions(security: .pairing(options)))
            return "done"
        case ("link", 2):
            let options = ConnectOptions(mtu: 23, observesServiceChanges: false)
            links[words[1]] = try await central.connect(try peer(words[1]), options)
            return "done"
        case ("pair", 2...):
            try pair(words)
            return nil
        case ("cancel", 2):
            pairings[words[1]]?.cancel()
            return "done"
        case ("reply", 2):
            replies.give(words[1])
            return nil
        case ("read", 3):
            return Hex.encode(try await link(words[1]).read(try characteristic(words[2])))
        case ("channel", 3):
            return try await echo(of: try link(words[1]), words[2])
        case ("subscribe", 3):
            try await subscribe(try link(words[1]), words)
            return "began"
        case ("disconnect", 2):
            await links.removeValue(forKey: words[1])?.disconnect()
            return "done"
        case ("session", 3):
            try await beginSession(words)
            return "began"
        case ("end", 2):
            await sessions.removeValue(forKey: words[1])?.disconnect()
            return "done"
        case ("events", 1):
            reportEvents()
            return nil
        case ("devices", 1):
            return "\(await central.scanStatistics(since: .zero).devices)"
        case ("find", 2):
            return try await find(words[1])
        case ("identity", 2):
            return await central.identity(of: try peer(words[1])).map { "\($0)" } ?? "none"
        case ("bonds", 1):
            let bonds = try await central.bonds()
            for bond in bonds { PairingTrials.say("bond \(describe(bond))") }
            return "\(bonds.count)"
        case ("forget", 2):
            try await central.forgetBond(with: try peer(words[1]))
            return "done"
        default:
            throw NotUnderstood()
        }
    }

    private func pair(_ words: [String]) throws {
        let link = try link(words[1])
        let options = try PairingWords(words.dropFirst(2)).options(replies)
        pairings[words[1]] = Task {
            await report(words) {
                let bond = try await link.pair(options)
                PairingTrials.say("disk \(file(of: bond))")
                return describe(bond)
            }
        }
    }

    private func beginSession(_ words: [String]) async throws {
        let (name, characteristic) = (words[1], try characteristic(words[2]))
        let session = try await central.session(
            with: try peer(name),
            onReady: { link in
                PairingTrials.say("value \(name) \(Hex.encode(try await link.read(characteristic)))")
            })
        sessions[name] = session
        Task {
            for try await event in session.events { PairingTrials.say("session-event \(name) \(event)") }
        }
    }

    private func reportEvents() {
        let events = central.securityEvents
        Task {
            var iterator = events.makeAsyncIterator()
            PairingTrials.say("events began")
            while let event = try await iterator.next() { PairingTrials.say("event \(event)") }
        }
    }

    /// Returns the mode of the file of bonds, and whether it has this one, at this moment.
    private nonisolated func file(of bond: Bond) -> String {
        let path = "\(directory)/\(bond.adapter.description.filter { $0 != ":" }).bonds"
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "none" }
        defer { close(descriptor) }
        var status = stat()
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
        guard unsafe fstat(descriptor, &status) == 0, count > 0 else { return "unreadable" }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        return "\(String(status.st_mode & 0o7777, radix: 8)) \(text.contains("\(bond.peer) ") ? "has" : "lacks") it"
    }

    /// Returns what comes back over a new channel.
    private func echo(of link: Peripheral, _ word: String) async throws -> String {
        guard let psm = UInt16(word) else { throw NotUnderstood() }
        let channel = try await link.openChannel(psm: psm)
        try await channel.send([7, 8])
        var packets = channel.packets.makeAsyncIterator()
        let packet = try await packets.next()
        await channel.close()
        return packet.map { Hex.encode($0) } ?? "none"
    }

    private func subscribe(_ link: Peripheral, _ words: [String]) async throws {
        let values = try await link.subscribe(to: try characteristic(words[2]))
        Task {
            do {
                for try await value in values { PairingTrials.say("value \(words[1]) \(Hex.encode(value.bytes))") }
                PairingTrials.say("ended \(words[1])")
            } catch {
                PairingTrials.say("ended \(words[1]) \(error)")
            }
        }
    }

    /// Returns the address under which a device is heard, and its identity.
    private func find(_ name: String) async throws -> String {
        for try await event in central.scan(.name(name)) {
            guard case .found(let found) = event, let peer = found.peer else { continue }
            return "\(peer) \(await central.identity(of: peer).map { "\($0)" } ?? "none")"
        }
        throw NotUnderstood()
    }

    private nonisolated func describe(_ bond: Bond) -> String {
        let flags = [
            bond.isAuthenticated ? "authenticated" : nil, bond.isLegacyPasskey ? "legacy-passkey" : nil,
            bond.resolvesPrivateAddresses ? "resolves" : nil, bond.rejectedSince != nil ? "rejected" : nil,
        ]
        return (["\(bond.peer)", bond.method.rawValue, "\(bond.keySize)"] + flags.compactMap(\.self))
            .joined(separator: " ")
    }

    private func peer(_ word: String) throws -> PeerID {
        guard let peer = PeerID(word) else { throw NotUnderstood() }
        return peer
    }

    private func link(_ word: String) throws -> Peripheral {
        guard let link = links[word] else { throw NotUnderstood() }
        return link
    }

    private func characteristic(_ word: String) throws -> CharacteristicReference {
        guard let uuid = BluetoothUUID(word) else { throw NotUnderstood() }
        return .uuid(uuid)
    }
}
