import BLECore
import Foundation
import Testing

/// The recorded client operations of `vectors/gatt`, as far as these tests use them.
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
        var offset: UInt16?
        var value: String?
        var writes: [Write]?
        var start: UInt16?
        var end: UInt16?
        var uuid: String?
        var limit: Int?
        var valueHandle: UInt16?
        var cccdHandle: UInt16?
        var clientRxMtu: UInt16?
        var autoSecurityUpgrade: Bool?
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

    struct Expectation: Decodable {
        var result: String?
        var value: String?
        var values: [Attribute]?
        var services: [Service]?
        var includes: [Service]?
        var characteristics: [Characteristic]?
        var descriptors: [Attribute]?
        var mtu: UInt16?
        var error: UInt8?
        var errorHandle: UInt16?
        var reason: String?
    }

    struct Case: Decodable, CustomTestStringConvertible {
        var name: String
        var clientMtu: UInt16
        var database: String?
        var operation: String
        var params: Parameters
        var script: [Line]
        var expect: Expectation
        var testDescription: String { "\(name) \(operation)" }

        enum CodingKeys: String, CodingKey {
            case name = "case"
            case clientMtu, database, operation, params, script, expect
        }

        /// The MTU in force. What a reply holds tells it where the set-up is not part of the case.
        var mtu: UInt16 { clientMtu }
    }

    struct Database: Decodable {
        struct Entry: Decodable {
            var handle: UInt16
            var type: String
            var value: String
        }

        var services: [Service]
        var attributes: [Entry]

        var model: ModelDatabase {
            get throws {
                var ends: [UInt16: UInt16] = [:]
                for service in services { ends[service.start] = service.end }
                return ModelDatabase(
                    attributes: try attributes.map { entry in
                        ModelAttribute(
                            handle: entry.handle, type: try uuid(entry.type), value: try Hex.decode(entry.value),
                            groupEnd: entry.type == "2800" || entry.type == "2801" ? ends[entry.handle] : nil)
                    })
            }
        }
    }

    static func uuid(_ text: String) throws -> BluetoothUUID {
        try #require(BluetoothUUID(text))
    }

    static let isAvailable = SharedVectors.available(for: "GATTVectorTests")

    static let cases: [Case] = {
        guard isAvailable else { return [] }
        return (try? lines("gatt/client_cases.jsonl", as: Case.self)) ?? []
    }()

    private static func lines<T: Decodable>(_ path: String, as type: T.Type) throws -> [T] {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try SharedVectors.data(path).split(separator: 0x0A).map { try decoder.decode(type, from: Data($0)) }
    }

    static func databases() throws -> [String: Database] {
        try JSONDecoder().decode([String: Database].self, from: SharedVectors.data("gatt/databases.json"))
    }

    /// What the devices of real connections had, as far as the recorded client asked.
    static func realDatabases() throws -> [Expectation] {
        struct Session: Decodable {
            var discovered: Expectation
        }
        return try lines("gatt/real_sessions.jsonl", as: Session.self).map(\.discovered)
    }
}

extension GATTVectors.Expectation {
    /// A server that has what is expected to be found. Attributes of which only a part is known are completed.
    func model(in range: ClosedRange<UInt16>? = nil, valueHandle: UInt16? = nil) throws -> ModelDatabase {
        var attributes: [ModelAttribute] = []
        func add(_ handle: UInt16, _ type: BluetoothUUID, _ value: [UInt8] = [], groupEnd: UInt16? = nil) {
            guard !attributes.contains(where: { $0.handle == handle }) else { return }
            attributes.append(ModelAttribute(handle: handle, type: type, value: value, groupEnd: groupEnd))
        }
        for service in services ?? [] {
            add(
                service.start, service.primary == false ? .secondaryServiceDeclaration : .primaryServiceDeclaration,
                try GATTVectors.uuid(service.uuid).attBytes, groupEnd: service.end)
        }
        if let range {
            let declaration = valueHandle.map { $0 - 2 } ?? range.lowerBound - 1
            add(declaration, .primaryServiceDeclaration, [0x0F, 0x18], groupEnd: range.upperBound)
        }
        if let valueHandle {
            add(
                valueHandle - 1, .characteristicDeclaration, [0x02] + littleEndian(valueHandle) + [0x19, 0x2A])
            add(valueHandle, 0x2A19)
        }
        for include in includes ?? [] {
            let uuid = try GATTVectors.uuid(include.uuid)
            let range = littleEndian(include.start) + littleEndian(include.end)
            add(include.handle ?? 0, .includeDeclaration, range + (uuid.short == nil ? [] : uuid.attBytes))
            add(include.start, .secondaryServiceDeclaration, uuid.attBytes, groupEnd: include.end)
        }
        for characteristic in characteristics ?? [] {
            let uuid = try GATTVectors.uuid(characteristic.uuid)
            add(
                characteristic.declarationHandle, .characteristicDeclaration,
                [characteristic.properties] + littleEndian(characteristic.valueHandle) + uuid.attBytes)
            add(characteristic.valueHandle, uuid)
        }
        for descriptor in descriptors ?? [] {
            add(descriptor.handle, try GATTVectors.uuid(descriptor.uuid ?? ""))
        }
        return ModelDatabase(attributes: attributes.sorted { $0.handle < $1.handle })
    }
}
