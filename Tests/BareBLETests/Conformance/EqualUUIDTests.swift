import BareBLE
import BareBLETestKit
import Testing

/// Two services with one UUID, each with a characteristic with one UUID: handles keep them apart.
@Suite("Equal UUIDs", .timeLimit(.minutes(10)))
struct EqualUUIDTests {
    private let peripheral = VirtualPeripheral(
        VirtualDevice(name: "Twins", services: [.battery(level: 1), .battery(level: 2)]))

    @Test func theDatabaseKeepsBoth() async throws {
        let device = try await Central().attach(to: peripheral)
        let database = try await device.discover(level: .full)
        #expect(database.services(0x180F).map(\.handles) == [1...4, 5...8])
        #expect(database.characteristics(0x2A19, in: 0x180F).map(\.valueHandle) == [3, 7])
        let second = try #require(database.services(0x180F).last)
        #expect(try await device.discoverCharacteristics(of: second).map(\.valueHandle) == [7])
        #expect(try await device.read(.handle(3)) == [1])
        #expect(try await device.read(.handle(7)) == [2])
    }

    @Test func anAmbiguousReferenceIsAnErrorAndTakesAnIndex() async throws {
        let device = try await Central().attach(to: peripheral)
        try await device.discover()
        let failure = await #expect(throws: BLEError.self) {
            try await device.subscribe(to: .uuid(0x2A19, service: 0x180F))
        }
        #expect(failure?.code == .ambiguous)
        #expect(failure?.reason.contains("0x0003, 0x0007") == true)
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F, index: 1)) == [2])
        await #expect(throws: error(.attributeNotFound)) {
            try await device.read(.uuid(0x2A19, service: 0x180F, index: 2))
        }
    }

    @Test func subscriptionsGetTheirOwnValues() async throws {
        let device = try await Central().attach(to: peripheral)
        try await device.discover()
        let first = try await device.subscribe(to: .uuid(0x2A19, index: 0))
        let second = try await device.subscribe(to: .uuid(0x2A19, index: 1))
        await peripheral.send(raw: [0x1B, 7, 0, 22])
        await peripheral.send(raw: [0x1B, 3, 0, 11])
        var values = first.makeAsyncIterator()
        #expect(try await values.next()?.bytes == [11])
        values = second.makeAsyncIterator()
        #expect(try await values.next()?.bytes == [22])
    }
}
