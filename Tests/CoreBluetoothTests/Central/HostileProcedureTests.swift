import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// Peers whose responses are late, come twice, or end a procedure in the middle: what a program on CoreBluetooth gets
/// of them, with the number of the error.
@Suite(.timeLimit(.minutes(10))) struct HostileProcedureTests {
    private static let one = CBUUID(string: "FFF1")
    private static let two = CBUUID(string: "FFF2")

    /// A service at the handle 1, with values at the handles 3, 5 and so on.
    private static func device(_ values: [[UInt8]], mtu: UInt16 = 517) -> VirtualDevice {
        VirtualDevice(
            name: "Sensor",
            services: [
                VirtualService(
                    0xFFF0,
                    values.enumerated().map { index, value in
                        VirtualCharacteristic(BluetoothUUID(UInt16(0xFFF1 + index)), [.read, .write], value: value)
                    })
            ], maximumMTU: mtu)
    }

    private func connect(_ bench: Bench, _ description: VirtualDevice) async throws -> Bench.Link {
        let device = await bench.radio.add(description, latency: .zero)
        let (manager, recorder) = try await bench.manager()
        let peripheral = try await bench.connect(manager, recorder)
        return try await bench.link(
            to: device, of: Bench.Sharer(manager: manager, recorder: recorder, peripheral: peripheral))
    }

    // MARK: The Attribute Protocol

    @Test(.row("T07"), arguments: [(29_999, "didUpdateValueFor FFF1 [7]"), (30_001, "didDisconnect CB 6 false 0")])
    func aResponseHasThirtySeconds(_ milliseconds: Int, _ report: String) async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[7]]))
            await link.device.behave { pdu, respond in
                respond(pdu).map { (delay: .milliseconds(milliseconds), pdu: $0) }
            }
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(link.recorder.lines == [report])
        }
    }

    /// The queue runs nothing until the device has sent all of them. What it has no room for is dropped.
    @Test(.row("T20"), arguments: [1_000, 4_200])
    func indicationsAreConfirmedHoweverSlowTheQueueIs(_ count: Int) async throws {
        try await Bench.run { bench in
            let link = try await connect(
                bench,
                VirtualDevice(
                    name: "Sensor", services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .indicate)])]))
            let (confirmations, confirmation) = AsyncStream.makeStream(of: Void.self)
            await link.device.behave { pdu, respond in
                // ATT_HANDLE_VALUE_CFM
                if pdu == [0x1E] { confirmation.yield() }
                return withoutDelay(respond(pdu))
            }
            link.peripheral.setNotifyValue(true, for: try link.characteristic(Self.one))
            try await link.recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            link.recorder.clear()
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                for number in 0..<count {
                    try await link.device.notify(0xFFF1, [UInt8(number >> 8), UInt8(number & 0xFF)])
                }
                var confirmed = 0
                for await _ in confirmations {
                    confirmed += 1
                    if confirmed == count { break }
                }
            }
            // Time stands still until all of them are reported.
            try await bench.time.clock.sleep(for: .seconds(1))
            let reported = min(count, 4_096)
            var expected = (0..<reported).map { "didUpdateValueFor FFF1 [\($0 >> 8), \($0 & 0xFF)]" }
            #expect(link.recorder.lines == expected)
            try await link.device.notify(0xFFF1, [255, 255])
            try await bench.time.clock.sleep(for: .seconds(1))
            expected.append("didUpdateValueFor FFF1 [255, 255]")
            #expect(link.recorder.lines == expected)
            for text in ["values are dropped", "values were dropped"] {
                #expect(bench.log.all.count { $0.hasPrefix(text) } == (reported < count ? 1 : 0))
            }
            #expect(bench.log.counts(of: "values were dropped") == (reported < count ? ["\(count - reported)"] : []))
        }
    }

    /// What comes in place of the response to Exchange MTU Request, and what a write without response can carry then.
    struct Exchange: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let responses: [[UInt8]]
        let length: Int
    }

    static let exchanges = [
        Exchange(testDescription: "0", responses: [[0x03, 0, 0]], length: 20),
        Exchange(testDescription: "22", responses: [[0x03, 22, 0]], length: 20),
        Exchange(testDescription: "65,535", responses: [[0x03, 0xFF, 0xFF]], length: 514),
        Exchange(testDescription: "of no bytes", responses: [[0x03]], length: 20),
        Exchange(testDescription: "of three bytes", responses: [[0x03, 0, 1, 0]], length: 20),
        Exchange(testDescription: "twice", responses: [[0x03, 100, 0], [0x03, 200, 0]], length: 97),
        Exchange(testDescription: "T23 and 23 from the peer", responses: [[0x02, 23, 0], [0x03, 5, 2]], length: 20),
    ]

    @Test(.row("T22", "T23"), arguments: exchanges)
    func anMTUThatCannotBeIsNotUsed(_ exchange: Exchange) async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(Self.device([[7]]), latency: .zero)
            await device.behave { pdu, respond in
                let responses = pdu.first == 0x02 ? exchange.responses : respond(pdu)
                return withoutDelay(responses)
            }
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == exchange.length)
            #expect(peripheral.maximumWriteValueLength(for: .withResponse) == 512)
            let value = try #require(try await bench.discover(peripheral, recorder)[Self.one])
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
        }
    }

    @Test(.row("T25")) func aFloodOfRequestsDelaysNoCall() async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[7]]))
            let before = await link.device.receivedCount
            for number in 0..<100 {
                await link.device.send(raw: [0x0A, 1, 0])
                if number == 50 { link.peripheral.readValue(for: try link.characteristic(Self.one)) }
                await bench.time.settle()
            }
            #expect(link.recorder.lines == ["didUpdateValueFor FFF1 [7]"])
            // Each of them got a response.
            #expect(await link.device.receivedCount > before + 100)
        }
    }

    /// Before each call the device sends a value, and an unsolicited response.
    @Test(.row("T30")) func whatWasSentBeforeACallIsNotItsResult() async throws {
        try await Bench.run { bench in
            let link = try await connect(
                bench,
                VirtualDevice(
                    name: "Module",
                    services: [
                        VirtualService(
                            0xFFF0,
                            [
                                VirtualCharacteristic(0xFFF1, [.read, .notify], value: [7]),
                                VirtualCharacteristic(0xFFF2, .write, onWrite: .reply(0xFFF1, { _ in [[8]] })),
                            ])
                    ]))
            let value = try link.characteristic(Self.one)
            link.peripheral.setNotifyValue(true, for: value)
            try await link.recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            link.recorder.clear()
            // ATT_HANDLE_VALUE_NTF of the handle 3
            let old: [UInt8] = [0x1B, 3, 0, 5]
            await link.device.send(raw: old)
            await link.device.send(raw: [0x0B, 6])
            link.peripheral.readValue(for: value)
            try await link.recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            await link.device.send(raw: old)
            await link.device.send(raw: [0x13])
            link.peripheral.writeValue(Data([1]), for: try link.characteristic(Self.two), type: .withResponse)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(
                link.recorder.lines == [
                    "didUpdateValueFor FFF1 [5]", "didUpdateValueFor FFF1 [7]", "didUpdateValueFor FFF1 [5]",
                    "didWriteValueFor FFF2 nil", "didUpdateValueFor FFF1 [8]",
                ])
            #expect(try await link.device.value(0xFFF2) == [1])
        }
    }

    /// The second part of a long value comes twice: at once, or while the next request is under way; once, or each
    /// time.
    @Test(.row("T32"), arguments: [Duration.zero, .milliseconds(5)], [true, false])
    func aPartOfAValueThatComesTwiceMakesItNoLonger(_ delay: Duration, _ isOnce: Bool) async throws {
        try await Bench.run { bench in
            let long = [UInt8](0..<60)
            let link = try await connect(bench, Self.device([long], mtu: 23))
            let count = Lock(0)
            await link.device.behave { pdu, respond in
                let isCopied =
                    pdu == [0x0C, 3, 0, 22, 0]
                    && count.withLock { count in
                        count += 1
                        return count == 1 || !isOnce
                    }
                return respond(pdu).flatMap { isCopied ? [(.zero, $0), (delay, $0)] : [(delay * 2, $0)] }
            }
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            try await bench.time.clock.sleep(for: .seconds(10))
            let result = isOnce || delay == .zero ? long.description : "CB 0"
            #expect(link.recorder.lines == ["didUpdateValueFor FFF1 \(result)"])
        }
    }

    @Test(.row("T33")) func aRefusalThatComesTwiceIsNotThatOfTheNextCall() async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[1], [2]]))
            await link.device.behave { pdu, respond in
                // Error Response: Read Request, handle 3, Read Not Permitted. Once more while the next read is under
                // way.
                let refusal: [UInt8] = [0x01, 0x0A, 3, 0, 0x02]
                return pdu == [0x0A, 3, 0]
                    ? [(.zero, refusal), (.milliseconds(5), refusal)] : respond(pdu).map { (.milliseconds(10), $0) }
            }
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            link.peripheral.readValue(for: try link.characteristic(Self.two))
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(link.recorder.lines == ["didUpdateValueFor FFF1 ATT 2", "didUpdateValueFor FFF2 [2]"])
        }
    }

    // MARK: Discovery

    /// One service in each response, which comes after 29.9 s. The discovery ends after a minute; the link stays.
    @Test(.row("G09")) func aDiscoveryEndsAfterAMinute() async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, .heartRate)
            await link.device.behave { pdu, respond in
                guard pdu.first == 0x10 else { return withoutDelay(respond(pdu)) }
                return respond(pdu).map { response in
                    let isList = response.first == 0x11 && response.count > 2
                    let first = isList ? Array(response.prefix(2 + Int(response[1]))) : response
                    return (delay: Duration.milliseconds(29_900), pdu: first)
                }
            }
            let begin = bench.time.now
            link.peripheral.discoverServices(nil)
            link.peripheral.readValue(for: try link.characteristic(CBUUID(string: "2A38")))
            try await link.recorder.wait(for: "didDiscoverServices")
            #expect((Duration.seconds(60)..<Duration.seconds(61)).contains(bench.time.now - begin))
            try await link.recorder.wait(for: "didUpdateValueFor 2A38")
            #expect(link.recorder.lines == ["didDiscoverServices CB 6", "didUpdateValueFor 2A38 [1]"])
        }
    }

    // MARK: Procedures

    /// What comes in place of the second part of a value, and what is reported.
    @Test(
        .row("G16"),
        arguments: [
            (0x07, "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]"),
            (0x0B, "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]"),
            (0x0E, "ATT 14"),
        ] as [(UInt8, String)])
    func aLongReadEndsWithAnError(_ code: UInt8, _ result: String) async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[UInt8](0..<22)], mtu: 23))
            await link.device.behave { pdu, respond in
                let responses = pdu.first == 0x0C ? [[0x01, 0x0C, pdu[1], pdu[2], code]] : respond(pdu)
                return withoutDelay(responses)
            }
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(link.recorder.lines == ["didUpdateValueFor FFF1 \(result)"])
        }
    }

    @Test(.row("G15")) func aValueWithoutEndIsTooLong() async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[7]], mtu: 23))
            await link.device.behave { pdu, respond in
                let responses: [[UInt8]]
                switch pdu.first {
                // Each part differs from the others.
                case 0x0A: responses = [[0x0B] + [UInt8](repeating: 0xFF, count: 22)]
                case 0x0C: responses = [[0x0D] + [UInt8](repeating: pdu[3], count: 21) + [pdu[4]]]
                default: responses = respond(pdu)
                }
                return withoutDelay(responses)
            }
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(link.recorder.lines == ["didUpdateValueFor FFF1 ATT 13"])
        }
    }

    /// What a peer does to a long write of two parts.
    struct LongWrite: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let result: String
        let change: @Sendable (_ request: [UInt8], _ response: [UInt8]) -> [UInt8]
    }

    static let longWrites = [
        LongWrite(testDescription: "G17 an echo with other bytes", result: "CB 0") { request, response in
            request.first == 0x16 ? Array(response.dropLast()) + [0xFF] : response
        },
        LongWrite(testDescription: "G17 an echo with fewer bytes", result: "CB 0") { request, response in
            request.first == 0x16 ? Array(response.dropLast()) : response
        },
        LongWrite(testDescription: "G17 an echo with another handle", result: "CB 0") { request, response in
            guard request.first == 0x16 else { return response }
            var echo = response
            echo[1] += 1
            return echo
        },
        LongWrite(testDescription: "G17 an echo with another offset", result: "CB 0") { request, response in
            guard request.first == 0x16 else { return response }
            var echo = response
            echo[3] += 1
            return echo
        },
        LongWrite(testDescription: "G18 the queue is full in the middle", result: "ATT 9") { request, response in
            request.first == 0x16 && request[3] > 0 ? [0x01, 0x16, request[1], request[2], 0x09] : response
        },
        LongWrite(testDescription: "G18 the first request is refused", result: "ATT 3") { request, response in
            request.first == 0x16 ? [0x01, 0x16, request[1], request[2], 0x03] : response
        },
    ]

    @Test(.row("G17", "G18"), arguments: longWrites)
    func aLongWriteThatFailsWritesNothing(_ manner: LongWrite) async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[7]], mtu: 23))
            await link.device.behave { pdu, respond in
                withoutDelay(respond(pdu).map { manner.change(pdu, $0) })
            }
            let value = try link.characteristic(Self.one)
            link.peripheral.writeValue(Data(count: 22), for: value, type: .withResponse)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(link.recorder.lines == ["didWriteValueFor FFF1 \(manner.result)"])
            #expect(try await link.device.value(0xFFF1) == [7])
            // The peer's queue has nothing of it left.
            await link.device.behave(nil)
            let bytes = [UInt8](1...22)
            link.peripheral.writeValue(Data(bytes), for: value, type: .withResponse)
            try await link.recorder.wait(for: "didWriteValueFor FFF1 nil")
            #expect(try await link.device.value(0xFFF1) == bytes)
        }
    }

    @Test(.row("G18")) func aLongWriteWhoseLastRequestIsRefusedFails() async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[7]], mtu: 23))
            await link.device.behave { pdu, respond in
                guard pdu == [0x18, 1] else { return withoutDelay(respond(pdu)) }
                // It empties its queue, and writes nothing.
                _ = respond([0x18, 0])
                return withoutDelay([[0x01, 0x18, 0, 0, 0x0E]])
            }
            let value = try link.characteristic(Self.one)
            link.peripheral.writeValue(Data(count: 22), for: value, type: .withResponse)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(link.recorder.lines == ["didWriteValueFor FFF1 ATT 14"])
            #expect(try await link.device.value(0xFFF1) == [7])
            await link.device.behave(nil)
            let bytes = [UInt8](1...22)
            link.peripheral.writeValue(Data(bytes), for: value, type: .withResponse)
            try await link.recorder.wait(for: "didWriteValueFor FFF1 nil")
            #expect(try await link.device.value(0xFFF1) == bytes)
        }
    }

    /// The link ends after the first part. Nothing of it is written on the next one.
    @Test(.row("G18")) func aLongWriteThatLosesItsLinkWritesNothing() async throws {
        try await Bench.run { bench in
            let link = try await connect(bench, Self.device([[7]], mtu: 23))
            let parts = Lock(0)
            await link.device.behave { pdu, respond in
                guard pdu.first == 0x16 else { return withoutDelay(respond(pdu)) }
                parts.withLock { $0 += 1 }
                // The offset is that of the second part.
                return pdu[3] > 0 ? [] : withoutDelay(respond(pdu))
            }
            let value = try link.characteristic(Self.one)
            link.peripheral.writeValue(Data(count: 22), for: value, type: .withResponse)
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(parts.withLock { $0 } == 2)
            await bench.radio.disconnect(link.device)
            try await link.recorder.wait(for: "didDisconnect")
            #expect(link.recorder.lines == ["didDisconnect CB 7 false 0"])
            #expect(try await link.device.value(0xFFF1) == [7])
            await link.device.behave(nil)
            link.manager.connect(link.peripheral)
            try await link.recorder.wait(for: "didConnect")
            let again = try #require(try await bench.discover(link.peripheral, link.recorder)[Self.one])
            let bytes = [UInt8](1...22)
            link.peripheral.writeValue(Data(bytes), for: again, type: .withResponse)
            try await link.recorder.wait(for: "didWriteValueFor FFF1 nil")
            #expect(try await link.device.value(0xFFF1) == bytes)
        }
    }

    // MARK: Changes of the services

    /// What the program has found can be found again, and is used.
    private func discoverAndRead(_ link: Bench.Link, _ bench: Bench) async throws {
        let value = try #require(try await bench.discover(link.peripheral, link.recorder)[Self.one])
        link.peripheral.readValue(for: value)
        try await link.recorder.wait(for: "didUpdateValueFor FFF1 [7]")
    }

    /// A peer that announces changes, and the handle with which it does.
    private func announcer(_ bench: Bench) async throws -> (Bench.Link, AttributeHandle) {
        let link = try await connect(
            bench,
            VirtualDevice(
                name: "Changing",
                services: [
                    .genericAccess(name: "Changing", appearance: 0), .genericAttribute(databaseHash: nil),
                    VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write], value: [7])]),
                ], maximumMTU: 23))
        #expect(await link.device.isSubscribed(to: 0x2A05))
        // Generic Access has five attributes; a service and a declaration come before the value of Service Changed.
        return (link, 8)
    }

    @Test(.row("G19")) func announcementsThatMakeNoSenseAreNotReported() async throws {
        try await Bench.run { bench in
            let (link, handle) = try await announcer(bench)
            let values: [[UInt8]] = [
                [2, 0, 1, 0], [0, 0, 0, 0], [], [1], [1, 0, 0xFF, 0xFF, 0], [0xFF, 0xFF, 0, 0],
            ]
            for value in values {
                await link.device.send(raw: [0x1D, UInt8(handle), 0] + value)
                await bench.time.settle()
            }
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(link.recorder.lines == ["didUpdateValueFor FFF1 [7]"])
        }
    }

    @Test(.row("G19")) func aThousandAnnouncementsAreConfirmedAndHarmNothing() async throws {
        try await Bench.run { bench in
            let (link, handle) = try await announcer(bench)
            let (confirmations, requests) = (Lock(0), Lock(0))
            await link.device.behave { pdu, respond in
                (pdu == [0x1E] ? confirmations : requests).withLock { $0 += 1 }
                return withoutDelay(respond(pdu))
            }
            for _ in 0..<1_000 {
                await link.device.send(raw: [0x1D, UInt8(handle), 0, 1, 0, 0xFF, 0xFF])
                await bench.time.settle()
            }
            try await bench.time.clock.sleep(for: .seconds(20))
            #expect(confirmations.withLock { $0 } == 1_000)
            // Each ends the library's own subscription to announcements too, which takes three requests; nothing else is found again.
            #expect(requests.withLock { $0 } <= 3_000)
            #expect(link.recorder.count(of: "didModifyServices [\"FFF0\"]") == 1)
            #expect(link.recorder.count(of: "didDisconnect") == 0)
            try await discoverAndRead(link, bench)
        }
    }

    /// The peer announces it before its response to the first request.
    @Test(.row("G20")) func aChangeInTheMiddleOfADiscoveryIsReported() async throws {
        try await Bench.run { bench in
            let (link, handle) = try await announcer(bench)
            let isAnnounced = Lock(false)
            await link.device.behave { pdu, respond in
                let responses = respond(pdu)
                let isFirst =
                    pdu.first == 0x10
                    && isAnnounced.withLock { isAnnounced in
                        defer { isAnnounced = true }
                        return !isAnnounced
                    }
                let change: [UInt8] = [0x1D, UInt8(handle), 0, 1, 0, 0xFF, 0xFF]
                return withoutDelay(isFirst ? [change] + responses : responses)
            }
            link.peripheral.discoverServices(nil)
            try await link.recorder.wait(for: "didModifyServices [\"FFF0\"]")
            try await bench.time.clock.sleep(for: .seconds(30))
            #expect(isAnnounced.withLock { $0 })
            #expect(link.recorder.count(of: "didDiscoverServices") == 1)
            #expect(link.recorder.count(of: "didDisconnect") == 0)
            try await discoverAndRead(link, bench)
        }
    }

    /// The parts must not be written to something else.
    @Test(.row("G20")) func aChangeInTheMiddleOfALongWriteEndsIt() async throws {
        try await Bench.run { bench in
            let (link, handle) = try await announcer(bench)
            let isAnnounced = Lock(false)
            await link.device.behave { pdu, respond in
                let responses = respond(pdu)
                let isFirst =
                    pdu.first == 0x16
                    && isAnnounced.withLock { isAnnounced in
                        defer { isAnnounced = true }
                        return !isAnnounced
                    }
                let change: [UInt8] = [0x1D, UInt8(handle), 0, 1, 0, 0xFF, 0xFF]
                return withoutDelay(isFirst ? [change] + responses : responses)
            }
            let value = try link.characteristic(Self.one)
            link.peripheral.writeValue(Data(count: 100), for: value, type: .withResponse)
            try await link.recorder.wait(for: "didWriteValueFor FFF1 CB 2")
            try await link.recorder.wait(for: "didModifyServices [\"FFF0\"]")
            try await bench.time.clock.sleep(for: .seconds(30))
            #expect(link.recorder.count(of: "didWriteValueFor") == 1)
            #expect(try await link.device.value(0xFFF1) == [7])
        }
    }

    /// Refuses the first reads as out of sync, although nothing has changed; `count` are the reads that came.
    private func refuse(_ refusals: Int, _ device: VirtualPeripheral, counting count: Lock<Int>) async {
        await device.behave { pdu, respond in
            let isRefused =
                pdu.first == 0x0A
                && count.withLock { count in
                    count += 1
                    return count <= refusals
                }
            let responses = isRefused ? [[0x01, 0x0A, pdu[1], pdu[2], 0x12]] : respond(pdu)
            return responses.map { (delay: .milliseconds(10), pdu: $0) }
        }
    }

    /// How often the peer refuses, and what is reported.
    @Test(.row("G21"), arguments: [(1, "didUpdateValueFor FFF1 [7]"), (2, "didUpdateValueFor FFF1 ATT 18")])
    func aReadThatIsOutOfSyncIsRepeatedOnce(_ refusals: Int, _ report: String) async throws {
        try await Bench.run { bench in
            let (link, _) = try await announcer(bench)
            let reads = Lock(0)
            await refuse(refusals, link.device, counting: reads)
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            try await bench.time.clock.sleep(for: .seconds(30))
            #expect(link.recorder.lines.sorted() == ["didModifyServices [\"FFF0\"]", report])
            #expect(reads.withLock { $0 } == 2)
        }
    }

    /// The reads that wait when the first one is refused; with and without a Database Hash.
    @Test(.row("G21"), arguments: [false, true]) func readsThatWaitAreRepeatedToo(_ hasHash: Bool) async throws {
        try await Bench.run { bench in
            let link =
                if hasHash { try await announcer(bench).0 } else { try await connect(bench, Self.device([[7]])) }
            let reads = Lock(0)
            await refuse(1, link.device, counting: reads)
            let value = try link.characteristic(Self.one)
            for _ in 0..<3 { link.peripheral.readValue(for: value) }
            try await bench.time.clock.sleep(for: .seconds(30))
            #expect(link.recorder.count(of: "didUpdateValueFor") == 3)
            #expect(link.recorder.count(of: "didUpdateValueFor FFF1 [7]") == 3)
            #expect(reads.withLock { $0 } == 4)
        }
    }

    @Test(.row("G21")) func aReadThatIsOutOfSyncIsNotRepeatedOnAnotherCharacteristic() async throws {
        try await Bench.run { bench in
            let (link, _) = try await announcer(bench)
            let changed = VirtualDevice(
                name: "Changing",
                services: [
                    .genericAccess(name: "Changing", appearance: 0), .genericAttribute(databaseHash: nil),
                    VirtualService(0xFFE0, [VirtualCharacteristic(0xFFE1, [.read, .write], value: [9])]),
                ], maximumMTU: 23)
            await link.device.changeServices(to: changed, isAnnounced: false)
            let reads = Lock(0)
            await refuse(1, link.device, counting: reads)
            link.peripheral.readValue(for: try link.characteristic(Self.one))
            try await bench.time.clock.sleep(for: .seconds(30))
            #expect(
                link.recorder.lines.sorted() == ["didModifyServices [\"FFF0\"]", "didUpdateValueFor FFF1 CB 2"])
            #expect(reads.withLock { $0 } == 1)
        }
    }

    /// The peer refuses the first write as out of sync, although it has changed nothing.
    @Test(.row("G21")) func aWriteThatIsOutOfSyncIsNotRepeated() async throws {
        try await Bench.run { bench in
            let (link, _) = try await announcer(bench)
            let writes = Lock(0)
            await link.device.behave { pdu, respond in
                // Write Request with a value of one byte; configurations have two.
                let isFirst =
                    pdu.first == 0x12 && pdu.count == 4
                    && writes.withLock { writes in
                        writes += 1
                        return writes == 1
                    }
                let responses = isFirst ? [[0x01, 0x12, pdu[1], pdu[2], 0x12]] : respond(pdu)
                return withoutDelay(responses)
            }
            let value = try link.characteristic(Self.one)
            link.peripheral.writeValue(Data([8]), for: value, type: .withResponse)
            try await link.recorder.wait(for: "didWriteValueFor FFF1 CB 2")
            // What the program knows may be wrong.
            try await link.recorder.wait(for: "didModifyServices [\"FFF0\"]")
            try await bench.time.clock.sleep(for: .seconds(30))
            #expect(writes.withLock { $0 } == 1)
            #expect(link.recorder.count(of: "didWriteValueFor") == 1)
            #expect(try await link.device.value(0xFFF1) == [7])
            let again = try #require(try await bench.discover(link.peripheral, link.recorder)[Self.one])
            link.peripheral.writeValue(Data([8]), for: again, type: .withResponse)
            try await link.recorder.wait(for: "didWriteValueFor FFF1 nil")
            #expect(try await link.device.value(0xFFF1) == [8])
        }
    }
}
