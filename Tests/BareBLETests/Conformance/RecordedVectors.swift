import BareBLE
import Foundation
import Testing

/// The recorded client operations and profile sessions of `vectors/gatt`, as far as these tests use them.
enum RecordedVectors {
    struct Line: Decodable {
        var c2s: String?
        var s2c: String?
    }

    struct Write: Decodable {
        var handle: UInt16
        var value: String
        var offset: Int?
    }

    struct Parameters: Decodable {
        var handle: UInt16?
        var handles: [UInt16]?
        var start: UInt16?
        var end: UInt16?
        var uuid: String?
        var value: String?
        var valueHandle: UInt16?
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
        var findings: Findings
        var testDescription: String { name }

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

    static let isAvailable = folder != nil
    static let cases: [Case] = lines("client_cases.jsonl")
    static let sessions: [Session] = lines("profile_sessions.jsonl")
    static let databases: [String: Database] =
        file("databases.json").flatMap { try? decoder.decode([String: Database].self, from: $0) } ?? [:]

    private static let folder: URL? = {
        let named = ProcessInfo.processInfo.environment["BAREBLE_SHARED"].map { URL(filePath: $0) }
        let shared = named ?? RepositoryFiles.root.deletingLastPathComponent().appending(path: "shared")
        let folder = shared.appending(path: "vectors/gatt")
        if FileManager.default.fileExists(atPath: folder.path) { return folder }
        print("SKIPPED: Conformance through the public API: ../shared is missing")
        return nil
    }()

    private static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }

    private static func file(_ name: String) -> Data? {
        folder.flatMap { try? Data(contentsOf: $0.appending(path: name)) }
    }

    private static func lines<T: Decodable>(_ name: String) -> [T] {
        (file(name) ?? Data()).split(separator: 0x0A).compactMap { try? decoder.decode(T.self, from: Data($0)) }
    }
}

/// Files of this repository that tests read and, when asked, write.
enum RepositoryFiles {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
}

/// What a run did otherwise than the recording.
struct Mismatch: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) {
        self.description = description
    }

    static func unless(_ condition: Bool, _ text: @autoclosure () -> String) throws(Mismatch) {
        if !condition { throw Mismatch(text()) }
    }
}

func bytes(_ hex: String?) throws -> [UInt8] {
    try Hex.decode(hex ?? "")
}

func uuid(_ text: String?) throws -> BluetoothUUID {
    guard let uuid = BluetoothUUID(text ?? "") else { throw Mismatch("no UUID: \(text ?? "nothing")") }
    return uuid
}
