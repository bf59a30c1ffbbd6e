import BareBLE
import BareBLETestKit
import Testing

@Suite struct ListingTests {
    private static let long = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
    private let central = Central()

    /// A battery that includes a hidden service with a long UUID.
    private let listed = VirtualDevice(
        name: "Lists",
        services: [
            VirtualService(
                0x180F, includes: [1],
                [
                    VirtualCharacteristic(
                        0x2A19, [.read, .notify], value: [80],
                        descriptors: [VirtualDescriptor(0x2901, value: Array("level".utf8))])
                ]),
            VirtualService(
                Self.long, isPrimary: false, [VirtualCharacteristic(0xFFF1, .write)]),
            VirtualService(0x180F, [VirtualCharacteristic(0x2A19, .read, value: [20])]),
        ])

    @Test(arguments: [23, 517]) func findsTheSameAsTheDiscoveryOfAll(mtu: Int) async throws {
        let peripheral = VirtualPeripheral(listed)
        let complete = try await central.attach(to: peripheral).discover(level: .full)
        await peripheral.disconnect()
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: mtu))
        var services = try await device.discoverServices()
        services += try await device.discoverSecondaryServices()
        #expect(
            services.map(\.uuid) == complete.services.filter(\.isPrimary).map(\.uuid) + [
                Self.long
            ])
        for service in services {
            let includes = try await device.discoverIncludedServices(of: service)
            #expect(includes == complete.service(containing: service.handles.lowerBound)?.includes)
            for characteristic in try await device.discoverCharacteristics(of: service) {
                let found = try await device.discoverDescriptors(of: characteristic)
                #expect(found.map(\.uuid) == complete.descriptors(of: characteristic).map(\.uuid))
            }
        }
        let known = try #require(await device.database)
        #expect(known.services == complete.services)
        #expect(known.characteristics == complete.characteristics)
        #expect(known.descriptors.map(\.handle) == complete.descriptors.map(\.handle))
    }

    @Test func listsByKind() async throws {
        let device = try await central.attach(to: VirtualPeripheral(listed))
        let batteries = try await device.discoverServices([0x1805, 0x180F])
        #expect(batteries.count == 2)
        let first = try #require(batteries.first)
        #expect(try await device.discoverCharacteristics([0x2A1B], of: first).isEmpty)
        let level = try await device.discoverCharacteristics([0x2A19], of: first)
        #expect(level.map(\.uuid) == [0x2A19])
        #expect(try await device.read(.uuid(0x2A19, service: 0x180F, index: 0)) == [80])
        #expect(try await device.discoverServices(limit: 1) == [first])
    }

    @Test func everyListTakesALimit() async throws {
        let device = try await central.attach(to: VirtualPeripheral(listed))
        let battery = try #require(try await device.discoverServices([0x180F], limit: 1).first)
        #expect(try await device.discoverSecondaryServices([Self.long], limit: 1).map(\.uuid) == [Self.long])
        #expect(try await device.discoverSecondaryServices([0x180F]).isEmpty, "those are primary")
        #expect(try await device.discoverIncludedServices(of: battery, limit: 1).map(\.uuid) == [Self.long])
        let level = try #require(try await device.discoverCharacteristics(of: battery, limit: 1).first)
        #expect(try await device.discoverDescriptors(of: level).count == 2)
        #expect(try await device.discoverDescriptors(of: level, limit: 1).count == 1)
        let invalid = error(.invalidArgument)
        await #expect(throws: invalid) { _ = try await device.discoverSecondaryServices(limit: 0) }
        await #expect(throws: invalid) { _ = try await device.discoverIncludedServices(of: battery, limit: 0) }
        await #expect(throws: invalid) { _ = try await device.discoverDescriptors(of: level, limit: -1) }
    }

    @Test func theServicesThatWereListedAreKnown() async throws {
        let peripheral = VirtualPeripheral(listed)
        let device = try await central.attach(to: peripheral, ConnectOptions(observesServiceChanges: false))
        #expect(await device.services.isEmpty)
        let batteries = try await device.discoverServices([0x180F])
        let hidden = try await device.discoverSecondaryServices()
        let before = await peripheral.requestCount
        let expected = (batteries + hidden).sorted { $0.handles.lowerBound < $1.handles.lowerBound }
        #expect(await device.services.map(\.handles) == expected.map(\.handles))
        #expect(await peripheral.requestCount == before, "nothing is requested")
    }

    /// A caller that lists by hand does not need a discovery.
    @Test func whatWasListedCanBeWrittenByItsUUID() async throws {
        let peripheral = VirtualPeripheral(listed)
        let device = try await central.attach(to: peripheral)
        let service = try #require(try await device.discoverSecondaryServices().first)
        _ = try await device.discoverCharacteristics(of: service)
        let before = await peripheral.requestCount
        try await device.write([1], to: 0xFFF1)
        #expect(await peripheral.requestCount == before + 1)
    }

    @Test func handleZeroIsRefusedHere() async throws {
        let peripheral = VirtualPeripheral(listed)
        let device = try await central.attach(to: peripheral)
        let before = await peripheral.requestCount
        let invalid = error(.invalidArgument)
        await #expect(throws: invalid) { _ = try await device.discoverDescriptors(in: 0...0xFFFF) }
        await #expect(throws: invalid) { _ = try await device.discoverServices(in: 0...5) }
        await #expect(throws: invalid) { _ = try await device.discoverCharacteristics(in: 1...5, limit: 0) }
        #expect(await peripheral.requestCount == before)
    }
}
