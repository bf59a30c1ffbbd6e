import BLECore
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// What BlueZ's unit tests expect of a server, recorded with the databases they use.
@Suite("Recorded server exchanges", .enabled(if: SharedVectors.available(for: "Recorded server exchanges")))
struct AttributeServerVectorTests {
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

        func table(configurations: Bool) throws -> AttributeTable {
            AttributeTable(
                try attributes.map { recorded in
                    let type = try #require(BluetoothUUID(recorded.type))
                    var attribute = ServedAttribute(
                        handle: recorded.handle, type: type, value: try Hex.decode(recorded.value))
                    attribute.readError = recorded.permissions & 1 == 0 ? .readNotPermitted : nil
                    attribute.writeError = recorded.permissions & 2 == 0 ? .writeNotPermitted : nil
                    if let service = services.first(where: { $0.start == recorded.handle }) {
                        attribute.role = .group(end: service.end)
                    } else if configurations, type == 0x2902 {
                        attribute.role = .clientConfiguration(value: recorded.handle - 1)
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
    /// BlueZ asks for the Reliable Write property before one queue may touch two characteristics. The specification
    /// asks that of the client alone: Core Vol 3 Part G, 4.9.5.
    static let stricterThanSpecified = "robustness/no-reliable-characteristic"

    @Test("The responses are theirs", arguments: exchanges.filter { $0.name != stricterThanSpecified })
    func responsesAreTheirs(_ exchange: Exchange) throws {
        let database = try #require(Self.databases[exchange.database])
        // BlueZ's database lets a client write three bytes into a client configuration, which no server should; only
        // the notification test needs it to be one.
        let configurations = exchange.name.hasPrefix("GATT/GAN")
        var server = AttributeServer(
            table: try database.table(configurations: configurations), maximumMTU: exchange.mtu)
        var answers: [[UInt8]] = []
        for line in exchange.script {
            if let request = line.c2s {
                #expect(answers.isEmpty, "more was answered than expected")
                answers = server.received(try Hex.decode(request))
            } else if let expected = line.s2c {
                if answers.isEmpty, let pushed = server.send([1, 2, 3], of: 3) { answers = [pushed] }
                let answer = answers.isEmpty ? [] : answers.removeFirst()
                #expect(Hex.encode(answer) == expected)
            }
        }
        #expect(answers.isEmpty)
    }

    @Test("There are as many as the vectors' README says")
    func count() {
        #expect(Self.exchanges.count == 47)
        #expect(Self.databases.count == 6)
    }
}
