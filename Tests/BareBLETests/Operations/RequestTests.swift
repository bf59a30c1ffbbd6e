import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// Requests whose responses are values, against a device of which the test is the software. In virtual time.
@Suite(.timeLimit(.minutes(10))) struct RequestTests {
    private static let control: CharacteristicReference = 0xFFF1
    private static let reply: CharacteristicReference = 0xFFF2

    private static let machine = VirtualDevice(
        name: "Machine",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, [.write, .writeWithoutResponse]),
                    VirtualCharacteristic(0xFFF2, .notify),
                    VirtualCharacteristic(
                        0xFFF3, [.write, .indicate],
                        onWrite: .call { $0 == [0xBA, 0xD0] ? ATTErrorCode(rawValue: 0x80) : nil }),
                ])
        ])

    private struct Bench {
        let time: VirtualTime
        let peripheral: VirtualPeripheral
        let device: Peripheral

        /// Sends a value every second.
        func send(_ values: [[UInt8]]) async throws {
            for value in values {
                try await time.clock.sleep(for: .seconds(1))
                try await peripheral.notify(0xFFF2, value)
            }
        }
    }

    private func run(_ body: @concurrent @Sendable @escaping (Bench) async throws -> Void) async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.machine, time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            try await body(Bench(time: time, peripheral: peripheral, device: device))
            await device.disconnect()
            #expect(time.loop.timerCount == 0)
        }
    }

    private static func failure(_ call: () async throws -> Void) async -> BLEError? {
        do {
            try await call()
            return nil
        } catch {
            return error as? BLEError
        }
    }

    @Test func theFirstValueThatMatchesIsTheResponse() async throws {
        try await run { bench in
            async let response = bench.device.request(
                [0x02], to: Self.control, replyOn: Self.reply, matching: { $0.first == 0x10 }, timeout: .seconds(9))
            try await bench.send([[0x11, 1], [0x10, 2], [0x10, 3]])
            #expect(try await response == [0x10, 2])
            #expect(try await bench.peripheral.value(0xFFF1) == [0x02])
            // The subscription was made for it, and has been taken back.
            await bench.time.settle()
            #expect(await !bench.peripheral.isSubscribed(to: 0xFFF2))
        }
    }

    @Test func severalResponsesAreCollected() async throws {
        try await run { bench in
            async let responses = bench.device.request(
                [0x02], to: Self.control, collecting: Self.reply, .until { $0.first == 0x06 })
            try await bench.send([[1, 1], [1, 2], [6], [1, 3]])
            let values = try await responses
            #expect(values == [[1, 1], [1, 2], [6]])
            await bench.time.settle()
            #expect(await !bench.peripheral.isSubscribed(to: 0xFFF2))
        }
    }

    @Test func tooFewResponsesAreInTheError() async throws {
        try await run { bench in
            async let failure = Self.failure {
                _ = try await bench.device.request(
                    [0x02], to: Self.control, collecting: Self.reply, .exactly(3), idleTimeout: .seconds(4))
            }
            try await bench.send([[1, 1], [1, 2]])
            let error = await failure
            #expect(error?.code == .timedOut)
            #expect(error?.partialValue == [1, 1, 1, 2])
        }
    }

    @Test func aLongSilenceCanBeWaitedFor() async throws {
        try await run { bench in
            let count = try await bench.device.drain(Self.reply, quietFor: .seconds(90))
            #expect(count == 0)
        }
    }

    @Test func itListensBeforeItAsks() async throws {
        // The response is before the confirmation, and after the first value that the subscription caused.
        let script = try Dialogue(
            """
            < 10 0100 ffff 0028
            > 11 06 0100 0600 f0ff
            < 10 0700 ffff 0028
            > 01 10 0700 0a
            < 08 0200 0600 0328
            > 09 07 0200 08 0300 f1ff 0400 10 0500 f2ff
            < 12 0600 0100
            > 1b 0500 01
            > 13
            < 12 0300 07
            > 1b 0500 02
            > 13
            < 12 0600 0000
            > 13
            """)
        let peer = ScriptedPeripheral(script)
        let device = try await Central().attach(descriptor: peer.connect(), ConnectOptions(mtu: 23))
        #expect(try await device.request([7], to: Self.control, replyOn: Self.reply) == [2])
        while await !peer.report.isComplete, !Task.isCancelled { await Task.yield() }
    }

    @Test func aSubscriptionThatIsThereIsShared() async throws {
        try await run { bench in
            let values = try await bench.device.subscribe(to: Self.reply, SubscribeOptions(sharing: .exclusive))
            let before = await bench.peripheral.requestCount
            async let response = bench.device.request([1], to: Self.control, replyOn: Self.reply)
            try await bench.send([[5]])
            #expect(try await response == [5])
            #expect(await bench.peripheral.requestCount == before + 1)
            #expect(await bench.peripheral.isSubscribed(to: 0xFFF2))
            var iterator = values.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == [5])
        }
    }

    @Test func theResponseMayComeFromTheSameCharacteristic() async throws {
        try await run { bench in
            async let response = bench.device.request([1], to: 0xFFF3)
            try await bench.time.clock.sleep(for: .seconds(1))
            try await bench.peripheral.notify(0xFFF3, [2])
            #expect(try await response == [2])
            let refused = await Self.failure { _ = try await bench.device.request([0xBA, 0xD0], to: 0xFFF3) }
            #expect(refused?.attError == ATTErrorCode(rawValue: 0x80))
            await bench.time.settle()
            #expect(await !bench.peripheral.isSubscribed(to: 0xFFF3))
        }
    }

    @Test func nothingThatMatchesIsATimeout() async throws {
        try await run { bench in
            let start = bench.time.now
            async let failure = Self.failure {
                _ = try await bench.device.request(
                    [1], to: Self.control, .withoutResponse, replyOn: Self.reply, matching: { $0 == [9] },
                    timeout: .seconds(3))
            }
            try await bench.send([[1], [2]])
            #expect(await failure?.code == .timedOut)
            #expect(await failure?.reason == "none of 2 values was the response")
            #expect(bench.time.now - start == .seconds(3))
            #expect(await bench.device.isConnected)
        }
    }

    // MARK: Several values

    @Test func theValuesAreOneValue() async throws {
        try await run { bench in
            async let response = bench.device.request(
                [1], to: Self.control, assembling: Self.reply, .length(5), idleTimeout: .seconds(3))
            try await bench.send([[1, 2], [], [3, 4], [5]])
            #expect(try await response == [1, 2, 3, 4, 5])
            async let line = bench.device.request(
                [1], to: Self.control, assembling: Self.reply, .until { $0.last == 0x0A }, idleTimeout: .seconds(2))
            try await bench.send([[0x41], [0x42, 0x0A]])
            #expect(try await line == [0x41, 0x42, 0x0A])
        }
    }

    @Test func aPartIsNeverTheWhole() async throws {
        try await run { bench in
            let start = bench.time.now
            async let silent = Self.failure {
                _ = try await bench.device.request(
                    [1], to: Self.control, assembling: Self.reply, .length(5), idleTimeout: .seconds(4))
            }
            try await bench.send([[1], [2, 3]])
            #expect(await silent?.code == .timedOut)
            #expect(await silent?.partialValue == [1, 2, 3])
            #expect(bench.time.now - start == .seconds(6))
            async let slow = Self.failure {
                _ = try await bench.device.request(
                    [1], to: Self.control, assembling: Self.reply, .length(5), timeout: .milliseconds(2500))
            }
            try await bench.send([[1], [2]])
            #expect(await slow?.partialValue == [1, 2])
            async let tooMuch = Self.failure {
                _ = try await bench.device.request([1], to: Self.control, assembling: Self.reply, .length(3))
            }
            try await bench.send([[1, 2], [3, 4]])
            #expect(await tooMuch?.code == .tooLong)
            #expect(await tooMuch?.partialValue == [1, 2, 3, 4])
            async let cancelled = Self.failure {
                _ = try await bench.device.request([1], to: Self.control, assembling: Self.reply, .length(3))
            }
            try await bench.send([[7]])
            await bench.time.settle()
            await bench.device.cancelAll()
            #expect(await cancelled?.code == .cancelled)
            #expect(await cancelled?.partialValue == [7])
            async let lost = Self.failure {
                _ = try await bench.device.request([1], to: Self.control, assembling: Self.reply, .length(3))
            }
            try await bench.send([[8]])
            await bench.peripheral.disconnect()
            #expect(await lost?.code == .disconnected)
            #expect(await lost?.partialValue == [8])
        }
    }

    /// Each value comes in time, and nothing ever comes of it.
    @Test func aResponseThatNeverEndsHasAnEnd() async throws {
        try await run { bench in
            let start = bench.time.now
            let call = bench.time.task {
                let error = await Self.failure {
                    _ = try await bench.device.request(
                        [1], to: Self.control, assembling: Self.reply, .until { _ in false })
                }
                #expect(error?.code == .timedOut)
                #expect(error?.partialValue?.count == 66)
                return bench.time.now - start
            }
            for _ in 0..<66 {
                try await bench.time.clock.sleep(for: .seconds(9))
                try await bench.peripheral.notify(0xFFF2, [0])
            }
            #expect(try await call.value == .seconds(600))
        }
    }

    @Test func aCancelledTaskStopsToListen() async throws {
        try await run { bench in
            let task = bench.time.task { try await bench.device.request([1], to: Self.control, replyOn: Self.reply) }
            try await bench.time.clock.sleep(for: .seconds(1))
            task.cancel()
            let error = await Self.failure { _ = try await task.value }
            #expect(error?.code == .cancelled)
            await bench.time.settle()
            #expect(await !bench.peripheral.isSubscribed(to: 0xFFF2))
        }
    }

    @Test func aNegativeLengthIsRefused() async throws {
        try await run { bench in
            let error = await Self.failure {
                _ = try await bench.device.request([1], to: Self.control, assembling: Self.reply, .length(-1))
            }
            #expect(error?.code == .invalidArgument)
            let empty = try await bench.device.request([1], to: Self.control, assembling: Self.reply, .length(0))
            #expect(empty == [])
        }
    }

    @Test func keysDecideTheTypesOfRequestAndResponse() async throws {
        try await run { bench in
            let control = CharacteristicKey<UInt8>(0xFFF1)
            let reply = CharacteristicKey<UInt16>(0xFFF2)
            async let response = bench.device.request(1, to: control, replyOn: reply, matching: { $0 > 0x0100 })
            try await bench.send([[0xFF, 0x00], [0x34, 0x12]])
            #expect(try await response == 0x1234)
            async let whole = bench.device.request(
                1, to: control, assembling: reply, .length(4), as: UInt32.self, idleTimeout: .seconds(2))
            try await bench.send([[1, 0], [2, 0]])
            #expect(try await whole == 0x0002_0001)
            async let wrong = Self.failure { _ = try await bench.device.request(1, to: control, replyOn: reply) }
            try await bench.send([[1]])
            #expect(await wrong?.code == .malformedValue)
            #expect(await wrong?.partialValue == [1])
        }
    }

    // MARK: Draining

    @Test func whatIsOnItsWayIsCountedAndGone() async throws {
        try await run { bench in
            let start = bench.time.now
            async let count = bench.device.drain(Self.reply, quietFor: .seconds(2))
            try await bench.send([[1], [2], [3]])
            #expect(try await count == 3)
            #expect(bench.time.now - start == .seconds(5))
            #expect(try await bench.device.drain(CharacteristicKey<UInt8>(0xFFF2), quietFor: .seconds(1)) == 0)
        }
    }

    @Test func valuesThatNeverStopEndTheWait() async throws {
        try await run { bench in
            async let failure = Self.failure {
                try await bench.device.drain(Self.reply, quietFor: .seconds(2), timeout: .milliseconds(4500))
            }
            try await bench.send([[1], [2], [3], [4]])
            #expect(await failure?.code == .timedOut)
            #expect(await failure?.reason == "4 values came, never 2.0 seconds apart")
        }
    }
}
