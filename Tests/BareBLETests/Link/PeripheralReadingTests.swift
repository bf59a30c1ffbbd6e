import BareBLE
import BareBLETestKit
import Testing

@Suite struct PeripheralReadingTests {
    private let central = Central()

    @Test func agreesOnTheLargestMTU() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        #expect(await device.mtu == 517)
        #expect(await device.isConnected)
    }

    @Test func asksForNoMTUWhenTheSmallestIsWanted() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: 23))
        #expect(await device.mtu == 23)
        #expect(await peripheral.requestCount == 0)
    }

    /// One request for the MTU and one for the value: nothing needs to be discovered.
    @Test func readsByTypeInOneRequest() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral)
        #expect(try await device.read(0x2A19) == [87])
        #expect(await peripheral.requestCount == 2)
    }

    @Test(arguments: [23, 517]) func readsALongValueToItsEnd(mtu: Int) async throws {
        let device = try await central.attach(to: VirtualPeripheral(.longValue), ConnectOptions(mtu: mtu))
        let expected = (0..<512).map { UInt8(truncatingIfNeeded: $0) }
        #expect(try await device.read(0xFFF1) == expected)
        try await device.discover()
        let service = BluetoothUUID("9d5a0001-3c7e-4b1f-8a26-e4710c95b3d8")
        #expect(try await device.read(.uuid(0xFFF1, service: service)) == expected)
    }

    @Test func discoversTheTree() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        let database = try await device.discover(level: .full)
        #expect(database.services.map(\.uuid) == [0x1800, 0x1801, 0x180D, 0x180F, 0x180A])
        #expect(database.characteristics(0x2A37).first?.properties == .notify)
        #expect(await device.database == database)
    }

    @Test func discoversOneServiceOnly() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let device = try await central.attach(to: peripheral)
        let database = try await device.discover(services: [0x180F])
        #expect(database.services.map(\.uuid) == [0x180F])
        #expect(await peripheral.requestCount <= 1 + 3)
    }

    @Test func reportsThePeersRefusal() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.longValue))
        let security = await #expect(throws: BLEError.self) { try await device.read(0xFFF2) }
        #expect(security?.code == .insufficientSecurity)
        #expect(security?.attError == .insufficientAuthentication)
        let application = await #expect(throws: BLEError.self) { try await device.read(0xFFF3) }
        #expect(application?.code == .refusedByPeer)
        #expect(application?.attError?.rawValue == 0x81)
    }

    @Test func namesWhatIsNotThere() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        await #expect(throws: error(.attributeNotFound)) { try await device.read(0x2A37) }
        try await device.discover()
        await #expect(throws: error(.attributeNotFound)) { try await device.read(0x2A37) }
    }

    @Test func anAmbiguousUUIDIsAnError() async throws {
        let twins = VirtualDevice(name: "Twins", services: [.battery(level: 1), .battery(level: 2)])
        let device = try await central.attach(to: VirtualPeripheral(twins))
        await #expect(throws: error(.ambiguous)) { try await device.read(0x2A19) }
        try await device.discover()
        await #expect(throws: error(.ambiguous)) { try await device.read(0x2A19) }
        #expect(try await device.read(.uuid(0x2A19, index: 1)) == [2])
    }

    @Test func keepsTheOrderOfOverlappingCalls() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        try await device.discover()
        let values = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<50 { group.addTask { try await device.read(0x2A19) } }
            return try await group.reduce(into: [[UInt8]]()) { $0.append($1) }
        }
        #expect(values == Array(repeating: [87], count: 50))
    }

    @Test func severalPeersAreReadAtOnce() async throws {
        let first = try await central.attach(to: VirtualPeripheral(.heartRate))
        let second = try await central.attach(to: VirtualPeripheral(.battery))
        async let one = first.read(0x2A19)
        async let two = second.read(0x2A19)
        #expect(try await [one, two] == [[87], [64]])
    }

    @Test func runsOnTheLoopToo() async throws {
        let value = try await central.run {
            try await central.attach(to: VirtualPeripheral(.battery)).read(0x2A19)
        }
        #expect(value == [64])
    }
}

extension Central {
    /// Connects to a virtual peripheral.
    func attach(
        to peripheral: VirtualPeripheral, _ options: ConnectOptions = ConnectOptions()
    ) async throws -> Peripheral {
        try await attach(descriptor: try await peripheral.connect(), name: "virtual", options)
    }
}
