import TestSupport
import Testing

@testable import BLECore

/// Random services, published and discovered. What is expected is laid out here by the specification's rules, not taken
/// from the database.
@Suite("GATT server: discovery") struct GATTServerDiscoveryTests {
    /// The handle after those of Generic Access and Generic Attribute.
    private static let firstHandle: AttributeHandle = 14
    private static let databasesPerSeed: UInt64 = 25

    @Test("a client finds what was published, at any MTU", arguments: 0..<32 as Range<UInt64>)
    func findsWhatWasPublished(_ seed: UInt64) throws {
        for number in 0..<Self.databasesPerSeed {
            let identity = seed * Self.databasesPerSeed + number
            var numbers = SeededNumbers(seed: identity)
            let services = numbers.services()
            let mtu: UInt16 = [23, 64, 247, 517][Int(identity % 4)]
            var client = try ServedClient(services)
            let found = try Self.discover(&client, mtu: mtu)
            let expected = Self.layout(of: services)
            #expect(found.quirks == [], "\(identity) at \(mtu)")
            #expect(found.services.prefix(2).map(\.uuid) == [0x1800, 0x1801], "\(identity) at \(mtu)")
            #expect(Array(found.services.dropFirst(2)) == expected.services, "\(identity) at \(mtu)")
            let characteristics = found.characteristics.filter { $0.declarationHandle >= Self.firstHandle }
            #expect(characteristics == expected.characteristics, "\(identity) at \(mtu)")
            let descriptors = found.descriptors.filter { $0.handle >= Self.firstHandle }
            #expect(
                descriptors.map { GATTDescriptor(handle: $0.handle, uuid: $0.uuid) } == expected.descriptors,
                "\(identity) at \(mtu)")
        }
    }

    /// Exchanges the MTU and discovers everything.
    private static func discover(_ client: inout ServedClient, mtu: UInt16) throws -> GATTDatabase {
        let offer = [0x02, UInt8(truncatingIfNeeded: mtu), UInt8(truncatingIfNeeded: mtu >> 8)] as [UInt8]
        let response = try client.send(Hex.encode(offer))
        #expect(response == ["030502"])
        var discovery = GATTDiscovery(level: .full, mtu: mtu)
        var step = discovery.begin()
        while true {
            switch step {
            case .finished(let database): return database
            case .failed(let failure): throw failure
            case .send(let request):
                let packets = try client.send(Hex.encode(request))
                #expect(packets.count == 1)
                let packet = try Hex.decode(packets.first ?? "")
                #expect(packet.count <= Int(mtu))
                if packet.first == ATTErrorResponse.opcode.rawValue {
                    step = discovery.received(.error(try ATTErrorResponse(packet)))
                } else {
                    step = discovery.received(.response(packet))
                }
            }
        }
    }

    /// Lays services out one after the other.
    ///
    /// Spec: Core Vol 3 Part G, 3.1 to 3.3.
    private static func layout(of services: [ServiceDefinition]) -> GATTDatabase {
        var next = firstHandle
        var ranges: [ClosedRange<AttributeHandle>] = []
        var characteristics: [GATTCharacteristic] = []
        var descriptors: [GATTDescriptor] = []
        for service in services {
            let start = next
            next += 1 + AttributeHandle(service.includes.count)
            for definition in service.characteristics {
                let declaration = next
                var properties = definition.properties
                var types = definition.descriptors.map(\.uuid)
                if !definition.extendedProperties.isEmpty {
                    properties.insert(.extendedProperties)
                    types.insert(0x2900, at: 0)
                }
                if properties.canSubscribe { types.insert(.clientCharacteristicConfiguration, at: 0) }
                next += 2
                for type in types {
                    descriptors.append(GATTDescriptor(handle: next, uuid: type))
                    next += 1
                }
                characteristics.append(
                    GATTCharacteristic(
                        declarationHandle: declaration, valueHandle: declaration + 1, endHandle: next - 1,
                        properties: properties, uuid: definition.uuid))
            }
            ranges.append(start...(next - 1))
        }
        let laidOut = zip(services, ranges).map { service, handles in
            var found = GATTService(handles: handles, uuid: service.uuid, isPrimary: service.isPrimary)
            var declaration = handles.lowerBound
            for case .position(let position) in service.includes {
                declaration += 1
                found.includes.append(
                    GATTService.Include(handle: declaration, handles: ranges[position], uuid: services[position].uuid))
            }
            return found
        }
        return GATTDatabase(services: laidOut, characteristics: characteristics, descriptors: descriptors)
    }
}

extension SeededNumbers {
    /// Services that include each other, in both directions. The last one is primary: a client has no sign of what
    /// comes after the last primary service.
    fileprivate mutating func services() -> [ServiceDefinition] {
        let count = Int.random(in: 1...8, using: &self)
        var services: [ServiceDefinition] = []
        for position in 0..<count {
            let isPrimary = chance(80)
            var service = ServiceDefinition(uuid(0x1820), isPrimary: isPrimary || position == count - 1)
            for other in 0..<count {
                let isIncluded = chance(15)
                if isIncluded, other != position { service.includes.append(.position(other)) }
            }
            let size = Int.random(in: 0...6, using: &self)
            for _ in 0..<size { service.characteristics.append(characteristic()) }
            services.append(service)
        }
        return services
    }

    private mutating func characteristic() -> CharacteristicDefinition {
        var properties: CharacteristicProperties = chance(70) ? .read : .write
        if chance(40) { properties.formUnion(chance(50) ? .notify : .indicate) }
        if chance(10) { properties.formUnion([.notify, .indicate]) }
        var descriptors: [DescriptorDefinition] = []
        let count = Int.random(in: 0...2, using: &self)
        for _ in 0..<count {
            let type: BluetoothUUID = chance(50) ? 0x2901 : uuid(0x2980)
            descriptors.append(DescriptorDefinition(type, value: .stored([1])))
        }
        let extended: GATTDescriptor.ExtendedProperties = chance(15) ? .reliableWrite : []
        return CharacteristicDefinition(
            uuid(0x2A40), properties, extendedProperties: extended, value: .handled, descriptors: descriptors)
    }
}
