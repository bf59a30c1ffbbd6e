import BLECore
import Foundation
import TestSupport
import Testing

/// The messages are those of the specification's own sample (Core Vol 3 Part G, appendix B) and of the databases of
/// BlueZ's tests, put together by somebody else. What is made of them, the hash, takes a cipher, which this module does
/// not have.
@Suite(.enabled(if: SharedVectors.available(for: "DatabaseHashMessageTests"))) struct DatabaseHashMessageTests {
    private struct File: Decodable {
        var vectors: [Vector]
    }

    struct Vector: Decodable, CustomTestStringConvertible {
        struct Attribute: Decodable {
            var handle: UInt16
            var type: String
            var value: String?
        }

        var name: String
        var attributes: [Attribute]?
        var database: String?
        var message: String
        var testDescription: String { name }
    }

    private static let vectors: [Vector] = {
        let data = try? SharedVectors.data("crypto/database_hash.json")
        return data.flatMap { try? JSONDecoder().decode(File.self, from: $0) }?.vectors ?? []
    }()

    @Test func countsTheVectors() {
        #expect(Self.vectors.count == 7)
    }

    /// Each database is served, discovered, and its message compared.
    @Test(arguments: vectors)
    func theMessageOfADiscoveredDatabaseIsThatOfTheVector(vector: Vector) throws {
        let model = try model(of: vector)
        var server = TestAttributeServer(model, mtu: 247)
        let database = try server.run(GATTDiscovery(level: .full, mtu: 247)).get()
        var extendedProperties: [AttributeHandle: [UInt8]] = [:]
        for attribute in model.attributes where attribute.type == 0x2900 {
            extendedProperties[attribute.handle] = attribute.value
        }
        let message = DatabaseHashMessage(database, extendedProperties: extendedProperties)
        #expect(message.map { Hex.encode($0.bytes) } == vector.message)
        if !extendedProperties.isEmpty { #expect(DatabaseHashMessage(database) == nil) }
    }

    private func model(of vector: Vector) throws -> ModelDatabase {
        if let name = vector.database?.split(separator: "#").last {
            let databases = try GATTVectors.databases()
            return try #require(databases[String(name)]).model()
        }
        var attributes = try (vector.attributes ?? []).map { attribute in
            ModelAttribute(
                handle: attribute.handle, type: try GATTVectors.uuid(attribute.type),
                value: try Hex.decode(attribute.value ?? ""))
        }
        // The sample leaves the ends of the groups to the order of its attributes.
        var end = attributes.last?.handle ?? 0
        for index in attributes.indices.reversed()
        where [.primaryServiceDeclaration, .secondaryServiceDeclaration].contains(attributes[index].type) {
            attributes[index].groupEnd = end
            end = attributes[index].handle - 1
        }
        return ModelDatabase(attributes: attributes)
    }
}
