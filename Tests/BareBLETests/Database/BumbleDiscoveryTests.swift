import BareBLE
import Foundation
import Testing

/// Databases of another implementation: Bumble builds them, assigns the handles, and responds.
@Suite(.serialized, .enabled(if: BumbleServer.available(for: "BumbleDiscoveryTests")))
struct BumbleDiscoveryTests {
    private struct Descriptor: Codable, Hashable {
        var uuid: String
        var value: String
    }

    private struct Characteristic: Codable, Hashable {
        var uuid: String
        var properties: [String]
        var value: String
        var descriptors: [Descriptor]
    }

    private struct Service: Codable, Hashable {
        var uuid: String
        var primary: Bool
        var characteristics: [Characteristic]
    }

    private struct Database: Codable, Hashable {
        var services: [Service]
    }

    private let central = Central()

    @Test(arguments: [23, 100, 517]) func findsEverythingThatBumbleServes(mtu: Int) async throws {
        for seed in 0..<5 {
            var numbers = Numbers(state: UInt64(seed * 1000 + mtu))
            let database = random(&numbers)
            let peer = try BumbleServer(database: JSONEncoder().encode(database))
            let device = try await central.connect(toSocket: peer.path, ConnectOptions(mtu: mtu))
            let found = try await device.discover(level: .full)
            #expect(try await tree(of: found, on: device) == database, "seed \(seed), MTU \(mtu)")
            #expect(found.quirks.isEmpty, "seed \(seed), MTU \(mtu)")
            let sent = await device.statistics.requestsSent
            await device.disconnect()
            while try peer.requestCount() == nil, !Task.isCancelled { await Task.yield() }
            #expect(try peer.requestCount() == sent)
        }
    }

    /// The discovered database, in the form of the description, with values and descriptors read from the peer.
    private func tree(of found: GATTDatabase, on device: Peripheral) async throws -> Database {
        var services: [Service] = []
        for service in found.services {
            var characteristics: [Characteristic] = []
            for characteristic in found.characteristics(of: service) {
                var descriptors: [Descriptor] = []
                for descriptor in found.descriptors(of: characteristic)
                where descriptor.uuid != .clientCharacteristicConfiguration {
                    let value = try await device.read(.handle(descriptor.handle))
                    descriptors.append(Descriptor(uuid: descriptor.uuid.description, value: Hex.encode(value)))
                }
                let readable = characteristic.properties.contains(.read)
                let value = readable ? try await device.read(.handle(characteristic.valueHandle)) : []
                characteristics.append(
                    Characteristic(
                        uuid: characteristic.uuid.description,
                        properties: characteristic.properties.names.map { $0.replacingOccurrences(of: "-", with: "_") },
                        value: Hex.encode(value), descriptors: descriptors))
            }
            services.append(
                Service(uuid: service.uuid.description, primary: service.isPrimary, characteristics: characteristics))
        }
        return Database(services: services)
    }

    private func random(_ numbers: inout Numbers) -> Database {
        Database(
            services: (0..<Int.random(in: 1...8, using: &numbers)).map { _ in
                Service(
                    uuid: uuid(0x1810, &numbers), primary: true,
                    characteristics: (0..<Int.random(in: 0...6, using: &numbers)).map { _ in characteristic(&numbers) })
            })
    }

    private func characteristic(_ numbers: inout Numbers) -> Characteristic {
        let all = ["read", "write_without_response", "write", "notify", "indicate"]
        var properties = all.filter { _ in Bool.random(using: &numbers) }
        if properties.isEmpty { properties = ["read"] }
        let length = properties.contains("read") ? Int.random(in: 0...60, using: &numbers) : 0
        return Characteristic(
            uuid: uuid(0x2A40, &numbers), properties: properties,
            value: Hex.encode((0..<length).map { _ in UInt8.random(in: 0...255, using: &numbers) }),
            descriptors: (0..<Int.random(in: 0...2, using: &numbers)).map { index in
                Descriptor(uuid: index == 0 ? "2901" : uuid(0x2A90, &numbers), value: "6869")
            })
    }

    private func uuid(_ base: UInt16, _ numbers: inout Numbers) -> String {
        let short = base + UInt16.random(in: 0..<32, using: &numbers)
        if Bool.random(using: &numbers) { return BluetoothUUID(short).description }
        return BluetoothUUID(high: UInt64(short) << 32 | 0xB5A3_F393, low: 0xE0A9_E50E_24DC_CA9E).description
    }
}

private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }
}
