import BareBLE
import BareBLETestKit
import Testing

/// One byte of percent, as the Battery Service 1.0, 3.1 has it.
private struct Percent: GATTReadable, GATTWritable, Hashable, Sendable {
    let value: UInt8
    static var formatName: String { "Percent" }

    init(_ value: UInt8) {
        self.value = value
    }

    init(reading reader: inout ByteReader) throws(MalformedPacket) {
        value = try reader.read()
    }

    func write(to writer: inout ByteWriter) {
        writer.u8(value)
    }
}

extension CharacteristicKey where Value == Percent {
    fileprivate static var percent: Self { Self(0x2A19, in: 0x180F) }
    fileprivate static var setting: Self { Self(0xFFF1) }
}

@Suite(.timeLimit(.minutes(10))) struct TypedValueTests {
    private let central = Central()

    private var settings: VirtualDevice {
        VirtualDevice(
            name: "Settings",
            services: [
                VirtualService(
                    0xFFF0,
                    [VirtualCharacteristic(0xFFF1, [.read, .write, .notify], value: [1], onWrite: .echo(0xFFF1))])
            ])
    }

    @Test func theKeyDecidesTheTypeOfAValue() async throws {
        let device = try await central.attach(to: VirtualPeripheral(settings))
        #expect(try await device.read(.setting) == Percent(1))
        try await device.write(Percent(9), to: .setting)
        let value = try await device.read(.setting)
        #expect(value.value == 9)
    }

    @Test func twinsAreDistinguished() async throws {
        let twins = VirtualDevice(name: "Twins", services: [.battery(level: 1), .battery(level: 2)])
        let device = try await central.attach(to: VirtualPeripheral(twins))
        let error = await #expect(throws: BLEError.self) { _ = try await device.read(.percent) }
        #expect(error?.code == .ambiguous)
        #expect(error?.reason.contains("0x0003") == true)
        #expect(error?.hint?.contains("service and index") == true)
        #expect(try await device.read(CharacteristicKey<Percent>.percent.at(1)) == Percent(2))
    }

    @Test func bytesThatDoNotFitAreNamed() async throws {
        let peripheral = VirtualPeripheral(settings)
        let device = try await central.attach(to: peripheral)
        try await device.write([1, 2], to: 0xFFF1)
        let error = await #expect(throws: BLEError.self) { _ = try await device.read(.setting) }
        #expect(error?.code == .malformedValue)
        #expect(error?.partialValue == [1, 2])
        #expect(error?.description.contains("0102") == true)
        #expect(error?.description.contains("Percent") == true)
    }

    @Test func aSequenceContinuesAfterAMalformedValue() async throws {
        let device = try await central.attach(to: VirtualPeripheral(settings))
        let values = try await device.subscribe(to: .setting)
        for bytes in [[1], [2, 2], [], [3]] as [[UInt8]] { try await device.write(bytes, to: 0xFFF1) }
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next() == Percent(1))
        for bytes in [[2, 2], []] as [[UInt8]] {
            do throws(BLEError) {
                _ = try await iterator.next()
                Issue.record("it fits")
            } catch {
                #expect(error.code == .malformedValue)
                #expect(error.partialValue == bytes)
            }
            #expect(iterator.last?.bytes == bytes)
        }
        #expect(try await iterator.next() == Percent(3))
        try await values.unsubscribe()
        #expect(try await iterator.next() == nil)
    }

    @Test func lossesAreReachable() async throws {
        let device = try await central.attach(to: VirtualPeripheral(settings))
        let values = try await device.subscribe(to: .setting, SubscribeOptions(capacity: 2))
        for number in 0..<5 as Range<UInt8> { try await device.write([number], to: 0xFFF1) }
        // The last value is before this response.
        _ = try await device.read(.setting)
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next() == Percent(3))
        #expect(iterator.droppedBefore == 3)
        #expect(values.droppedInTotal == 3)
        #expect(try await iterator.next() == Percent(4))
        #expect(iterator.droppedBefore == 0)
    }

    @Test func aForLoopEndsAtAMalformedValue() async throws {
        let device = try await central.attach(to: VirtualPeripheral(settings))
        let values = try await device.subscribe(to: .setting)
        for bytes in [[1], [2, 2]] as [[UInt8]] { try await device.write(bytes, to: 0xFFF1) }
        var seen: [Percent] = []
        await #expect(throws: error(.malformedValue)) {
            for try await value in values { seen.append(value) }
        }
        #expect(seen == [Percent(1)])
    }

    @Test func aForLoopContinuesAfterAMalformedValueThatIsSkipped() async throws {
        let log = KeptLog(detail: "so far")
        var configuration = Configuration()
        configuration.logger = log.logger
        let device = try await Central(configuration).attach(to: VirtualPeripheral(settings))
        let values = try await device.subscribe(to: .setting, SubscribeOptions(malformedValues: .skip))
        for bytes in [[1], [2, 2], [], [3], [4], [5, 5], [6]] as [[UInt8]] { try await device.write(bytes, to: 0xFFF1) }
        var seen: [Percent] = []
        for try await value in values {
            seen.append(value)
            if value == Percent(6) { break }
        }
        #expect(seen == [Percent(1), Percent(3), Percent(4), Percent(6)])
        #expect(values.malformedInTotal == 3)
        // Not one line for each of them.
        #expect(log.all == ["malformed value left out: 1"])
    }

    @Test func whatWasLeftOutIsCountedApartFromWhatWasDropped() async throws {
        let device = try await central.attach(to: VirtualPeripheral(settings))
        let values = try await device.subscribe(to: .setting, SubscribeOptions(capacity: 2, malformedValues: .skip))
        for bytes in [[0], [1], [2, 2], [3]] as [[UInt8]] { try await device.write(bytes, to: 0xFFF1) }
        // The last value is before this response.
        _ = try await device.read(.setting)
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next() == Percent(3))
        #expect(iterator.droppedBefore == 2)
        #expect(iterator.malformedBefore == 1)
        try await device.write([4], to: 0xFFF1)
        #expect(try await iterator.next() == Percent(4))
        #expect(iterator.droppedBefore == 0 && iterator.malformedBefore == 0)
        #expect(values.droppedInTotal == 2 && values.malformedInTotal == 1)
    }
}
