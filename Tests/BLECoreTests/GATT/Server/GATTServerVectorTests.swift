import Foundation
import TestSupport
import Testing

@testable import BLECore

/// What BlueZ's unit tests expect of a server, with the databases that they use.
@Suite("GATT server: BlueZ's dialogues", .enabled(if: SharedVectors.available(for: "BlueZ's dialogues of a server")))
struct GATTServerVectorTests {
    struct Exchange: Decodable, CustomTestStringConvertible {
        struct Line: Decodable {
            var c2s: String?
            var s2c: String?
        }

        enum CodingKeys: String, CodingKey {
            case name = "case"
            case database, script
            case mtu = "server_mtu"
        }

        var name: String
        var database: String
        var mtu: UInt16
        var script: [Line]
        var testDescription: String { name }
    }

    struct Database: Decodable {
        struct Service: Decodable {
            var start: UInt16
            var end: UInt16
        }

        struct Attribute: Decodable {
            var handle: UInt16
            var type: String
            var value: String
            var permissions: Int
        }

        var services: [Service]
        var attributes: [Attribute]

        /// The attributes; of the permissions, 1 stands for reads and 2 for writes.
        func served(withConfigurations: Bool) throws -> ServerDatabase {
            ServerDatabase(
                attributes: try attributes.map { recorded in
                    let type = try #require(BluetoothUUID(recorded.type))
                    var attribute = ServerAttribute(
                        handle: recorded.handle, type: type, value: try Hex.decode(recorded.value))
                    attribute.read = recorded.permissions & 1 == 0 ? nil : .open
                    attribute.writeMethods = recorded.permissions & 2 == 0 ? [] : [.request, .command]
                    if let service = services.first(where: { $0.start == recorded.handle }) {
                        attribute.role = .group(end: service.end)
                    } else if withConfigurations, type == .clientCharacteristicConfiguration {
                        attribute.role = .clientConfiguration(value: recorded.handle - 1, permitted: .notifications)
                    }
                    return attribute
                })
        }
    }

    static let databases: [String: Database] = {
        guard let data = try? SharedVectors.data("gatt/databases.json") else { return [:] }
        return (try? JSONDecoder().decode([String: Database].self, from: data)) ?? [:]
    }()
    static let exchanges =
        (try? SharedVectors.lines("gatt/server_exchanges.jsonl", as: Exchange.self)) ?? []
    /// Where the expectation is not the specification's, with the expected response and ours,
    /// in the order of the dialogue.
    ///
    /// BlueZ demands the Reliable Write property before one queue may write two characteristics. The specification
    /// demands it of the client alone: Core Vol 3 Part G, 4.9.5.
    static let deviations = ["robustness/no-reliable-characteristic": [(theirs: "0118250006", ours: "19")]]

    @Test("the responses are those that they expect", arguments: exchanges)
    func responses(_ exchange: Exchange) throws {
        let database = try #require(Self.databases[exchange.database])
        // Their database lets a client write three bytes into a client configuration, which no server should. Only the
        // test of notifications needs it to be one.
        let isNotified = exchange.name.hasPrefix("GATT/GAN")
        var client = ServedClient(
            try database.served(withConfigurations: isNotified), limits: GATTServer.Limits(mtu: exchange.mtu))
        var deviations: [(theirs: String, ours: String)] = []
        var sent: [String] = []
        for line in exchange.script {
            if let request = line.c2s {
                #expect(sent.isEmpty, "more was sent than expected")
                sent = try client.send(request)
            } else if let expected = line.s2c {
                if sent.isEmpty, isNotified {
                    client.update([1, 2, 3], of: 3)
                    sent = client.takeSent()
                }
                let packet = sent.isEmpty ? "" : sent.removeFirst()
                if packet != expected { deviations.append((expected, packet)) }
            }
        }
        #expect(sent.isEmpty)
        #expect(client.closeReason == nil)
        let known = Self.deviations[exchange.name] ?? []
        #expect(deviations.map(\.theirs) == known.map(\.theirs))
        #expect(deviations.map(\.ours) == known.map(\.ours))
    }

    @Test("There are as many as the README of the vectors says")
    func count() {
        #expect(Self.exchanges.count == 47)
        #expect(Self.databases.count == 6)
    }
}
