import BareBLE
import BareBLETestKit
import TestSupport

/// Plays a dialogue with calls in its headers against the public interface:
///
///     offer: 517                                  the MTU to ask for; 23 without this line
///     mtu: 512                                    the MTU that is agreed on ahead of the first line
///     security: granted                           whether a peer that demands security gets it
///     strict: yes                                 whether protocol errors end the link
///     call: read 0x0003 -> 0102                   a call, and how it must end
///     call: write 0x0003 ff -> ! refusedByPeer 0x80
///     call: count knownStrays -> 1
///
/// The calls are made one after the other. Every packet must be the file's, and another link, open at the same time,
/// must not notice anything.
struct DialogueCalls {
    let dialogue: Dialogue

    init(_ text: String) throws {
        dialogue = try Dialogue(text)
    }

    /// Plays it; throws a `Mismatch` at the first difference.
    func play() async throws {
        let calls = try dialogue.headers.filter { $0.name == "call" }.map { try Call($0.value) }
        try Mismatch.unless(!calls.isEmpty, "no calls")
        var configuration = Configuration()
        if let answer = dialogue.header("security") { configuration.raiseSecurity = { _ in answer == "granted" } }
        configuration.isStrict = dialogue.header("strict") == "yes"
        let central = Central(configuration)
        let bystander = try await Bystander(central)
        var script = dialogue
        let mtu = UInt16(clamping: dialogue.initialMTU).wireBytes
        if dialogue.initialMTU > 23 {
            script.steps.insert(contentsOf: [.init(.sent([0x02] + mtu)), .init(.received([0x03] + mtu))], at: 0)
        }
        let peer = ScriptedPeripheral(script)
        let offer = dialogue.header("offer").flatMap { Int($0) } ?? dialogue.initialMTU
        let device = try await central.attach(
            descriptor: try await peer.connect(), name: "scripted", ConnectOptions(mtu: offer))
        var session = DialogueSession(device: device)
        for call in calls {
            let result = await session.result(of: call)
            let report = await peer.report
            try Mismatch.unless(
                result == call.expected, "\(call.text): \(result) instead of \(call.expected); \(report)")
        }
        await device.disconnect()
        let report = await peer.finish()
        try Mismatch.unless(report.isComplete, "\(report)")
        try await bystander.check()
    }

    /// One line of the headers.
    struct Call {
        var text: String
        var words: [String]
        var expected: String

        init(_ text: String) throws {
            guard let arrow = text.firstRange(of: " -> ") else { throw Mismatch("a call without \"->\": \(text)") }
            self.text = text
            words = text[..<arrow.lowerBound].split(separator: " ").map(String.init)
            expected = String(text[arrow.upperBound...])
            try Mismatch.unless(!words.isEmpty, "a call without a name: \(text)")
        }
    }
}

/// The calls of one dialogue, and what has to live as long as they do.
struct DialogueSession {
    let device: Peripheral
    private var subscriptions: [AttributeHandle: ValueSequence.AsyncIterator] = [:]

    init(device: Peripheral) {
        self.device = device
    }

    mutating func result(of call: DialogueCalls.Call) async -> String {
        do {
            return try await perform(call.words[0], Array(call.words.dropFirst()), expecting: call.expected)
        } catch let error as BLEError {
            return error.attError.map { "! \(error.code) 0x\(Hex.encode([$0.rawValue]))" } ?? "! \(error.code)"
        } catch {
            return "\(error)"
        }
    }

