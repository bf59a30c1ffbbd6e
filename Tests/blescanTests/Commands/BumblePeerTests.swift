import Foundation
import Testing

/// blescan against a GATT server of another project. The expected values are those of the peer's own description. The
/// peer counts the requests; the expected numbers are derived from the description:
///
/// - The MTU exchange is one, and none with `--mtu 23`.
/// - The discovery finds three services with short UUIDs and two with long ones, which cannot share a response; the
///   last one ends before 0xffff. Seven short characteristics, three long ones; one gap holds a descriptor that is not
///   implied. With a large MTU: 3 for services, 2 for characteristics, 1 for the descriptor.
@Suite(.serialized, .enabled(if: BumblePeer.available(for: "BumblePeerTests"))) struct BumblePeerTests {
    private static let long = "a1b20002-0000-1000-8000-00805f9b0000"
    private static let longValue = (0..<64).map { String(format: "%02x", $0) }.joined()

    private struct Description: Decodable {
        struct Service: Decodable {
            let uuid: String
            let characteristics: [Characteristic]
        }
        struct Characteristic: Decodable {
            let uuid: String
            let properties: [String]
            let value: String
            let descriptors: [Descriptor]?
        }
        struct Descriptor: Decodable {
            let uuid: String
            let value: String
        }
        let services: [Service]
    }

    private struct Explored: Decodable {
        struct Service: Decodable {
            let uuid: String
            let primary: Bool
            let characteristics: [Characteristic]
        }
        struct Characteristic: Decodable {
            let uuid: String
            let properties: [String]
            let hex: String?
            let descriptors: [Descriptor]
        }
        struct Descriptor: Decodable, Equatable {
            let uuid: String
            let hex: String?
        }
        let v: Int
        let mtu: Int
        let attributes: Int
        let requests: Int
        let services: [Service]
    }

    @Test(arguments: [(517, 1 + 6 + 10), (23, 11 + 12)]) func exploringFindsWhatThePeerDescribes(
        _ mtu: Int, _ requests: Int
    ) async throws {
        let peer = try await BumblePeer()
        let outcome = try await BuiltProgram.run(["explore", "unix:\(peer.path)", "--json", "--mtu", "\(mtu)"])
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        let found = try JSONDecoder().decode(Explored.self, from: Data(outcome.output.utf8))
        let described = try JSONDecoder().decode(Description.self, from: BumblePeer.description())
        #expect(found.v == 1)
        #expect(found.mtu == mtu)
        #expect(found.attributes == 29)
        #expect(found.services.map(\.uuid) == described.services.map { $0.uuid.lowercased() })
        for (service, expected) in zip(found.services, described.services) {
            #expect(service.primary)
            #expect(service.characteristics.map(\.uuid) == expected.characteristics.map { $0.uuid.lowercased() })
            for (characteristic, expected) in zip(service.characteristics, expected.characteristics) {
                expectSame(characteristic, expected)
            }
        }
        let counted = try await peer.conversation().requests
        #expect(found.requests == counted, "the peer counts as many requests as the program")
        #expect(counted <= requests)
    }

    private func expectSame(_ found: Explored.Characteristic, _ expected: Description.Characteristic) {
        let properties = expected.properties.map { $0.replacing("_", with: "-") }
        #expect(Set(found.properties) == Set(properties))
        #expect(found.hex == (properties.contains("read") ? expected.value : nil))
        var descriptors = (expected.descriptors ?? []).map { Explored.Descriptor(uuid: $0.uuid, hex: $0.value) }
        if !Set(["notify", "indicate"]).isDisjoint(with: properties) {
            descriptors.append(.init(uuid: "2902", hex: "0000"))
        }
        #expect(found.descriptors == descriptors)
    }

    @Test func exploringPrintsAsRecorded() async throws {
        let peer = try await BumblePeer()
        let outcome = try await BuiltProgram.run(["explore", "unix:\(peer.path)"])
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        let screen = outcome.output.replacing(peer.path, with: "PATH")
        try Golden.expect(Golden.masked(screen), matches: "explore-bumble.txt")
    }

    @Test(arguments: [
        (["2a19"], "64", 2), (["2a19", "--mtu", "23"], "64", 1), ([long], longValue, 2),
        // The first request finds it and returns 19 bytes; two full pieces and one that is not full.
        ([long, "--mtu", "23"], longValue, 4),
    ])
    func aReadTakesTheFewestRequests(_ arguments: [String], _ hex: String, _ requests: Int) async throws {
        let peer = try await BumblePeer()
        let outcome = try await BuiltProgram.run(["read", "unix:\(peer.path)"] + arguments + ["--json"])
        #expect(outcome.status == 0)
        let object = try #require(try outcome.objects().first)
        #expect(outcome.output.hasPrefix(#"{"v":1,"t":""#))
        #expect(object["hex"] as? String == hex)
        #expect(object["uuid"] as? String == arguments.first)
        #expect(object["value"] as? Int == (arguments.first == "2a19" ? 100 : nil))
        #expect(try await peer.conversation().requests <= requests)
        // Again in the text format, in a new connection.
        let text = try await BuiltProgram.run(["read", "unix:\(peer.path)"] + arguments).output
        #expect(text == (arguments.first == "2a19" ? "64  100 %\n" : hex + "\n"))
    }

    @Test(arguments: [
        (["2a39", "--u8", "1"], ["12080001"], 7), (["0x0008", "--hex", "0203", "--mtu", "23"], ["1208000203"], 1),
        (["6e400002-b5a3-f393-e0a9-e50e24dcca9e", "--text", "hi", "--without-response"], ["5216006869"], 6),
        // Longer than a request: three prepared writes, and their execution.
        (
            [long, "--text", String(repeating: "a", count: 40), "--mtu", "23"],
            [
                "161c000000" + String(repeating: "61", count: 18), "161c001200" + String(repeating: "61", count: 18),
                "161c00240061616161", "1801",
            ], 14
        ),
    ])
    func aWriteSendsTheExpectedPacket(_ arguments: [String], _ packets: [String], _ requests: Int) async throws {
        let peer = try await BumblePeer()
        let outcome = try await BuiltProgram.run(["write", "unix:\(peer.path)"] + arguments + ["--json"])
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        let object = try #require(try outcome.objects().first)
        #expect(object["confirmed"] as? Bool == !arguments.contains("--without-response"))
        let conversation = try await peer.conversation()
        #expect(Array(conversation.received.suffix(packets.count)) == packets)
        #expect(conversation.requests <= requests)
    }

    @Test func notificationsAreListedUntilTheirCount() async throws {
        let peer = try await BumblePeer()
        let outcome = try await BuiltProgram.run(["notify", "unix:\(peer.path)", "2a37", "--count", "5", "--json"])
        #expect(outcome.status == 0)
        let objects = try outcome.objects()
        #expect(objects.map { $0["hex"] as? String } == ["0648", "0649", "164a0103", "0648", "0649"])
        for object in objects {
            #expect(object["v"] as? Int == 1)
            #expect(object["event"] as? String == "notification")
            #expect(object["handle"] as? Int == 3)
        }
        let conversation = try await peer.conversation()
        #expect(conversation.received.last == "1204000000", "the peer is told to stop")
        #expect(conversation.requests <= 1 + 5 + 2)
    }

    @Test func notificationsPrintAsRecorded() async throws {
        let peer = try await BumblePeer()
        let outcome = try await BuiltProgram.run([
            "notify", "unix:\(peer.path)", "heart-rate-measurement", "--count", "3",
        ])
        #expect(outcome.status == 0)
        #expect(
            Golden.masked(outcome.output) == """
                (time)  0648  heart rate 72 bpm, skin contact
                (time)  0649  heart rate 73 bpm, skin contact
                (time)  164a0103  heart rate 74 bpm, skin contact, RR 0.751 s

                """)
    }
}
