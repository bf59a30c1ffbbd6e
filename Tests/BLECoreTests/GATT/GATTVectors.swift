import BLECore
import Foundation
import Testing

/// The recorded client operations and profile sessions of `vectors/gatt`, as far as the tests use them. Its README says where
/// they come from.
enum GATTVectors {
    struct Line: Decodable {
        var c2s: String?
        var s2c: String?
    }

    struct Write: Decodable {
        var handle: UInt16
        var value: String
        var offset: UInt16?
    }

    struct Parameters: Decodable {
        var handle: UInt16?
        var handles: [UInt16]?
        var start: UInt16?
        var end: UInt16?
        var uuid: String?
        var offset: UInt16?
        var value: String?
        var valueHandle: UInt16?
        var cccdHandle: UInt16?
        var writes: [Write]?
        var limit: Int?
        var length: Int?
        var request: String?
        var clientRxMtu: Int?
        var autoSecurityUpgrade: Bool?
        var csrkLsbFirst: String?
        var signCounter: UInt32?
    }

    struct Service: Decodable {
        var start: UInt16
        var end: UInt16
        var uuid: String
        var primary: Bool?
        var handle: UInt16?
    }

    struct Characteristic: Decodable {
        var declarationHandle: UInt16
        var valueHandle: UInt16
        var properties: UInt8
        var uuid: String
    }

    struct Attribute: Decodable {
        var handle: UInt16
        var uuid: String?
        var value: String?
    }

    /// What a client learnt of a peer.
    struct Findings: Decodable {
        var services: [Service]?
        var includes: [Service]?
        var characteristics: [Characteristic]?
        var descriptors: [Attribute]?
    }

    struct Expectation: Decodable {
        var result: String?
        var value: String?
        var values: [Attribute]?
        var events: [Attribute]?
        var mtu: Int?
        var error: UInt8?
        var errorHandle: UInt16?
        var reason: String?
        var accepted: Bool?
    }

    struct Case: Decodable, CustomTestStringConvertible {
        var name: String
        var clientMtu: Int
        var database: String?
        var operation: String
        var params: Parameters
        var script: [Line]
        var expect: Expectation
        /// What stands beside the rest of the expectation.
        var findings: Findings
        var testDescription: String { "\(name) \(operation)" }

        private enum CodingKeys: String, CodingKey {
            case name = "case"
            case clientMtu, database, operation, params, script, expect
        }

        init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            name = try fields.decode(String.self, forKey: .name)
            clientMtu = try fields.decode(Int.self, forKey: .clientMtu)
            database = try fields.decodeIfPresent(String.self, forKey: .database)
            operation = try fields.decode(String.self, forKey: .operation)
            params = try fields.decode(Parameters.self, forKey: .params)
            script = try fields.decode([Line].self, forKey: .script)
            expect = try fields.decode(Expectation.self, forKey: .expect)
            findings = try fields.decode(Findings.self, forKey: .expect)
        }
    }

    struct Session: Decodable, CustomTestStringConvertible {
        struct Expectation: Decodable {
            var discovered: Findings
            var events: [Attribute]
        }

        var name: String
        var setup: [Line]
        var script: [Line]
        var expect: Expectation
        var testDescription: String { name }

        private enum CodingKeys: String, CodingKey {
            case name = "case"
            case setup, script, expect
        }
    }

    struct Database: Decodable {
        struct Entry: Decodable {
            var handle: UInt16
            var type: String
            var value: String
        }

        var services: [Service]
        var attributes: [Entry]
    }

    static let cases: [Case] = (try? lines("client_cases.jsonl", as: Case.self)) ?? []
    static let sessions: [Session] = (try? lines("profile_sessions.jsonl", as: Session.self)) ?? []

    static func databases() throws -> [String: Database] {
        try JSONDecoder().decode([String: Database].self, from: SharedVectors.data("gatt/databases.json"))
    }

    /// What the devices of real connections had, as far as the recorded client asked.
    static func realDatabases() throws -> [Findings] {
        struct Connection: Decodable {
            var discovered: Findings
        }
        return try lines("real_sessions.jsonl", as: Connection.self).map(\.discovered)
    }

    static func uuid(_ text: String?) throws -> BluetoothUUID {
        try #require(BluetoothUUID(text ?? ""), "no UUID: \(text ?? "nothing")")
    }

    private static func lines<T: Decodable>(_ name: String, as type: T.Type) throws -> [T] {
        try SharedVectors.lines("gatt/\(name)", as: type, keys: .convertFromSnakeCase)
    }
}