    private mutating func perform(
        _ name: String, _ words: [String], expecting expected: String
    ) async throws -> String {
        switch name {
        case "read":
            return Self.text(try await device.read(try Self.reference(words[0])))
        case "read-all":
            return try await device.readAll(try uuid(words[0])).map { Self.text($0.bytes) }.joined(separator: " ")
        case "read-multiple":
            return Self.text(try await device.readJoined(try words.map { try Self.handle($0) }))
        case "read-variable":
            let handles = try words.map { try Self.handle($0) }
            return try await device.readAll(handles).map { Self.text($0.bytes) }.joined(separator: " ")
        case "write":
            try await device.write(try bytes(words[1]), to: try Self.reference(words[0]))
        case "command":
            try await device.write(try bytes(words[1]), to: try Self.reference(words[0]), .withoutResponse)
        case "write-reliably":
            let values = try stride(from: 0, to: words.count, by: 2).map {
                (value: try bytes(words[$0 + 1]), characteristic: try Self.reference(words[$0]))
            }
            try await device.writeReliably(values)
        case "discover":
            let levels: [String: DiscoveryLevel] = [
                "structure": .structure, "subscribable": .subscribable, "full": .full,
            ]
            guard let level = levels[words[0]] else { throw Mismatch("no level \(words[0])") }
            return Self.text(handles: try await device.discover(level: level).characteristics.map(\.valueHandle))
        case "discover-services":
            let kinds = try words.map { try uuid($0) }
            return Self.text(services: try await device.discoverServices(kinds.isEmpty ? nil : kinds))
        case "discover-characteristics":
            let range = try Self.handle(words[0])...(try Self.handle(words[1]))
            return Self.text(handles: try await device.discoverCharacteristics(in: range).map(\.valueHandle))
        case "services":
            return Self.text(services: await device.database?.services ?? [])
        case "descriptors":
            return Self.text(handles: await device.database?.descriptors.map(\.handle) ?? [])
        case "quirks":
            return "\(await device.database?.quirks.count ?? 0)"
        case "subscribe":
            let values = try await device.subscribe(to: try Self.reference(words[0]))
            subscriptions[values.handle] = values.makeAsyncIterator()
        case "values":
            return try await next(expected, of: try Self.handle(words[0]))
        case "mtu":
            return "\(await device.mtu)"
        case "count":
            return "\(try Self.count(words[0], in: await device.statistics))"
        case "wait":
            // What came without a request may be read a moment later than the test looks.
            while try Self.count(words[0], in: await device.statistics) < Int(expected) ?? 0, !Task.isCancelled {
                await Task.yield()
            }
            return "\(try Self.count(words[0], in: await device.statistics))"
        case "end":
            return await device.disconnected().map { "\($0)" } ?? "up"
        default:
            throw Mismatch("no call \(name)")
        }
        return "ok"
    }

    private mutating func next(_ expected: String, of handle: AttributeHandle) async throws -> String {
        guard var iterator = subscriptions[handle] else { throw Mismatch("no subscription to \(handle)") }
        var texts: [String] = []
        for _ in expected.split(separator: " ") { texts.append(Self.text(try await iterator.next()?.bytes ?? [])) }
        subscriptions[handle] = iterator
        return texts.joined(separator: " ")
    }

    // MARK: Words

    private static func reference(_ word: String) throws -> CharacteristicReference {
        word.hasPrefix("0x") ? .handle(try handle(word)) : .uuid(try uuid(word))
    }

    private static func handle(_ word: String) throws -> AttributeHandle {
        guard let handle = UInt16(word.dropFirst(2), radix: 16) else { throw Mismatch("no handle: \(word)") }
        return handle
    }

    private static func text(_ value: [UInt8]) -> String {
        value.isEmpty ? "nothing" : Hex.encode(value)
    }

    private static func text(services: [GATTService]) -> String {
        services.map { "\(CharacteristicReference.handle($0.handles.lowerBound)) \($0.uuid)" }.joined(separator: " ")
    }

    private static func text(handles: [AttributeHandle]) -> String {
        handles.isEmpty ? "nothing" : handles.map { "\(CharacteristicReference.handle($0))" }.joined(separator: " ")
    }

    private static func count(_ name: String, in statistics: ATTStatistics) throws -> Int {
        for (label, value) in Mirror(reflecting: statistics).children where label == name {
            if let number = value as? Int { return number }
        }
        throw Mismatch("no such number: \(name)")
    }
}

/// Another link of the same central. What happens on the first must not show in its packets, nor keep it from going on.
struct Bystander {
    private let peripheral = VirtualPeripheral(.battery)
    private let device: Peripheral

    init(_ central: Central) async throws {
        device = try await central.attach(to: peripheral, ConnectOptions(mtu: 23))
        _ = try await device.read(0x2A19)
    }

    func check() async throws {
        let value = try await device.read(0x2A19)
        await device.disconnect()
        let steps = await peripheral.transcript.steps.map(\.event)
        let ask = Dialogue.Event.sent([0x08, 0x01, 0x00, 0xFF, 0xFF, 0x19, 0x2A])
        let told = steps.count > 1 ? steps[1] : .linkLost
        try Mismatch.unless(value == [64], "the other link reads \(value)")
        try Mismatch.unless(Array(steps.prefix(4)) == [ask, told, ask, told], "the other link noticed: \(steps)")
    }
}
