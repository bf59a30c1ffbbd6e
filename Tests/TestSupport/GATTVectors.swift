package import BLECore
internal import Foundation

/// The recorded client operations and profile sessions of `vectors/gatt`, as far as the tests use them. Its README says
/// where they come from.
package enum GATTVectors {
    package struct Line: Decodable {
        package var c2s: String?
        package var s2c: String?
    }

    package struct Write: Decodable {
        package var handle: UInt16
        package var value: String
        package var offset: UInt16?
    }

    package struct Parameters: Decodable {
        package var handle: UInt16?
        package var handles: [UInt16]?
        package var start: UInt16?
        package var end: UInt16?
        package var uuid: String?
        package var offset: UInt16?
        package var value: String?
        package var valueHandle: UInt16?
        package var cccdHandle: UInt16?
        package var writes: [Write]?
        package var limit: Int?
        package var length: Int?
        package var request: String?
        package var clientRxMtu: Int?
        package var autoSecurityUpgrade: Bool?
        package var csrkLsbFirst: String?
        package var signCounter: UInt32?
    }

    package struct Service: Decodable {
        package var start: UInt16
        package var end: UInt16
        package var uuid: String
        package var primary: Bool?
        package var handle: UInt16?
    }

    package struct Characteristic: Decodable {
        package var declarationHandle: UInt16
        package var valueHandle: UInt16
        package var properties: UInt8
        package var uuid: String
    }

    package struct Attribute: Decodable {
        package var handle: UInt16
        package var uuid: String?
        package var value: String?
    }

    /// What a client learnt of a peer.
    package struct Findings: Decodable {
        package var services: [Service]?
        package var includes: [Service]?
        package var characteristics: [Characteristic]?
        package var descriptors: [Attribute]?

        package init(
            services: [Service]? = nil, includes: [Service]? = nil, characteristics: [Characteristic]? = nil,
            descriptors: [Attribute]? = nil
        ) {
            self.services = services
            self.includes = includes
            self.characteristics = characteristics
            self.descriptors = descriptors
        }
    }

    package struct Expectation: Decodable {
        package var result: String?
        package var value: String?
        package var values: [Attribute]?
        package var events: [Attribute]?
        package var mtu: Int?
        package var error: UInt8?
        package var errorHandle: UInt16?
        package var reason: String?
        package var accepted: Bool?
    }

    package struct Case: Decodable, CustomStringConvertible {
        package var name: String
        package var clientMtu: Int
        package var database: String?
        package var operation: String
        package var params: Parameters
        package var script: [Line]
        package var expect: Expectation
        /// What stands beside the rest of the expectation.
        package var findings: Findings
        package var description: String { "\(name) \(operation)" }

        private enum CodingKeys: String, CodingKey {
            case name = "case"
            case clientMtu, database, operation, params, script, expect
        }

        package init(from decoder: any Decoder) throws {
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

    package struct Session: Decodable, CustomStringConvertible {
        package struct Expectation: Decodable {
            package var discovered: Findings
            package var events: [Attribute]
        }

        package var name: String
        package var setup: [Line]
        package var script: [Line]
        package var expect: Expectation
        package var description: String { name }

        private enum CodingKeys: String, CodingKey {
            case name = "case"
            case setup, script, expect
        }
    }

    package struct Database: Decodable {
        package struct Entry: Decodable {
            package var handle: UInt16
            package var type: String
            package var value: String
        }

        package var services: [Service]
        package var attributes: [Entry]
    }

    package static let cases: [Case] = (try? lines("client_cases.jsonl", as: Case.self)) ?? []
    package static let sessions: [Session] = (try? lines("profile_sessions.jsonl", as: Session.self)) ?? []

    package static func databases() throws -> [String: Database] {
        try JSONDecoder().decode([String: Database].self, from: SharedVectors.data("gatt/databases.json"))
    }

    /// What the devices of real connections had, as far as the recorded client asked.
    package static func realDatabases() throws -> [Findings] {
        struct Connection: Decodable {
            var discovered: Findings
        }
        return try lines("real_sessions.jsonl", as: Connection.self).map(\.discovered)
    }

    package static func uuid(_ text: String?) throws -> BluetoothUUID {
        guard let uuid = BluetoothUUID(text ?? "") else { throw NoUUID(text: text ?? "nothing") }
        return uuid
    }

    package struct NoUUID: Error {
        package let text: String
    }

    private static func lines<T: Decodable>(_ name: String, as type: T.Type) throws -> [T] {
        try SharedVectors.lines("gatt/\(name)", as: type, keys: .convertFromSnakeCase)
    }
}
