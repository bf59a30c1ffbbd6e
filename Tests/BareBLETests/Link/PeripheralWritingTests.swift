import BareBLE
import BareBLETestKit
import Testing

@Suite struct PeripheralWritingTests {
    private let central = Central()
    private let echo = BluetoothUUID("6e400003-b5a3-f393-e0a9-e50e24dcca9e")
    private let input = BluetoothUUID("6e400002-b5a3-f393-e0a9-e50e24dcca9e")

    @Test(arguments: [23, 517], [0, 1, 20, 21, 300, 512])
    func writesAnyLength(mtu: Int, count: Int) async throws {
        let peripheral = VirtualPeripheral(.longValue)
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: mtu))
        let value = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try await device.write(value, to: 0xFFF1)
        #expect(try await Array(peripheral.value(0xFFF1).prefix(count)) == value)
    }

    @Test func sendsCommandsInOrderAndLosesNone() async throws {
        let peripheral = VirtualPeripheral(.uart)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: .uuid(echo), SubscribeOptions(capacity: 4096))
        for number in 0..<2000 {
            try await device.write([UInt8(number >> 8), UInt8(number & 0xFF)], to: .uuid(input), .withoutResponse)
        }
        var next = 0
        for try await value in values {
            #expect(value.bytes == [UInt8(next >> 8), UInt8(next & 0xFF)])
            #expect(value.droppedBefore == 0)
            next += 1
            if next == 2000 { break }
        }
        #expect(next == 2000)
    }

    @Test func refusesACommandThatDoesNotFit() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.uart), ConnectOptions(mtu: 23))
        await #expect(throws: error(.tooLong)) {
            try await device.write([UInt8](repeating: 0, count: 21), to: .uuid(input), .withoutResponse)
        }
    }

    @Test func refusesAWayTheCharacteristicDoesNotAllow() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        await #expect(throws: error(.notSupported)) {
            try await device.write([1], to: 0x2A39, .withoutResponse)
        }
        await #expect(throws: error(.notSupported)) {
            try await device.write([1], to: 0x2A19)
        }
    }

    /// Another kind of write would fail as well where the value cannot be written at all.
    @Test(
        arguments: [
            (0x2A39, .withoutResponse, "it is not writable without response (properties: write)"),
            (0x2A19, .withResponse, "it is not writable (properties: read, notify)"),
            (0x2A19, .withoutResponse, "it is not writable (properties: read, notify)"),
        ] as [(BluetoothUUID, Peripheral.WriteKind, String)])
    func namesTheKindOfTheWriteOnlyWhereAnotherIsPossible(
        _ uuid: BluetoothUUID, _ kind: Peripheral.WriteKind, _ reason: String
    ) async throws {
        let device = try await central.attach(to: VirtualPeripheral(.heartRate))
        let refusal = await #expect(throws: BLEError.self) { try await device.write([1], to: .uuid(uuid), kind) }
        #expect(refusal?.reason == reason)
    }

    @Test func writesSeveralValuesAsOne() async throws {
        let peripheral = VirtualPeripheral(.longValue)
        let device = try await central.attach(to: peripheral)
        try await device.writeReliably([([1, 2, 3], 0xFFF1), ([4], 0xFFF4)])
        #expect(try await Array(peripheral.value(0xFFF1).prefix(3)) == [1, 2, 3])
    }

    @Test func longWritesDoNotInterleave() async throws {
        let peripheral = VirtualPeripheral(.longValue)
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: 23))
        try await device.discover()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for fill in 1...8 as ClosedRange<UInt8> {
                group.addTask { try await device.write([UInt8](repeating: fill, count: 200), to: 0xFFF1) }
            }
            try await group.waitForAll()
        }
        let value = try await peripheral.value(0xFFF1).prefix(200)
        #expect(Set(value).count == 1)
    }
}
