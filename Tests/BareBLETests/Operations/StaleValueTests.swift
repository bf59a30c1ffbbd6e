import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Values that were in the socket, or sent, before a request was written are not taken for its response. In virtual
/// time.
@Suite(.timeLimit(.minutes(10))) struct StaleValueTests {
    private static let control: CharacteristicReference = 0xFFF1
    private static let reply: CharacteristicReference = 0xFFF2
    private static let slow: CharacteristicReference = 0xFFF3

    /// A device that sends an old value as soon as a client subscribes, if `isTalkative`.
    private static func module(isTalkative: Bool) -> VirtualDevice {
        let plan = isTalkative ? NotifyPlan([[0x55, 0x66]], every: .seconds(50), count: 1) : nil
        return VirtualDevice(
            name: "Module",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF1, [.write, .writeWithoutResponse]),
                        VirtualCharacteristic(0xFFF2, .notify, plan: plan),
                        VirtualCharacteristic(0xFFF3, .read, value: [3]),
                    ])
            ])
    }

    private struct Bench {
        let time: VirtualTime
        let peripheral: VirtualPeripheral
        let device: Peripheral

        /// Sends values a second later.
        func send(_ values: [[UInt8]]) async throws {
            try await time.clock.sleep(for: .seconds(1))
            for value in values { try await peripheral.notify(0xFFF2, value) }
        }
    }

    private func run(
        isTalkative: Bool, _ body: @concurrent @Sendable @escaping (Bench) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.module(isTalkative: isTalkative), time: time)
            let device = try await Central(time: time).attach(
                descriptor: peripheral.connect(), ConnectOptions(mtu: 23))
            try await device.discover()
            try await body(Bench(time: time, peripheral: peripheral, device: device))
            await device.disconnect()
            await time.settle()
            #expect(time.loop.timerCount == 0)
        }
    }

    // The value follows the response to the subscription when the request is written.
    @Test(.row("T30"), arguments: [Peripheral.WriteKind.withResponse, .withoutResponse])
    func aValueAfterTheConsentIsNotTaken(
        _ kind: Peripheral.WriteKind
    )
        async throws
    {
        try await run(isTalkative: true) { bench in
            async let response = bench.device.request([7], to: Self.control, kind, replyOn: Self.reply)
            try await bench.send([[0]])
            #expect(try await response == [0])
        }
    }

    // The same for what comes in several pieces.
    @Test(.row("T30")) func aPieceAfterTheConsentIsNotTaken() async throws {
        try await run(isTalkative: true) { bench in
            async let response = bench.device.request([7], to: Self.control, assembling: Self.reply, .length(4))
            try await bench.send([[1, 2], [3, 4]])
            #expect(try await response == [1, 2, 3, 4])
        }
    }

    // There is a subscription already, and the value was sent right before the call.
    @Test(.row("T30")) func aValueInASubscriptionThatIsThereIsNotTaken() async throws {
        try await run(isTalkative: false) { bench in
            let held = try await bench.device.subscribe(to: Self.reply)
            try await bench.peripheral.notify(0xFFF2, [0x55])
            async let response = bench.device.request([7], to: Self.control, replyOn: Self.reply)
            try await bench.send([[0]])
            #expect(try await response == [0])
            // The listener has both.
            var iterator = held.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == [0x55])
            #expect(try await iterator.next()?.bytes == [0])
        }
    }

    // The call is made, and its request waits for the response to another one.
    @Test(.row("T30")) func aValueWhileTheRequestWaitsForItsTurnIsNotTaken() async throws {
        try await run(isTalkative: false) { bench in
            let held = try await bench.device.subscribe(to: Self.reply)
            await bench.peripheral.behave { pdu, response in
                response(pdu).map { (pdu.first == 0x0A ? .seconds(2) : .zero, $0) }
            }
            async let value = bench.device.read(Self.slow)
            while await bench.device.statistics.requestsSent == 0, !Task.isCancelled { await Task.yield() }
            async let response = bench.device.request([7], to: Self.control, replyOn: Self.reply)
            try await bench.send([[0x55]])
            #expect(try await value == [3])
            try await bench.send([[0]])
            #expect(try await response == [0])
            withExtendedLifetime(held) {}
        }
    }

    // A value longer than a packet is written in pieces, and nothing is the response before the last of them.
    @Test(.row("T30")) func aValueBetweenThePiecesOfTheRequestIsNotTaken() async throws {
        try await run(isTalkative: false) { bench in
            let held = try await bench.device.subscribe(to: Self.reply)
            await bench.peripheral.behave { pdu, response in
                response(pdu).map { (pdu.first == 0x16 ? .seconds(2) : .zero, $0) }
            }
            let long = [UInt8](repeating: 7, count: 40)
            async let response = bench.device.request(long, to: Self.control, replyOn: Self.reply)
            try await bench.send([[0x55]])
            while try await bench.peripheral.value(0xFFF1) != long {
                try await bench.time.clock.sleep(for: .seconds(1))
            }
            try await bench.send([[0]])
            #expect(try await response == [0])
            withExtendedLifetime(held) {}
        }
    }

    // In real time, over a socketpair; the value has been sent when the call is made.
    @Test(.row("T30")) func aValueBeforeTheCallIsNotTakenInRealTime() async throws {
        let peripheral = VirtualPeripheral(Self.module(isTalkative: false))
        await peripheral.behave { pdu, response in
            // Write Request to 3; a little later a notification of 5.
            response(pdu).map { (.zero, $0) }
                + (pdu.starts(with: [0x12, 3, 0]) ? [(.milliseconds(5), [0x1B, 5, 0, 0])] : [])
        }
        let device = try await Central().attach(descriptor: peripheral.connect())
        let held = try await device.subscribe(to: Self.reply)
        for _ in 0..<30 {
            try await peripheral.notify(0xFFF2, [0x55])
            let response = try await device.request([7], to: Self.control, replyOn: Self.reply)
            #expect(response == [0])
        }
        withExtendedLifetime(held) {}
        await device.disconnect()
    }
}
