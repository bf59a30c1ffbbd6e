import BareBLE
import BareBLETestKit
import Testing

/// Many values at once, for consumers that take them when they like.
@Suite(.timeLimit(.minutes(10)), .serialized) struct NotificationLoadTests {
    private let central = Central()

    private func sender() -> VirtualPeripheral {
        VirtualPeripheral(
            VirtualDevice(
                name: "Sender",
                services: [
                    VirtualService(
                        0xFFF0,
                        [
                            VirtualCharacteristic(0xFFF1, .notify),
                            VirtualCharacteristic(0xFFF2, [.indicate, .notify]),
                            VirtualCharacteristic(0xFFF3, .read, value: [9]),
                        ])
                ]))
    }

    /// A value of `length` bytes that begins with its number.
    private static func value(_ number: Int, _ length: Int) -> [UInt8] {
        let digits = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        return digits + [UInt8](repeating: 0xA5, count: length - 4)
    }

    private static func number(of value: [UInt8]) -> Int {
        value.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    @Test(arguments: [(count: 20_000, length: 20), (count: 5_000, length: 244)])
    func noneIsLostWhereThereIsRoom(count: Int, length: Int) async throws {
        let peripheral = sender()
        let device = try await central.attach(to: peripheral)
        let options = SubscribeOptions(capacity: count, byteLimit: count * length)
        let values = try await device.subscribe(to: 0xFFF1, options)
        let handle = UInt8(truncatingIfNeeded: values.handle)
        let sending = Task {
            for number in 0..<count {
                await peripheral.send(raw: [0x1B, handle, 0] + Self.value(number, length))
            }
        }
        var next = 0
        var isInOrder = true
        for try await value in values {
            if Self.number(of: value.bytes) != next || value.bytes.count != length || value.droppedBefore > 0 {
                isInOrder = false
            }
            next += 1
            // The consumer's pause: everything else is sent, and read from the socket, meanwhile.
            if next == count / 10 {
                await sending.value
                #expect(try await device.read(0xFFF3) == [9])
            }
            if next == count { break }
        }
        #expect(isInOrder)
        #expect(values.droppedInTotal == 0)
        #expect(await device.statistics.notifications == count)
    }

    @Test(arguments: [
        (options: SubscribeOptions(), kept: 256),
        (options: SubscribeOptions(byteLimit: 10_000), kept: 40),
        (options: SubscribeOptions(capacity: 7), kept: 7),
    ])
    func overTheBoundsTheLossIsCountedAndMarked(options: SubscribeOptions, kept: Int) async throws {
        let peripheral = sender()
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0xFFF1, options)
        let handle = UInt8(truncatingIfNeeded: values.handle)
        for number in 0..<1_000 { await peripheral.send(raw: [0x1B, handle, 0] + Self.value(number, 244)) }
        #expect(try await device.read(0xFFF3) == [9])
        #expect(values.droppedInTotal == 1_000 - kept)
        var iterator = values.makeAsyncIterator()
        for number in (1_000 - kept)..<1_000 {
            let value = try await iterator.next()
            #expect(value.map { Self.number(of: $0.bytes) } == number)
            #expect(value?.droppedBefore == (number == 1_000 - kept ? 1_000 - kept : 0))
        }
    }

    // MARK: Multiple Handle Value Notifications

    /// The layout is Core Vol 3 Part F, 3.4.7.4: handle, length and value, again and again.
    @Test func valuesOfOnePacketReachTheirSubscribersInOrder() async throws {
        let peripheral = sender()
        let device = try await central.attach(to: peripheral)
        let one = try await device.subscribe(to: 0xFFF1)
        let two = try await device.subscribe(to: 0xFFF2)
        let also = try await device.subscribe(to: 0xFFF1)
        let (first, second) = (UInt8(truncatingIfNeeded: one.handle), UInt8(truncatingIfNeeded: two.handle))
        await peripheral.send(raw: [0x1B, first, 0, 0])
        await peripheral.send(
            raw: [
                0x23, first, 0, 1, 0, 1, second, 0, 2, 0, 0xB1, 0xB2, first, 0, 0, 0, first, 0, 1, 0, 3, 0x63, 0, 1, 0,
                7,
            ])
        // A list with inconsistent lengths has no recipient.
        await peripheral.send(raw: [0x23, first, 0, 1, 0, 8, second, 0, 9, 0, 1])
        await peripheral.send(raw: [0x1B, first, 0, 4])
        for sequence in [one, also] {
            var iterator = sequence.makeAsyncIterator()
            for expected in [[0], [1], [], [3], [4]] as [[UInt8]] {
                let value = try await iterator.next()
                #expect(value?.bytes == expected)
                #expect(value?.isIndication == false)
            }
        }
        var iterator = two.makeAsyncIterator()
        #expect(try await iterator.next()?.bytes == [0xB1, 0xB2])
        #expect(await device.statistics.notifications == 7)
        #expect(await device.statistics.malformedLists == 1)
    }
}
