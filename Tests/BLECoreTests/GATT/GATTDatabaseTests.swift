import BLECore
import TestSupport
import Testing

@Suite struct GATTDatabaseTests {
    private let database = GATTDatabase(
        services: [
            GATTService(handles: 8...12, uuid: 0x180F),
            GATTService(
                handles: 1...7, uuid: 0x180F,
                includes: [GATTService.Include(handle: 2, handles: 8...12, uuid: 0x180F)]),
        ],
        characteristics: [
            GATTCharacteristic(
                declarationHandle: 9, valueHandle: 10, endHandle: 12, properties: .notify, uuid: 0x2A19),
            GATTCharacteristic(
                declarationHandle: 3, valueHandle: 4, endHandle: 4, properties: .read, uuid: 0x2A19),
            GATTCharacteristic(
                declarationHandle: 5, valueHandle: 6, endHandle: 7, properties: .read, uuid: 0x2A1A),
        ],
        descriptors: [
            GATTDescriptor(handle: 12, uuid: .clientCharacteristicConfiguration),
            GATTDescriptor(handle: 11, uuid: .clientCharacteristicConfiguration, isInferred: true),
            GATTDescriptor(handle: 7, uuid: 0x2901),
        ])

    @Test func sortsByHandle() {
        #expect(database.services.map(\.handles.lowerBound) == [1, 8])
        #expect(database.characteristics.map(\.valueHandle) == [4, 6, 10])
        #expect(database.descriptors.map(\.handle) == [7, 11, 12])
        #expect(database.attributeCount == 12)
    }

    @Test func findsByHandle() {
        #expect(database.service(containing: 0) == nil)
        #expect(database.service(containing: 7)?.handles == 1...7)
        #expect(database.service(containing: 8)?.handles == 8...12)
        #expect(database.service(containing: 13) == nil)
        #expect(database.characteristic(containing: 2) == nil)
        #expect(database.characteristic(containing: 7)?.valueHandle == 6)
        #expect(database.characteristic(containing: 8) == nil)
        #expect(database.characteristic(valueHandle: 10)?.uuid == 0x2A19)
        #expect(database.characteristic(valueHandle: 9) == nil)
        #expect(database.descriptor(at: 7)?.uuid == 0x2901)
        #expect(database.descriptor(at: 8) == nil)
    }

    @Test func knowsTheTypeOfEveryHandle() {
        let types = (0...13 as ClosedRange<AttributeHandle>).map { database.type(at: $0)?.description ?? "-" }
        #expect(
            types == [
                "-", "2800", "2802", "2803", "2a19", "2803", "2a1a", "2901", "2800", "2803", "2a19", "2902", "2902",
                "-",
            ])
    }

    @Test func keepsEqualUUIDsApart() {
        #expect(database.services(0x180F).count == 2)
        #expect(database.characteristics(0x2A19).count == 2)
        #expect(database.characteristics(of: database.services[0]).map(\.valueHandle) == [4, 6])
        #expect(database.characteristics(of: database.services[1]).map(\.valueHandle) == [10])
    }

    @Test func takesTheFirstConfiguration() {
        #expect(database.cccd(of: database.characteristics[2])?.handle == 11)
        #expect(database.cccd(of: database.characteristics[0]) == nil)
        #expect(database.descriptors(of: database.characteristics[1]).map(\.handle) == [7])
    }

    /// A database that somebody put together carelessly responds like any other.
    @Test func contradictoryRangesAreTolerated() {
        var characteristic = GATTCharacteristic(
            declarationHandle: 9, valueHandle: 3, endHandle: 0, properties: [], uuid: 0x2A19)
        #expect(characteristic.endHandle == 3)
        characteristic.endHandle = 0
        let database = GATTDatabase(
            services: [GATTService(handles: 5...9, uuid: 1), GATTService(handles: 5...6, uuid: 2)],
            characteristics: [characteristic, characteristic])
        for handle in [0, 3, 5, 9, 0xFFFF] as [AttributeHandle] {
            _ = database.service(containing: handle)
            _ = database.characteristic(containing: handle)
            _ = database.type(at: handle)
        }
        #expect(database.descriptors(of: characteristic) == [])
        #expect(database.characteristics(of: database.services[0]).count == 2)
    }

    // The bits as the specification numbers them: Core Vol 3 Part G, table 3.5.
    @Test func namesProperties() {
        #expect(CharacteristicProperties(rawValue: 0x12).names == ["read", "notify"])
        #expect(CharacteristicProperties(rawValue: 0xFF).names.count == 8)
        #expect(CharacteristicProperties(rawValue: 0x0C).description == "write-without-response, write")
        #expect(CharacteristicProperties(rawValue: 0x20).canSubscribe)
        #expect(!CharacteristicProperties(rawValue: 0xCF).canSubscribe)
        #expect(CharacteristicProperties.authenticatedSignedWrites.rawValue == 0x40)
    }

    // MARK: Ranges

    @Test func rangesJoinAndSplit() {
        var ranges = HandleRanges(10...20)
        ranges.insert(30...40)
        ranges.insert(21...29)
        #expect(ranges.ranges == [10...40])
        ranges.remove(15...17)
        #expect(ranges.ranges == [10...14, 18...40])
        ranges.insert(0)
        ranges.insert(0xFFFF)
        #expect(ranges.ranges == [0...0, 10...14, 18...40, 0xFFFF...0xFFFF])
        #expect(ranges.intersection(12...30) == [12...14, 18...30])
        #expect(ranges.contains(14) && !ranges.contains(15) && ranges.contains(0xFFFF))
        ranges.remove(0...0xFFFF)
        #expect(ranges.isEmpty)
    }

    /// Against a plain set of handles.
    @Test func rangesAgreeWithASet() {
        var numbers = SeededNumbers(seed: 7)
        for _ in 0..<200 {
            var ranges = HandleRanges()
            var set: Set<AttributeHandle> = []
            for _ in 0..<20 {
                let lower = AttributeHandle.random(in: 0...60, using: &numbers)
                let range = lower...AttributeHandle.random(in: lower...63, using: &numbers)
                if numbers.chance(60) {
                    ranges.insert(range)
                    set.formUnion(range)
                } else {
                    ranges.remove(range)
                    set.subtract(range)
                }
            }
            #expect(ranges.ranges.flatMap { Array($0) } == set.sorted())
            let all = ranges.ranges
            #expect(zip(all, all.dropFirst()).allSatisfy { Int($0.upperBound) + 1 < Int($1.lowerBound) })
        }
    }
}
