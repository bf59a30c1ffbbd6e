import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// A response has no number: one that is sent twice must not become that of the next request. In virtual time.
@Suite(.timeLimit(.minutes(10))) struct DuplicateResponseTests {
    /// Values at the handles 3, 5, 7 and so on; see `VirtualDevice`.
    private static func device(_ values: [[UInt8]]) -> VirtualDevice {
        VirtualDevice(
            name: "Twice",
            services: [
                VirtualService(
                    0xFFF0,
                    values.enumerated().map { index, value in
                        VirtualCharacteristic(
                            BluetoothUUID(UInt16(0xFFF1 + index)), [.read, .write], value: value)
                    })
            ])
    }

    private func run(
        _ values: [[UInt8]], behaviour: @escaping VirtualPeripheral.Behaviour,
        _ body: @concurrent @Sendable @escaping (Peripheral) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.device(values), time: time)
            await peripheral.behave(behaviour)
            let device = try await Central(time: time).attach(
                descriptor: peripheral.connect(), ConnectOptions(mtu: 23))
            try await body(device)
            await device.disconnect()
        }
    }

    @Test(.row("T31")) func aFollowerInTheQueueGetsItsOwn() async throws {
        try await run([[1], [2], [3]]) { pdu, response in
            // Read Response, twice, to the first read alone.
            response(pdu).flatMap { pdu == [0x0A, 3, 0] ? [(.zero, $0), (.zero, $0)] : [(.zero, $0)] }
        } _: { device in
            async let first = device.read(.handle(3))
            async let second = device.read(.handle(5))
            async let third = device.read(.handle(7))
            let values = try await [first, second, third]
            #expect(values == [[1], [2], [3]])
            let statistics = await device.statistics
            #expect(statistics.knownStrays == 1)
            #expect(statistics.duplicatedResponses == 1)
        }
    }

    @Test(.row("T31")) func consecutiveReadsGetTheirOwnResponses() async throws {
        try await run([[1], [2], [3]]) { pdu, response in
            response(pdu).flatMap { pdu == [0x0A, 3, 0] ? [(.zero, $0), (.zero, $0)] : [(.zero, $0)] }
        } _: { device in
            for handle in [3, 5, 7] as [UInt16] {
                let value = try await device.read(.handle(handle))
                #expect(value == [UInt8(handle / 2)])
            }
            #expect(await device.statistics.duplicatedResponses == 1)
        }
    }

    // At once, or while the next request is under way; once, or each time.
    @Test(.row("T32"), arguments: [Duration.zero, .milliseconds(5)], [true, false])
    func aLongValueIsNotMadeLonger(by delay: Duration, isOnce: Bool) async throws {
        let long = (0..<60).map { UInt8($0) }
        let count = Lock(0)
        try await run([long]) { pdu, response in
            // A Read Blob Response that is sent once more.
            let isCopied =
                pdu == [0x0C, 3, 0, 22, 0]
                && count.withLock { count in
                    count += 1
                    return count == 1 || !isOnce
                }
            return response(pdu).flatMap { isCopied ? [(.zero, $0), (delay, $0)] : [(delay * 2, $0)] }
        } _: { device in
            do throws(BLEError) {
                let value = try await device.read(.handle(3))
                #expect(value == long)
                #expect(isOnce || delay == .zero)
            } catch {
                #expect(error.code == .malformedReply)
                #expect(!isOnce && delay > .zero)
            }
        }
    }

    // A value that repeats itself is what it is, for one request more.
    @Test(.row("T32")) func aValueMayRepeatItself() async throws {
        let zeros = [UInt8](repeating: 0, count: 100)
        try await run([zeros]) { pdu, response in
            response(pdu).map { (.zero, $0) }
        } _: { device in
            let before = await device.statistics.requestsSent
            let value = try await device.read(.handle(3))
            #expect(value == zeros)
            #expect(await device.statistics.requestsSent == before + 6)
        }
    }

    @Test(.row("T33")) func aRefusalIsNotThatOfTheNext() async throws {
        try await run([[1], [2]]) { pdu, response in
            // Error Response: Read Request, handle 3, Read Not Permitted. Once more while the next read is under way.
            let refusal: [UInt8] = [0x01, 0x0A, 3, 0, 0x02]
            return pdu == [0x0A, 3, 0]
                ? [(.zero, refusal), (.milliseconds(5), refusal)] : response(pdu).map { (.milliseconds(10), $0) }
        } _: { device in
            await #expect(throws: BLEError.self) { _ = try await device.read(.handle(3)) }
            let value = try await device.read(.handle(5))
            #expect(value == [2])
            #expect(await device.statistics.duplicatedResponses == 1)
        }
    }
}
