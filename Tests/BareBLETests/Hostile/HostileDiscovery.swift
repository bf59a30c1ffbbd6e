import BareBLE
import BareBLETestKit

/// A peer that gives wrong responses to discovery, whatever it is asked; after them it finds nothing more.
///
/// After any outcome the link works on: a value can be read.
struct HostileDiscovery: Sendable, CustomStringConvertible {
    var id: String
    var what: String
    var responses: [String]
    var level = DiscoveryLevel.full
    /// "! CODE", or the handles of the values that were found, the ranges of the services and the number of quirks.
    var outcome: String

    init(
        _ id: String, _ what: String, level: DiscoveryLevel = .full, _ responses: [String], is outcome: String
    ) {
        self.id = id
        self.what = what
        self.responses = responses
        self.level = level
        self.outcome = outcome
    }

    var description: String { "\(id): \(what)" }

    func play() async throws {
        var server = RecordedServer(ServerDatabase(attributes: [])) { pdu in
            pdu == [0x0A, 0x77, 0x77] ? [[0x0B, 0x01]] : nil
        }
        try server.respond(inTurn: responses)
        let central = Central()
        let bystander = try await Bystander(central)
        let peer = RespondingPeer(server)
        let device = try await central.attach(
            descriptor: try await peer.connect(), name: "hostile", ConnectOptions(mtu: 23))
        let result = await Self.result(of: device, level)
        try Mismatch.unless(result == outcome, "\(result) instead of \(outcome)")
        let value = try await device.read(.handle(0x7777))
        try Mismatch.unless(value == [1], "the link reads \(value)")
        await device.disconnect()
        try Mismatch.unless(await peer.received.count < 40, "too many requests")
        try await bystander.check()
    }

    static func result(of device: Peripheral, _ level: DiscoveryLevel) async -> String {
        do throws(BLEError) {
            let found = try await device.discover(level: level)
            let values = found.characteristics.map { "\($0.valueHandle)" }.joined(separator: " ")
            let services = found.services.map { "\($0.handles.lowerBound)-\($0.handles.upperBound)" }
            return "values \(values), services \(services.joined(separator: " ")), quirks \(found.quirks.count)"
        } catch {
            return "! \(error.code)"
        }
    }
}

extension HostileDiscovery {
    /// One service 1...10 of kind 0x180F.
    private static let service = "11 06 0100 0A00 0F18"
    private static let noMoreServices = "01 10 0B00 0A"
    private static let characteristic = "09 07 0200 02 0300 192A"

    static let all: [HostileDiscovery] = lengths + ranges + characteristics

    /// A list whose entries say that they have `length` bytes, with enough bytes for two of them.
    private static func list(_ opcode: UInt8, entryLength: UInt8) -> String {
        var bytes: [UInt8] = [opcode, entryLength]
        for index in 0..<UInt8(2) {
            let entry: [UInt8] = [2 + 3 * index, 0, 0x02, 3 + 3 * index, 0] + [UInt8](repeating: 0x2A, count: 4)
            bytes += entry.prefix(Int(entryLength))
        }
        return Hex.encode(bytes.prefix(23))
    }

    private static let lengths: [HostileDiscovery] =
        ([0, 1, 3, 5, 7, 19, 21, 255] as [UInt8]).map { length in
            .init("G01", "services of \(length) bytes", [list(0x11, entryLength: length)], is: "! malformedReply")
        }
        + ([0, 1, 3, 5, 19, 255] as [UInt8]).map { length in
            .init(
                "G01", "characteristics of \(length) bytes",
                [service, noMoreServices, list(0x09, entryLength: length)], is: "! malformedReply")
        }
        + (1...5).flatMap { cut -> [HostileDiscovery] in
            let rest = String(repeating: "00", count: cut)
            return [
                .init("G02", "services and \(cut) bytes more", [service + rest], is: "! malformedReply"),
                .init(
                    "G02", "characteristics and \(cut) bytes more", [service, noMoreServices, characteristic + rest],
                    is: "! malformedReply"),
            ]
        }
        + ["05 00 0400 0129", "05 03 0400 0129", "05 02 0400 0129"].map {
            .init(
                "G13", "types of format \($0.dropFirst(3).prefix(2))", [service, noMoreServices, characteristic, $0],
                is: "! malformedReply")
        }

    private static let ranges: [HostileDiscovery] = [
        .init(
            "G03", "services at lower handles", [service, "11 06 0500 0A00 0F18"], is: "! malformedReply"),
        .init(
            "G03", "the same services again", ["11 06 0300 0A00 0F18", "11 06 0300 0A00 0F18"],
            is: "! malformedReply"),
        .init(
            "G03", "the same characteristics again", level: .structure,
            [service, noMoreServices, characteristic, characteristic], is: "! malformedReply"),
        .init(
            "G04", "a characteristic outside the range", [service, noMoreServices, "09 07 0B00 02 0C00 192A"],
            is: "! malformedReply"),
        .init(
            "G04", "a descriptor outside the range",
            [service, noMoreServices, characteristic, "05 01 0B00 0229"], is: "! malformedReply"),
        .init("G05", "a service that begins at 0", ["11 06 0000 0A00 0F18"], is: "! malformedReply"),
        .init("G05", "a service that ends ahead", ["11 06 0900 0500 0F18"], is: "! malformedReply"),
        .init(
            "G06", "the last handle of all", ["11 06 FDFF FFFF 0F18", "09 07 FEFF 02 FFFF 192A"],
            is: "values 65535, services 65533-65535, quirks 0"),
        .init(
            "G07", "a service that claims everything", level: .structure,
            [
                "11 06 0100 FFFF 0018 0600 0800 0F18", "01 10 0900 0A",
                "09 07 0200 02 0300 002A 0700 02 0800 192A",
            ], is: "values 3 8, services 1-5 6-8, quirks 1"),
        .init(
            "G07", "a service without an end", level: .structure,
            ["11 06 0100 0000 0018", "11 06 0600 0800 0F18"], is: "values , services 1-5 6-8, quirks 1"),
        .init(
            "G08", "services out of order", level: .structure, ["11 06 0500 0800 0F18 0100 0400 0018"],
            is: "values , services 5-8, quirks 1"),
        .init(
            "G08", "services that overlap", level: .structure, ["11 06 0100 0600 0F18 0400 0800 0018"],
            is: "values , services 1-6, quirks 1"),
    ]

    private static let characteristics: [HostileDiscovery] = ["0000", "0100", "0200", "0B00", "0600"].map {
        .init(
            "G12", "a value at \($0)", level: .structure,
            [service, noMoreServices, "09 07 0200 02 \($0) 192A 0500 02 0600 1A2A"],
            is: "values 6, services 1-10, quirks 1")
    }
}
