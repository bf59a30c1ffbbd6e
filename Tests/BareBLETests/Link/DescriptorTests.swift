import BareBLE
import BareBLETestKit
import Testing

@Suite(.timeLimit(.minutes(10))) struct DescriptorTests {
    private let central = Central()

    private var device: VirtualDevice {
        VirtualDevice(
            name: "Descriptors",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(
                            0xFFF1, [.read, .write, .notify, .broadcast, .extendedProperties], value: [1],
                            descriptors: [
                                VirtualDescriptor(0x2900, value: [0x00, 0x00]),
                                VirtualDescriptor(0x2901, value: Array("flow".utf8)),
                            ]),
                        VirtualCharacteristic(
                            0xFFF2, [.read, .write],
                            descriptors: [
                                VirtualDescriptor(0x2901, value: [0xFF]),
                                VirtualDescriptor(0x2904, value: [0x0E, 0xFE, 0x2F, 0x27, 0x01, 0x00, 0x00]),
                            ]),
                    ])
            ])
    }

    @Test(arguments: DiscoveryLevel.allCases) func areReadByKind(level: DiscoveryLevel) async throws {
        let peripheral = VirtualPeripheral(device)
        let device = try await central.attach(to: peripheral)
        try await device.discover(level: level)
        #expect(try await device.userDescription(of: 0xFFF1) == "flow")
        let requests = await peripheral.requestCount
        #expect(try await device.readDescriptor(0x2901, of: 0xFFF1) == Array("flow".utf8))
        // Found before, or remembered since.
        #expect(await peripheral.requestCount == requests + 1)
        let error = await #expect(throws: BLEError.self) { _ = try await device.readDescriptor(0x2904, of: 0xFFF1) }
        #expect(error?.code == .attributeNotFound)
    }

    @Test func textThatIsNoneIsReportedWithItsBytes() async throws {
        let device = try await central.attach(to: VirtualPeripheral(device))
        let error = await #expect(throws: BLEError.self) { _ = try await device.userDescription(of: 0xFFF2) }
        #expect(error?.code == .malformedValue)
        #expect(error?.partialValue == [0xFF])
    }

    /// The layout is Core Vol 3 Part G, 3.3.3.5: a signed number of 16 bits, in hundredths of degrees Celsius.
    @Test func aFormatIsRead() async throws {
        let device = try await central.attach(to: VirtualPeripheral(device))
        let format = try await device.presentationFormat(of: 0xFFF2)
        #expect(format == GATTDescriptor.PresentationFormat(format: 0x0E, exponent: -2, unit: 0x272F))
    }

    @Test func aSubscriptionKeepsItsConfiguration() async throws {
        let device = try await central.attach(to: VirtualPeripheral(device))
        try await device.discover(level: .full)
        let values = try await device.subscribe(to: 0xFFF1)
        let handle = try #require(await device.database?.descriptors.first { $0.uuid == 0x2902 }?.handle)
        let busy = error(.busy)
        await #expect(throws: busy) { try await device.writeDescriptor([0, 0], to: 0x2902, of: 0xFFF1) }
        await #expect(throws: busy) { try await device.write([0, 0], to: .handle(handle)) }
        await #expect(throws: busy) { try await device.writeReliably([([0, 0], .handle(handle))]) }
        try await values.unsubscribe()
        try await device.writeDescriptor([1, 0], to: 0x2902, of: 0xFFF1)
        #expect(try await device.read(.handle(handle)) == [1, 0])
    }

    @Test func extendedPropertiesAreKeptToOnceTheyAreKnown() async throws {
        let device = try await central.attach(to: VirtualPeripheral(device))
        try await device.writeReliably([([7], 0xFFF1)])
        #expect(try await device.extendedProperties(of: 0xFFF1) == [])
        let refused = error(.notSupported)
        await #expect(throws: refused) { try await device.writeReliably([([7], 0xFFF1)]) }
        await #expect(throws: refused) { try await device.writeDescriptor([0x41], to: 0x2901, of: 0xFFF1) }
        try await device.writeReliably([([7], 0xFFF2)])
    }

    /// New firmware may allow what the old one did not.
    @Test func extendedPropertiesAreForgottenWhenServicesChange() async throws {
        func firmware(_ properties: UInt8, _ others: VirtualService...) -> VirtualDevice {
            let service = VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(
                        0xFFF1, [.read, .write, .extendedProperties], value: [1],
                        descriptors: [VirtualDescriptor(0x2900, value: [properties, 0])])
                ])
            return VirtualDevice(
                name: "Changing", services: [.genericAttribute(databaseHash: nil), service] + others)
        }
        let peripheral = VirtualPeripheral(firmware(0))
        let device = try await central.attach(to: peripheral)
        let old = try await device.discover(level: .full)
        #expect(try await device.extendedProperties(of: 0xFFF1) == [])
        await #expect(throws: error(.notSupported)) {
            try await device.writeReliably([([7], 0xFFF1)])
        }
        var changes = try await device.serviceChanges().makeAsyncIterator()
        await peripheral.changeServices(to: firmware(1, .battery(level: 50)))
        _ = try await changes.next()
        #expect(await device.database?.characteristics(0xFFF1) == old.characteristics(0xFFF1))
        try await device.writeReliably([([7], 0xFFF1)])
        #expect(try await peripheral.value(0xFFF1) == [7])
    }

    /// The exchange after Core Vol 3 Part G, 3.3.3.4; the peer has a broadcast characteristic and its configuration.
    @Test func broadcastIsSwitched() async throws {
        let script = try Dialogue(
            """
            < 10 0100 ffff 0028
            > 11 06 0100 0400 f0ff
            < 10 0500 ffff 0028
            > 01 10 0500 0a
            < 08 0200 0400 0328
            > 09 07 0200 03 0300 f1ff
            < 04 0400 0400
            > 05 01 0400 0329
            < 12 0400 0100
            > 13
            < 12 0400 0000
            > 13
            """)
        let peer = ScriptedPeripheral(script)
        let device = try await central.attach(descriptor: peer.connect(), ConnectOptions(mtu: 23))
        try await device.setBroadcast(true, of: 0xFFF1)
        try await device.setBroadcast(false, of: 0xFFF1)
        let report = await peer.report
        #expect(report.isComplete, "\(report)")
    }

    @Test func whatIsNotForBroadcastIsNotAsked() async throws {
        let device = try await central.attach(to: VirtualPeripheral(device))
        await #expect(throws: error(.notSupported)) {
            try await device.setBroadcast(true, of: 0xFFF2)
        }
        #expect(await device.maximumWriteLength(for: .withResponse) == 512)
        #expect(await device.maximumWriteLength(for: .withoutResponse) == 514)
    }
}
